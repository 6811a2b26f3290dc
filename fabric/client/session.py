"""Sessions and tasks as objects of the asynchronous client."""

from collections.abc import AsyncIterator
from typing import Protocol

from fabric.client.attach import Attachment
from fabric.client.calls import Calls
from fabric.client.following import follow
from fabric.core.attach import AttachStart, WriteRequest
from fabric.core.errors import InvalidRequestError
from fabric.core.ids import RequestId, SessionId, TaskId, new_request_id
from fabric.core.model import (
    BytesPage,
    CloseResult,
    OpenResult,
    ReadPage,
    ScreenSnapshot,
    SendRequest,
    SendResult,
    SessionInfo,
    SignalDelivered,
    SignalName,
    TailPage,
    TaskOutput,
    TaskRecord,
    TaskState,
    WaitCondition,
    WaitResult,
)
from fabric.wire.server import ServerInfo

CLOSE_WAIT_S = 60.0
_RUNNING = (TaskState.RUNNING, TaskState.STOPPING)


class Context(Protocol):
    """What sessions and tasks need of their client."""

    @property
    def calls(self) -> Calls:
        """The verbs below the client."""
        ...

    @property
    def server(self) -> ServerInfo:
        """The server as it introduced itself."""
        ...


def as_bytes(text: str | bytes) -> bytes:
    """Return what to write. Raises: InvalidRequestError when it is no text or not UTF-8's."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise InvalidRequestError(f"text must be str or bytes, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError("text must be valid Unicode; send bytes instead") from error


def as_signal(name: SignalName | str) -> SignalName:
    """Return a signal by its name. Raises: InvalidRequestError."""
    try:
        return SignalName(name)
    except ValueError as error:
        names = ", ".join(SignalName)
        raise InvalidRequestError(f"signal must be one of {names}", field="signal") from error


class Task:
    """One background send. ``output`` returns what is new since the last time."""

    def __init__(self, context: Context, record: TaskRecord) -> None:
        self._context = context
        self._cursor = 0
        self.record = record

    @property
    def id(self) -> TaskId:
        """The task's id."""
        return self.record.task_id

    async def output(self, wait_s: float = 0.0) -> TaskOutput:
        """Return new output, waiting up to ``wait_s`` seconds for the task's end."""
        output = await self._context.calls.task_output(self.id, self._cursor, wait_s)
        self._cursor, self.record = output.next_cursor, output.record
        return output

    async def kill(self, *, request_id: RequestId | None = None) -> TaskRecord:
        """Interrupt the task's program; it may take a while to end."""
        self.record = await self._context.calls.kill_task(self.id, request_id or new_request_id())
        return self.record

    @property
    def is_running(self) -> bool:
        """Tell whether the task had not settled when it was last looked at."""
        return self.record.state in _RUNNING


