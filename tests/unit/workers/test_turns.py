"""The queue of a shared terminal, row by row of its rules."""

from pathlib import Path

import pytest

from fabric.core.errors import (
    FabricError,
    InputBlockedError,
    InputLineTooLongError,
    InputTooLargeError,
    NotControllerError,
    OwnerNotLiveError,
    QueueBlockedError,
    QueueFullError,
    SessionClosingError,
    SessionExitedError,
    SessionStateError,
    SpawnFailedError,
    StaleGenerationError,
)
from fabric.core.model import WaitReason
from workers import turn_table
from workers.turn_table import Phase
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

PROMPT, STDIN = Sight.PROMPT, Sight.STDIN_READ
LIMITS = TurnLimits(
    max_queued=4,
    max_input_bytes=10,
    operation_timeout_s=30,
    interrupt_timeout_s=5,
    disconnect_grace_s=15,
)


def turns() -> Turns:
    return Turns(LIMITS)


def running(machine: Turns, op: int = 1, at: float = 0.0) -> Turns:
    """A model's send whose text is delivered."""
    machine.accept(op, Kind.MODEL, at)
    machine.wrote(machine.dispatch, at)
    assert machine.phase is Phase.RUNNING
    return machine


def taken_over(machine: Turns) -> Turns:
    running(machine)
    machine.take_over(1, machine.generation)
    assert machine.phase is Phase.HUMAN
    return machine


def blocked(machine: Turns) -> Turns:
    running(machine)
    machine.tick(30)
    machine.not_interrupted(30)
    assert machine.phase is Phase.BLOCKED
    return machine


def refusal(out: list[Instruction]) -> FabricError:
    assert len(out) == 1
    assert isinstance(out[0], Refuse)
    return out[0].error


def rejections(out: list[Instruction]) -> list[tuple[int, str]]:
    return [(item.op, item.error.message) for item in out if isinstance(item, Reject)]


# -- the queue ----------------------------------------------------------------------------


def test_operations_run_in_the_order_of_acceptance() -> None:
    machine = turns()
    assert machine.accept(1, Kind.MODEL, 0) == [Granted(1), Dispatch(1, 1)]
    assert machine.accept(2, Kind.SIGNAL, 0) == []
    assert machine.accept(3, Kind.HUMAN, 0) == []
    assert machine.accept(4, Kind.RESET, 0) == []
    assert [machine.ahead_of(op) for op in (1, 2, 3, 4)] == [None, 1, 2, 3]
    machine.wrote(1, 1)
    assert machine.sight(PROMPT, 1, 2) == [
        Settle(1, WaitReason.PROMPT),
        Granted(2),
        Dispatch(2, 2),
    ]
    machine.wrote(2, 2)
    assert machine.sight(STDIN, 2, 3) == [Settle(2, WaitReason.STDIN_READ), Granted(3, 1)]
    assert machine.holder is Kind.HUMAN
    machine.human_input(1, 1)
    machine.wrote(3, 4)
    assert machine.sight(PROMPT, 3, 5) == [
        Revoked(1),
        Settle(3, WaitReason.PROMPT),
        HandedBack(1, WaitReason.PROMPT),
        Granted(4),
        Restart(4),
    ]
    assert machine.restarted(6) == [Settle(4, WaitReason.PROMPT)]
    assert (machine.generation, machine.status, machine.holder) == (2, "ready", None)


def test_the_bound_counts_the_holder_and_holds_behind_a_reset() -> None:
    machine = turns()
    machine.accept(1, Kind.RESET, 0)
    for op in (2, 3, 4):
        assert machine.accept(op, Kind.MODEL, 0) == []
    error = refusal(machine.accept(5, Kind.MODEL, 0))
    assert isinstance(error, QueueFullError)
    assert error.message == "terminal queue is full"
    assert isinstance(refusal(machine.accept(6, Kind.RESET, 0)), QueueFullError)


