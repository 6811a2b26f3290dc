"""A shared terminal at work: the queue's machine on one side, a session on the other.

``workers.turns`` decides; this file acts on what it says and tells it what happened. It
outlives the sessions it works on: a reset puts a new one in place of the old (the next
generation), with the queue, the views and the request ids as they were. What it does to a
session is in ``workers.dispatching``, what a person types in ``workers.typist``.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any

from fabric.core.clock import Clock
from fabric.core.errors import (
    FabricError,
    InternalError,
    NotControllerError,
)
from fabric.core.ids import RequestId
from fabric.core.model import SignalName, WaitReason
from fabric.core.repeat import Repeats, digest_of
from fabric.core.settings import SharedSettings
from fabric.core.shared import (
    Person,
    PersonRequest,
    SharedPage,
    SharedResult,
    SharedSend,
    SharedState,
    SharedStatus,
    ViewStart,
)
from workers import turns as machine
from workers.channel import DISCONNECTED
from workers.dispatching import Dispatching
from workers.handover import go_on
from workers.history import history_page
from workers.prompt_watch import PromptWatch
from workers.pulse import Pulse
from workers.sending import ABANDON_GRACE_S, SUBMIT
from workers.session import Session
from workers.shared_op import Answer, SharedOp
from workers.text.marks import Mark
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
    TurnLimits,
)
from workers.typist import Typist
from workers.viewing import Controllers

LATE_S = 0.001
_CONTENT = ("view", "kind", "generation", "lease", "target", "data")
_log = logging.getLogger(__name__)


class Sharing:
    """The shared terminal of one owner."""

    def __init__(
        self,
        session: Session,
        settings: SharedSettings,
        clock: Clock,
        notify: Callable[[str, dict[str, Any]], None],
        restart: Callable[[], Awaitable[Session]],
    ) -> None:
        self.settings = settings
        self.changed = Pulse()
        self.turns = machine.Turns(
            TurnLimits(
                settings.max_queued_operations,
                settings.max_input_bytes,
                settings.operation_timeout_s,
                settings.interrupt_timeout_s,
                settings.disconnect_grace_s,
            )
        )
        self.controllers = Controllers(settings.disconnect_grace_s)
        self._clock = clock
        self._notify = notify
        self._restart = restart
        self._ops: dict[int, SharedOp] = {}
        self._next_op = 1
        limits = session.settings.input
        self._repeats: Repeats[Answer] = Repeats(
            retention_s=limits.request_retention_s, max_entries=limits.max_request_ids
        )
        self._acts: Repeats[asyncio.Task[int]] = Repeats(
            retention_s=limits.request_retention_s, max_entries=limits.max_request_ids
        )
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.typist = Typist(self)
        self.dispatching = Dispatching(self)
        self.taken: int | None = None
        self.session = session
        life = session.spec.shared
        self.turns.generation = 1 if life is None else life.generation
        self._adopt_session(session)

    @property
    def prompt(self) -> PromptWatch:
        """What looks for the shell's prompt."""
        return self.dispatching.prompt

    # -- the model ------------------------------------------------------------------------

    async def send(self, request: SharedSend) -> SharedResult:
        """Queue a model's send and wait for its end. Raises: QueueFullError, …"""
        data = request.data + SUBMIT if request.submit else request.data
        content = digest_of("send", request.data, request.submit)
        return await self._run(Kind.MODEL, request.request_id, content, data=data)

    async def signal(self, name: SignalName, request_id: RequestId) -> SharedResult:
        """Queue a signal for the foreground group. Raises: SignalRefusedError, …"""
        content = digest_of("signal", name.value)
        return await self._run(Kind.SIGNAL, request_id, content, name=name)

    async def reset(self, request_id: RequestId) -> SharedResult:
        """Queue the end of this shell and the start of the next."""
        return await self._run(Kind.RESET, request_id, digest_of("reset"))

    def read(self, offset: int, count: int) -> SharedPage:
        """Read the history; takes no turn."""
        state = self.state()
        return history_page(self.session, state, offset, count)

    def state(self, *, truncated: bool = False) -> SharedState:
        """Say how the terminal stands."""
        session, turns = self.session, self.turns
        session.parts.master.drain()
        shown = session.observing.snapshot()
        return SharedState(
            generation=turns.generation,
            sequence=session.log.next_offset,
            rows=shown.rows,
            cols=shown.cols,
            viewport="\n".join(shown.lines).rstrip("\n"),
            cursor_x=shown.cursor_col,
            cursor_y=shown.cursor_row,
            status=session.status,
            queue_status=turns.status,
            holder=None if turns.holder is None else turns.holder.value,
            pending_count=len(turns.waiting),
            truncated=truncated,
        )

    def status(self) -> SharedStatus:
        """Say what a view shows beside the screen."""
        turns = self.turns
        return SharedStatus(
            turns.generation,
            turns.status,
            None if turns.holder is None else turns.holder.value,
            len(turns.waiting),
            turns.takeover,
            turns.lease if turns.lease_open else None,
            not self.session.status.is_running,
            turns.lease,
        )

    # -- the person -----------------------------------------------------------------------

    async def person(self, request: PersonRequest) -> int:
        """Do what the controller asks for; returns the lease. A repeated id does nothing again.

        Raises: NotControllerError, StaleGenerationError, SessionStateError,
        InputTooLargeError, InputLineTooLongError.
        """
        now = self.now()
        content = digest_of(*(getattr(request, name) for name in _CONTENT))
        earlier = self._acts.find(request.request_id, content, now)
        if earlier is None:
            work = asyncio.get_running_loop().create_task(self._act(request))
            self._acts.reserve(request.request_id, content, work, now)
            work.add_done_callback(lambda _: self._acts.settle(request.request_id, self.now()))
            earlier = work
        return await asyncio.shield(earlier)

    async def _act(self, request: PersonRequest) -> int:
        turns = self.turns
        if request.generation != turns.generation:
            raise machine.stale_generation(turns.generation)
        if request.view != self.controllers.view or self.controllers.absent_since is not None:
            raise NotControllerError("another view controls this terminal", view=request.view)
        if request.kind is Person.TAKE_OVER:
            self.typist.look_before_writing()
            self.feed_or_raise(turns.take_over(request.target, request.generation))
            return turns.lease
        if request.kind is Person.INTERRUPT:
            self.feed_or_raise(turns.human_cancel(request.lease))
            return request.lease
        lease = request.lease
        if request.kind is Person.BEGIN:
            op = self._new_op(Kind.HUMAN)
            self._accept(op, if_idle=True)
            lease = turns.lease
        if request.data:
            await self.typist.type(lease, request.data)
        return lease

    def claim(self, start: ViewStart, proof: str) -> str:
        """Attach a view; returns why it only reads, empty for the controller."""
        why = self.controllers.claim(
            start.view, proof, readonly=start.readonly, resume=start.resume, at=self.now()
        )
        if not why:
            self.feed(self.turns.controller_back())
        return why

    def controller_left(self, view: str) -> None:
        """Note that a view's connection is gone."""
        now = self.now()
        if self.controllers.left(view, now):
            self.feed(self.turns.controller_left(now))

    # -- life -----------------------------------------------------------------------------

    def recover(self) -> None:
        """Bring the prompt back after a worker's death took its operation with it."""
        shell = self.session.sending.memory.shell_pgid or self.session.parts.spawned.pid
        if self.session.status.is_running:
            go_on(shell)  # the dead worker may have held it
        if self.session.status.is_running and not self._is_at_prompt():
            self._accept(self._new_op(Kind.RECOVERY))

    def dispose(self, error: FabricError) -> None:
        """Refuse everything from now on."""
        self.feed(self.turns.dispose(error))

    def close(self) -> None:
        """Stop watching and acting."""
        self.typist.handover.release()
        self.dispatching.stop_watching()
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        for op in self._ops.values():
            if op.abandoned is not None:
                op.abandoned.cancel()

    def output(self, marks: list[Mark]) -> None:
        """Take note of output of the present session."""
        self.dispatching.output(marks)

    def exited(self) -> None:
        """Take note of the end of the present shell."""
        self.feed(self.turns.exited(self.turns.generation, self.now()))

    # -- operations -----------------------------------------------------------------------

    def _new_op(self, kind: Kind) -> SharedOp:
        op = SharedOp(self._next_op, kind, self.now(), asyncio.get_running_loop().create_future())
        self._next_op += 1
        self._ops[op.number] = op
        return op

    async def _run(
        self,
        kind: Kind,
        request_id: RequestId,
        content: bytes,
        *,
        data: bytes = b"",
        name: SignalName | None = None,
    ) -> SharedResult:
        now = self.now()
        earlier = self._repeats.find(request_id, content, now)
        if earlier is not None:
            for op in list(self._ops.values()):
                if op.done is earlier:
                    return await self._attend(op)
            return await asyncio.shield(earlier)
        op = self._new_op(kind)
        op.data, op.signal = data, name
        self._accept(op)
        self._repeats.reserve(request_id, content, op.done, now)
        op.done.add_done_callback(lambda _: self._repeats.settle(request_id, self.now()))
        return await self._attend(op)

    def _accept(self, op: SharedOp, *, if_idle: bool = False) -> None:
        at, size = op.accepted_at, len(op.data)
        try:
            self.feed_or_raise(
                self.turns.accept(op.number, op.kind, at, size=size, if_idle=if_idle)
            )
        except FabricError:
            self._ops.pop(op.number, None)
            raise

    async def _attend(self, op: SharedOp) -> SharedResult:
        op.callers += 1
        if op.abandoned is not None:
            op.abandoned.cancel()
            op.abandoned = None
        try:
            return await asyncio.shield(op.done)
        except asyncio.CancelledError as error:
            if op.callers == 1 and not op.done.done():
                if DISCONNECTED in error.args:
                    loop = asyncio.get_running_loop()
                    op.abandoned = loop.call_later(ABANDON_GRACE_S, self._give_up, op.number)
                else:
                    self._give_up(op.number)
            raise
        finally:
            op.callers -= 1

    def _give_up(self, number: int) -> None:
        self.feed(self.turns.cancel(number, self.now()))

    # -- carrying out ---------------------------------------------------------------------

    def feed_or_raise(self, instructions: list[Instruction]) -> None:
        """Carry out what the machine says. Raises: the error of a refusal."""
        if instructions and isinstance(instructions[0], Refuse):
            raise instructions[0].error
        self.feed(instructions)

    def feed(self, instructions: list[Instruction]) -> None:
        """Carry out what the machine says, in order."""
        for item in instructions:
            match item:
                case Granted(number, lease):
                    self._granted(number, lease)
                case Dispatch(number, dispatch):
                    self.dispatching.dispatch(self._ops[number], dispatch)
                case Interrupt():
                    self.dispatching.interrupt()
                case Restart(number):
                    self.spawn(self._reset(number))
                case Settle(number, reason):
                    self._settle(number, reason)
                case Reject(number, error):
                    self._reject(number, error)
                case HandedBack(lease, reason):
                    self._handed_back(lease, reason)
                case Revoked() | Refuse():
                    pass
        if self.turns.holder is None:
            self.dispatching.stop_watching()
        self._free_controller()
        self._set_timer()
        self.changed.send()

    def _granted(self, number: int, lease: int | None) -> None:
        op = self._ops[number]
        if op.granted_at is None:
            op.granted_at = self.now()
        if lease is None:
            return
        if number != self.taken:
            self.dispatching.close_watch()
            self.prompt.note()
        else:  # taken over: a prompt since the model's text is the end of its program
            self.dispatching.close_watch()
            self.prompt.arm(anew=False)

    def refused(self, number: int, error: FabricError) -> list[Instruction]:
        """Tell the machine that a text or signal was refused before it had any effect."""
        holds = self.turns.active is not None and self.turns.active.op == number
        return self.turns.refused(error, self.now()) if holds else []

    def failed(self, number: int, error: FabricError) -> list[Instruction]:
        """Tell the machine that a write failed, unless its operation is over already."""
        holds = self.turns.active is not None and self.turns.active.op == number
        return self.turns.write_failed(error, self.now()) if holds else []

    async def _reset(self, number: int) -> None:
        self.typist.handover.release()
        self.dispatching.stop_watching()
        try:
            session = await self._restart()
        except FabricError as error:
            self.feed(self.turns.not_restarted(error, self.now()))
            return
        except Exception:  # noqa: BLE001  (a reset that ends without a word would hold the queue for ever)
            _log.exception("resetting a shared terminal failed")
            failed = InternalError("the reset failed inside")
            self.feed(self.turns.not_restarted(failed, self.now()))
            return
        self._adopt_session(session)
        self.controllers.revoke()
        self.feed(self.turns.controller_back())
        self.feed(self.turns.restarted(self.now()))

    def _adopt_session(self, session: Session) -> None:
        if self in self.session.observers:
            self.session.observers.remove(self)
        self.session = session
        self.dispatching.begin(session)
        self.typist.begin(session)
        session.observers.append(self)

    def _settle(self, number: int, reason: WaitReason) -> None:
        op = self._ops[number]
        if reason is WaitReason.HUMAN_HANDOFF:
            self.taken = number  # until the lease ends
        else:
            del self._ops[number]
        output, truncated = self._captured(op)
        if op.done.done():
            return
        until = self.now() if op.granted_at is None else op.granted_at
        queued = max(0, math.floor((until - op.accepted_at) * 1000))
        if op.kind in (Kind.HUMAN, Kind.RECOVERY):
            op.done.cancel()
            return
        state = self.state(truncated=truncated)
        op.done.set_result(SharedResult(state, reason, queued, output, op.group))

    def _reject(self, number: int, error: FabricError) -> None:
        op = self._ops.pop(number)
        self._captured(op)
        if not op.done.done():
            op.done.set_exception(error)
            op.done.exception()

    def _captured(self, op: SharedOp) -> tuple[str | None, bool]:
        if op.kind not in (Kind.MODEL, Kind.SIGNAL):
            return None, False
        if op.capture is None:
            return "", False
        shown = op.capture.render()
        op.capture.close()
        op.capture = None
        return shown.text, shown.truncated

    def _handed_back(self, lease: int, reason: WaitReason | None) -> None:
        if self.taken is not None:
            self._ops.pop(self.taken, None)
            self.taken = None
        facts = {
            "generation": self.turns.generation,
            "sequence": self.session.log.next_offset,
            "wait_reason": None if reason is None else reason.value,
            "running": self.session.status.is_running,
            "lease": lease,
        }
        self._notify("human_handback", facts)

    # -- small things ---------------------------------------------------------------------

    def _is_at_prompt(self) -> bool:
        session = self.session
        prompts = session.parts.dialect.prompts
        shell, front = session.sending.memory.shell_pgid, session.parts.inspector.foreground()
        text = session.transcript.text_since_mark
        in_front = front in (shell, session.parts.spawned.pid)
        return prompts is not None and text == prompts.primary and in_front

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now, absent = self.now(), self.controllers.absent_since
        times = [self.turns.wakes_at]
        if absent is not None and absent + self.settings.disconnect_grace_s > now:
            times.append(absent + self.settings.disconnect_grace_s)
        known = [time for time in times if time is not None]
        if known:
            delay = max(0.0, min(known) - now)
            self._timer = asyncio.get_running_loop().call_later(delay + LATE_S, self._tick)

    def _tick(self) -> None:
        self.feed(self.turns.tick(self.now()))

    def _free_controller(self) -> None:
        """Let the next view control once the grace is over and nothing is held any more."""
        held = self.turns.holder in (Kind.HUMAN, Kind.RECOVERY)
        if self.controllers.free(self.now(), recovered=not held):
            self.turns.controller_back()

    def soon(self, then: Callable[[], list[Instruction]]) -> None:
        """Tell the machine after the instructions at hand are carried out."""
        asyncio.get_running_loop().call_soon(lambda: self.feed(then()))

    def spawn(self, work: Any) -> None:
        """Run something beside, until the terminal is closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def now(self) -> float:
        """Return the time of the machine, in seconds."""
        return self._clock.monotonic()
