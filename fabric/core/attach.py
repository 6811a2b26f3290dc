"""The values of the byte surface beyond plain reading: input, attaching, its settings.

Plain frozen dataclasses under the rules of ``fabric.core.model``. Offsets count the bytes
printed since the session was opened; sizes are in bytes, rows and columns in cells.
"""

from dataclasses import dataclass
from enum import StrEnum

from fabric.core.ids import RequestId
from fabric.core.model import SessionStatus

MAX_KEYS = 1024


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """Input that waits for nothing: exactly one of bytes, named keys, or an end of file."""

    request_id: RequestId
    data: bytes = b""
    keys: tuple[str, ...] = ()
    eof: bool = False


@dataclass(frozen=True, slots=True)
class WriteReceipt:
    """How many bytes the terminal took, and the output offset at the moment of the write."""

    written_bytes: int
    offset: int


@dataclass(frozen=True, slots=True)
class AttachStart:
    """How an attach begins.

    With ``snapshot`` the first event repaints the screen and the bytes follow from there,
    and a gap is followed by a repaint too. Without it the bytes follow from ``offset``
    (None: from now on). ``rows`` and ``cols`` resize the terminal first. ``history`` is for a
    person's view: snapshots bring the lines above the screen, and a reader that falls far
    behind gets the screen as it is instead of everything that led to it.
    """

    offset: int | None = None
    snapshot: bool = True
    rows: int | None = None
    cols: int | None = None
    history: bool = False


class AttachKind(StrEnum):
    """What an event of an attach is."""

    SNAPSHOT = "snapshot"
    CHUNK = "chunk"
    GAP = "gap"
    RESIZED = "resized"
    REFUSED = "refused"
    END = "end"


@dataclass(frozen=True, slots=True)
class AttachEvent:
    """One event; what an attached terminal has to do is in the order of the events.

    ``SNAPSHOT``: ``data`` repaints a terminal of ``rows`` x ``cols``, after the history where
    one was asked for (``truncated``: its older lines are gone); what follows begins at
    ``next_offset``. ``CHUNK``: the bytes from ``offset`` to ``next_offset``. ``GAP``: the
    bytes from ``offset`` to ``next_offset`` are missing. ``RESIZED``: the size is now
    ``rows`` x ``cols``. ``REFUSED``: input was not taken; ``detail`` says why and the attach
    goes on. ``END``: nothing follows; ``status`` says how the session ended, when it did.
    """

    kind: AttachKind
    offset: int
    next_offset: int
    data: bytes = b""
    rows: int = 0
    cols: int = 0
    alternate: bool = False
    truncated: bool = False
    status: SessionStatus | None = None
    detail: str = ""
