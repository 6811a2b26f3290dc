"""The queue of a shared terminal against a plain list: order, answers, moves."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fabric.core.errors import FabricError, InternalError
from tests.support.models import model_settings
from workers.turn_table import MOVES, Phase, Stimulus
from workers.turn_words import (
    Dispatch,
    Granted,
    HandedBack,
    Instruction,
    Interrupt,
    Kind,
    Refuse,
    Reject,
    Restart,
    Revoked,
    Settle,
    Sight,
    TurnLimits,
)
from workers.turns import Turns

LIMITS = TurnLimits(max_queued=5, max_input_bytes=8)
KINDS = st.sampled_from(list(Kind))


class TurnsModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.turns = Turns(LIMITS)
        self.now = 0.0
        self.next_op = 1
        self.accepted: list[int] = []  # in order, not yet granted
        self.open: set[int] = set()  # accepted, caller not answered
        self.lease: int | None = None  # granted, not revoked
        self.told: list[int] = []
        self.undelivered: set[int] = set()
        self.interrupting = self.restarting = False

    def take(self, out: list[Instruction]) -> None:
        for item in out:
            match item:
                case Granted(op, lease):
                    if op in self.accepted:
                        assert op == self.accepted[0], "granted out of order"
                        self.accepted.remove(op)
                    if lease is not None:
                        assert self.lease is None
                        self.lease = lease
                case Dispatch(_, dispatch):
                    self.undelivered.add(dispatch)
                case Interrupt():
                    assert not (self.undelivered & self.turns._writing)
                    self.interrupting = True
                case Restart():
                    self.restarting = True
                case Settle(op, _) | Reject(op, _):
                    self.open.remove(op)  # exactly once
                    if op in self.accepted:
                        self.accepted.remove(op)
                case Revoked(lease):
                    assert self.lease == lease
                    self.lease = None
                case HandedBack(lease, _):
                    assert lease not in self.told
                    assert self.lease is None
                    self.told.append(lease)
                case Refuse(error):
                    assert isinstance(error, FabricError)

    @rule(kind=KINDS, size=st.integers(0, 10), if_idle=st.booleans())
    def accept(self, kind: Kind, size: int, if_idle: bool) -> None:
        op, self.next_op = self.next_op, self.next_op + 1
        self.open.add(op)
        self.accepted.append(op)
        busy = self.turns.phase is not Phase.READY
        out = self.turns.accept(op, kind, self.now, size=size, if_idle=if_idle)
        if out and isinstance(out[0], Refuse):
            self.open.remove(op)
            self.accepted.remove(op)
        elif kind is not Kind.RESET:
            assert not (busy and if_idle)
        self.take(out)

    @rule(step=st.sampled_from([0.1, 4.9, 5.0, 15.0, 30.0]))
    def time_passes(self, step: float) -> None:
        self.now += step
        self.take(self.turns.tick(self.now))

    @precondition(lambda self: self.undelivered)
    @rule()
    def delivered(self) -> None:
        dispatch = min(self.undelivered)
        self.undelivered.discard(dispatch)
        self.take(self.turns.wrote(dispatch, self.now))

    @rule(sight=st.sampled_from(list(Sight)), behind=st.integers(0, 2))
    def seen(self, sight: Sight, behind: int) -> None:
        before = (self.turns.phase, self.turns.active)
        self.take(self.turns.sight(sight, self.turns.dispatch - behind, self.now))
        if behind:
            assert (self.turns.phase, self.turns.active) == before

    @precondition(lambda self: self.interrupting)
    @rule(worked=st.booleans())
    def interrupt(self, worked: bool) -> None:
        self.interrupting = False
        done = self.turns.interrupted if worked else self.turns.not_interrupted
        self.take(done(self.now))

    @precondition(lambda self: self.restarting)
    @rule(worked=st.booleans())
    def restart(self, worked: bool) -> None:
        self.restarting = False
        if worked:
            self.take(self.turns.restarted(self.now))
        else:
            self.take(self.turns.not_restarted(InternalError("no shell"), self.now))

    @rule(failed=st.booleans())
    def write_ends_badly(self, failed: bool) -> None:
        error = InternalError("write")
        done = self.turns.write_failed if failed else self.turns.refused
        self.take(done(error, self.now))

    @rule(behind=st.integers(0, 1))
    def exit(self, behind: int) -> None:
        self.take(self.turns.exited(self.turns.generation - behind, self.now))

    @rule(op=st.integers(1, 30))
    def cancel(self, op: int) -> None:
        self.take(self.turns.cancel(op, self.now))

    @rule()
    def take_over(self) -> None:
        self.take(self.turns.take_over(self.turns.takeover or 1, self.turns.generation))

    @rule(size=st.integers(1, 4), behind=st.integers(0, 1))
    def type(self, size: int, behind: int) -> None:
        lease = self.turns.lease - behind
        out = self.turns.human_input(lease, size)
        assert isinstance(out[0], Refuse) or (lease == self.lease and not behind)
        self.take(out)

    @rule()
    def human_cancel(self) -> None:
        self.take(self.turns.human_cancel(self.turns.lease))

    @rule(left=st.booleans())
    def connection(self, left: bool) -> None:
        self.take(self.turns.controller_left(self.now) if left else self.turns.controller_back())

    @invariant()
    def the_queue_is_the_list(self) -> None:
        assert [item.op for item in self.turns.waiting] == self.accepted

    @invariant()
    def nothing_waits_at_a_free_slot(self) -> None:
        if self.turns.phase in (Phase.READY, Phase.BLOCKED, Phase.EXITED):
            assert not self.turns.waiting
            assert self.turns.active is None

    @invariant()
    def the_bound_holds(self) -> None:
        count = len(self.turns.waiting) + (self.turns.active is not None)
        assert count <= LIMITS.max_queued

    @invariant()
    def a_lease_lives_only_with_its_phase(self) -> None:
        assert self.turns.lease_open == (self.lease is not None)
        if self.lease is not None:
            assert self.turns.phase is Phase.HUMAN

    @invariant()
    def every_lease_but_the_present_one_was_told_of(self) -> None:
        active = self.turns.active
        holding = active.lease if active is not None else None
        leases = [n for n in range(1, self.turns.lease + 1) if n != holding]
        assert self.told == leases

    def teardown(self) -> None:
        self.take(self.turns.dispose(InternalError("gone")))
        assert not self.open


TestTurnsModel = TurnsModel.TestCase
TestTurnsModel.settings = model_settings(examples=25)


def test_every_move_of_the_table_can_be_reached_from_the_start() -> None:
    reached, todo = {Phase.READY}, [Phase.READY]
    while todo:
        phase = todo.pop()
        for (start, _), goals in MOVES.items():
            if start is phase:
                todo += goals - reached
                reached |= goals
    assert reached == set(Phase)
    assert {stimulus for _, stimulus in MOVES} == set(Stimulus)
