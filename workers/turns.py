"""Whose turn it is on a shared terminal: one strict queue of everything that changes it.

Theory
    A model and a person share one PTY. Everything that changes it (a model's send, a
    person's grant, a signal, a reset, the recovery after a lost person) is an *operation*
    in one FIFO, in order of acceptance; reading is none. One operation holds the slot. It
    ends on evidence only: the shell's prompt, a program that waits for input (model sends
    and signals), the shell's end, a successful recovery, or because it was handed over.

    A model's operation has a deadline. Past it, or when its caller gives up, the
    foreground group is interrupted and the slot stays taken until the prompt is back.
    When it does not come back the queue is BLOCKED and only a reset helps.

    A person has a *lease*, numbered, without a deadline, and limited in bytes. It begins
    with a grant, or by taking over the model's operation in place: same program, same
    place in the queue, no signal; the model is told ``human_handoff`` at once. It ends at
    the shell's prompt, and the moment that prompt is seen nothing typed under it is
    written any more, so that an answer for a program can never become a command.

    Every write and every interrupt is a *dispatch* with a number. An observation carries
    the number it was made under and counts only while that is the latest: a prompt seen
    before a key was written says nothing about what the key did.

Stimuli are the methods; each returns instructions, in order. No clock, no I/O: times are
arguments, in seconds of one monotonic clock. ``workers.turn_table`` has every move.

Rejected: releasing the slot when a write is complete (the next operation would talk to
the former one's program); queueing what a person types while the model holds the slot (it
would run as a command later); settling a timed-out operation before its program is gone.
"""

from collections import deque
from dataclasses import dataclass, field

from fabric.core.errors import (
    FabricError,
    InputTooLargeError,
    NotControllerError,
    QueueBlockedError,
    QueueFullError,
    SessionClosingError,
    SessionExitedError,
    SessionStateError,
    StaleGenerationError,
)
from fabric.core.model import WaitReason
from workers.turn_table import MOVES, Phase, Stimulus
from workers.turn_words import (
    Dispatch,
    Granted,
    HandedBack,
    Instruction,
    Interrupt,
    Kind,
    Operation,
    Refuse,
    Reject,
    Restart,
    Revoked,
    Settle,
    Sight,
    TurnLimits,
)


