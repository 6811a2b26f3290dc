"""The table with literals: a stimulus, then the instructions it must give."""

import pytest

from fabric.core.errors import (
    CancelledCallError,
    CapacityReachedError,
    InternalError,
    InvalidRequestError,
    LimitReachedError,
    NameTakenError,
    OwnerNotLiveError,
    PermissionDeniedError,
    SandboxModeLockedError,
    SessionLostError,
)
from fabric.core.ids import AgentId, HostName, OwnerId, Principal, SessionId
from fabric.core.model import Caller, EventKind, SandboxMode, SessionInfo, SessionStatus
from fabric.core.settings import RegistrySettings
from fabric.registry.instructions import (
    AbortOpen,
    Announce,
    CloseSession,
    Drop,
    Fence,
    Instruction,
    Kind,
    OwnerGone,
    Put,
    TasksLost,
)
from fabric.registry.session import SessionState, session_of
from fabric.registry.table import Table

OWNER, PRINCIPAL, AGENT, HOST = OwnerId("own_1"), Principal("p"), AgentId("a"), HostName("n1")
ONE, TWO = SessionId("ses_1"), SessionId("ses_2")


def table(**settings: float) -> Table:
    return Table(RegistrySettings(**settings))  # type: ignore[arg-type]


def acquired(made: Table, agent: str = "a", key: str = OWNER, now: float = 0.0) -> Caller:
    owner, _ = made.acquire(PRINCIPAL, AgentId(agent), None, None, OwnerId(key), now)
    return Caller(owner.owner_id, owner.epoch)


def info(session_id: SessionId) -> SessionInfo:
    return SessionInfo(session_id, OWNER, "shell", SessionStatus())


def published(made: Table, caller: Caller, key: SessionId, name: str | None = None) -> SessionId:
    made.reserve(caller, key, "shell", name)
    made.assign(key, HOST)
    made.publish(key, info(key))
    return key


def effects(instructions: list[Instruction]) -> list[Instruction]:
    return [item for item in instructions if not isinstance(item, Put | Drop)]


def rows(instructions: list[Instruction]) -> list[tuple[str, Kind, str]]:
    return [
        ("put" if isinstance(item, Put) else "drop", item.kind, item.key)
        for item in instructions
        if isinstance(item, Put | Drop)
    ]


def test_a_first_acquire_makes_epoch_one_in_the_default_mode():
    made = table()
    owner, out = made.acquire(PRINCIPAL, AGENT, None, None, OWNER, 5.0)
    assert (owner.epoch, owner.mode, owner.deadline) == (1, SandboxMode.READ_ONLY, 125.0)
    assert rows(out) == [("put", Kind.OWNER, OWNER)]
    assert effects(out) == []


def test_a_take_over_raises_the_epoch_fences_sessions_and_aborts_opens():
    made = table()
    caller = acquired(made)
    published(made, caller, ONE)
    made.reserve(caller, TWO, "shell", None)
    owner, out = made.acquire(PRINCIPAL, AGENT, None, 50.0, OwnerId("own_2"), 10.0)
    assert (owner.owner_id, owner.epoch, owner.deadline) == (OWNER, 2, 60.0)
    assert effects(out) == [Fence(HOST, ONE, 2), AbortOpen(TWO, "it was re-acquired (epoch 2)")]
    assert rows(made.fenced(ONE, 2)) == [("put", Kind.SESSION, ONE)]
    assert made.fenced(ONE, 2) == made.fenced(TWO, 1) == made.fenced(SessionId("x"), 1) == []
    assert made.fence(made.sessions[ONE], owner) == []


def test_pairs_are_independent_of_each_other():
    made = table()
    first, second = acquired(made), acquired(made, "b", "own_2")
    assert first.owner_id != second.owner_id
    assert acquired(made).epoch == 2
    assert made.owners.authorise(second).epoch == 1


