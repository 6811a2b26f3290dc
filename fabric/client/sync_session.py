"""One session and one task of the synchronous twin."""

from collections.abc import Iterator

from fabric.client.session import Session, Task
from fabric.client.sync_bytes import AttachmentSync
from fabric.client.thread import LoopThread
from fabric.core.ids import RequestId, SessionId, TaskId
from fabric.core.model import (
    BytesPage,
    CloseResult,
    OpenResult,
    ReadPage,
    ScreenSnapshot,
    SendResult,
    SessionInfo,
    SignalDelivered,
    SignalName,
    TailPage,
    TaskOutput,
    TaskRecord,
    WaitResult,
)


class TaskSync:
    """One background send. ``output`` returns what is new since the last time."""

    def __init__(self, loop: LoopThread, task: Task) -> None:
        self._loop = loop
        self._task = task

    @property
    def id(self) -> TaskId:
        """The task's id."""
        return self._task.id

    @property
    def record(self) -> TaskRecord:
        """The task as it was last looked at."""
        return self._task.record

    @property
    def is_running(self) -> bool:
        """Tell whether the task had not settled when it was last looked at."""
        return self._task.is_running

    def output(self, wait_s: float = 0.0) -> TaskOutput:
        """Return new output, waiting up to ``wait_s`` seconds for the task's end."""
        return self._loop.run(self._task.output(wait_s))

    def kill(self, *, request_id: RequestId | None = None) -> TaskRecord:
        """Interrupt the task's program; it may take a while to end."""
        return self._loop.run(self._task.kill(request_id=request_id))


class SessionSync:
    """One terminal; see ``Session`` for each verb."""

    def __init__(self, loop: LoopThread, session: Session) -> None:
        self._loop = loop
        self._session = session

    @property
    def id(self) -> SessionId:
        """The session's id."""
        return self._session.id

    @property
    def opened(self) -> OpenResult | None:
        """What it printed at first, None for a session opened earlier."""
        return self._session.opened

    def send(
        self,
        text: str | bytes = "",
        *,
        submit: bool = True,
        timeout_s: float | None = None,
        request_id: RequestId | None = None,
    ) -> SendResult:
        """Write ``text`` and a carriage return, and wait up to ``timeout_s`` for a verdict."""
        return self._loop.run(
            self._session.send(text, submit=submit, timeout_s=timeout_s, request_id=request_id)
        )

    def send_background(
        self, text: str | bytes = "", *, submit: bool = True, request_id: RequestId | None = None
    ) -> TaskSync:
        """Write and return at once; the send goes on as a task."""
        task = self._session.send_background(text, submit=submit, request_id=request_id)
        return TaskSync(self._loop, self._loop.run(task))

    def read(self, offset: int = 0, count: int | None = None) -> ReadPage:
        """Read ``count`` lines (None: 500), skipping the ``offset`` newest."""
        return self._loop.run(self._session.read(offset, count))

    def signal(
        self, name: SignalName | str, *, request_id: RequestId | None = None
    ) -> SignalDelivered:
        """Signal the foreground process group."""
        return self._loop.run(self._session.signal(name, request_id=request_id))

    def status(self) -> SessionInfo:
        """Describe the session as it is now."""
        return self._loop.run(self._session.status())

    def snapshot(self) -> ScreenSnapshot:
        """Show the screen."""
        return self._loop.run(self._session.snapshot())

    def resize(self, rows: int, cols: int) -> SessionInfo:
        """Change the terminal's size."""
        return self._loop.run(self._session.resize(rows, cols))

    def write(self, data: str | bytes, *, request_id: RequestId | None = None) -> int:
        """Put input into the terminal beside sends, verbatim; return how many bytes it took."""
        return self._loop.run(self._session.write(data, request_id=request_id))

    def keys(self, *names: str, request_id: RequestId | None = None) -> None:
        """Press keys (``Enter``, ``Ctrl-C``, ``Up``, ``F5``, …) as the program expects them."""
        self._loop.run(self._session.keys(*names, request_id=request_id))

    def eof(self, *, request_id: RequestId | None = None) -> None:
        """Send the terminal's end-of-file character."""
        self._loop.run(self._session.eof(request_id=request_id))

    def attach(
        self,
        *,
        snapshot: bool = True,
        offset: int | None = None,
        rows: int | None = None,
        cols: int | None = None,
        window_bytes: int | None = None,
    ) -> AttachmentSync:
        """Attach as a person would. See ``Session.attach``."""
        made = self._session.attach(
            snapshot=snapshot, offset=offset, rows=rows, cols=cols, window_bytes=window_bytes
        )
        return AttachmentSync(self._loop, made)

    def tail(self, lines: int | None = None, consumer: str = "") -> TailPage:
        """Return the whole lines that are new to ``consumer``."""
        return self._loop.run(self._session.tail(lines, consumer))

    def read_bytes(
        self, offset: int = 0, max_bytes: int | None = None, wait_s: float = 0.0
    ) -> BytesPage:
        """Read raw bytes from ``offset``, waiting up to ``wait_s`` for the first."""
        return self._loop.run(self._session.read_bytes(offset, max_bytes, wait_s))

    def follow(self, offset: int | None = None) -> Iterator[BytesPage]:
        """Stream raw bytes from ``offset`` (None: from now on); closing it cancels the call."""
        return self._loop.iterate(self._session.follow(offset))

    def wait_for(
        self,
        pattern: str | None = None,
        *,
        quiet_s: float | None = None,
        ready: bool = False,
        exit: bool = False,  # noqa: A002  (the condition's name everywhere)
        since_offset: int | None = None,
        timeout_s: float | None = None,
    ) -> WaitResult:
        """Wait for the first of the conditions; ``matched`` is ``timeout`` when none held."""
        return self._loop.run(
            self._session.wait_for(
                pattern,
                quiet_s=quiet_s,
                ready=ready,
                exit=exit,
                since_offset=since_offset,
                timeout_s=timeout_s,
            )
        )

    def close(self, *, request_id: RequestId | None = None) -> CloseResult:
        """End the session and return when no process of it is left."""
        return self._loop.run(self._session.close(request_id=request_id))
