"""What the tools call: the verbs of a fabric, bound to one owner."""

from typing import Protocol

from fabric.core.ids import (
    RequestId,
    SessionId,
    TaskId,
)
from fabric.core.model import (
    CloseResult,
    OpenRequest,
    OpenResult,
    ReadPage,
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
from fabric.core.shared import SharedPage, SharedResult, SharedSend


class Verbs(Protocol):
    """What the tools call, bound to one owner."""

    async def open(self, request: OpenRequest) -> OpenResult:
        """Open a session."""
        ...

    async def send(self, session_id: SessionId, request: SendRequest) -> SendResult:
        """Send and wait."""
        ...

    async def read(self, session_id: SessionId, offset: int, count: int) -> ReadPage:
        """Read a page."""
        ...

    async def signal(
        self, session_id: SessionId, name: SignalName, request_id: RequestId
    ) -> SignalDelivered:
        """Signal the foreground group."""
        ...

    async def wait_for(
        self, session_id: SessionId, condition: WaitCondition, timeout_s: float
    ) -> WaitResult:
        """Wait beside the terminal."""
        ...

    async def tail(
        self, session_id: SessionId, consumer: str, lines: int | None, request_id: RequestId
    ) -> TailPage:
        """Return the lines that are new to a consumer."""
        ...

    async def close(self, session_id: SessionId, request_id: RequestId) -> CloseResult:
        """Close a session."""
        ...

    async def list(self) -> tuple[SessionInfo, ...]:
        """List the sessions."""
        ...

    async def start_task(self, session_id: SessionId, request: SendRequest) -> TaskRecord:
        """Start a background send."""
        ...

    async def task_output(self, task_id: TaskId, cursor: int, wait_s: float) -> TaskOutput:
        """Read a task."""
        ...

    async def list_tasks(self) -> tuple[TaskRecord, ...]:
        """List the tasks."""
        ...

    async def kill_task(self, task_id: TaskId, request_id: RequestId) -> TaskRecord:
        """Interrupt a task."""
        ...

    async def shared_send(self, request: SharedSend) -> SharedResult:
        """Queue a send on the shared terminal."""
        ...

    async def shared_read(self, offset: int, count: int) -> SharedPage:
        """Read the shared terminal."""
        ...

    async def shared_signal(self, name: SignalName, request_id: RequestId) -> SharedResult:
        """Queue a signal on the shared terminal."""
        ...

    async def shared_reset(self, request_id: RequestId) -> SharedResult:
        """Queue a reset of the shared terminal."""
        ...
