"""The writing half of a session: one send at a time.

The order of one send: refuse what cannot be written, reserve the slot, note the request
id where it outlives this process, look at the terminal, write, watch until a verdict,
settle once. ``workers.send`` decides, this file acts.

A repeated request id joins the send it names, or gets its answer again. A caller that
cancels gives the send up; when the last one has, the foreground group is interrupted for
real. A caller whose connection broke may come back under the same id: the interrupt
waits ``ABANDON_GRACE_S`` for it.

One interrupt is not always enough: it may hit between two commands of a loop, or end one
command of a list and let the next begin. So it is sent again for as long as the cancelled
send goes on in another group than the last one that got it; a group that had its
interrupt and ignores it, or tidies up, is left alone.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from fabric.core.errors import (
    FabricError,
    InputTooLargeError,
    InternalError,
    RequestIdConflictError,
    SendActiveError,
    SessionStateError,
    SignalRefusedError,
)
from fabric.core.model import (
    Evidence,
    Outcome,
    SendRequest,
    SendResult,
    SessionStatus,
    SignalName,
    WaitReason,
)
from fabric.core.repeat import Repeats, digest_of
from workers.channel import DISCONNECTED
from workers.readiness.driver import SendWatch
from workers.readiness.tiers import Memory, Verdict
from workers.send import Ask, Send
from workers.terminal.master import bracketed
from workers.text.marks import Mark
from workers.text.transcript import Capture

if TYPE_CHECKING:
    from workers.session import Session

ABANDON_GRACE_S = 1.0
INTERRUPT_AGAIN_S = 0.25
# How long a cancelled call waits for its program to stop and the slot to be free.
FREED_S = 1.0
SUBMIT = b"\r"
_log = logging.getLogger(__name__)


class Running:
    """One send under way."""

    def __init__(self, request: SendRequest, capture: Capture, first_offset: int) -> None:
        self.request = request
        self.capture = capture
        self.first_offset = first_offset
        self.machine = Send()
        self.watch: SendWatch | None = None
        self.started = time.monotonic()
        self.callers = 0
        self.done: asyncio.Future[SendResult] = asyncio.get_running_loop().create_future()
        self.abandoned: asyncio.TimerHandle | None = None
        self.interrupting: asyncio.TimerHandle | None = None
        self.writing: asyncio.Task[None] | None = None
        self.before_end: Callable[[], None] | None = None
        self.is_closed = False
        self.other_input = False


class Sending:
    """The one slot of a session and the sends that had it."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._active: Running | None = None
        limits = session.settings.input
        self._repeats: Repeats[Running | SendResult] = Repeats(
            retention_s=limits.request_retention_s, max_entries=limits.max_request_ids
        )
        self.memory = Memory()

    @property
    def is_busy(self) -> bool:
        """Tell whether a send holds the slot."""
        return self._active is not None

    @property
    def callers(self) -> int:
        """Count who waits for the active send."""
        return self._active.callers if self._active is not None else 0

    async def send(self, request: SendRequest) -> SendResult:
        """Write and wait for the verdict. Raises: SendActiveError and what begin() raises."""
        earlier = self.find(request)
        if isinstance(earlier, SendResult):
            return earlier
        return await self.attend(earlier or self.begin(request))

    def begin(self, request: SendRequest, *, startup: bool = False) -> Running:
        """Reserve the slot and start to write.

        Raises: SendActiveError, SessionClosingError, SessionExitedError,
        InputTooLargeError, InputLineTooLongError.
        """
        session = self._session
        if session.is_closing:
            session.check_writable()
        if self._active is not None:
            raise SendActiveError(
                f"session {session.spec.session_id} already has an active send",
                session_id=session.spec.session_id,
            )
        session.check_writable()
        data = self._bytes_of(request)
        if not startup:
            session.parts.master.check_lines(data)
            session.parts.master.drain()  # what came before a send is not its output
        run = Running(
            request,
            session.transcript.capture(session.settings.scrollback.send_max_bytes),
            session.log.next_offset,
        )
        now = session.clock.monotonic()
        content = self._digest(request)
        if not startup:
            self._repeats.reserve(request.request_id, content, run, now)
            session.parts.ledger.record(request.request_id, content, run.first_offset)
        self._active = run
        session.last_activity_at = session.clock.wall()
        run.watch = SendWatch(
            master=session.parts.master,
            inspector=session.parts.inspector,
            dialect=session.parts.dialect,
            settings=session.settings.readiness,
            data=data,
            timeout_s=request.timeout_s,
            background=request.background,
            startup=startup,
            memory=self.memory,
        )
        run.watch.verdict.add_done_callback(lambda done: self._on_verdict(run, done))
        self._act(run, run.machine.begin(), data)
        return run

    async def attend(self, run: Running) -> SendResult:
        """Await a send as one of its callers; giving up as the last one cancels it."""
        run.callers += 1
        if run.abandoned is not None:
            run.abandoned.cancel()
            run.abandoned = None
        try:
            return await asyncio.shield(run.done)
        except asyncio.CancelledError as error:
            if run.callers == 1 and not run.done.done():
                if DISCONNECTED in error.args:
                    run.abandoned = asyncio.get_running_loop().call_later(
                        ABANDON_GRACE_S, self.cancel, run
                    )
                else:
                    self.cancel(run)
                    await self._freed(run)
            raise
        finally:
            run.callers -= 1

    async def _freed(self, run: Running) -> None:
        clock = self._session.clock
        until = clock.monotonic() + FREED_S
        while self._active is run and (left := until - clock.monotonic()) > 0:
            await self._session.changed.wait(left)

    def cancel(self, run: Running) -> None:
        """Ask for a send's end by a real interrupt; it settles as it would by itself."""
        self._act(run, run.machine.cancel())

    def output(self, marks: list[Mark]) -> None:
        """Hand output to the active send."""
        text = self._session.transcript.text_since_mark
        if self._active is not None and self._active.watch is not None:
            self._active.watch.output(marks, text)
        else:
            self.memory.output(marks, text, self._session.parts.master.line)

    def other_input(self) -> None:
        """Note that somebody else typed: the active send's result says so."""
        if self._active is not None:
            self._active.other_input = True

    def exited(self, status: SessionStatus) -> None:
        """Settle the active send with the session's end."""
        run = self._active
        if run is not None and not run.machine.is_settled:
            verdict = Verdict(WaitReason.SESSION_EXIT, Evidence.EXIT)
            self._settle(run, verdict, run.machine.verdict(waits_for_input=False))

    def fail(self, error: FabricError) -> None:
        """Reject the active send, as a failed close does."""
        run = self._active
        if run is not None and not run.done.done():
            run.done.set_exception(error)
            run.done.exception()
            self._act(run, run.machine.verdict(waits_for_input=False))

    def close(self) -> None:
        """Stop watching."""
        self.memory.close()
        run = self._active
        if run is None:
            return
        if run.watch is not None:
            run.watch.close()
        if run.writing is not None:
            run.writing.cancel()
        if run.abandoned is not None:
            run.abandoned.cancel()
        if run.interrupting is not None:
            run.interrupting.cancel()

    def find(self, request: SendRequest) -> Running | SendResult | None:
        """Return the send or the answer of this request id. Raises: RequestIdConflictError."""
        session = self._session
        content = self._digest(request)
        found = self._repeats.find(request.request_id, content, session.clock.monotonic())
        if found is not None:
            return found
        trace = session.parts.ledger.find(request.request_id)
        if trace is None:
            return None
        if trace.content != content:
            raise RequestIdConflictError(
                f"request id {request.request_id} was used before with other content",
                request_id=request.request_id,
            )
        return SendResult(
            viewport="",
            wait_reason=WaitReason.TIMEOUT,
            status=session.status,
            first_offset=trace.first_offset,
            next_offset=session.log.next_offset,
            outcome=Outcome.UNKNOWN,
        )

    def _bytes_of(self, request: SendRequest) -> bytes:
        limit = self._session.settings.input.max_send_bytes
        if len(request.data) > limit:
            raise InputTooLargeError(
                f"the text has {len(request.data)} bytes, at most {limit} are taken at once",
                limit_bytes=limit,
            )
        session = self._session
        data = request.data
        if session.transcript.modes.bracketed_paste and session.spec.term != "dumb":
            data = bracketed(data)
        return data + SUBMIT if request.submit else data

    @staticmethod
    def _digest(request: SendRequest) -> bytes:
        return digest_of(request.data, request.submit, request.background)

    def _act(self, run: Running, asks: list[Ask], data: bytes = b"") -> None:
        for ask in asks:
            if ask is Ask.WRITE:
                self._write(run, data)
            elif ask is Ask.INTERRUPT:
                self._interrupt(run)
            elif ask is Ask.SETTLE and not run.done.done():
                self._finish(run, Verdict(WaitReason.CANCELLED))
            elif ask is Ask.RELEASE and self._active is run:
                self._active = None
                self._session.changed.send()

    def _write(self, run: Running, data: bytes) -> None:
        if self._session.parts.master.write_now(data):
            self._written(run)
            return
        run.writing = asyncio.get_running_loop().create_task(self._write_rest(run))

    async def _write_rest(self, run: Running) -> None:
        try:
            await self._session.parts.master.flush(self._session.settings.input.write_stall_s)
        except FabricError as error:
            self._write_failed(run, error)
        except OSError as error:
            self._write_failed(run, InternalError(f"writing failed: {error.strerror}"))
        else:
            self._written(run)

    def _written(self, run: Running) -> None:
        if run.watch is not None:
            run.watch.wrote()
        self._act(run, run.machine.written())

    def _write_failed(self, run: Running, error: FabricError) -> None:
        if not run.done.done():
            run.done.set_exception(error)
            run.done.exception()
        self._act(run, run.machine.write_failed())
        self._over(run, None)

    def _interrupt(self, run: Running) -> None:
        before = self._in_front()
        try:
            self._session.signal(SignalName.SIGINT)
        except SessionStateError:
            _log.info("interrupt found no foreground group")
            before = (0, None)
        self._interrupt_later(run, before)
        self._act(run, run.machine.interrupted())

    def _in_front(self) -> tuple[int, str | None]:
        """Return the group in front and its leader's program.

        A shell's child that has not become its program yet may miss an interrupt for good,
        in the group that the program then has.
        """
        group = self._session.parts.inspector.foreground() or 0
        return group, self._session.parts.inspector.name(group) if group else None

    def _interrupt_later(self, run: Running, before: tuple[int, str | None]) -> None:
        run.interrupting = asyncio.get_running_loop().call_later(
            INTERRUPT_AGAIN_S, self._interrupt_again, run, before
        )

    def _interrupt_again(self, run: Running, before: tuple[int, str | None]) -> None:
        if run.is_closed or self._session.is_closing or not self._session.status.is_running:
            return
        now = self._in_front()
        if now[0] and now != before and now[0] not in self._session.shell_groups():
            with contextlib.suppress(SignalRefusedError):
                self._session.signal(SignalName.SIGINT)
        else:
            now = before
        self._interrupt_later(run, now)

    def _on_verdict(self, run: Running, done: "asyncio.Future[Verdict]") -> None:
        if done.cancelled() or run.machine.is_settled:
            return
        error = done.exception()
        if error is not None:
            _log.error("watching a send failed", exc_info=error)
            if not run.done.done():
                run.done.set_exception(FabricError("watching the send failed inside"))
                run.done.exception()
            self._act(run, run.machine.verdict(waits_for_input=False))
            return
        verdict = done.result()
        waits = verdict.wait_reason in (WaitReason.STDIN_READ, WaitReason.INFERRED_IDLE)
        self._settle(run, verdict, run.machine.verdict(waits_for_input=waits))

    def _settle(self, run: Running, verdict: Verdict, asks: list[Ask]) -> None:
        if Ask.SETTLE in asks:
            self._finish(run, verdict)
        self._act(run, asks)

    def _finish(self, run: Running, verdict: Verdict) -> None:
        session = self._session
        ready = verdict.wait_reason is WaitReason.STDIN_READ
        session.is_ready = ready
        shell = self.memory.shell_pgid
        if shell is not None and verdict.foreground_pgid == shell:
            session.cwd = session.parts.inspector.cwd(shell) or session.cwd
        shown = run.capture.render()
        result = SendResult(
            viewport=shown.text,
            wait_reason=verdict.wait_reason,
            status=session.status,
            evidence=verdict.evidence,
            prompt_kind=verdict.prompt_kind,
            exit_code=verdict.exit_code,
            truncated=shown.truncated,
            omitted_bytes=shown.omitted_bytes,
            first_offset=run.first_offset,
            next_offset=session.log.next_offset,
            outcome=Outcome.CANCELLED if run.machine.cancelled else Outcome.COMPLETED,
            canonical=verdict.canonical,
            echo=verdict.echo,
            cwd=session.cwd,
            elapsed_s=time.monotonic() - run.started,
            other_input=run.other_input,
        )
        self._over(run, result)
        if not run.done.done():
            run.done.set_result(result)

    def _over(self, run: Running, result: SendResult | None) -> None:
        session = self._session
        now = session.clock.monotonic()
        self._repeats.settle(run.request.request_id, now, result)
        session.parts.ledger.settle(run.request.request_id)
        if result is not None:
            session.counts.sent(result)
        if run.watch is not None:
            run.watch.close()
        if run.before_end is not None:
            run.before_end()
        run.is_closed = True
        if run.interrupting is not None:
            run.interrupting.cancel()
        run.capture.close()
        session.changed.send()
