"""What the sessions' verbs ask of others: the registry, and the gateways of other nodes."""

from typing import Any, Protocol

from fabric.core.ids import HostName, SessionId, TaskId
from fabric.core.model import Caller, Location, TaskOutput, TaskRecord


class Verbs(Protocol):
    """One session's verbs, as ``fabric.gateway.ports.SessionsPort`` spells them."""

    def __getattr__(self, name: str) -> Any:
        """Return a verb."""
        ...


class PeerDialer(Protocol):
    """The gateways of other nodes."""

    async def sessions_on(self, host: HostName) -> Verbs:
        """Return the verbs of the sessions on another node. Raises: GatewayUnavailableError."""
        ...


class TaskBook(Protocol):
    """What the verbs need of the registry."""

    async def locate(self, session_id: SessionId) -> Location:
        """Say where a session is."""
        ...

    async def task_record(self, caller: Caller, task_id: TaskId) -> TaskRecord:
        """Return one task."""
        ...

    async def task_output(
        self, caller: Caller, task_id: TaskId, cursor: int, wait_s: float
    ) -> TaskOutput:
        """Return a settled task's output."""
        ...

    async def reserve_task(self, caller: Caller, session_id: SessionId, label: str) -> TaskId:
        """Count a task that is about to start."""
        ...

    async def attach_task(self, task_id: TaskId, record: TaskRecord | None) -> TaskRecord:
        """Show a task that has started."""
        ...

    async def forget_task(self, task_id: TaskId) -> None:
        """Drop a task that did not start."""
        ...

    async def stop_task(self, task_id: TaskId) -> TaskRecord:
        """Note that a task was told to end."""
        ...