def test_a_model_text_above_the_limit_is_refused_before_it_is_accepted() -> None:
    machine = turns()
    error = refusal(machine.accept(1, Kind.MODEL, 0, size=11))
    assert isinstance(error, InputTooLargeError)
    assert error.message == "terminal input exceeds maxInputBytes"
    assert machine.accept(2, Kind.MODEL, 0, size=10) == [Granted(2), Dispatch(2, 1)]


def test_cancelling_what_waits_disturbs_nobody() -> None:
    machine = running(turns())
    machine.accept(2, Kind.MODEL, 0)
    machine.accept(3, Kind.MODEL, 0)
    assert machine.cancel(2, 1) == [Settle(2, WaitReason.CANCELLED)]
    assert machine.cancel(2, 1) == []
    assert machine.phase is Phase.RUNNING
    assert machine.sight(PROMPT, 1, 2)[1:] == [Granted(3), Dispatch(3, 2)]


def test_a_complete_write_alone_releases_nothing() -> None:
    machine = turns()
    machine.accept(1, Kind.MODEL, 0)
    assert machine.wrote(1, 0) == []
    assert machine.status == "busy"


def test_a_prompt_before_the_write_is_complete_waits_for_it() -> None:
    machine = turns()
    machine.accept(1, Kind.MODEL, 0)
    assert machine.sight(PROMPT, 1, 1) == []
    assert machine.phase is Phase.WRITING
    assert machine.wrote(1, 2) == [Settle(1, WaitReason.PROMPT)]


def test_a_text_that_was_refused_whole_ends_only_its_own_operation() -> None:
    machine = turns()
    machine.accept(1, Kind.MODEL, 0)
    machine.accept(2, Kind.MODEL, 0)
    error = InputLineTooLongError("too long")
    assert machine.refused(error, 1) == [Reject(1, error), Granted(2), Dispatch(2, 2)]


def test_a_failed_write_blocks_the_queue() -> None:
    machine = turns()
    machine.accept(1, Kind.MODEL, 0)
    machine.accept(2, Kind.MODEL, 0)
    out = machine.write_failed(InputBlockedError("stalled"), 1)
    assert rejections(out) == [(1, "stalled"), (2, "terminal queue is blocked until reset")]
    assert machine.status == "blocked"


def test_an_old_delivery_report_says_nothing_about_the_next_operation() -> None:
    machine = turns()
    machine.accept(1, Kind.MODEL, 0)
    machine.refused(InputLineTooLongError("too long"), 0)
    machine.accept(2, Kind.MODEL, 1)
    assert machine.wrote(1, 1) == []
    assert machine.phase is Phase.WRITING


# -- deadlines, cancels, recovery -----------------------------------------------------------


@pytest.mark.parametrize("kind", [Kind.MODEL, Kind.SIGNAL])
def test_past_its_deadline_an_operation_is_interrupted_and_holds_the_slot(kind: Kind) -> None:
    machine = turns()
    machine.accept(1, kind, 0)
    machine.wrote(1, 0)
    machine.accept(2, Kind.MODEL, 1)
    assert machine.wakes_at == 30
    assert machine.tick(29.9) == []
    assert machine.tick(30) == [Interrupt(1)]
    assert machine.interrupted(30) == []
    assert machine.phase is Phase.RECOVERING
    assert machine.sight(STDIN, machine.dispatch, 31) == []
    assert machine.sight(PROMPT, machine.dispatch, 32) == [
        Settle(1, WaitReason.TIMEOUT),
        Granted(2),
        Dispatch(2, 3),
    ]


def test_a_prompt_seen_before_the_interrupt_does_not_prove_a_recovery() -> None:
    machine = running(turns())
    before = machine.dispatch
    machine.tick(30)
    machine.interrupted(30)
    assert machine.sight(PROMPT, before, 31) == []
    assert machine.phase is Phase.RECOVERING


