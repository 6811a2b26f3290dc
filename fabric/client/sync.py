"""The synchronous twin: the same verbs, run on an event loop in a thread of its own.

The thread starts with ``start`` (or ``with``) and has ended when ``stop`` returns. Ctrl-C in
a waiting call cancels that call on the server before it is raised.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from fabric.client.client import DEFAULT_ADDRESS, FabricClient
from fabric.client.link import Tls
from fabric.client.sync_bytes import PtyFacadeSync
from fabric.client.sync_session import SessionSync, TaskSync
from fabric.client.sync_shared import SharedTerminalSync
from fabric.client.thread import LoopThread
from fabric.client.tooling import ToolAnswer, ToolInfo
from fabric.core.errors import InvalidRequestError
from fabric.core.ids import RequestId, SessionId
from fabric.core.model import (
    NodeState,
    OwnerEvent,
    OwnerGrant,
    ReleaseReceipt,
    SandboxMode,
    SessionInfo,
    TaskRecord,
)
from fabric.core.shared import ViewTicket
from fabric.wire.server import ServerInfo

__all__ = ["FabricClientSync", "SessionSync", "TaskSync"]


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
    def pty(self) -> PtyFacadeSync:
        """The byte surface for programs: open, send, tail, close, and a stream."""
        return PtyFacadeSync(self._loop, self._client.pty)

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

    def events(self, cursor: int | None = None) -> Iterator[OwnerEvent]:
        """Yield the owner's events after number ``cursor`` (None: after the acknowledged)."""
        events: AsyncIterator[OwnerEvent] = aiter(self._client.events(cursor))
        return self._loop.iterate(events)

    @property
    def shared(self) -> SharedTerminalSync:
        """The terminal that the owner's model shares with a person."""
        return SharedTerminalSync(self._loop, self._client.shared)

    def view_ticket(
        self,
        session_id: SessionId | str | None = None,
        *,
        overview: bool = False,
        readonly: bool = False,
    ) -> ViewTicket:
        """Make a link for a browser. See ``FabricClient.view_ticket``."""
        return self._loop.run(
            self._client.view_ticket(session_id, overview=overview, readonly=readonly)
        )

    def list_tools(self, *surfaces: str) -> tuple[tuple[ToolInfo, ...], str]:
        """List the tools for a model, of some families or all, and a text that guides it."""
        return self._loop.run(self._client.list_tools(*surfaces))

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        request_id: RequestId | None = None,
        wait_s: float | None = None,
    ) -> ToolAnswer:
        """Carry a model's call through; what goes wrong inside it is an answer too."""
        return self._loop.run(
            self._client.call_tool(name, arguments, request_id=request_id, wait_s=wait_s)
        )

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
