"""One terminal's life: output in, status and pieces out, closed once.

The session is the only writer of its PTY and byte log. Output goes, in this order, to
the byte log (exact, survives the worker), the transcript (text, marks, modes), the
active send and the waiters. The end of the top-level process is reported by the shim;
what it printed last is drained before the status changes, so nothing is cut off.
"""

import asyncio
import logging
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fabric.core.clock import Clock
from fabric.core.errors import (
    CleanupIncompleteError,
    InvalidRequestError,
    SessionClosingError,
    SessionExitedError,
    SignalRefusedError,
)
from fabric.core.ids import RequestId
from fabric.core.model import (
    CloseReceipt,
    Confinement,
    ExitStatus,
    OpenSpec,
    SessionInfo,
    SessionStatus,
    SignalDelivered,
    SignalName,
)
from fabric.core.repeat import Repeats, digest_of
from fabric.core.settings import WorkerSettings
from workers.attaching import Attaching
from workers.counts import Counts
from workers.ledger import Ledger
from workers.observing import Observing
from workers.pulse import Pulse
from workers.readiness.inspector import Inspector
from workers.recording import Recording
from workers.sandbox.limits import OUT_OF_MEMORY, SessionCgroup
from workers.sending import Sending
from workers.shim.client import ShimClient, Spawned
from workers.signalling import deliver
from workers.terminal.dialects import Dialect
from workers.terminal.master import Master
from workers.text.bytelog import ByteLog
from workers.text.cursors import Cursors
from workers.text.marks import Mark
from workers.text.transcript import Transcript
from workers.writing import Writing

MAX_ROWS_COLS = 1000
SIGNAL_NOTICED_S = 0.05
SIGNAL_LOOK_S = 0.001
REPLAY_BYTES = 262_144
SIGNAL_TRIES = 4
KILLED = 128 + signal.SIGKILL
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a session is made of; ``workers.launching`` puts it together."""

    shim: ShimClient
    spawned: Spawned
    master: Master
    inspector: Inspector
    log: ByteLog
    cursors: Cursors
    ledger: Ledger
    dialect: Dialect
    nonce: str
    confinement: Confinement
    cwd: str
    cgroup: SessionCgroup | None = None


class Observer(Protocol):
    """Who is told of output, after it went into text and memory, and of the program's end."""

    def output(self, marks: list[Mark]) -> None:
        """Take note of output."""
        ...

    def exited(self) -> None:
        """Take note of the end."""
        ...