def test_cancelling_the_holder_runs_recovery_and_says_cancelled() -> None:
    machine = running(turns())
    assert machine.cancel(1, 1) == [Interrupt(1)]
    assert machine.cancel(1, 1) == []
    machine.interrupted(1)
    assert machine.sight(PROMPT, 2, 2) == [Settle(1, WaitReason.CANCELLED)]


def test_a_cancel_during_the_write_waits_for_it_before_the_interrupt() -> None:
    machine = turns()
    machine.accept(1, Kind.MODEL, 0)
    assert machine.cancel(1, 1) == []
    assert machine.phase is Phase.STOPPING
    assert machine.wrote(1, 2) == [Interrupt(1)]


def test_without_a_prompt_after_the_interrupt_only_a_reset_helps() -> None:
    machine = running(turns())
    for op, kind in ((2, Kind.MODEL), (3, Kind.HUMAN)):
        machine.accept(op, kind, 0)
    machine.tick(30)
    machine.interrupted(30.5)
    assert machine.tick(35) == []
    out = machine.tick(35.5)
    assert rejections(out) == [
        (1, "terminal recovery failed after timeout; queue is blocked until reset"),
        (2, "terminal queue is blocked until reset"),
        (3, "terminal queue is blocked until reset"),
    ]
    error = refusal(machine.accept(4, Kind.SIGNAL, 36))
    assert isinstance(error, QueueBlockedError)
    assert error.message == "terminal queue is blocked until reset"
    assert machine.accept(5, Kind.RESET, 36) == [Granted(5), Restart(5)]


def test_an_interrupt_that_cannot_be_delivered_blocks() -> None:
    machine = running(turns())
    machine.tick(30)
    assert rejections(machine.not_interrupted(30))[0][0] == 1
    assert machine.status == "blocked"


def test_of_what_waits_at_a_block_only_the_earliest_reset_goes_on() -> None:
    machine = running(turns())
    machine.accept(2, Kind.RESET, 0)
    machine.accept(3, Kind.RESET, 0)
    machine.tick(30)
    out = machine.not_interrupted(30)
    assert out[-2:] == [Granted(2), Restart(2)]
    assert [item.op for item in machine.waiting] == [3]


def test_a_failed_reset_leaves_the_queue_blocked() -> None:
    machine = blocked(turns())
    machine.accept(2, Kind.RESET, 40)
    machine.accept(3, Kind.MODEL, 40)
    error = SpawnFailedError("no shell")
    out = machine.not_restarted(error, 41)
    assert rejections(out) == [(2, "no shell"), (3, "terminal queue is blocked until reset")]
    assert (machine.status, machine.generation) == ("blocked", 1)


# -- the end of the shell -------------------------------------------------------------------


def test_the_shells_end_settles_everything_but_a_reset_that_replaces_it() -> None:
    machine = running(turns())
    machine.accept(2, Kind.MODEL, 0)
    machine.accept(3, Kind.RESET, 0)
    assert machine.exited(1, 1) == [
        Settle(1, WaitReason.SESSION_EXIT),
        Settle(2, WaitReason.SESSION_EXIT),
        Granted(3),
        Restart(3),
    ]
    machine.restarted(2)
    assert (machine.generation, machine.status) == (2, "ready")


def test_an_exited_terminal_refuses_all_but_a_reset() -> None:
    machine = turns()
    machine.exited(1, 0)
    assert machine.status == "exited"
    error = refusal(machine.accept(1, Kind.MODEL, 1))
    assert isinstance(error, SessionExitedError)
    assert error.message == "terminal queue is exited"
    assert machine.accept(2, Kind.RESET, 1) == [Granted(2), Restart(2)]


def test_the_end_of_an_older_generation_is_nothing_new() -> None:
    machine = turns()
    machine.accept(1, Kind.RESET, 0)
    assert machine.exited(1, 0.5) == []
    machine.restarted(1)
    assert machine.exited(1, 2) == []
    assert machine.status == "ready"


