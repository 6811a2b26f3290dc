"""What nodes report, judged with literals."""

from dataclasses import replace

import pytest

from fabric.core.ids import AgentId, HostName, OwnerId, Principal, SessionId
from fabric.core.model import (
    Caller,
    EventKind,
    ExitStatus,
    OpenSpec,
    SandboxMode,
    SessionStatus,
)
from fabric.core.settings import RegistrySettings
from fabric.registry.instructions import Announce, Evict, Fence, Instruction, TasksLost
from fabric.registry.reconcile import described, exit_text, node_reported, nodes_alive
from fabric.registry.session import SessionState
from fabric.registry.table import Table
from tests.unit.registry.test_table import acquired, effects, info, published, table

OWNER, HOST, OTHER = OwnerId("own_1"), HostName("n1"), HostName("n2")
ONE, TWO = SessionId("ses_1"), SessionId("ses_2")
EVICT = Evict(HOST, ONE, "no owner has this session")


def spec(session_id: SessionId = ONE, **changes: object) -> OpenSpec:
    base = OpenSpec(
        session_id,
        OWNER,
        1,
        Principal("p"),
        AgentId("a"),
        "shell",
        SandboxMode.READ_ONLY,
        name="x",
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def report(
    made: Table, *specs: OpenSpec, host: HostName = HOST, revision: int | None = None
) -> list[Instruction]:
    seen = [(info(item.session_id), item) for item in specs]
    known = made.revision if revision is None else revision
    return effects(node_reported(made, host, known, seen, 0.0))


def test_a_known_session_is_left_alone():
    made = table()
    published(made, acquired(made), ONE, "x")
    assert report(made, spec()) == []
    made.sessions[ONE].away_since = 1.0
    assert report(made, spec(), host=OTHER) == []
    assert made.sessions[ONE].away_since == 1.0
    assert report(made, spec()) == []
    assert made.sessions[ONE].away_since is None


def test_a_missing_session_is_lost_unless_it_changed_since_the_question():
    made = table()
    revision = made.revision
    caller = acquired(made)
    published(made, caller, ONE)
    assert report(made, revision=revision) == []
    out = report(made)
    why = "node n1 does not run it any more"
    assert out == [
        Announce(OWNER, EventKind.SESSION_LOST, ONE, detail=why),
        TasksLost(ONE, why),
    ]
    assert report(made, host=OTHER) == []


def test_opens_and_closes_in_flight_are_nobodys_business():
    made = table()
    caller = acquired(made)
    published(made, caller, ONE)
    made.begin_close(caller, ONE, "r")
    made.reserve(caller, TWO, "shell", None)
    made.assign(TWO, HOST)
    assert report(made) == []
    assert report(made, spec(TWO), spec(ONE)) == []
    assert made.sessions[TWO].state is SessionState.OPENING


def test_an_unclean_open_that_the_node_does_not_have_is_gone():
    made = table()
    caller = acquired(made)
    made.reserve(caller, ONE, "shell", None)
    made.assign(ONE, HOST)
    made.rollback_failed(ONE, "x", 0.0)
    assert report(made, spec()) == []
    assert made.sessions[ONE].state is SessionState.UNCLEAN
    assert report(made) == [TasksLost(ONE, "it was never published")]


def test_a_closed_session_is_evicted_unless_the_report_is_older():
    made = table()
    caller = acquired(made)
    published(made, caller, ONE)
    revision = made.revision
    made.begin_close(caller, ONE, "r")
    made.closed(ONE, 0.0)
    assert report(made, spec(), revision=revision) == []
    assert report(made, spec()) == [EVICT]


def test_a_lost_session_returns_only_to_a_live_owner_in_the_same_mode():
    made = table()
    caller = acquired(made)
    published(made, caller, ONE, "x")
    made.lost(ONE, "gone", 0.0)
    assert report(made, spec(mode=SandboxMode.WORKSPACE_WRITE)) == [EVICT]
    assert report(made, spec()) == [
        Announce(OWNER, EventKind.SESSION_READOPTED, ONE, detail="its node is back")
    ]
    assert made.find(caller, ONE).name == "x"
    made.lost(ONE, "gone", 0.0)
    made.reserve(caller, TWO, "shell", "x")
    report(made, spec())
    assert made.find(caller, ONE).name is None
    made.lost(ONE, "gone", 0.0)
    made.dispose(OWNER, "released", 0.0)
    assert report(made, spec()) == [EVICT]
    made.withdraw(TWO, 0.0)
    assert report(made, spec()) == [EVICT]


def test_an_unknown_session_is_adopted_with_its_owner():
    made = table()
    both = (spec(epoch=3), spec(TWO, epoch=5, name=None))
    assert report(made, *both) == []
    assert report(made, *both) == [Fence(HOST, ONE, 5)]
    caller = Caller(OWNER, 5)
    assert [session.name for session in made.listed(caller)] == ["x", None]
    assert made.load == {HOST: 2}


def test_an_unknown_session_of_a_known_owner_is_adopted_in_the_same_mode_only():
    made = table()
    caller = acquired(made)
    assert report(made, spec(mode=SandboxMode.WORKSPACE_WRITE)) == [EVICT]
    assert report(made, spec()) == []
    assert made.find(caller, ONE).host == HOST


def test_an_unknown_session_does_not_displace_the_pairs_new_owner():
    made = table()
    acquired(made, key="own_2")
    assert report(made, spec()) == [EVICT]


def test_a_disposed_owner_is_not_brought_back_by_a_session():
    made = table()
    acquired(made)
    made.dispose(OWNER, "released", 0.0)
    assert report(made, spec()) == [EVICT]


def test_a_stale_fence_is_renewed_with_every_report():
    made = table()
    published(made, acquired(made), ONE)
    acquired(made)
    assert report(made, spec()) == [Fence(HOST, ONE, 2)]
    assert report(made, spec()) == [Fence(HOST, ONE, 2)]
    made.fenced(ONE, 2)
    assert report(made, spec()) == []


def test_unreachable_starts_with_the_first_sign():
    made = Table(RegistrySettings())
    caller = acquired(made)
    published(made, caller, ONE)
    made.reserve(caller, TWO, "shell", None)
    made.assign(TWO, HOST)
    assert nodes_alive(made, {HOST}, 1.0) == []
    assert made.sessions[ONE].away_since is None
    nodes_alive(made, {OTHER}, 2.0)
    nodes_alive(made, set(), 3.0)
    assert made.sessions[ONE].away_since == 2.0
    assert made.sessions[TWO].away_since is None


def test_an_exit_is_announced_once():
    made = table()
    published(made, acquired(made), ONE)
    ended = replace(info(ONE), status=SessionStatus(ExitStatus(exit_code=7)))
    out = described(made, ONE, ended)
    assert effects(out) == [Announce(OWNER, EventKind.SESSION_EXITED, ONE, detail="exit code 7")]
    assert described(made, ONE, ended) == []
    assert described(made, TWO, ended) == []


def test_a_new_worker_loses_the_tasks_of_the_old_one_and_old_reports_are_dropped():
    made = table()
    published(made, acquired(made), ONE)
    newer = replace(info(ONE), adoption=2)
    why = "the session's worker was replaced (adoption 2)"
    assert effects(described(made, ONE, newer)) == [
        TasksLost(ONE, why, below_adoption=2),
        Announce(OWNER, EventKind.SESSION_READOPTED, ONE, detail=why),
    ]
    assert described(made, ONE, replace(info(ONE), pid=1)) == []
    assert made.sessions[ONE].info == newer


def test_only_a_description_worth_it_is_written():
    made = table()
    published(made, acquired(made), ONE)
    assert described(made, ONE, replace(info(ONE), busy=True, last_activity_at=9.0)) == []
    assert len(described(made, ONE, replace(info(ONE), pid=9))) == 1


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (ExitStatus(exit_code=0), "exit code 0"),
        (ExitStatus(signal="SIGKILL", detail="oom"), "signal SIGKILL (oom)"),
        (ExitStatus(), "exit status unknown"),
    ],
)
def test_exits_read_well(status: ExitStatus, text: str):
    assert exit_text(status) == text
