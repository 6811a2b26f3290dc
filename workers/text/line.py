"""The line being written: what a person sees on it, edits included.

A line is *plain* as long as text is only appended: then it is a rope of pieces and costs
nothing. The first control that could change what is there already (``\\r``, ``\\b``,
erase, cursor moves) turns its last ``WINDOW`` columns into ``workers.text.cells``; what
stands left of them is *frozen*, text that no control can reach any more.

A lone ``\\r`` takes effect at the next character, since a newline may still follow and
make it half of one. Blanks at the end of the line and right of the cursor are not shown:
erasing with spaces (``\\b \\b``, a progress bar wiping itself) leaves nothing behind.

*Anchors* are positions that followers hold (where a send's output begins, where a mark
stood). A write or an erase left of an anchor draws it there: what is new on the line
belongs to the follower from then on.

Everything is bounded: the rope keeps the newest ``limit`` characters or somewhat more;
what leaves it at the front is final and is handed to the followers first.
"""

from collections import deque
from typing import Protocol

from workers.text.cells import Cells
from workers.text.utf8 import byte_length

WINDOW = 4_096
_JOIN_BELOW = 4_096


class Anchor:
    """A position on the current line: a character of the rope, or a cell."""

    __slots__ = ("cell", "chars")

    def __init__(self, chars: int, cell: int | None) -> None:
        self.chars = chars
        self.cell = cell


class Follower(Protocol):
    """Who wants the text that follows a position, as soon as it is final."""

    anchor: Anchor

    def add(self, text: str) -> None:
        """Take text that cannot change any more."""