def test_a_queued_operation_runs_on_the_generation_it_finds() -> None:
    machine = turns()
    machine.accept(1, Kind.RESET, 0)
    machine.accept(2, Kind.MODEL, 0)
    assert machine.restarted(1) == [Settle(1, WaitReason.PROMPT), Granted(2), Dispatch(2, 1)]
    assert machine.generation == 2


def test_disposal_rejects_all_and_later_ones() -> None:
    machine = taken_over(turns())
    machine.accept(2, Kind.MODEL, 0)
    gone = OwnerNotLiveError("the owner is gone")
    out = machine.dispose(gone)
    assert out == [Revoked(1), HandedBack(1, None), Reject(2, gone)]
    assert machine.status == "disposed"
    assert machine.dispose(gone) == []
    assert isinstance(refusal(machine.accept(3, Kind.RESET, 1)), SessionClosingError)


# -- taking over ------------------------------------------------------------------------------


def test_taking_over_hands_the_slot_on_in_place() -> None:
    machine = running(turns())
    machine.accept(2, Kind.MODEL, 0)
    assert machine.takeover == 1
    assert machine.take_over(1, 1) == [Settle(1, WaitReason.HUMAN_HANDOFF), Granted(1, 1)]
    assert (machine.holder, machine.takeover, machine.wakes_at) == (Kind.HUMAN, None, None)
    assert machine.tick(1000) == []
    assert machine.cancel(1, 1000) == [], "the model's own abort is detached"
    assert machine.sight(STDIN, 1, 1000) == [], "waiting for input does not end a lease"
    assert machine.sight(PROMPT, 1, 1001) == [
        Revoked(1),
        HandedBack(1, WaitReason.PROMPT),
        Granted(2),
        Dispatch(2, 2),
    ]


def test_taking_over_needs_a_delivered_and_unfinished_send_of_the_model() -> None:
    machine = turns()
    machine.accept(1, Kind.MODEL, 0)
    assert refusal(machine.take_over(1, 1)).message == "terminal takeover is not available"
    machine.wrote(1, 0)
    assert isinstance(refusal(machine.take_over(7, 1)), SessionStateError)
    machine.cancel(1, 1)
    assert isinstance(refusal(machine.take_over(1, 1)), SessionStateError)
    signalled = turns()
    signalled.accept(1, Kind.SIGNAL, 0)
    signalled.wrote(1, 0)
    assert isinstance(refusal(signalled.take_over(1, 1)), SessionStateError)


def test_a_view_of_an_older_generation_takes_nothing_over() -> None:
    machine = turns()
    machine.accept(1, Kind.RESET, 0)
    machine.restarted(0)
    running(machine, 2)
    error = refusal(machine.take_over(2, 1))
    assert isinstance(error, StaleGenerationError)
    assert error.message == "terminal attachment generation is stale"


def test_an_answer_after_the_original_prompt_is_dropped() -> None:
    machine = taken_over(turns())
    machine.sight(PROMPT, 1, 1)
    error = refusal(machine.human_input(1, 3))
    assert isinstance(error, NotControllerError)
    assert error.message == "human lease is closed"


def test_a_prompt_while_an_answer_is_on_its_way_closes_the_lease_at_once() -> None:
    machine = taken_over(turns())
    assert machine.human_input(1, 3) == [Dispatch(1, 2)]
    assert machine.sight(PROMPT, 2, 1) == [Revoked(1)]
    assert isinstance(refusal(machine.human_input(1, 3)), NotControllerError)
    assert machine.wrote(2, 2) == [HandedBack(1, WaitReason.PROMPT)]


def test_a_prompt_seen_before_a_key_says_nothing_about_it() -> None:
    machine = turns()
    machine.accept(1, Kind.HUMAN, 0, if_idle=True)
    machine.human_input(1, 1)
    machine.wrote(1, 0)
    assert machine.sight(PROMPT, 0, 1) == []
    assert machine.phase is Phase.HUMAN


