"""What nodes report, compared with the table.

Theory. A report is what one node ran at some moment after the table had revision R, the
one read before the node was asked. Whatever the table changed since then, the report
cannot know, so only records and tombstones of revision <= R are judged by it:

- reported and known: the node is back, the description is refreshed, a stale fence renewed;
- reported, and closed or never published here: evicted;
- reported and lost here: taken back if its owner lives in the same mode, else evicted;
- reported and unknown (the journal was lost): adopted by its labels, the owner with it;
- known and not reported by a node that is alive: lost.

Nodes that are not alive make their sessions unreachable, and the table's tick gives them
up after ``lost_timeout_s``. Opens in flight are nobody's business but the open's.
"""

from collections.abc import Iterable

from fabric.core.ids import HostName, SessionId
from fabric.core.model import EventKind, ExitStatus, OpenSpec, SessionInfo
from fabric.registry.instructions import Announce, Evict, Instruction, TasksLost
from fabric.registry.session import Session, SessionState
from fabric.registry.table import Table

Report = tuple[SessionInfo, OpenSpec]


def node_reported(
    table: Table, host: HostName, revision: int, seen: Iterable[Report], now: float
) -> list[Instruction]:
    """Judge what a node runs; ``revision`` is the table's from before the node was asked."""
    out: list[Instruction] = []
    reported: set[SessionId] = set()
    for info, spec in seen:
        reported.add(spec.session_id)
        session = table.sessions.get(spec.session_id)
        if session is None:
            out += _unknown(table, host, revision, info, spec, now)
        elif not session.is_pending and session.host == host:
            session.away_since = None
            if session.is_visible:
                out += described(table, session.session_id, info)
                owner = table.owners.find(session.owner_id)
                out += table.fence(session, owner) if owner is not None else []
    for session in list(table.sessions.values()):
        if session.host != host or session.session_id in reported:
            continue
        if session.revision <= revision:
            out += _missing(table, session, now)
    return out


def nodes_alive(table: Table, alive: set[HostName], now: float) -> list[Instruction]:
    """Note which nodes answer; the sessions of the others are unreachable from now on."""
    for session in table.sessions.values():
        if session.host not in alive and not session.is_pending and session.away_since is None:
            session.away_since = now
    return []


def described(table: Table, session_id: SessionId, info: SessionInfo) -> list[Instruction]:
    """Take a newer description of a session; tell its exit and its re-adoption once."""
    session = table.sessions.get(session_id)
    if session is None or not session.is_visible:
        return []
    old = session.info
    if old is not None and info.adoption < old.adoption:
        return []
    session.info = info
    out: list[Instruction] = []
    if old is not None and info.adoption > old.adoption:
        why = f"the session's worker was replaced (adoption {info.adoption})"
        out.append(TasksLost(session_id, why, below_adoption=info.adoption))
        out.append(Announce(session.owner_id, EventKind.SESSION_READOPTED, session_id, detail=why))
    if info.status.exit is not None and (old is None or old.status.exit is None):
        detail = exit_text(info.status.exit)
        out.append(Announce(session.owner_id, EventKind.SESSION_EXITED, session_id, detail=detail))
    if out or old is None or (old.pid, old.rows, old.cols) != (info.pid, info.rows, info.cols):
        out.append(session.row())
    return out


def exit_text(status: ExitStatus) -> str:
    """Say in words how a program ended."""
    if status.signal is not None:
        text = f"signal {status.signal}"
    elif status.exit_code is not None:
        text = f"exit code {status.exit_code}"
    else:
        text = "exit status unknown"
    return f"{text} ({status.detail})" if status.detail else text


def _unknown(
    table: Table, host: HostName, revision: int, info: SessionInfo, spec: OpenSpec, now: float
) -> list[Instruction]:
    stone = table.tombstones.get(spec.session_id)
    if stone is not None and stone.revision > revision:
        return []
    evict = [Evict(host, spec.session_id, "no owner has this session")]
    if stone is not None and not stone.lost:
        return list(evict)
    owner = table.owners.find(spec.owner_id)
    out: list[Instruction] = []
    if owner is None and stone is None and table.owners.tombstones.get(spec.owner_id) is None:
        owner = table.owners.adopt(
            spec.owner_id, spec.principal, spec.agent, spec.epoch, spec.mode, now
        )
    if owner is None or not owner.is_live or owner.mode is not spec.mode:
        return list(evict)
    if spec.epoch > owner.epoch:
        owner.epoch = spec.epoch
    out.append(owner.row())
    name = spec.name if spec.name is not None and spec.name not in owner.names else None
    session = Session(
        spec.session_id,
        owner.owner_id,
        owner.epoch,
        spec.type,
        name,
        spec.mode,
        host=host,
        info=info,
        fenced_epoch=spec.epoch,
    )
    out += table.tombstones.lift(spec.session_id)
    out += table.insert_published(session, owner)
    out += table.fence(session, owner)
    if stone is not None:
        why = "its node is back"
        out.append(
            Announce(owner.owner_id, EventKind.SESSION_READOPTED, spec.session_id, detail=why)
        )
    return out


def _missing(table: Table, session: Session, now: float) -> list[Instruction]:
    session_id = session.session_id
    if session.state is SessionState.UNCLEAN:
        return table.rolled_back(session_id, now)
    if session.state is SessionState.PUBLISHED:
        return table.lost(session_id, f"node {session.host} does not run it any more", now)
    return []
