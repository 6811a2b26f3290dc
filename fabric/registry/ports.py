"""What the registry asks of the cluster."""

from typing import Protocol

from fabric.core.ids import HostName, SessionId
from fabric.core.model import (
    CloseReceipt,
    Location,
    NodeState,
    OpenResult,
    OpenSpec,
    SessionInfo,
)


class NodesPort(Protocol):
    """The nodes of the cluster. Every call may raise FabricError; the registry bounds each."""

    async def states(self) -> tuple[NodeState, ...]:
        """List the nodes with their capacity; a node that does not answer is not alive."""
        ...

    async def open(self, host: HostName, spec: OpenSpec) -> OpenResult:
        """Start a session; cancelling the call removes what it started before it returns."""
        ...

    async def close(self, host: HostName, session_id: SessionId, reason: str) -> CloseReceipt:
        """Tear a session down and verify it.

        Raises: SessionNotFoundError (nothing is there), CleanupIncompleteError.
        """
        ...

    async def fence(self, host: HostName, session_id: SessionId, epoch: int) -> None:
        """Refuse callers of an epoch below ``epoch`` from now on."""
        ...

    async def keep(
        self,
        host: HostName,
        epochs: dict[SessionId, int],
        asked_at: float,
        word_s: float | None,
    ) -> None:
        """Let a node serve these sessions, each under its owner's epoch, for ``word_s`` more.

        ``asked_at`` is the node's own clock from when it last told its state.
        """
        ...

    async def sessions(self, host: HostName) -> tuple[tuple[Location, SessionInfo, OpenSpec], ...]:
        """List what runs on a node, with the labels to adopt it by."""
        ...

    async def locate(self, host: HostName, session_id: SessionId) -> Location:
        """Say how a gateway reaches a session. Raises: SessionNotFoundError."""
        ...