@pytest.mark.parametrize(
    ("mode", "lease_s", "error"),
    [
        (SandboxMode.DANGER_FULL_ACCESS, None, PermissionDeniedError),
        (None, 4.9, InvalidRequestError),
        (None, 1e9, InvalidRequestError),
        (None, float("nan"), InvalidRequestError),
    ],
)
def test_a_refused_acquire_changes_nothing(
    mode: SandboxMode | None, lease_s: float | None, error: type[Exception]
):
    made = Table(RegistrySettings(max_mode=SandboxMode.WORKSPACE_WRITE))
    with pytest.raises(error):
        made.acquire(PRINCIPAL, AGENT, mode, lease_s, OWNER, 0.0)
    assert len(made.owners) == 0
    caller = acquired(made)
    with pytest.raises(error):
        made.acquire(PRINCIPAL, AGENT, mode, lease_s, OwnerId("own_2"), 0.0)
    assert made.owners.authorise(caller).epoch == 1


def test_the_default_mode_is_never_above_the_highest():
    made = Table(
        RegistrySettings(
            default_mode=SandboxMode.DANGER_FULL_ACCESS, max_mode=SandboxMode.READ_ONLY
        )
    )
    assert made.owners.authorise(acquired(made)).mode is SandboxMode.READ_ONLY


def test_owners_of_a_principal_are_limited():
    made = table(max_owners_per_principal=1)
    caller = acquired(made)
    with pytest.raises(LimitReachedError, match="1 of 1"):
        acquired(made, "b", "own_2")
    made.dispose(caller.owner_id, "released", 0.0)
    acquired(made, "b", "own_2")


def test_ids_are_never_used_twice():
    made = table()
    caller = acquired(made)
    with pytest.raises(InternalError):
        acquired(made, "b", OWNER)
    published(made, caller, ONE)
    with pytest.raises(InternalError):
        made.reserve(caller, ONE, "shell", None)
    made.begin_close(caller, ONE, "r")
    made.closed(ONE, 0.0)
    with pytest.raises(InternalError):
        made.reserve(caller, ONE, "shell", None)
    made.dispose(OWNER, "released", 0.0)
    with pytest.raises(InternalError):
        acquired(made, "b", OWNER)


def test_authorisation_says_what_is_wrong():
    made = table()
    caller = acquired(made)
    with pytest.raises(OwnerNotLiveError, match="no such owner"):
        made.owners.authorise(Caller(OwnerId("own_9"), 1))
    with pytest.raises(OwnerNotLiveError, match=r"re-acquired \(epoch 1\).* of epoch 2"):
        made.owners.authorise(Caller(OWNER, 2))
    published(made, caller, ONE)
    made.dispose(OWNER, "it was released", 0.0)
    with pytest.raises(OwnerNotLiveError, match="it was released"):
        made.owners.authorise(caller)
    made.closed(ONE, 0.0)
    with pytest.raises(OwnerNotLiveError, match="it was released"):
        made.owners.authorise(caller)


def test_the_owner_is_checked_before_the_name_and_the_name_before_the_limits():
    made = table(max_sessions_per_owner=1)
    caller = acquired(made)
    made.reserve(caller, ONE, "shell", "x")
    with pytest.raises(OwnerNotLiveError):
        made.reserve(Caller(OWNER, 9), TWO, "shell", "x")
    with pytest.raises(NameTakenError, match="already being created"):
        made.reserve(caller, TWO, "shell", "x")
    with pytest.raises(CapacityReachedError, match="1 of 1 sessions"):
        made.reserve(caller, TWO, "shell", "y")
    made.assign(ONE, HOST)
    made.publish(ONE, info(ONE))
    with pytest.raises(NameTakenError, match="already exists"):
        made.reserve(caller, TWO, "shell", "x")
    assert list(made.sessions) == [ONE]