class Session:
    """One terminal. ``opened`` is what it printed at first, None for one opened earlier."""

    def __init__(
        self, context: Context, session_id: SessionId, opened: OpenResult | None = None
    ) -> None:
        self._context = context
        self.id = session_id
        self.opened = opened

    @property
    def _calls(self) -> Calls:
        return self._context.calls

    async def send(
        self,
        text: str | bytes = "",
        *,
        submit: bool = True,
        timeout_s: float | None = None,
        request_id: RequestId | None = None,
    ) -> SendResult:
        """Write ``text`` and a carriage return, and wait up to ``timeout_s`` for a verdict.

        Raises: SendActiveError, SessionExitedError, InputTooLargeError and others.
        """
        request = SendRequest(request_id or new_request_id(), as_bytes(text), submit, timeout_s)
        wait_s = self._context.server.send_timeout_s if timeout_s is None else timeout_s
        return await self._calls.send(self.id, request, wait_s)

    async def send_background(
        self, text: str | bytes = "", *, submit: bool = True, request_id: RequestId | None = None
    ) -> Task:
        """Write and return at once; the send goes on as a task."""
        request = SendRequest(
            request_id or new_request_id(), as_bytes(text), submit, background=True
        )
        return Task(self._context, await self._calls.start_task(self.id, request))

    async def read(self, offset: int = 0, count: int | None = None) -> ReadPage:
        """Read ``count`` lines (None: 500), skipping the ``offset`` newest."""
        return await self._calls.read(self.id, offset, count)

    async def signal(
        self, name: SignalName | str, *, request_id: RequestId | None = None
    ) -> SignalDelivered:
        """Signal the foreground process group. Raises: SignalRefusedError."""
        return await self._calls.signal(self.id, as_signal(name), request_id or new_request_id())

    async def status(self) -> SessionInfo:
        """Describe the session as it is now."""
        return await self._calls.status(self.id)

    async def snapshot(self) -> ScreenSnapshot:
        """Show the screen."""
        return await self._calls.snapshot(self.id)

    async def resize(self, rows: int, cols: int) -> SessionInfo:
        """Change the terminal's size."""
        return await self._calls.resize(self.id, rows, cols, new_request_id())

    async def write(self, data: str | bytes, *, request_id: RequestId | None = None) -> int:
        """Put input into the terminal beside sends, verbatim; return how many bytes it took."""
        request = WriteRequest(request_id or new_request_id(), as_bytes(data))
        return (await self._calls.write(self.id, request)).written_bytes

    async def keys(self, *names: str, request_id: RequestId | None = None) -> None:
        """Press keys (``Enter``, ``Ctrl-C``, ``Up``, ``F5``, …) as the program expects them."""
        request = WriteRequest(request_id or new_request_id(), keys=names)
        await self._calls.write(self.id, request)

    async def eof(self, *, request_id: RequestId | None = None) -> None:
        """Send the terminal's end-of-file character."""
        await self._calls.write(self.id, WriteRequest(request_id or new_request_id(), eof=True))

    def attach(
        self,
        *,
        snapshot: bool = True,
        offset: int | None = None,
        rows: int | None = None,
        cols: int | None = None,
        window_bytes: int | None = None,
    ) -> Attachment:
        """Attach as a person would: the screen, the bytes from there, input beside sends.

        Without ``snapshot`` the bytes follow from ``offset`` (None: from now on). ``rows``
        and ``cols`` resize the terminal first.
        """
        start = AttachStart(offset, snapshot, rows, cols)
        return Attachment(self._calls, self.id, start, window_bytes)

    async def tail(self, lines: int | None = None, consumer: str = "") -> TailPage:
        """Return the whole lines that are new to ``consumer``, the newest ``lines`` (None: 200)."""
        return await self._calls.tail(self.id, consumer, lines)

    async def read_bytes(
        self, offset: int = 0, max_bytes: int | None = None, wait_s: float = 0.0
    ) -> BytesPage:
        """Read raw bytes from ``offset``, waiting up to ``wait_s`` for the first.

        Raises: CursorExpiredError.
        """
        return await self._calls.read_bytes(self.id, offset, max_bytes, wait_s)

    def follow(self, offset: int | None = None) -> AsyncIterator[BytesPage]:
        """Stream raw bytes from ``offset`` (None: from now on); the last page has ``ended``.

        A stream whose gateway goes away goes on at another one where it stood.
        """
        return follow(lambda: self._calls, self.id, offset)

    async def wait_for(
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
        condition = WaitCondition(pattern, quiet_s, ready, exit, since_offset)
        wait_s = self._context.server.max_wait_s if timeout_s is None else timeout_s
        return await self._calls.wait_for(self.id, condition, timeout_s, wait_s)

    async def close(self, *, request_id: RequestId | None = None) -> CloseResult:
        """End the session and return when no process of it is left.

        Raises: CleanupIncompleteError naming the survivors; closing again goes on.
        """
        return await self._calls.close(self.id, request_id or new_request_id(), CLOSE_WAIT_S)
