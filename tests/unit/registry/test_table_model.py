"""The table against a model of its own: owners, sessions, names, modes, nodes, restarts.

The model keeps what a person would write down: who has which session, and where it is in
its life. After every step the invariants below must hold, in the table and in the rows
of its journal.
"""

import contextlib
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fabric.core.errors import (
    CancelledCallError,
    CapacityReachedError,
    ForeignSessionError,
    LimitReachedError,
    NameTakenError,
    OwnerNotLiveError,
    SandboxModeLockedError,
    SessionLostError,
    SessionNotFoundError,
)
from fabric.core.ids import AgentId, HostName, OwnerId, Principal, SessionId
from fabric.core.model import Caller, OpenSpec, SandboxMode, SessionInfo, SessionStatus
from fabric.core.settings import RegistrySettings
from fabric.registry.instructions import Drop, Instruction, Kind, OwnerGone, Put
from fabric.registry.reconcile import node_reported, nodes_alive
from fabric.registry.session import SessionState, session_of
from fabric.registry.table import Table
from tests.support.models import model_settings

SETTINGS = RegistrySettings(
    lease_s=50, min_lease_s=5, word_s=10, lost_timeout_s=20, max_sessions_per_owner=5,
    max_pending_opens_per_owner=3, max_owners_per_principal=3,
)  # fmt: skip
AGENTS = st.sampled_from(["a", "b", "c"])
NAMES = st.sampled_from(["x", "y", None])
HOSTS = st.sampled_from([HostName("n1"), HostName("n2")])
MODES = st.sampled_from(list(SandboxMode))
INDEX = st.integers(0, 9)


class TableModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.table = Table(SETTINGS)
        self.now = 0.0
        self.rows: dict[tuple[Kind, str], dict[str, Any]] = {}
        self.count = 0
        self.callers: list[Caller] = []
        self.sessions: list[SessionId] = []
        self.names: dict[SessionId, str | None] = {}
        self.modes: dict[SessionId, SandboxMode] = {}
        self.used: set[str] = set()

    @initialize()
    def begin(self) -> None:
        """One owner and one pending open, so that every rule has something to act on."""
        self.acquire("a", SandboxMode.READ_ONLY)
        self.reserve(0, "x", HostName("n1"))

    # What the registry does with instructions

    def write(self, out: list[Instruction]) -> None:
        for item in out:
            if isinstance(item, Put):
                self.rows[item.kind, item.key] = item.body
            elif isinstance(item, Drop):
                self.rows.pop((item.kind, item.key), None)
            elif isinstance(item, OwnerGone):
                assert self.table.owners.find(item.owner_id) is None

    def fresh(self, prefix: str) -> str:
        self.count += 1
        key = f"{prefix}_{self.count}"
        assert key not in self.used
        self.used.add(key)
        return key

    def caller(self, index: int) -> Caller:
        recent = self.callers[-6:]
        return recent[index % len(recent)]

    def session(self, index: int) -> SessionId:
        """Pick among the living and the three that went last."""
        gone = [key for key in self.sessions if key not in self.table.sessions][-3:]
        there = [*self.table.sessions, *gone]
        return there[index % len(there)]

    def info(self, key: SessionId) -> SessionInfo:
        return SessionInfo(key, OwnerId("o"), "shell", SessionStatus())

    # Owners

    @rule(agent=AGENTS, mode=st.none() | MODES)
    def acquire(self, agent: str, mode: SandboxMode | None) -> None:
        live = self.table.owners.find_live(Principal("p"), AgentId(agent))
        fresh = OwnerId(self.fresh("own"))
        locked = (
            live is not None and mode is not None and live.mode is not mode and bool(live.sessions)
        )
        before = None if live is None else live.epoch
        try:
            owner, out = self.table.acquire(
                Principal("p"), AgentId(agent), mode, None, fresh, self.now
            )
        except SandboxModeLockedError:
            assert locked
            assert live is not None
            assert live.epoch == before
            return
        except LimitReachedError:
            assert len(self.table.owners) == SETTINGS.max_owners_per_principal
            return
        assert not locked
        assert owner.epoch == (1 if before is None else before + 1)
        self.write(out)
        self.callers.append(Caller(owner.owner_id, owner.epoch))

    @rule(index=INDEX)
    def renew(self, index: int) -> None:
        with contextlib.suppress(OwnerNotLiveError):
            self.write(self.table.owners.renew(self.caller(index), None, self.now))

    @rule(index=INDEX, mode=MODES)
    def set_mode(self, index: int, mode: SandboxMode) -> None:
        caller = self.caller(index)
        owner = self.table.owners.find(caller.owner_id)
        mine = [
            key
            for key, item in self.table.sessions.items()
            if owner and item.owner_id == owner.owner_id
        ]
        try:
            self.write(self.table.owners.set_mode(caller, mode))
        except SandboxModeLockedError:
            assert owner is not None
            assert mine
            assert mode is not owner.mode
        except OwnerNotLiveError:
            pass
        else:
            assert owner is not None
            assert owner.mode is mode

    @rule(index=INDEX)
    def dispose(self, index: int) -> None:
        caller = self.caller(index)
        self.write(self.table.dispose(caller.owner_id, "released", self.now))
        with pytest.raises(OwnerNotLiveError):
            self.table.owners.authorise(caller)

    # Sessions

    @rule(index=INDEX, name=NAMES, host=HOSTS)
    def reserve(self, index: int, name: str | None, host: HostName) -> None:
        caller = self.caller(index)
        key = SessionId(self.fresh("ses"))
        owner = self.table.owners.find(caller.owner_id)
        taken = {
            self.names[item]
            for item in (owner.sessions if owner else ())
            if self.table.sessions[item].state is not SessionState.UNCLEAN
        } - {None}
        try:
            session = self.table.reserve(caller, key, "shell", name)
        except OwnerNotLiveError:
            return
        except NameTakenError:
            assert name in taken
            return
        except CapacityReachedError:
            assert owner is not None
            assert len(owner.sessions) >= 3
            return
        assert name not in taken
        self.names[key] = name
        self.modes[key] = session.mode
        self.sessions.append(key)
        self.write(self.table.assign(key, host))

    @rule(index=INDEX, names=st.lists(NAMES, min_size=1, max_size=3), host=HOSTS)
    def open(self, index: int, names: list[str | None], host: HostName) -> None:
        for name in names:
            before = len(self.sessions)
            self.reserve(index, name, host)
            if len(self.sessions) > before:
                self.publish(list(self.table.sessions).index(self.sessions[-1]))

    @rule(index=INDEX)
    def publish(self, index: int) -> None:
        key = self.session(index)
        session = self.table.sessions.get(key)
        if session is not None and session.is_visible:
            return
        try:
            self.write(self.table.publish(key, self.info(key)))
        except (OwnerNotLiveError, CancelledCallError, SessionLostError):
            assert (
                session is None
                or session.state is not SessionState.OPENING
                or (not self.is_current(session.owner_id, session.epoch))
            )
            return
        assert session is not None
        assert self.is_current(session.owner_id, session.epoch)

    def is_current(self, owner_id: OwnerId, epoch: int) -> bool:
        owner = self.table.owners.find(owner_id)
        return owner is not None and owner.is_live and owner.epoch == epoch

    @rule(index=INDEX, step=st.sampled_from(["abort", "withdraw", "rolled_back", "failed"]))
    def roll_back(self, index: int, step: str) -> None:
        key = self.session(index)
        session = self.table.sessions.get(key)
        visible = session is not None and session.is_visible
        if step == "withdraw":
            if session is not None and session.is_pending:
                self.write(self.table.withdraw(key, self.now))
                assert key not in self.table.sessions
        elif step == "abort":
            self.write(self.table.abort(key))
        elif step == "failed":
            self.write(self.table.rollback_failed(key, "x", self.now))
        else:
            self.write(self.table.rolled_back(key, self.now))
        assert visible == (key in self.table.sessions and self.table.sessions[key].is_visible)

    @rule(index=INDEX, who=INDEX)
    def begin_close(self, index: int, who: int) -> None:
        key, caller = self.session(index), self.caller(who)
        session = self.table.sessions.get(key)
        try:
            _, out = self.table.begin_close(caller, key, "r")
        except (OwnerNotLiveError, SessionNotFoundError, ForeignSessionError):
            return
        self.write(out)
        assert session is not None
        assert session.owner_id == caller.owner_id
        assert session.state is SessionState.CLOSING
        assert self.is_current(caller.owner_id, caller.epoch)

    @rule(index=INDEX, how=st.sampled_from(["closed", "close_failed", "lost", "fenced"]))
    def settle(self, index: int, how: str) -> None:
        key = self.session(index)
        session = self.table.sessions.get(key)
        if how == "closed" and session is not None and session.state is SessionState.CLOSING:
            self.write(self.table.closed(key, self.now))
            assert key not in self.table.sessions
        elif how == "close_failed":
            self.write(self.table.close_failed(key, "pid 9 lives", self.now))
            assert (session is None) == (key not in self.table.sessions)
        elif how == "lost":
            self.write(self.table.lost(key, "gone", self.now))
        elif how == "fenced" and session is not None:
            self.write(self.table.fenced(key, session.epoch))

    # Time, nodes, restarts

    @rule(seconds=st.integers(1, 30))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        self.write(self.table.tick(self.now))

    @rule(host=HOSTS, keep=st.integers(0, 1023), away=st.booleans())
    def report(self, host: HostName, keep: int, away: bool) -> None:
        keep |= 1023 if keep % 3 else 0
        if away:
            self.write(nodes_alive(self.table, {HostName("n1"), HostName("n2")} - {host}, self.now))
            return
        seen = []
        for number, key in enumerate(self.sessions[-10:]):
            session = self.table.sessions.get(key)
            if session is not None and session.host == host and keep >> number & 1:
                seen.append((self.info(key), self.spec(key, session.owner_id, session.epoch)))
        self.write(node_reported(self.table, host, self.table.revision, seen, self.now))

    @rule(index=INDEX, host=HOSTS)
    def come_back(self, index: int, host: HostName) -> None:
        """A node reports one session the table may have closed, lost or never published."""
        key = self.session(index)
        stone = self.table.tombstones.get(key)
        if stone is None:
            return
        spec = self.spec(key, stone.owner_id, 1)
        seen = [(self.info(key), spec)]
        for other, session in self.table.sessions.items():
            if session.host == host:
                seen.append((self.info(other), self.spec(other, session.owner_id, session.epoch)))
        self.write(node_reported(self.table, host, self.table.revision, seen, self.now))
        assert (key in self.table.sessions) <= stone.lost

    def spec(self, key: SessionId, owner_id: OwnerId, epoch: int) -> OpenSpec:
        return OpenSpec(
            key, owner_id, epoch, Principal("p"), AgentId("a"), "shell", self.modes[key],
            name=self.names[key],
        )  # fmt: skip

    @rule()
    def restart(self) -> None:
        """Build the table again from what was written, as after kill -9."""
        visible = {key: item.row() for key, item in self.table.sessions.items() if item.is_visible}
        others = {key for key in self.table.sessions if key not in visible}
        fresh = Table(SETTINGS)
        for (kind, key), body in self.rows.items():
            if kind is Kind.OWNER:
                fresh.owners.restore(key, body, self.now)
            elif kind is Kind.TOMBSTONE:
                stones = fresh.owners.tombstones if key.startswith("own") else fresh.tombstones
                stones.restore(key, body, self.now)
        for (kind, key), body in list(self.rows.items()):
            if kind is Kind.SESSION:
                assert fresh.restore(session_of(key, body)) == []
        self.table = fresh
        assert {k: s.row() for k, s in fresh.sessions.items() if s.is_visible} == visible
        assert {key for key in fresh.sessions if key not in visible} == others
        self.write(fresh.unfinished(self.now))

    # What always holds

    @invariant()
    def every_session_has_its_owner_and_its_owners_mode(self) -> None:
        for key, session in self.table.sessions.items():
            owner = self.table.owners.find(session.owner_id)
            assert owner is not None
            assert key in owner.sessions
            assert session.mode is owner.mode
        for owner in self.table.owners:
            assert all(
                self.table.sessions[key].owner_id == owner.owner_id for key in owner.sessions
            )

    @invariant()
    def names_are_unique_and_held_by_who_has_them(self) -> None:
        for owner in self.table.owners:
            held = [
                self.table.sessions[key].name
                for key in owner.sessions
                if self.table.sessions[key].state is not SessionState.UNCLEAN
            ]
            named = [name for name in held if name is not None]
            assert len(named) == len(set(named))
            assert sorted(owner.names) == sorted(named)

    @invariant()
    def hosts_are_counted(self) -> None:
        hosts = [session.host for session in self.table.sessions.values() if session.host]
        assert dict(self.table.load) == {host: hosts.count(host) for host in set(hosts)}

    @invariant()
    def nothing_gone_lives_and_no_dead_owner_lingers(self) -> None:
        for key in self.table.sessions:
            assert self.table.tombstones.get(key) is None
        for owner in self.table.owners:
            assert self.table.owners.tombstones.get(owner.owner_id) is None
            assert owner.is_live or owner.is_active
        live = [(owner.principal, owner.agent) for owner in self.table.owners if owner.is_live]
        assert len(live) == len(set(live))

    @invariant()
    def the_journal_has_the_same(self) -> None:
        kinds = {kind: {key for found, key in self.rows if found is kind} for kind in Kind}
        assert kinds[Kind.OWNER] == {owner.owner_id for owner in self.table.owners}
        assert kinds[Kind.SESSION] == set(self.table.sessions)
        for owner in self.table.owners:
            assert self.rows[Kind.OWNER, owner.owner_id] == owner.row().body

    def teardown(self) -> None:
        """Disposal leaves nothing."""
        for owner in self.table.owners:
            self.write(self.table.dispose(owner.owner_id, "the end", self.now))
        for key in list(self.table.sessions):
            session = self.table.sessions[key]
            out = self.table.rolled_back(key, self.now) or self.table.closed(key, self.now)
            self.write(out)
            assert session.session_id not in self.table.sessions
        assert len(self.table.owners) == 0
        assert not self.table.load
        assert {kind for kind, _ in self.rows} <= {Kind.TOMBSTONE}


TestTableModel = pytest.mark.timeout(120)(TableModel.TestCase)
TestTableModel.settings = model_settings()
