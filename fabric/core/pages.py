"""What a caller sees of a terminal, asks of it and waits for; ``fabric.core.model`` has them all.

As there: plain frozen dataclasses that can be turned into plain data and back.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page of scrollback, counted back from the newest line."""

    text: str
    total_lines: int
    line_begin: int
    line_end: int
    truncated: bool
    dropped_lines: int = 0
    dropped_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TailPage:
    """New whole lines since a consumer's last tail."""

    text: str
    lines: int
    truncated: bool
    next_line: int = 0


@dataclass(frozen=True, slots=True)
class BytesPage:
    """Raw bytes from ``offset``; empty when the wait ran out. ``ended`` means no more follow."""

    offset: int
    data: bytes
    next_offset: int
    oldest_offset: int
    ended: bool = False


@dataclass(frozen=True, slots=True)
class ScreenSnapshot:
    """The rows x cols screen as a person sees it; cursor is zero-based."""

    rows: int
    cols: int
    lines: tuple[str, ...]
    cursor_row: int
    cursor_col: int
    cursor_visible: bool
    alternate: bool
    offset: int
    title: str = ""


@dataclass(frozen=True, slots=True)
class SignalDelivered:
    """The process group that got the signal."""

    target_pgid: int


@dataclass(frozen=True, slots=True)
class WaitCondition:
    """What ``wait_for`` waits for; the first that holds ends it, from ``since_offset`` on."""

    pattern: str | None = None
    quiet_s: float | None = None
    ready: bool = False
    exit: bool = False
    since_offset: int | None = None
