"""The values about owners, gateways and nodes; ``fabric.core.model`` has them all.

As there: plain frozen dataclasses that can be turned into plain data and back.
"""

from dataclasses import dataclass

from fabric.core.ids import (
    AgentId,
    HostName,
    OwnerId,
    Principal,
    SessionId,
    TaskId,
)
from fabric.core.words import (
    EventKind,
    SandboxMode,
)


@dataclass(frozen=True, slots=True)
class OwnerEvent:
    """One event of an owner's stream; ``sequence`` grows by one from 1. Holds no terminal text."""

    sequence: int
    kind: EventKind
    at: float
    session_id: SessionId | None = None
    task_id: TaskId | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events after a cursor, the sequence of the last event seen.

    ``dropped`` counts events that were never acknowledged and are not retained any more.
    ``ended`` gives the reason when no event follows.
    """

    events: tuple[OwnerEvent, ...]
    next_cursor: int
    dropped: int = 0
    ended: str | None = None


@dataclass(frozen=True, slots=True)
class NewsPage:
    """Owners whose events changed up to ``version``; ``missed`` says that any may have."""

    version: int
    owners: tuple[OwnerId, ...]
    missed: bool = False


@dataclass(frozen=True, slots=True)
class OwnerGrant:
    """A live owner: its id, the epoch of this acquisition, and when the lease ends."""

    owner_id: OwnerId
    epoch: int
    principal: Principal
    agent: AgentId
    mode: SandboxMode
    lease_s: float
    expires_at: float


@dataclass(frozen=True, slots=True)
class ReleaseReceipt:
    """What the disposal of an owner closed, and what it could not."""

    closed: tuple[SessionId, ...] = ()
    failed: tuple[SessionId, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewayKeys:
    """What a gateway gets when it joins: keys for owner tokens and for other gateways."""

    token_keys: tuple[str, ...]
    peer_key: str


@dataclass(frozen=True, slots=True)
class Location:
    """Where a session is: enough for a gateway to reach it without asking again."""

    session_id: SessionId
    owner_id: OwnerId
    host: HostName
    socket: str
    key: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node as the registry knows it: what it is and what is left of it."""

    host: HostName
    alive: bool
    os: str = "linux"
    arch: str = ""
    sandbox_kinds: tuple[str, ...] = ()
    sessions: int = 0
    max_sessions: int = 0
    warm: int = 0
    ptys_free: int = 0
    memory_free_bytes: int = 0
    fds_free: int = 0
    draining: bool = False
    gateway: str | None = None
    node_dir: str = ""
    asked_at: float = 0.0