def test_every_state_of_a_session_locks_the_mode():
    made = table()
    caller = acquired(made)
    change = SandboxMode.WORKSPACE_WRITE

    def locked() -> bool:
        assert made.owners.set_mode(caller, SandboxMode.READ_ONLY) == []
        try:
            made.owners.set_mode(caller, change)
        except SandboxModeLockedError:
            return True
        made.owners.set_mode(caller, SandboxMode.READ_ONLY)
        return False

    assert not locked()
    made.reserve(caller, ONE, "shell", None)
    assert locked()  # opening
    made.assign(ONE, HOST)
    made.abort(ONE)
    assert locked()  # being rolled back
    made.rollback_failed(ONE, "pid 1 lives", 0.0)
    assert locked()  # unclean
    made.rolled_back(ONE, 0.0)
    assert not locked()
    published(made, caller, TWO)
    assert locked()  # published
    made.begin_close(caller, TWO, "r")
    assert locked()  # closing
    made.close_failed(TWO, "pid 1 lives", 0.0)
    assert locked()  # published again
    made.lost(TWO, "gone", 0.0)
    assert not locked()


def test_a_withdrawn_open_leaves_no_trace():
    made = table()
    caller = acquired(made)
    made.reserve(caller, ONE, "shell", "x")
    assert made.withdraw(ONE, 0.0) == [Drop(Kind.SESSION, ONE)]
    assert made.withdraw(ONE, 0.0) == []
    assert made.tombstones.get(ONE) is None
    made.reserve(caller, ONE, "shell", "x")


def test_an_open_is_moved_between_hosts():
    made = table()
    caller = acquired(made)
    made.reserve(caller, ONE, "shell", None)
    made.assign(ONE, HOST)
    made.assign(ONE, HostName("n2"))
    assert made.load == {"n2": 1}
    made.rolled_back(ONE, 0.0)
    assert made.load == {}


def test_an_aborted_open_is_not_published():
    made = table()
    caller = acquired(made)
    made.reserve(caller, ONE, "shell", None)
    made.assign(ONE, HOST)
    made.abort(ONE)
    assert made.abort(ONE) == made.abort(TWO) == []
    with pytest.raises(CancelledCallError):
        made.publish(ONE, info(ONE))
    acquired(made)
    with pytest.raises(OwnerNotLiveError, match="re-acquired"):
        made.publish(ONE, info(ONE))
    with pytest.raises(SessionLostError):
        made.publish(TWO, info(TWO))


def test_a_published_session_is_not_rolled_back_by_a_late_report():
    made = table()
    published(made, acquired(made), ONE)
    assert made.rolled_back(ONE, 0.0) == made.rollback_failed(ONE, "x", 0.0) == []
    assert made.abort(ONE) == []
    assert made.sessions[ONE].state is SessionState.PUBLISHED


def test_reports_on_what_is_gone_do_nothing():
    made = table()
    assert made.closed(ONE, 0.0) == made.lost(ONE, "x", 0.0) == []
    assert made.close_failed(ONE, "x", 0.0) == made.rolled_back(ONE, 0.0) == []
    assert made.retract(ONE, "x") == made.dispose(OWNER, "x", 0.0) == []
    caller = acquired(made)
    made.reserve(caller, ONE, "shell", None)
    assert made.close_failed(ONE, "x", 0.0) == made.lost(ONE, "x", 0.0) == []


def test_only_the_first_close_closes():
    made = table()
    caller = acquired(made)
    published(made, caller, ONE)
    first, out = made.begin_close(caller, ONE, "mine")
    assert first
    assert effects(out) == [CloseSession(ONE, "mine")]
    second, out = made.begin_close(caller, ONE, "mine too")
    assert not second
    assert out == [CloseSession(ONE, "mine too")]
    made.close_failed(ONE, "pid 1 lives", 0.0)
    assert made.begin_close(caller, ONE, "again")[0]
    out = made.closed(ONE, 0.0)
    assert out == [
        Drop(Kind.SESSION, ONE),
        Put(Kind.TOMBSTONE, ONE, {"owner_id": OWNER, "why": "it was closed", "lost": False}),
        TasksLost(ONE, "it was closed"),
    ]