def test_a_lease_has_a_limit_over_all_its_input() -> None:
    machine = taken_over(turns())
    machine.human_input(1, 6)
    error = refusal(machine.human_input(1, 5))
    assert isinstance(error, InputTooLargeError)
    assert machine.human_input(1, 4) == [Dispatch(1, 3)]


def test_an_older_lease_writes_nothing_under_a_newer_one() -> None:
    machine = taken_over(turns())
    machine.sight(PROMPT, 1, 1)
    machine.accept(2, Kind.HUMAN, 2)
    assert isinstance(refusal(machine.human_input(1, 1)), NotControllerError)
    assert machine.human_input(2, 1) == [Dispatch(2, 2)]


def test_a_persons_interrupt_closes_the_lease_and_holds_the_slot_until_the_prompt() -> None:
    machine = taken_over(turns())
    machine.human_input(1, 1)
    assert machine.human_cancel(1) == [Revoked(1)]
    assert isinstance(refusal(machine.human_cancel(1)), NotControllerError)
    assert machine.wrote(2, 1) == [Interrupt(1)]
    machine.interrupted(1)
    assert machine.sight(PROMPT, 3, 2) == [HandedBack(1, WaitReason.CANCELLED)]
    assert machine.status == "ready"


def test_a_signal_waits_behind_a_lease() -> None:
    machine = taken_over(turns())
    assert machine.accept(2, Kind.SIGNAL, 1) == []
    assert machine.ahead_of(2) == 1


def test_a_person_who_must_not_wait_is_refused_while_the_slot_is_taken() -> None:
    machine = running(turns())
    assert isinstance(refusal(machine.accept(2, Kind.HUMAN, 1, if_idle=True)), SessionStateError)
    assert not machine.waiting


def test_the_shells_end_ends_a_lease() -> None:
    machine = taken_over(turns())
    assert machine.exited(1, 1) == [Revoked(1), HandedBack(1, WaitReason.SESSION_EXIT)]


# -- a controller that is gone ---------------------------------------------------------------


def test_a_controller_that_comes_back_in_time_keeps_its_lease() -> None:
    machine = taken_over(turns())
    machine.controller_left(10)
    machine.controller_left(12)
    assert machine.wakes_at == 25
    assert machine.tick(24.9) == []
    machine.controller_back()
    assert machine.wakes_at is None
    assert machine.tick(100) == []
    assert machine.human_input(1, 1) == [Dispatch(1, 2)]


def test_past_the_grace_the_lease_is_recovered_and_told_once() -> None:
    machine = taken_over(turns())
    machine.controller_left(10)
    assert machine.tick(25) == [Revoked(1), Interrupt(1)]
    assert machine.holder is Kind.RECOVERY
    machine.interrupted(25)
    assert machine.sight(PROMPT, 2, 26) == [HandedBack(1, WaitReason.CANCELLED)]
    assert machine.tick(100) == []


def test_past_the_grace_a_grant_that_still_waits_is_dropped() -> None:
    machine = running(turns())
    machine.accept(2, Kind.HUMAN, 0)
    machine.controller_left(1)
    assert machine.tick(16) == [Settle(2, WaitReason.CANCELLED)]
    assert machine.phase is Phase.RUNNING


def test_a_recovery_by_itself_tells_nobody_of_a_person() -> None:
    machine = turns()
    assert machine.accept(1, Kind.RECOVERY, 0) == [Granted(1), Interrupt(1)]
    machine.interrupted(0)
    assert machine.sight(PROMPT, 1, 1) == [Settle(1, WaitReason.CANCELLED)]


# -- the table -------------------------------------------------------------------------------


def test_the_diagram_in_the_readme_is_that_of_the_table() -> None:
    readme = Path(turn_table.README).read_text(encoding="utf-8")
    assert turn_table.drawn(readme) == readme, "run python -m workers.turn_table"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="no marks"):
        turn_table.drawn("nothing here")
