"""The words of the queue of a shared terminal: what it is told to do and what it holds."""

from dataclasses import dataclass
from enum import StrEnum

from fabric.core.errors import FabricError
from fabric.core.model import WaitReason


class Kind(StrEnum):
    """What an operation is; the words callers see as the holder."""

    MODEL = "model-send"
    HUMAN = "human"
    SIGNAL = "signal"
    RESET = "reset"
    RECOVERY = "disconnect-recovery"


class Sight(StrEnum):
    """What was seen of the terminal."""

    PROMPT = "prompt"
    STDIN_READ = "stdin_read"


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """The bounds of one queue; times in seconds."""

    max_queued: int = 128
    max_input_bytes: int = 65_536
    operation_timeout_s: float = 30.0
    interrupt_timeout_s: float = 5.0
    disconnect_grace_s: float = 15.0


# -- instructions -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Granted:
    """The operation holds the slot now; ``lease`` numbers a person's grant."""

    op: int
    lease: int | None = None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Write the operation's text (or its signal, or a person's bytes) to the terminal."""

    op: int
    dispatch: int


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Send SIGINT to the foreground group as it is now."""

    op: int


@dataclass(frozen=True, slots=True)
class Restart:
    """End the tree and start a new shell."""

    op: int


@dataclass(frozen=True, slots=True)
class Settle:
    """The operation is over for its caller."""

    op: int
    reason: WaitReason


@dataclass(frozen=True, slots=True)
class Reject:
    """The operation failed; ``error`` says why."""

    op: int
    error: FabricError


@dataclass(frozen=True, slots=True)
class Revoked:
    """The lease is over; what its holder types is not taken any more."""

    lease: int


@dataclass(frozen=True, slots=True)
class HandedBack:
    """A person's interaction is finished; told once a lease. ``reason`` None: it failed."""

    lease: int
    reason: WaitReason | None


@dataclass(frozen=True, slots=True)
class Refuse:
    """What was asked is not done; nothing changed."""

    error: FabricError


Instruction = (
    Granted | Dispatch | Interrupt | Restart | Settle | Reject | Revoked | HandedBack | Refuse
)


@dataclass(slots=True)
class Operation:
    """One accepted operation."""

    op: int
    kind: Kind
    accepted_at: float
    granted_at: float | None = None
    lease: int | None = None
    settled: bool = False  # its caller has been answered; a lease may go on in its place
