"""What the gateway asks of the fabric: a registry and the sessions.

``fabric.actors.remote`` and ``fabric.actors.sessions`` implement these over Ray and the
session channel; the rpc tests implement them in one process.
"""

from collections.abc import AsyncIterator
from typing import Protocol

from fabric.core.attach import AttachEvent, AttachStart, WriteReceipt, WriteRequest
from fabric.core.census import Census
from fabric.core.ids import AgentId, HostName, Principal, RequestId, SessionId, TaskId
from fabric.core.model import (
    BytesPage,
    Caller,
    CloseResult,
    EventPage,
    GatewayKeys,
    Location,
    NewsPage,
    NodeState,
    OpenRequest,
    OpenResult,
    OwnerGrant,
    ReadPage,
    ReleaseReceipt,
    SandboxMode,
    ScreenSnapshot,
    SendRequest,
    SendResult,
    SessionInfo,
    SignalDelivered,
    SignalName,
    TailPage,
    TaskOutput,
    TaskRecord,
    WaitCondition,
    WaitResult,
)
from fabric.core.shared import (
    PersonRequest,
    SharedPage,
    SharedResult,
    SharedSend,
    ViewEvent,
    ViewStart,
    ViewTicket,
)


class ViewsPort(Protocol):
    """What gives out links for browsers."""

    def mint(self, caller: Caller, info: SessionInfo | None, *, readonly: bool) -> ViewTicket:
        """Make a link to the shared terminal, or, read-only, to one session.

        Raises: UnsupportedError, LimitReachedError.
        """
        ...

    def mint_overview(self, caller: Caller) -> ViewTicket:
        """Make a link to the list of the owner's sessions. Raises: as ``mint``."""
        ...


class RegistryPort(Protocol):
    """Owners, sessions and placement. Every call may raise RegistryUnavailableError."""

    async def join(self, host: HostName, address: str) -> GatewayKeys:
        """Announce this gateway and get the fabric's keys."""
        ...

    async def leave(self, host: HostName, address: str) -> None:
        """Withdraw this gateway."""
        ...

    async def acquire(
        self,
        principal: Principal,
        agent: AgentId,
        mode: SandboxMode | None,
        lease_s: float | None,
        request_id: RequestId,
    ) -> OwnerGrant:
        """Make or take over an owner; a take-over raises its epoch."""
        ...

    async def renew(self, caller: Caller, lease_s: float | None) -> OwnerGrant:
        """Extend the lease. Raises: OwnerNotLiveError."""
        ...

    async def release(self, caller: Caller, request_id: RequestId) -> ReleaseReceipt:
        """Dispose of the owner and await the end of its sessions."""
        ...

    async def set_mode(
        self, caller: Caller, mode: SandboxMode, request_id: RequestId
    ) -> OwnerGrant:
        """Change the owner's mode. Raises: SandboxModeLockedError."""
        ...

    async def open(self, caller: Caller, request: OpenRequest) -> OpenResult:
        """Open and publish a session; cancelling the call rolls it back."""
        ...

    async def close(
        self, caller: Caller, session_id: SessionId, request_id: RequestId
    ) -> CloseResult:
        """Close a session and await the end of its tree. Raises: CleanupIncompleteError."""
        ...

    async def list(self, caller: Caller) -> tuple[SessionInfo, ...]:
        """List the owner's published sessions in order of publication."""
        ...

    async def locate(self, session_id: SessionId) -> Location:
        """Say where a session is. Raises: SessionNotFoundError, SessionLostError."""
        ...

    async def nodes(self) -> tuple[NodeState, ...]:
        """List the nodes with their capacity."""
        ...

    async def census(self) -> Census:
        """Count owners, sessions and tasks."""
        ...

    async def list_tasks(self, caller: Caller) -> tuple[TaskRecord, ...]:
        """List the owner's tasks, settled ones too while retained."""
        ...

    async def read_events(
        self, caller: Caller, cursor: int | None = None, limit: int = 100, wait_s: float = 0.0
    ) -> EventPage:
        """Return the owner's events after ``cursor`` (None: after the acknowledged ones)."""
        ...

    async def acknowledge_events(self, caller: Caller, sequence: int) -> None:
        """Drop the owner's events up to ``sequence``."""
        ...

    async def news(self, version: int | None, wait_s: float) -> NewsPage:
        """Say which owners have news after ``version``, waiting for the first."""
        ...


