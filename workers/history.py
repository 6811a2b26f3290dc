"""Pages of a terminal's history: what has scrolled off the screen, in absolute lines.

The transcript knows lines, the screen knows rows. The newest lines that fill the rows in
use are the viewport, a line that is partly on the screen belongs to it, and every earlier
line is history.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.core.errors import InvalidRequestError
from fabric.core.shared import SharedPage, SharedState
from workers.text.cells import width_of

if TYPE_CHECKING:
    from workers.session import Session

_SAFE = 2**53
CLEAN = b"\x1b[!p\x1b[?1049l\x1b[m\x1b[r\x1b[H\x1b[2J"


@dataclass(frozen=True, slots=True)
class _Seen:
    """What counts of a screen here."""

    viewport: str
    cursor_x: int
    cursor_y: int
    rows: int
    cols: int


def rows_of(line: str, cols: int) -> int:
    """Count the rows a line takes on a screen of ``cols`` columns."""
    width = len(line) if line.isascii() else sum(width_of(char) for char in line)
    return max(1, -(-width // cols))


def visible_lines(lines: list[str], rows_used: int, cols: int) -> int:
    """Count the newest of ``lines`` that fill ``rows_used`` rows, a part counting as whole."""
    count = rows = 0
    for line in reversed(lines):
        if rows >= rows_used:
            break
        rows += rows_of(line, cols)
        count += 1
    return count


def history_page(session: "Session", state: SharedState, offset: int, count: int) -> SharedPage:
    """Return ``count`` lines of history above the newest ``offset`` ones.

    Raises: InvalidRequestError.
    """
    if not 0 <= offset < _SAFE:
        raise InvalidRequestError("offset must be a non-negative safe integer", field="offset")
    if not 0 < count < _SAFE:
        raise InvalidRequestError("count must be a positive safe integer", field="count")
    limit = session.settings.scrollback.read_max_bytes
    transcript = session.transcript
    hidden = _on_screen(session, state)
    page = transcript.page(offset + hidden, count, limit)
    total = max(0, page.total_lines - hidden)
    end = max(0, total - offset)
    pieces = page.line_end - page.line_begin
    return SharedPage(
        state=state,
        text=page.text,
        total_lines=total,
        line_begin=end - pieces,
        line_end=end,
        truncated=page.truncated,
    )


def history_above(session: "Session") -> tuple[bytes, bool]:
    """Return what fills another terminal's history like this one's, and whether it is cut.

    Whole lines, the newest that fit the session's bounds; they end above an empty screen.
    """
    scrollback = session.settings.scrollback
    shown = session.observing.snapshot()
    seen = _Seen(
        "\n".join(shown.lines).rstrip("\n"),
        shown.cursor_col,
        shown.cursor_row,
        shown.rows,
        shown.cols,
    )
    page = session.transcript.page(
        _on_screen(session, seen), scrollback.lines, scrollback.max_bytes
    )
    cut = page.truncated or page.dropped_lines > 0
    if not page.text:
        return b"", cut
    text = page.text.replace("\n", "\r\n")
    return CLEAN + text.encode("utf-8", "replace") + b"\r\n" * shown.rows, cut


def _on_screen(session: "Session", seen: "SharedState | _Seen") -> int:
    """Count the newest lines of the transcript that are on the screen, if only in part."""
    scrollback = session.settings.scrollback
    newest = session.transcript.page(0, seen.rows, scrollback.max_bytes)
    lines = newest.text.split("\n") if newest.total_lines else []
    used = max(seen.cursor_y + 1, seen.viewport.count("\n") + 1)
    if seen.cursor_x == 0 and not seen.viewport.split("\n")[seen.cursor_y : seen.cursor_y + 1]:
        used -= 1  # the cursor stands on a row that no line has yet
    return visible_lines(lines, used, seen.cols)
