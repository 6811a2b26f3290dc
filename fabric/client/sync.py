"""The synchronous twin: the same verbs, run on an event loop in a thread of its own.

The thread starts with ``start`` (or ``with``) and has ended when ``stop`` returns. Ctrl-C in
a waiting call cancels that call on the server before it is raised.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from fabric.client.client import DEFAULT_ADDRESS, FabricClient
from fabric.client.link import Tls
from fabric.client.session import Session, Task
from fabric.client.thread import LoopThread
from fabric.core.errors import InvalidRequestError
from fabric.core.ids import RequestId, SessionId, TaskId
from fabric.core.model import (
    BytesPage,
    CloseResult,
    NodeState,
    OpenResult,
    OwnerGrant,
    ReadPage,
    ReleaseReceipt,
    SandboxMode,
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
from fabric.wire.server import ServerInfo


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
        pages = self._session.follow(offset)

        async def step() -> BytesPage | None:
            return await anext(pages, None)

        async def end() -> None:
            close: Callable[[], Awaitable[None]] | None = getattr(pages, "aclose", None)
            if close is not None:
                await close()

        try:
            while (page := self._loop.run(step())) is not None:
                yield page
        finally:
            self._loop.run(end())

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


class FabricClientSync:
    """``FabricClient`` without ``await``.

    with FabricClientSync.connect("127.0.0.1:7443", agent="me") as fabric:
        shell = fabric.open("shell")
        print(shell.send("echo hi").viewport)
    """

    def __init__(self, client: FabricClient) -> None:
        self._client = client
        self._thread: LoopThread | None = None

    @classmethod
    def connect(
        cls,
        address: str | Sequence[str] = DEFAULT_ADDRESS,
        *,
        token: str | None = None,
        agent: str | None = None,
        mode: SandboxMode | str | None = None,
        lease_s: float | None = None,
        keep: bool = False,
        owner_token: str | None = None,
        tls: Tls | None = None,
        insecure: bool = False,
    ) -> Self:
        """Make a client; ``with`` connects it. See ``FabricClient.connect``."""
        client = FabricClient.connect(
            address,
            token=token,
            agent=agent,
            mode=mode,
            lease_s=lease_s,
            keep=keep,
            owner_token=owner_token,
            tls=tls,
            insecure=insecure,
        )
        return cls(client)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the thread, connect and acquire the owner."""
        self._thread = LoopThread()
        try:
            self._thread.run(self._client.start())
        except BaseException:
            self._end_thread()
            raise

    def stop(self) -> None:
        """Release the owner unless it is kept, disconnect, end the thread. May be repeated."""
        if self._thread is None:
            return
        try:
            self._thread.run(self._client.stop())
        finally:
            self._end_thread()

    def _end_thread(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.close()

    @property
    def _loop(self) -> LoopThread:
        if self._thread is None:
            raise InvalidRequestError("the client is not connected; use it in `with`")
        return self._thread

    @property
    def server(self) -> ServerInfo:
        """The server as it introduced itself."""
        return self._client.server

    @property
    def owner(self) -> OwnerGrant:
        """The owner, as of its last renewal."""
        return self._client.owner

    @property
    def owner_token(self) -> str:
        """The owner's present token: a secret."""
        return self._client.owner_token

    def open(
        self,
        type: str = "shell",  # noqa: A002  (the argument's name everywhere)
        *,
        name: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        os: str | None = None,
        host: str | None = None,
        rows: int | None = None,
        cols: int | None = None,
        term: str | None = None,
        command: str | None = None,
        timeout_s: float | None = None,
        request_id: RequestId | None = None,
    ) -> SessionSync:
        """Open a session and return when it first wants input."""
        loop = self._loop
        coroutine = self._client.open(
            type,
            name=name,
            cwd=cwd,
            env=env,
            os=os,
            host=host,
            rows=rows,
            cols=cols,
            term=term,
            command=command,
            timeout_s=timeout_s,
            request_id=request_id,
        )
        return SessionSync(loop, loop.run(coroutine))

    def session(self, session_id: str) -> SessionSync:
        """Return a session opened earlier."""
        return SessionSync(self._loop, self._client.session(session_id))

    def list(self) -> tuple[SessionInfo, ...]:
        """List the owner's sessions in the order in which they were opened."""
        return self._loop.run(self._client.list())

    def tasks(self) -> tuple[TaskRecord, ...]:
        """List the owner's tasks."""
        return self._loop.run(self._client.tasks())

    def task(self, record: TaskRecord) -> TaskSync:
        """Return a task from its record, to be read from the beginning."""
        return TaskSync(self._loop, self._client.task(record))

    def nodes(self) -> tuple[NodeState, ...]:
        """List the nodes of the fabric."""
        return self._loop.run(self._client.nodes())

    def set_mode(
        self, mode: SandboxMode | str, *, request_id: RequestId | None = None
    ) -> OwnerGrant:
        """Change the mode of sessions to be opened."""
        return self._loop.run(self._client.set_mode(mode, request_id=request_id))

    def renew(self) -> OwnerGrant:
        """Extend the lease now."""
        return self._loop.run(self._client.renew())

    def release(self, *, request_id: RequestId | None = None) -> ReleaseReceipt:
        """Dispose of the owner now: close its sessions and wait for their end."""
        return self._loop.run(self._client.release(request_id=request_id))