class SessionsPort(Protocol):
    """One session's verbs, wherever it runs; all check the caller and raise typed errors."""

    async def send(self, caller: Caller, session_id: SessionId, request: SendRequest) -> SendResult:
        """Write and wait for a verdict; cancelling the call cancels the send."""
        ...

    async def read(
        self, caller: Caller, session_id: SessionId, offset: int, count: int
    ) -> ReadPage:
        """Read a page of scrollback."""
        ...

    async def signal(
        self, caller: Caller, session_id: SessionId, name: SignalName, request_id: RequestId
    ) -> SignalDelivered:
        """Signal the foreground process group."""
        ...

    async def status(self, caller: Caller, session_id: SessionId) -> SessionInfo:
        """Describe the session as its worker sees it."""
        ...

    async def snapshot(self, caller: Caller, session_id: SessionId) -> ScreenSnapshot:
        """Show the screen."""
        ...

    async def resize(
        self, caller: Caller, session_id: SessionId, rows: int, cols: int
    ) -> SessionInfo:
        """Change the terminal's size."""
        ...

    async def tail(
        self,
        caller: Caller,
        session_id: SessionId,
        consumer: str,
        lines: int,
        request_id: RequestId | None = None,
    ) -> TailPage:
        """Return whole lines that are new to this consumer; the last request id repeats."""
        ...

    async def write(
        self, caller: Caller, session_id: SessionId, request: WriteRequest
    ) -> WriteReceipt:
        """Put input into the terminal beside sends."""
        ...

    def attach(
        self, caller: Caller, session_id: SessionId, start: AttachStart
    ) -> AsyncIterator[AttachEvent]:
        """Stream the screen and the bytes from there until the session ends."""
        ...

    async def shared_send(
        self, caller: Caller, session_id: SessionId, request: SharedSend
    ) -> SharedResult:
        """Queue a model's send on a shared terminal and wait for its end."""
        ...

    async def shared_signal(
        self, caller: Caller, session_id: SessionId, name: SignalName, request_id: RequestId
    ) -> SharedResult:
        """Queue a signal on a shared terminal and wait for what it leads to."""
        ...

    async def shared_reset(
        self, caller: Caller, session_id: SessionId, request_id: RequestId
    ) -> SharedResult:
        """Queue the next generation of a shared terminal."""
        ...

    async def shared_read(
        self, caller: Caller, session_id: SessionId, offset: int, count: int
    ) -> SharedPage:
        """Read the history of a shared terminal."""
        ...

    async def shared_act(
        self, caller: Caller, session_id: SessionId, request: PersonRequest
    ) -> int:
        """Do what the person at the controlling view asks for; returns the lease."""
        ...

    def shared_view(
        self, caller: Caller, session_id: SessionId, start: ViewStart
    ) -> AsyncIterator[ViewEvent]:
        """Stream the screen and the state of the queue of a shared terminal to one view."""
        ...

    async def read_bytes(
        self, caller: Caller, session_id: SessionId, offset: int, max_bytes: int, wait_s: float
    ) -> BytesPage:
        """Read raw bytes, waiting up to ``wait_s`` for the first. Raises: CursorExpiredError."""
        ...

    def follow(
        self, caller: Caller, session_id: SessionId, offset: int | None
    ) -> AsyncIterator[BytesPage]:
        """Stream raw bytes from ``offset`` (None: from now on) until the session ends."""
        ...

    async def wait_for(
        self, caller: Caller, session_id: SessionId, condition: WaitCondition, timeout_s: float
    ) -> WaitResult:
        """Wait for a condition beside the PTY."""
        ...

    async def start_task(
        self, caller: Caller, session_id: SessionId, request: SendRequest
    ) -> TaskRecord:
        """Start a background send. Raises: SendActiveError, CapacityReachedError."""
        ...

    async def task_output(
        self, caller: Caller, task_id: TaskId, cursor: int, wait_s: float
    ) -> TaskOutput:
        """Return a task's new output, waiting up to ``wait_s`` for its end."""
        ...

    async def kill_task(self, caller: Caller, task_id: TaskId, request_id: RequestId) -> TaskRecord:
        """Interrupt a task for real and say that it is stopping."""
        ...