def test_retracting_closes_what_was_just_published():
    made = table()
    caller = acquired(made)
    published(made, caller, ONE)
    assert effects(made.retract(ONE, "nobody waits")) == [CloseSession(ONE, "nobody waits")]
    assert made.retract(ONE, "nobody waits") == []


def test_sessions_are_listed_in_order_of_publication():
    made = table()
    caller = acquired(made)
    made.reserve(caller, ONE, "shell", None)
    published(made, caller, TWO)
    assert [session.session_id for session in made.listed(caller)] == [TWO]
    made.assign(ONE, HOST)
    made.publish(ONE, info(ONE))
    assert [session.session_id for session in made.listed(caller)] == [TWO, ONE]


def test_disposal_closes_registrations_first_and_forgets_the_owner_last():
    made = table()
    caller = acquired(made)
    three, four = SessionId("ses_3"), SessionId("ses_4")
    published(made, caller, ONE)
    made.reserve(caller, TWO, "shell", "x")
    made.reserve(caller, three, "shell", None)
    made.abort(three)
    made.reserve(caller, four, "shell", None)
    made.rollback_failed(four, "x", 0.0)
    out = made.dispose(OWNER, "it was released", 0.0)
    assert effects(out) == [
        Announce(OWNER, EventKind.OWNER_DISPOSED, detail="it was released"),
        CloseSession(ONE, "owner disposed: it was released"),
        AbortOpen(TWO, "it was released"),
        CloseSession(four, "owner disposed: it was released"),
    ]
    with pytest.raises(OwnerNotLiveError):
        made.reserve(caller, SessionId("ses_5"), "shell", None)
    acquired(made, key="own_2")
    made.rolled_back(TWO, 0.0)
    made.rolled_back(three, 0.0)
    made.closed(four, 0.0)
    made.close_failed(ONE, "pid 1 lives", 0.0)
    again = made.dispose(OWNER, "again", 0.0)
    assert effects(again) == [CloseSession(ONE, "owner disposed: again")]
    out = made.closed(ONE, 0.0)
    assert out[-1] == OwnerGone(OWNER)
    assert made.owners.find(OWNER) is None
    assert made.owners.not_live(OWNER).message.endswith("it was released")


def test_an_owner_without_sessions_is_gone_at_once():
    made = table()
    acquired(made)
    out = made.dispose(OWNER, "it was released", 0.0)
    assert effects(out) == [
        Announce(OWNER, EventKind.OWNER_DISPOSED, detail="it was released"),
        OwnerGone(OWNER),
    ]


def test_the_last_withdrawal_buries_a_disposed_owner():
    made = table()
    caller = acquired(made)
    made.reserve(caller, ONE, "shell", None)
    made.dispose(OWNER, "it was released", 0.0)
    assert made.withdraw(ONE, 0.0)[-1] == OwnerGone(OWNER)


def test_a_lease_is_announced_once_before_it_ends():
    made = table(lease_s=100)
    caller = acquired(made)
    assert made.tick(74.0) == []
    (warning,) = made.tick(80.0)
    assert warning == Announce(OWNER, EventKind.LEASE_EXPIRING, detail="20.0 s left")
    assert made.tick(90.0) == []
    assert made.owners.renew(caller, None, 90.0) == []
    assert made.tick(164.0) == []
    assert len(made.tick(166.0)) == 1
    assert rows(made.owners.renew(caller, 200.0, 170.0)) == [("put", Kind.OWNER, OWNER)]
    assert made.tick(300.0) == []
    assert OwnerGone(OWNER) in made.tick(370.0)


def test_failed_cleanups_are_tried_again_less_and_less_often():
    made = table()
    caller = acquired(made)
    made.reserve(caller, ONE, "shell", None)
    made.rollback_failed(ONE, "x", 0.0)
    moments = []
    for second in range(200):
        now = float(second)
        if second % 50 == 0:
            made.owners.renew(caller, None, now)
        out = [item for item in made.tick(now) if isinstance(item, CloseSession)]
        if out:
            moments.append(now)
            made.close_failed(ONE, "x", now)
    assert moments == [5.0, 15.0, 35.0, 75.0, 135.0, 195.0]