@dataclass(slots=True)
class Turns:
    """The queue of one shared terminal."""

    limits: TurnLimits = field(default_factory=TurnLimits)
    generation: int = 1
    phase: Phase = Phase.READY
    active: Operation | None = None
    waiting: deque[Operation] = field(default_factory=deque)
    dispatch: int = 0
    lease: int = 0
    lease_open: bool = False
    _lease_bytes: int = 0
    _writing: set[int] = field(default_factory=set)
    _seen_early: bool = False
    _deadline: float | None = None
    _why: WaitReason | None = None
    _absent_since: float | None = None

    # -- what others may know -------------------------------------------------------------

    @property
    def status(self) -> str:
        """Say ready, busy, blocked, exited or disposed."""
        if self.phase in (Phase.READY, Phase.BLOCKED, Phase.EXITED, Phase.DISPOSED):
            return str(self.phase.value)
        return "busy"

    @property
    def holder(self) -> Kind | None:
        """Say what kind of operation holds the slot."""
        return None if self.active is None else self.active.kind

    @property
    def takeover(self) -> int | None:
        """Name the operation that a person could take over now."""
        active = self.active
        can = active is not None and active.kind is Kind.MODEL and self.phase is Phase.RUNNING
        return active.op if active is not None and can else None

    @property
    def wakes_at(self) -> float | None:
        """Say when ``tick`` has something to do, if nothing else happens before."""
        times = [self._deadline, self._grace_ends()]
        known = [time for time in times if time is not None]
        return min(known) if known else None

    def ahead_of(self, op: int) -> int | None:
        """Count the operations that come before one that waits; None when it does not."""
        for number, waiting in enumerate(self.waiting):
            if waiting.op == op:
                return number + (self.active is not None)
        return None

    # -- entering and leaving the queue ---------------------------------------------------

    def accept(
        self, op: int, kind: Kind, at: float, *, size: int = 0, if_idle: bool = False
    ) -> list[Instruction]:
        """Take an operation in, or refuse it. ``op`` numbers are never used twice.

        ``size`` counts the bytes a model's send writes. ``if_idle`` refuses what would wait.
        """
        fault = self._fault(kind, size, if_idle)
        if fault is not None:
            return [Refuse(fault)]
        self.waiting.append(Operation(op, kind, at))
        return self._next(at)

    def cancel(self, op: int, at: float) -> list[Instruction]:
        """Take the word of an operation's caller that it gives up."""
        active = self.active
        if active is not None and active.op == op:
            if active.settled or self.phase not in (Phase.WRITING, Phase.RUNNING):
                return []
            return self._recover(Stimulus.CANCEL, WaitReason.CANCELLED)
        for waiting in self.waiting:
            if waiting.op == op:
                self.waiting.remove(waiting)
                return [Settle(op, WaitReason.CANCELLED)]
        return []

    def dispose(self, error: FabricError) -> list[Instruction]:
        """End for good: everything accepted fails with ``error``."""
        if self.phase is Phase.DISPOSED:
            return []
        out = [*self._end_active(None, error), *(Reject(item.op, error) for item in self.waiting)]
        self.waiting.clear()
        self._move(Stimulus.DISPOSE, Phase.DISPOSED)
        return out

    # -- what the terminal did ------------------------------------------------------------

    def wrote(self, dispatch: int, at: float) -> list[Instruction]:
        """Take the news that a dispatch was delivered, or of a person's bytes, withdrawn."""
        if dispatch not in self._writing:
            return []
        self._writing.discard(dispatch)
        if self._writing:
            return []
        if self.phase is Phase.STOPPING:
            return self._interrupt(Stimulus.WROTE)
        early, self._seen_early = self._seen_early, False
        if early:
            return self._release(Stimulus.WROTE, WaitReason.PROMPT, at)
        if self.phase is Phase.WRITING:
            self._move(Stimulus.WROTE, Phase.RUNNING)
        return []

    def write_failed(self, error: FabricError, at: float) -> list[Instruction]:
        """Take the news that only a part was written: who knows what the program has got."""
        if self.phase not in (Phase.WRITING, Phase.HUMAN, Phase.STOPPING):
            return []
        return self._block(Stimulus.WRITE_FAILED, error, at)

    def refused(self, error: FabricError, at: float) -> list[Instruction]:
        """Take the news that the holder's text or signal was refused before it had any effect."""
        held = self.phase in (Phase.WRITING, Phase.STOPPING)
        if not held or self.active is None or self.active.lease is not None:
            return []
        out = self._end_active(None, error)
        self._move(Stimulus.REFUSED, Phase.READY)
        return [*out, *self._next(at)]

    def sight(self, sight: Sight, dispatch: int, at: float) -> list[Instruction]:
        """Take an observation made while ``dispatch`` was the latest one."""
        if dispatch != self.dispatch or self.active is None:
            return []
        if sight is Sight.STDIN_READ:
            if self.phase is not Phase.RUNNING:
                return []
            return self._release(Stimulus.STDIN_READ, WaitReason.STDIN_READ, at)
        if self.phase is Phase.RECOVERING:
            return self._release(Stimulus.PROMPT, self._why or WaitReason.CANCELLED, at)
        if self.phase is Phase.RUNNING or (self.phase is Phase.HUMAN and not self._writing):
            return self._release(Stimulus.PROMPT, WaitReason.PROMPT, at)
        if self.phase in (Phase.WRITING, Phase.HUMAN):
            self._seen_early = True
            return self._close_lease()
        return []

    def interrupted(self, at: float) -> list[Instruction]:
        """Take the news that the interrupt was delivered."""
        if self.phase is not Phase.INTERRUPTING:
            return []
        self.dispatch += 1
        self._deadline = at + self.limits.interrupt_timeout_s
        self._move(Stimulus.INTERRUPTED, Phase.RECOVERING)
        return []

    def not_interrupted(self, at: float) -> list[Instruction]:
        """Take the news that the interrupt could not be delivered."""
        if self.phase is not Phase.INTERRUPTING:
            return []
        return self._block(Stimulus.NOT_INTERRUPTED, self._unrecovered(), at)

    def exited(self, generation: int, at: float) -> list[Instruction]:
        """Take the news that the shell of a generation ended; resets in the queue survive it."""
        if generation != self.generation or self.phase in (
            Phase.RESETTING,
            Phase.EXITED,
            Phase.DISPOSED,
        ):
            return []
        out = self._end_active(WaitReason.SESSION_EXIT)
        gone = [item for item in self.waiting if item.kind is not Kind.RESET]
        out += [Settle(item.op, WaitReason.SESSION_EXIT) for item in gone]
        self.waiting = deque(item for item in self.waiting if item.kind is Kind.RESET)
        self._move(Stimulus.EXIT, Phase.EXITED)
        return [*out, *self._next(at)]

    def restarted(self, at: float) -> list[Instruction]:
        """Take the news that a new shell is at its prompt: a generation begins."""
        if self.phase is not Phase.RESETTING:
            return []
        self.generation += 1
        return self._release(Stimulus.RESTARTED, WaitReason.PROMPT, at)

    def not_restarted(self, error: FabricError, at: float) -> list[Instruction]:
        """Take the news that the reset failed."""
        if self.phase is not Phase.RESETTING:
            return []
        return self._block(Stimulus.NOT_RESTARTED, error, at)

    def tick(self, at: float) -> list[Instruction]:
        """Do what is due; a late tick does the same as one in time."""
        out: list[Instruction] = []
        grace_ends = self._grace_ends()
        if grace_ends is not None and at >= grace_ends:
            out += self._give_up_on_controller()
        if self._deadline is None or at < self._deadline:
            return out
        if self.phase is Phase.RECOVERING:
            return [*out, *self._block(Stimulus.NOT_RECOVERED, self._unrecovered(), at)]
        return [*out, *self._recover(Stimulus.TIMEOUT, WaitReason.TIMEOUT)]

    # -- the person -----------------------------------------------------------------------

    def take_over(self, target: int, generation: int) -> list[Instruction]:
        """Hand the model's operation to the person, where it stands."""
        stale = self._stale(generation)
        if stale is not None:
            return [Refuse(stale)]
        active = self.active
        if active is None or self.takeover != target:
            return [Refuse(SessionStateError("terminal takeover is not available"))]
        active.kind = Kind.HUMAN
        active.settled = True
        self._deadline = None
        self._open_lease(active)
        self._move(Stimulus.TAKE_OVER, Phase.HUMAN)
        return [Settle(active.op, WaitReason.HUMAN_HANDOFF), Granted(active.op, self.lease)]

    def human_input(self, lease: int, size: int) -> list[Instruction]:
        """Take ``size`` bytes typed under a lease."""
        if not self._holds(lease) or self.active is None:
            return [Refuse(NotControllerError("human lease is closed", lease=lease))]
        limit = self.limits.max_input_bytes
        if self._lease_bytes + size > limit:
            return [
                Refuse(InputTooLargeError("terminal input exceeds maxInputBytes", max_bytes=limit))
            ]
        self._lease_bytes += size
        self.dispatch += 1
        self._writing.add(self.dispatch)
        return [Dispatch(self.active.op, self.dispatch)]

    def human_cancel(self, lease: int) -> list[Instruction]:
        """Interrupt the person's own program; the lease closes at once."""
        if not self._holds(lease):
            return [Refuse(NotControllerError("human lease is closed", lease=lease))]
        return self._recover(Stimulus.CANCEL, WaitReason.CANCELLED)

    def controller_left(self, at: float) -> list[Instruction]:
        """Note that the controller's connection is gone; its grace runs from now."""
        if self._absent_since is None:
            self._absent_since = at
        return []

    def controller_back(self) -> list[Instruction]:
        """Note that the controller is back with its proof; its lease goes on."""
        self._absent_since = None
        return []

    # -- inside ---------------------------------------------------------------------------

    def _fault(self, kind: Kind, size: int, if_idle: bool) -> FabricError | None:
        limits = self.limits
        if self.phase is Phase.DISPOSED:
            return SessionClosingError("terminal queue is disposed")
        if kind is Kind.MODEL and size > limits.max_input_bytes:
            return InputTooLargeError(
                "terminal input exceeds maxInputBytes", max_bytes=limits.max_input_bytes
            )
        if kind is not Kind.RESET:
            if self.phase is Phase.BLOCKED:
                return _blocked()
            if self.phase is Phase.EXITED:
                return SessionExitedError("terminal queue is exited")
        if if_idle and self.phase is not Phase.READY:
            return SessionStateError("the terminal is in use; take over or wait")
        if len(self.waiting) + (self.active is not None) >= limits.max_queued:
            return QueueFullError("terminal queue is full", max_operations=limits.max_queued)
        return None

    def _stale(self, generation: int) -> FabricError | None:
        return None if generation == self.generation else stale_generation(self.generation)

    def _holds(self, lease: int) -> bool:
        return self.lease_open and lease == self.lease and self.phase is Phase.HUMAN

    def _open_lease(self, active: Operation) -> None:
        self.lease += 1
        active.lease = self.lease
        self.lease_open = True
        self._lease_bytes = 0

    def _close_lease(self) -> list[Instruction]:
        if not self.lease_open:
            return []
        self.lease_open = False
        return [Revoked(self.lease)]

    def _grace_ends(self) -> float | None:
        held = self.phase is Phase.HUMAN or any(item.kind is Kind.HUMAN for item in self.waiting)
        if self._absent_since is None or not held:
            return None
        return self._absent_since + self.limits.disconnect_grace_s

    def _give_up_on_controller(self) -> list[Instruction]:
        out: list[Instruction] = []
        for item in [item for item in self.waiting if item.kind is Kind.HUMAN]:
            self.waiting.remove(item)
            out.append(Settle(item.op, WaitReason.CANCELLED))
        if self.phase is Phase.HUMAN and self.active is not None:
            out += self._recover(Stimulus.GRACE_OVER, WaitReason.CANCELLED)
            self.active.kind = Kind.RECOVERY
        return out

    def _recover(self, stimulus: Stimulus, why: WaitReason) -> list[Instruction]:
        self._why = why
        self._deadline = None
        self._seen_early = False
        out = self._close_lease()
        if self._writing:
            self._move(stimulus, Phase.STOPPING)
            return out
        return [*out, *self._interrupt(stimulus)]

    def _interrupt(self, stimulus: Stimulus) -> list[Instruction]:
        self._move(stimulus, Phase.INTERRUPTING)
        return [Interrupt(self.active.op)] if self.active is not None else []

    def _release(self, stimulus: Stimulus, reason: WaitReason, at: float) -> list[Instruction]:
        out = self._end_active(reason)
        self._move(stimulus, Phase.READY)
        return [*out, *self._next(at)]

    def _block(self, stimulus: Stimulus, error: FabricError, at: float) -> list[Instruction]:
        out = self._end_active(None, error)
        self._move(stimulus, Phase.BLOCKED)
        gone = [item for item in self.waiting if item.kind is not Kind.RESET]
        out += [Reject(item.op, _blocked()) for item in gone]
        self.waiting = deque(item for item in self.waiting if item.kind is Kind.RESET)
        return [*out, *self._next(at)]

    def _end_active(
        self, reason: WaitReason | None, error: FabricError | None = None
    ) -> list[Instruction]:
        """Answer the holder's caller, end a lease, and forget everything of the holder."""
        active, self.active = self.active, None
        self._deadline = self._why = None
        self._writing.clear()
        self._seen_early = False
        if active is None:
            return []
        out = self._close_lease()
        if not active.settled:
            if reason is not None:
                out.append(Settle(active.op, reason))
            elif error is not None:
                out.append(Reject(active.op, error))
        if active.lease is not None:
            out.append(HandedBack(active.lease, reason))
        return out

    def _next(self, at: float) -> list[Instruction]:
        if self.active is not None or not self.waiting:
            return []
        if self.phase not in (Phase.READY, Phase.BLOCKED, Phase.EXITED):
            return []
        item = self.active = self.waiting.popleft()
        item.granted_at = at
        if item.kind is Kind.HUMAN:
            self._open_lease(item)
            self._move(Stimulus.GRANT, Phase.HUMAN)
            return [Granted(item.op, self.lease)]
        if item.kind is Kind.RESET:
            self._move(Stimulus.GRANT, Phase.RESETTING)
            return [Granted(item.op), Restart(item.op)]
        if item.kind is Kind.RECOVERY:
            self._why = WaitReason.CANCELLED
            return [Granted(item.op), *self._interrupt(Stimulus.GRANT)]
        self.dispatch += 1
        self._writing.add(self.dispatch)
        self._deadline = at + self.limits.operation_timeout_s
        self._move(Stimulus.GRANT, Phase.WRITING)
        return [Granted(item.op), Dispatch(item.op, self.dispatch)]

    def _unrecovered(self) -> FabricError:
        why = self._why or WaitReason.CANCELLED
        return QueueBlockedError(
            f"terminal recovery failed after {why.value}; queue is blocked until reset"
        )

    def _move(self, stimulus: Stimulus, goal: Phase) -> None:
        if goal not in MOVES.get((self.phase, stimulus), frozenset()):
            raise AssertionError(f"no move from {self.phase} by {stimulus} to {goal}")
        self.phase = goal


def stale_generation(generation: int) -> FabricError:
    """Make the error of a view that looks at an older shell."""
    return StaleGenerationError("terminal attachment generation is stale", generation=generation)


def _blocked() -> FabricError:
    return QueueBlockedError("terminal queue is blocked until reset")
