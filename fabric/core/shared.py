"""The values of the shared terminal: one per owner, for its model and a person together.

Plain frozen dataclasses under the rules of ``fabric.core.model``. ``sequence`` counts the
bytes printed in this generation of the shell; the cursor is zero-based; lines are numbered
from the oldest retained line of the history, which excludes the viewport.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from fabric.core.attach import AttachEvent
from fabric.core.ids import RequestId
from fabric.core.model import SessionStatus, WaitReason

SHARED_NAME = "shared-terminal"  # the one name ordinary sessions may not have


@dataclass(frozen=True, slots=True)
class SharedState:
    """What everybody may know of a shared terminal at one moment."""

    generation: int
    sequence: int
    rows: int
    cols: int
    viewport: str
    cursor_x: int
    cursor_y: int
    status: SessionStatus
    queue_status: str  # ready, busy, blocked, exited, disposed
    holder: str | None  # model-send, human, signal, reset, disconnect-recovery
    pending_count: int
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class SharedSend:
    """A model's send; ``submit`` adds one carriage return."""

    request_id: RequestId
    data: bytes
    submit: bool = True


@dataclass(frozen=True, slots=True)
class SharedResult:
    """What an operation gave. ``output`` belongs to sends and signals only."""

    state: SharedState
    wait_reason: WaitReason
    queue_time_ms: int
    output: str | None = None
    process_group: int | None = None


@dataclass(frozen=True, slots=True)
class SharedPage:
    """A page of the history; ``line_begin`` inclusive, ``line_end`` exclusive."""

    state: SharedState
    text: str
    total_lines: int
    line_begin: int
    line_end: int
    truncated: bool = False


class Person(StrEnum):
    """What a person at the terminal may ask for."""

    BEGIN = "begin"
    TAKE_OVER = "take_over"
    TYPE = "type"
    INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True)
class SharedStatus:
    """What a view shows beside the screen. ``takeover`` names what could be taken over."""

    generation: int
    queue_status: str
    holder: str | None
    pending_count: int
    takeover: int | None
    lease: int | None
    exited: bool
    last_lease: int = 0  # the newest ever given


@dataclass(frozen=True, slots=True)
class PersonRequest:
    """One thing a person asks for: ``target`` to take over, ``lease`` to type under."""

    view: str
    kind: Person
    generation: int
    request_id: RequestId
    lease: int = 0
    target: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class ViewStart:
    """How a view begins: ``resume`` is the private proof of a controller that comes back."""

    view: str
    readonly: bool = False
    resume: str = ""


class ViewKind(StrEnum):
    """What an event of a view is."""

    ATTACHED = "attached"
    SCREEN = "screen"
    STATUS = "status"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class ViewEvent:
    """One event of a view.

    ``ATTACHED``: whether this view controls; a controller gets a fresh ``resume`` proof, any
    other view the reason. ``SCREEN``: what ``screen`` says. ``RESET``: this generation is
    over and nothing follows.
    """

    kind: ViewKind
    generation: int
    controller: bool = False
    resume: str = ""
    reason: str = ""  # readonly, occupied, invalid-resume
    view: str = ""  # the name of the view, where another gateway gave it
    screen: AttachEvent | None = None
    status: SharedStatus | None = None


@dataclass(frozen=True, slots=True)
class ViewTicket:
    """A link for a browser; its ticket counts once, within ``expires_in_s`` seconds."""

    ticket: str = field(repr=False)
    url: str = field(repr=False)
    expires_in_s: float