class Line:
    """One line under construction."""

    def __init__(self, limit: int, window: int = WINDOW) -> None:
        self._limit = max(limit, window)
        self._window = window
        self.followers: list[Follower] = []
        self._reset()

    def _reset(self) -> None:
        self._pieces: deque[str] = deque()
        self._kept = 0  # characters in the rope
        self._gone = 0  # characters dropped from its front
        self.lost_bytes = 0
        """Bytes dropped from the front of this line."""
        self._cells: Cells | None = None
        self._return_pending = False

    # -- reading ---------------------------------------------------------------

    @property
    def is_plain(self) -> bool:
        """Tell whether text was only appended: then nothing is right of the cursor."""
        return self._cells is None and not self._return_pending

    @property
    def column(self) -> int:
        """The cursor's column, from 0."""
        if self._return_pending or (self._cells is None and not self._kept):
            return 0
        return self._edit().column  # wide characters and tabs: columns are not characters

    def text(self) -> str:
        """Return what is retained of the line."""
        return "".join(self._pieces) + (self._cells.shown() if self._cells is not None else "")

    def text_from(self, anchor: Anchor, max_chars: int | None = None) -> str:
        """Return what stands at and after ``anchor``, the first ``max_chars`` of it."""
        parts: list[str] = []
        left = self._kept + 1 if max_chars is None else max_chars
        if anchor.cell is None:
            skip = anchor.chars - self._gone
            for piece in self._pieces:
                if skip >= len(piece):
                    skip -= len(piece)
                    continue
                part = piece[skip : skip + left]
                skip = 0
                parts.append(part)
                left -= len(part)
                if left <= 0:
                    return "".join(parts)
        if self._cells is not None:
            parts.append(self._cells.shown(anchor.cell or 0))
        return "".join(parts)[:max_chars]

    def anchor(self) -> Anchor:
        """Return the cursor's position; a pending return has not moved it."""
        chars = self._gone + self._kept
        return Anchor(chars, None if self._cells is None else self._cells.cursor)

    # -- ending ----------------------------------------------------------------

    def finish(self) -> str:
        """End the line: give followers and caller what it became, and begin an empty one."""
        text = self.text()
        for follower in self.followers:
            anchor = follower.anchor
            whole = anchor.cell is None and anchor.chars <= self._gone
            follower.add((text if whole else self.text_from(anchor)) + "\n")
        self.clear()
        return text

    def clear(self) -> None:
        """Begin an empty line, forgetting this one."""
        self._reset()
        for follower in self.followers:
            follower.anchor = Anchor(0, None)

    # -- writing ---------------------------------------------------------------

    def write(self, text: str) -> None:
        """Put printable text (tabs included) at the cursor."""
        if self._cells is None and not self._return_pending:
            if text:
                self._append(text)
        elif text:
            self._changed(self._edit().write(text))

    def carriage_return(self) -> None:
        """Go to column 0, once something other than a newline follows."""
        if self._cells is not None or self._kept:
            self._return_pending = True

    def backspace(self) -> None:
        """Go one column to the left."""
        cells = self._edit()
        if cells.cursor > 0:
            cells.cursor -= 1

    def to_column(self, column: int) -> None:
        """Go to ``column`` (from 0); blanks fill a gap when something is written there."""
        if column or self._kept or not self.is_plain:
            self._edit().to_column(column)

    def move(self, columns: int) -> None:
        """Go right (positive) or left; the left border stops the cursor."""
        cells = self._edit()
        cells.to_column(cells.column + columns)

    def next_stop(self, count: int) -> None:
        """Go ``count`` tab stops to the right, or to the left when negative."""
        self._edit().to_stop(count)

    def erase(self, how: int) -> None:
        """Blank from the cursor on (0), up to and including it (1), or all (2)."""
        if how or not self.is_plain:
            self._changed(self._edit().erase(how))

    def insert(self, count: int) -> None:
        """Insert blanks at the cursor."""
        self._changed(self._edit().insert(count))

    def delete(self, count: int) -> None:
        """Delete characters at the cursor; the rest moves left."""
        self._changed(self._edit().delete(count))

    def blank(self, count: int) -> None:
        """Turn characters at and after the cursor into blanks."""
        self._edit().blank(count)

    # -- inside ----------------------------------------------------------------

    def _append(self, text: str) -> None:
        pieces = self._pieces
        if pieces and len(pieces[-1]) + len(text) < _JOIN_BELOW:
            pieces[-1] += text
        else:
            pieces.append(text)
        self._kept += len(text)
        while self._kept - len(pieces[0]) >= self._limit:
            self._drop_front()

    def _drop_front(self) -> None:
        piece = self._pieces.popleft()
        self._kept -= len(piece)
        end = self._gone + len(piece)
        for follower in self.followers:
            anchor = follower.anchor
            if anchor.cell is None and anchor.chars < end:
                follower.add(piece[anchor.chars - self._gone :])
                anchor.chars = end
        self._gone = end
        self.lost_bytes += byte_length(piece)

    def _edit(self) -> Cells:
        """Make the end of the line editable, a pending return applied."""
        cells = self._cells
        if cells is None:
            cells = self._thaw()
        if self._return_pending:
            self._return_pending = False
            cells.cursor = 0
        return cells

    def _thaw(self) -> Cells:
        """Turn the end of the rope into cells, the first time an edit needs them."""
        tail = ""
        while self._pieces and len(tail) < self._window:
            tail = self._pieces.pop() + tail
        frozen = max(0, len(tail) - self._window)
        if frozen:
            self._pieces.append(tail[:frozen])
            tail = tail[frozen:]
        self._kept -= len(tail)
        border = self._gone + self._kept
        self._cells = cells = Cells(tail, border)
        for follower in self.followers:
            anchor = follower.anchor
            if anchor.chars >= border:
                anchor.cell = len(Cells(tail[: anchor.chars - border], border).cells)
        self._freeze(cells)
        return cells

    def _changed(self, column: int) -> None:
        """Draw the anchors right of a change to it, and keep the window."""
        for follower in self.followers:
            anchor = follower.anchor
            if anchor.cell is not None and anchor.cell > column:
                anchor.cell = column
        cells = self._cells
        if cells is not None and len(cells.cells) > self._window:
            self._freeze(cells)

    def _freeze(self, cells: Cells) -> None:
        """Hand the columns left of the window to the rope."""
        count, front = cells.cut_front(self._window)
        if not count:
            return
        for follower in self.followers:
            anchor = follower.anchor
            if anchor.cell is not None and anchor.cell >= count:
                anchor.cell -= count
            elif anchor.cell is not None:
                before = len("".join(front[: anchor.cell]))
                anchor.chars, anchor.cell = self._gone + self._kept + before, None
        self._append("".join(front))
