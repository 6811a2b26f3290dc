"""What the pure tables ask for: rows to write and things to do.

Theory: a table never acts. A stimulus changes it and returns instructions in the order
in which they were decided; the registry writes all rows of one stimulus in one
transaction and only then performs the rest. Every effect may be performed twice (after a
crash the same instruction is given again), so each names its object and no position.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fabric.core.ids import HostName, OwnerId, SessionId, TaskId
from fabric.core.model import EventKind


class Kind(StrEnum):
    """The tables of the journal."""

    OWNER = "owners"
    SESSION = "sessions"
    TOMBSTONE = "tombstones"
    REQUEST = "requests"
    TASK = "tasks"
    EVENT = "events"
    STREAM = "streams"
    FACT = "facts"


@dataclass(frozen=True, slots=True)
class Put:
    """Write a row; ``body`` is plain data."""

    kind: Kind
    key: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove a row."""

    kind: Kind
    key: str


@dataclass(frozen=True, slots=True)
class Fence:
    """Tell a session's worker the owner's epoch."""

    host: HostName
    session_id: SessionId
    epoch: int


@dataclass(frozen=True, slots=True)
class AbortOpen:
    """Abort an open in flight because its owner has ended."""

    session_id: SessionId
    why: str


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Tear a session down and report ``closed`` or ``close_failed``."""

    session_id: SessionId
    reason: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Tear down what a node runs and nobody owns."""

    host: HostName
    session_id: SessionId
    reason: str


@dataclass(frozen=True, slots=True)
class Announce:
    """Append an event to the owner's stream."""

    owner_id: OwnerId
    kind: EventKind
    session_id: SessionId | None = None
    task_id: TaskId | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class TasksLost:
    """A session or its worker is gone: what still ran in it cannot be known.

    ``below_adoption`` spares the tasks of later workers; None means all of the session.
    """

    session_id: SessionId
    why: str
    below_adoption: int | None = None


@dataclass(frozen=True, slots=True)
class OwnerGone:
    """An owner has no session left after its disposal; drop what belongs to it."""

    owner_id: OwnerId


Change = Put | Drop
Instruction = (
    Put | Drop | Fence | AbortOpen | CloseSession | Evict | Announce | TasksLost | OwnerGone
)
