"""The registry as gateways and nodes call it: its methods over Ray, bounded, in our errors.

An open that is cancelled here is cancelled there and rolled back before this returns; a
session that was published in that very moment is closed again.
"""

from typing import Any

from fabric.actors.handles import ActorHandle
from fabric.actors.names import REGISTRY
from fabric.core.census import Census
from fabric.core.errors import FabricError, RegistryUnavailableError
from fabric.core.ids import (
    AgentId,
    HostName,
    Principal,
    RequestId,
    SessionId,
    TaskId,
    new_request_id,
)
from fabric.core.model import (
    Caller,
    CloseResult,
    EventPage,
    ExitStatus,
    GatewayKeys,
    Location,
    NewsPage,
    NodeState,
    OpenRequest,
    OpenResult,
    OwnerGrant,
    ReleaseReceipt,
    SandboxMode,
    SessionInfo,
    TaskOutput,
    TaskRecord,
)
from fabric.core.settings import Settings

MARGIN_S = 5.0


def _away(why: str) -> FabricError:
    return RegistryUnavailableError(f"the registry cannot be asked: {why}")


class RemoteRegistry:
    """The registry actor; every method may raise RegistryUnavailableError."""

    def __init__(self, settings: Settings) -> None:
        self._actor = ActorHandle(REGISTRY, settings.cluster.namespace, _away)
        self._quick_s = settings.cluster.call_timeout_s
        self._open_s = settings.registry.open_timeout_s + MARGIN_S
        self._close_s = settings.registry.close_timeout_s + MARGIN_S

    async def _ask(self, method: str, *args: Any, timeout_s: float | None = None) -> Any:
        return await self._actor.call(method, *args, timeout_s=timeout_s or self._quick_s)

    # Gateways and nodes

    async def join(self, host: HostName, address: str) -> GatewayKeys:
        """Announce a gateway and get the fabric's keys."""
        keys: GatewayKeys = await self._ask("join", host, address)
        return keys

    async def leave(self, host: HostName, address: str) -> None:
        """Withdraw a gateway."""
        await self._ask("leave", host, address)

    async def nodes(self) -> tuple[NodeState, ...]:
        """List the nodes with their capacity."""
        rows: tuple[NodeState, ...] = await self._ask("nodes", timeout_s=self._quick_s + MARGIN_S)
        return rows

    async def census(self) -> Census:
        """Count owners, sessions and tasks."""
        counts: Census = await self._ask("census")
        return counts

    # Owners

    async def acquire(
        self,
        principal: Principal,
        agent: AgentId,
        mode: SandboxMode | None,
        lease_s: float | None,
        request_id: RequestId,
    ) -> OwnerGrant:
        """Make or take over an owner; a take-over raises its epoch."""
        grant: OwnerGrant = await self._ask("acquire", principal, agent, mode, lease_s, request_id)
        return grant

    async def renew(self, caller: Caller, lease_s: float | None) -> OwnerGrant:
        """Extend the lease. Raises: OwnerNotLiveError."""
        grant: OwnerGrant = await self._ask("renew", caller, lease_s)
        return grant

    async def set_mode(
        self, caller: Caller, mode: SandboxMode, request_id: RequestId
    ) -> OwnerGrant:
        """Change the owner's mode. Raises: SandboxModeLockedError."""
        grant: OwnerGrant = await self._ask("set_mode", caller, mode, request_id)
        return grant

    async def release(self, caller: Caller, request_id: RequestId) -> ReleaseReceipt:
        """Dispose of the owner and await the end of its sessions."""
        receipt: ReleaseReceipt = await self._ask(
            "release", caller, request_id, timeout_s=2 * self._close_s
        )
        return receipt

    # Sessions

    async def open(self, caller: Caller, request: OpenRequest) -> OpenResult:
        """Open and publish a session; cancelling the call rolls it back."""

        async def undo(result: OpenResult) -> None:
            await self.close(caller, result.info.session_id, new_request_id())

        result: OpenResult = await self._actor.call(
            "open", caller, request, timeout_s=self._open_s, undo=undo
        )
        return result

    async def close(
        self, caller: Caller, session_id: SessionId, request_id: RequestId
    ) -> CloseResult:
        """Close a session and await the end of its tree. Raises: CleanupIncompleteError."""
        result: CloseResult = await self._ask(
            "close", caller, session_id, request_id, timeout_s=self._close_s
        )
        return result

    async def list(self, caller: Caller) -> tuple[SessionInfo, ...]:
        """List the owner's published sessions in order of publication."""
        rows: tuple[SessionInfo, ...] = await self._ask(
            "list", caller, timeout_s=self._quick_s + MARGIN_S
        )
        return rows

    async def locate(self, session_id: SessionId) -> Location:
        """Say where a session is. Raises: SessionNotFoundError, SessionLostError."""
        location: Location = await self._ask(
            "locate", session_id, timeout_s=self._quick_s + MARGIN_S
        )
        return location

    # Tasks and events

    async def list_tasks(self, caller: Caller) -> tuple[TaskRecord, ...]:
        """List the owner's tasks, settled ones too while retained."""
        rows: tuple[TaskRecord, ...] = await self._ask("list_tasks", caller)
        return rows

    async def task_record(self, caller: Caller, task_id: TaskId) -> TaskRecord:
        """Return one task. Raises: TaskNotFoundError, ForeignSessionError."""
        record: TaskRecord = await self._ask("task_record", caller, task_id)
        return record

    async def task_output(
        self, caller: Caller, task_id: TaskId, cursor: int = 0, wait_s: float = 0.0
    ) -> TaskOutput:
        """Return a settled task's output from ``cursor``, waiting up to ``wait_s`` for its end."""
        output: TaskOutput = await self._ask(
            "task_output", caller, task_id, cursor, wait_s, timeout_s=wait_s + self._quick_s
        )
        return output

    async def reserve_task(
        self, caller: Caller, session_id: SessionId, label: str, adoption: int | None = None
    ) -> TaskId:
        """Count a background send that is about to start. Raises: CapacityReachedError."""
        task_id: TaskId = await self._ask("reserve_task", caller, session_id, label, adoption)
        return task_id

    async def attach_task(self, task_id: TaskId, record: TaskRecord | None = None) -> TaskRecord:
        """Show a reserved task whose send has started."""
        shown: TaskRecord = await self._ask("attach_task", task_id, record)
        return shown

    async def forget_task(self, task_id: TaskId) -> None:
        """Drop a reservation whose send did not start."""
        await self._ask("forget_task", task_id)

    async def stop_task(self, task_id: TaskId) -> TaskRecord:
        """Note that a task was told to end."""
        record: TaskRecord = await self._ask("stop_task", task_id)
        return record

    async def settle_task(
        self,
        record: TaskRecord,
        text: str = "",
        first_cursor: int = 0,
        consumed: int = 0,
        cut: int = 0,
    ) -> TaskRecord:
        """Hand over a task's final record and output."""
        output = (text, first_cursor, consumed, cut)
        final: TaskRecord = await self._ask("settle_task", record, *output)
        return final

    async def read_events(
        self, caller: Caller, cursor: int | None = None, limit: int = 100, wait_s: float = 0.0
    ) -> EventPage:
        """Return the owner's events after ``cursor``, waiting up to ``wait_s`` for the first."""
        page: EventPage = await self._ask(
            "read_events", caller, cursor, limit, wait_s, timeout_s=wait_s + self._quick_s
        )
        return page

    async def acknowledge_events(self, caller: Caller, sequence: int) -> None:
        """Drop the owner's events up to ``sequence``."""
        await self._ask("acknowledge_events", caller, sequence)

    async def news(self, version: int | None, wait_s: float) -> NewsPage:
        """Say which owners have news after ``version``, waiting for the first."""
        page: NewsPage = await self._ask("news", version, wait_s, timeout_s=wait_s + self._quick_s)
        return page

    # What nodes report

    async def human_handback(self, session_id: SessionId, detail: str) -> None:
        """Report that a person has given the shared terminal back."""
        await self._ask("human_handback", session_id, detail)

    async def session_exited(self, session_id: SessionId, status: ExitStatus) -> None:
        """Note that a session's program has ended."""
        await self._ask("session_exited", session_id, status)

    async def session_readopted(self, session_id: SessionId, adoption: int) -> None:
        """Note that a session has a new worker."""
        await self._ask("session_readopted", session_id, adoption)

    async def session_lost(
        self, host: HostName, session_id: SessionId | None = None, why: str | None = None
    ) -> None:
        """Give up a session that is known to be dead."""
        await self._ask("session_lost", host, session_id, why)

    async def dispose_all(self, reason: str) -> ReleaseReceipt:
        """Dispose of every owner and await the end of their sessions."""
        receipt: ReleaseReceipt = await self._ask(
            "dispose_all", reason, timeout_s=2 * self._close_s
        )
        return receipt