def test_a_published_session_whose_close_failed_is_left_to_its_owner():
    made = table(lease_s=10000)
    caller = acquired(made)
    published(made, caller, ONE)
    made.begin_close(caller, ONE, "r")
    made.close_failed(ONE, "x" * 9999, 0.0)
    assert made.tick(100.0) == []
    assert len(made.sessions[ONE].fault) == 500
    made.dispose(OWNER, "it was released", 100.0)
    made.close_failed(ONE, "x", 100.0)
    (_, close) = made.tick(130.0)
    assert close == CloseSession(ONE, "retry of a failed cleanup")


def test_an_unreachable_session_is_given_up_in_time():
    made = table(lost_timeout_s=60, lease_s=10000)
    caller = acquired(made)
    published(made, caller, ONE, "x")
    made.sessions[ONE].away_since = 10.0
    assert made.tick(69.0) == []
    out = made.tick(70.0)
    why = "its node n1 did not answer for 60 s"
    assert Announce(OWNER, EventKind.SESSION_LOST, ONE, detail=why) in out
    with pytest.raises(SessionLostError, match="60 s"):
        made.find(caller, ONE)
    made.reserve(caller, TWO, "shell", "x")


def test_tombstones_are_bounded_in_time_and_number():
    made = table(max_tombstones=2, tombstone_retention_s=50, lease_s=10000)
    caller = acquired(made)
    keys = [SessionId(f"ses_{n}") for n in range(3)]
    for key in keys:
        published(made, caller, key)
        made.lost(key, "x", 1.0)
    assert [made.tombstones.get(key) is not None for key in keys] == [False, True, True]
    assert made.tick(50.9) == []
    assert rows(made.tick(51.0)) == [("drop", Kind.TOMBSTONE, key) for key in keys[1:]]


def test_rows_bring_a_table_back():
    made = table()
    caller = acquired(made)
    three = SessionId("ses_3")
    published(made, caller, ONE, "x")
    published(made, caller, TWO)
    made.begin_close(caller, TWO, "r")
    made.reserve(caller, three, "shell", "y")
    made.assign(three, HOST)
    fresh = table()
    owner = made.owners.find(OWNER)
    assert owner is not None
    fresh.owners.restore(OWNER, owner.row().body, 0.0)
    for key, session in made.sessions.items():
        assert fresh.restore(session_of(key, session.row().body)) == []
    orphan = session_of("ses_9", {**made.sessions[ONE].row().body, "owner_id": "own_9"})
    assert fresh.restore(orphan) == [Drop(Kind.SESSION, "ses_9")]
    assert [session.row() for session in fresh.listed(caller)] == [
        session.row() for session in made.listed(caller)
    ]
    assert fresh.sessions[three].state is SessionState.UNCLEAN
    assert fresh.load == made.load
    assert effects(fresh.unfinished(0.0)) == [
        CloseSession(TWO, "resumed after a restart of the registry")
    ]
    with pytest.raises(NameTakenError):
        fresh.reserve(caller, SessionId("ses_4"), "shell", "x")
    fresh.reserve(caller, SessionId("ses_5"), "shell", "y")
    published(fresh, caller, SessionId("ses_6"))
    assert fresh.sessions[SessionId("ses_6")].order == 3


def test_an_owner_whose_disposal_was_all_but_done_is_buried_at_the_start():
    made = table()
    made.owners.restore(
        OWNER,
        {
            "principal": "p",
            "agent": "a",
            "epoch": 4,
            "mode": "read-only",
            "lease_s": 10.0,
            "state": "disposing",
            "why": "it was released",
        },
        0.0,
    )
    assert made.owners.find_live(PRINCIPAL, AGENT) is None
    assert made.unfinished(0.0)[-1] == OwnerGone(OWNER)