class Session:
    """A running terminal."""

    def __init__(
        self,
        spec: OpenSpec,
        parts: Parts,
        settings: WorkerSettings,
        clock: Clock,
        notify: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self.spec = spec
        self.parts = parts
        self.settings = settings
        self.clock = clock
        self.notify = notify
        self.nonce = parts.nonce
        self.log = parts.log
        scrollback = settings.scrollback
        self.transcript = Transcript(
            nonce=parts.nonce,
            max_lines=scrollback.lines,
            max_bytes=scrollback.max_bytes,
            carry_bytes=scrollback.carry_bytes,
        )
        self.rows, self.cols = spec.rows, spec.cols
        self.status = SessionStatus()
        self.counts = Counts()
        self.is_over = False
        self.is_abandoned = False
        self.is_ready = False
        self.last_output_at = clock.monotonic()
        self.last_activity_at = clock.wall()
        self.cwd: str | None = parts.cwd
        self.changed = Pulse()
        self.sending = Sending(self)
        self.observing = Observing(self)
        self.writing = Writing(self)
        self.attaching = Attaching(self)
        self.observers: list[Observer] = []
        self.recording = Recording.begun(settings.transcript, spec, clock)
        self._signals: Repeats[SignalDelivered] = Repeats(
            retention_s=settings.input.request_retention_s,
            max_entries=settings.input.max_request_ids,
        )
        self._closing: asyncio.Task[CloseReceipt] | None = None
        self._ended: asyncio.Task[None] | None = None

    @property
    def is_closing(self) -> bool:
        """Tell whether a close is under way."""
        return self._closing is not None

    def start(self) -> None:
        """Begin to read the terminal and to watch for its end."""
        self.parts.master.start(self._on_output)
        self.parts.shim.exited.add_done_callback(self._on_exit)

    def replay(self) -> None:
        """Rebuild text and modes from the byte log, after an adoption.

        The lines get the numbers they had, so that the cursors of tails stay right.
        """
        size = self.parts.master.size()
        if size is not None:
            self.rows, self.cols = size
            self.observing = Observing(self)
        offset, line = self.parts.cursors.checkpoint
        at = self.log.first_offset
        behind = line - self.transcript.next_line if at >= offset else None
        while at < self.log.next_offset:
            most = REPLAY_BYTES if behind is not None else min(REPLAY_BYTES, offset - at)
            at, data = self.log.read(at, most)
            self.transcript.feed(bytes(data))
            at += len(data)
            if behind is None and at >= offset:
                behind = line - self.transcript.next_line
        self.transcript.renumber(max(behind or 0, 0))
        self.parts.cursors.note(self.log.next_offset, self.transcript.next_line)

    def info(self) -> SessionInfo:
        """Describe the session."""
        spec = self.spec
        return SessionInfo(
            session_id=spec.session_id,
            owner_id=spec.owner_id,
            type=spec.type,
            status=self.status,
            name=spec.name,
            pid=self.parts.spawned.pid,
            cwd=self.cwd,
            confinement=self.parts.confinement,
            rows=self.rows,
            cols=self.cols,
            created_at=spec.created_at,
            last_activity_at=self.last_activity_at,
            adoption=self.parts.shim.adoption + (spec.shared.adoptions if spec.shared else 0),
            busy=self.sending.is_busy,
        )

    def check_writable(self) -> None:
        """Raise SessionClosingError or SessionExitedError when nothing can be written."""
        session_id = self.spec.session_id
        if self.is_closing:
            raise SessionClosingError(f"session {session_id} is closing", session_id=session_id)
        if not self.status.is_running:
            raise SessionExitedError(f"session {session_id} has exited", session_id=session_id)

    def foreground(self) -> int:
        """Resolve the foreground process group now. Raises: SignalRefusedError."""
        group = self.parts.inspector.foreground() if self.status.is_running else None
        if not group:
            raise SignalRefusedError(
                "the terminal has no foreground process group; nothing was signalled",
                session_id=self.spec.session_id,
            )
        return group

    def signal(self, name: SignalName) -> SignalDelivered:
        """Signal the foreground process group as resolved at this moment.

        Raises: SignalRefusedError, SessionClosingError.
        """
        if self.is_closing:
            self.check_writable()
        number = getattr(signal, name.value)
        for _ in range(SIGNAL_TRIES):
            group = self.foreground()
            if name is SignalName.SIGKILL and group in self.shell_groups():
                raise self._refusal(
                    "refusing to SIGKILL the terminal's shell; close the session instead"
                )
            try:
                if deliver(group, number, self.parts.inspector.foreground):
                    self.last_activity_at = self.clock.wall()
                    return SignalDelivered(group)
            except ProcessLookupError as error:
                raise self._refusal(
                    "the foreground process group ended before the signal; nothing was signalled"
                ) from error
            except PermissionError as error:
                raise self._refusal(
                    "the foreground process group belongs to another account; nothing was signalled"
                ) from error
        raise self._refusal("the foreground process group does not stand still; try again")

    def _refusal(self, message: str) -> SignalRefusedError:
        return SignalRefusedError(message, session_id=self.spec.session_id)

    async def signal_once(self, name: SignalName, request_id: RequestId) -> SignalDelivered:
        """Signal, but not again for a repeated request id. Raises: what ``signal`` raises.

        A line editor that is interrupted throws away what was typed so far. So when the
        program was waiting for input, the call returns only after it has noticed the
        signal and waits again: text sent next is never half eaten.
        """
        now, content = self.clock.monotonic(), digest_of(name.value)
        earlier = self._signals.find(request_id, content, now)
        if earlier is not None:
            return earlier
        before = {(wait.tid, wait.switches) for wait in self.parts.inspector.probe().waits}
        delivered = self.signal(name)
        self._signals.reserve(request_id, content, delivered, now)
        self._signals.settle(request_id, now)
        deadline = self.clock.monotonic() + SIGNAL_NOTICED_S
        while before and self.status.is_running and self.clock.monotonic() < deadline:
            await asyncio.sleep(SIGNAL_LOOK_S)
            waits = self.parts.inspector.probe().waits
            if any((wait.tid, wait.switches) not in before for wait in waits):
                break
        return delivered

    def shell_groups(self) -> set[int]:
        """Name the groups of the top-level process and of the learned shell."""
        groups = {self.parts.spawned.pid}
        if self.sending.memory.shell_pgid is not None:
            groups.add(self.sending.memory.shell_pgid)
        return groups

    def resize(self, rows: int, cols: int) -> SessionInfo:
        """Change the terminal's size. Raises: InvalidRequestError, SessionExitedError."""
        if not (0 < rows <= MAX_ROWS_COLS and 0 < cols <= MAX_ROWS_COLS):
            raise InvalidRequestError(f"rows and cols must lie between 1 and {MAX_ROWS_COLS}")
        self.check_writable()
        self.parts.master.resize(rows, cols)
        self.rows, self.cols = rows, cols
        self.observing.resized()
        if self.recording is not None:
            self.recording.resized(rows, cols)
        self.changed.send()
        return self.info()

    async def close(self, reason: str) -> CloseReceipt:
        """End the whole tree; a second caller joins. Raises: CleanupIncompleteError."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._close(reason))
        task = self._closing
        try:
            return await asyncio.shield(task)
        finally:
            if task.done() and (task.cancelled() or task.exception() is not None):
                self._closing = None

    async def _close(self, reason: str) -> CloseReceipt:
        self.parts.master.stop_input()
        teardown = self.settings.teardown
        receipt = await self.parts.shim.teardown(
            grace_s=teardown.grace_s, shell_grace_s=teardown.shell_grace_s
        )
        if receipt.survivors:
            names = ", ".join(f"{item.name} ({item.pid})" for item in receipt.survivors)
            error = CleanupIncompleteError(
                f"closing failed ({reason}); surviving processes: {names}",
                session_id=self.spec.session_id,
                surviving_pids=",".join(str(item.pid) for item in receipt.survivors),
            )
            self.sending.fail(error)
            self.parts.master.resume_input()
            raise error
        if self.parts.cgroup is not None:
            self.parts.cgroup.remove()
        await self._finish(receipt.root_exit or ExitStatus())
        return receipt

    async def wait_over(self) -> None:
        """Wait until nothing more can come from the terminal."""
        while not self.is_over:
            await self.changed.wait()

    def abandon(self) -> None:
        """Let go of the terminal without touching it; the shim keeps it. May be repeated."""
        if self.is_abandoned:
            return
        self.is_abandoned = True
        self.sending.close()
        self.writing.close()
        self.parts.master.close()
        self.parts.ledger.release()
        self.parts.cursors.release()
        self.log.close()
        if self.recording is not None:
            self.recording.close()
        self.changed.send()

    def _on_output(self, data: bytes) -> None:
        self.log.append(data)
        if self.recording is not None:
            self.recording.output(data)
        marks = self.transcript.feed(data)
        self.parts.cursors.note(self.log.next_offset, self.transcript.next_line)
        self.last_output_at = self.clock.monotonic()
        self.is_ready = False
        for mark in marks:
            if mark.cwd is not None:
                self.cwd = mark.cwd
        self.sending.output(marks)
        for observer in self.observers:
            observer.output(marks)
        self.changed.send()

    def _on_exit(self, exited: "asyncio.Future[ExitStatus]") -> None:
        if not exited.cancelled() and self._ended is None:
            self._ended = asyncio.get_running_loop().create_task(self._finish(exited.result()))

    async def _finish(self, status: ExitStatus) -> None:
        if self.is_over:
            return
        await self.parts.master.drain_last()
        if self.status.is_running:
            status = self._explained(status)
            self.status = replace(self.status, exit=status)
            self.transcript.flush()
            self.sending.exited(self.status)
            for observer in self.observers:
                observer.exited()
            self.notify(
                "session_exited",
                {"exit_code": status.exit_code, "signal": status.signal, "detail": status.detail},
            )
        self.is_over = True
        if self.recording is not None:
            self.recording.close()
        self.changed.send()

    def _explained(self, status: ExitStatus) -> ExitStatus:
        """Add the cause of an end that the kernel brought about."""
        cgroup = self.parts.cgroup
        killed = status.signal == "SIGKILL" or status.exit_code == KILLED
        if killed and cgroup is not None and cgroup.was_out_of_memory():
            return replace(status, detail=OUT_OF_MEMORY)
        return status
