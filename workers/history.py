"""Pages of a terminal's history: what has scrolled off the screen, in absolute lines.

The transcript knows lines, the screen knows rows. The newest lines that fill the rows in
use are the viewport, a line that is partly on the screen belongs to it, and every earlier
line is history.
"""

from fabric.core.errors import InvalidRequestError
from fabric.core.shared import SharedPage, SharedState
from workers.session import Session
from workers.text.cells import width_of

_SAFE = 2**53


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


def history_page(session: Session, state: SharedState, offset: int, count: int) -> SharedPage:
    """Return ``count`` lines of history above the newest ``offset`` ones.

    Raises: InvalidRequestError.
    """
    if not 0 <= offset < _SAFE:
        raise InvalidRequestError("offset must be a non-negative safe integer", field="offset")
    if not 0 < count < _SAFE:
        raise InvalidRequestError("count must be a positive safe integer", field="count")
    limit = session.settings.scrollback.read_max_bytes
    transcript = session.transcript
    newest = transcript.page(0, state.rows, session.settings.scrollback.max_bytes)
    lines = newest.text.split("\n") if newest.total_lines else []
    used = max(state.cursor_y + 1, state.viewport.count("\n") + 1)
    if state.cursor_x == 0 and not state.viewport.split("\n")[state.cursor_y : state.cursor_y + 1]:
        used -= 1  # the cursor stands on a row that no line has yet
    hidden = visible_lines(lines, used, state.cols)
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
