"""The line being written: what a person sees on it, edits included.

A line is *plain* as long as text is only appended: then it is a rope of pieces and costs
nothing. The first control that could change what is there already (``\\r``, ``\\b``,
erase, cursor moves) turns its last ``WINDOW`` columns into *cells*, one string a column:

- a character with the marks combined onto it is one cell; a wide one is followed by an
  empty cell; a tab is followed by empty cells up to its stop. So columns are exact and
  joining the cells gives back the characters, untouched.
- overwriting half of a wide character or a tab leaves blanks in the other half.
- columns left of the window are *frozen*: text that no control can reach any more.

A lone ``\\r`` takes effect at the next character, since a newline may still follow and
make it half of one. Blanks at the end of the line and right of the cursor are not shown:
erasing with spaces (``\\b \\b``, a progress bar wiping itself) leaves nothing behind.

*Anchors* are positions that readers hold (where a send's output begins, where a mark
stood). A write or an erase left of an anchor draws it there: what is new on the line
belongs to the reader from then on.

Everything is bounded: the rope keeps the newest ``limit`` characters or somewhat more;
what leaves it at the front is final and is handed to the followers first.
"""

import unicodedata
from collections import deque
from typing import Protocol

from workers.text.utf8 import byte_length

WINDOW = 16_384
MAX_COLUMN = 2_048
_TAB = 8
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


def _width(char: str) -> int:
    if char < "\u0300":
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


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
        self._rope_bytes = 0  # bytes ever put into the rope
        self._gone_bytes = 0
        self._cells: list[str] | None = None
        self._base = 0  # columns left of the first cell
        self._cursor = 0
        self._return_pending = False

    # -- reading ---------------------------------------------------------------

    @property
    def is_plain(self) -> bool:
        """Tell whether an erase to the right is without effect: nothing is there."""
        return self._cells is None and not self._return_pending

    @property
    def lost_bytes(self) -> int:
        """Bytes dropped from the front of this line."""
        return self._gone_bytes

    @property
    def column(self) -> int:
        """The cursor's column, from 0."""
        if self._return_pending:
            return 0
        if self._cells is None and not self._kept:
            return 0
        self._cells_of_line()  # wide characters and tabs make columns differ from characters
        return self._base + self._cursor

    def text(self) -> str:
        """Return what is retained of the line."""
        return "".join(self._pieces) + self._shown(0)

    def text_from(self, anchor: Anchor, max_chars: int | None = None) -> str:
        """Return what stands at and after ``anchor``, the first ``max_chars`` of it."""
        parts: list[str] = []
        left = max_chars if max_chars is not None else self._kept + 1
        if anchor.cell is None:
            skip = anchor.chars - self._gone
            for piece in self._pieces:
                if skip >= len(piece):
                    skip -= len(piece)
                    continue
                part = piece[skip : skip + left] if max_chars is not None else piece[skip:]
                skip = 0
                parts.append(part)
                left -= len(part)
                if left <= 0:
                    return "".join(parts)
        parts.append(self._shown(anchor.cell or 0))
        return "".join(parts)[:max_chars]

    def _shown(self, begin: int) -> str:
        cells = self._cells
        if cells is None:
            return ""
        end = len(cells)
        while end > self._cursor and cells[end - 1] == " ":
            end -= 1
        return "".join(cells[begin:end])

    def anchor(self) -> Anchor:
        """Return the cursor's position; a pending return has not moved it."""
        if self._cells is None:
            return Anchor(self._gone + self._kept, None)
        return Anchor(self._gone + self._kept, self._cursor)

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
        if not text:
            return
        if self._cells is None and not self._return_pending:
            self._append(text)
            return
        self._apply_return()
        if self._cells is None:
            self._append(text)
        else:
            self._overwrite(text)

    def carriage_return(self) -> None:
        """Go to column 0, once something other than a newline follows."""
        if self._cells is not None or self._kept or self._gone:
            self._return_pending = True

    def backspace(self) -> None:
        """Go one column to the left."""
        self._edit()
        if self._cursor > 0:
            self._cursor -= 1

    def to_column(self, column: int) -> None:
        """Go to ``column`` (from 0); blanks fill a gap when something is written there."""
        if self.is_plain and column == 0 and not self._kept and not self._gone:
            return
        cells = self._edit()
        at = max(0, column - self._base)
        self._cursor = min(at, max(len(cells), MAX_COLUMN))

    def move(self, columns: int) -> None:
        """Go right (positive) or left; the left border stops the cursor."""
        self._edit()
        self.to_column(self._base + self._cursor + columns)

    def next_stop(self, count: int) -> None:
        """Go ``count`` tab stops to the right, or to the left when negative."""
        self._edit()
        self.to_column(max(0, (self.column - (count < 0)) // _TAB + count + (count < 0)) * _TAB)

    def erase(self, how: int) -> None:
        """Blank from the cursor on (0), up to and including it (1), or all (2)."""
        if self.is_plain and how == 0:
            return
        cells = self._edit()
        cursor = self._cursor
        if how == 0:
            self._divide(cursor)
            del cells[cursor:]
            self._draw_anchors(len(cells))
        elif how == 1:
            border = min(cursor + 1, len(cells))
            self._divide(border)
            cells[:border] = " " * border
        elif how == 2:
            cells.clear()
            self._draw_anchors(0)

    def insert(self, count: int) -> None:
        """Insert blanks at the cursor."""
        cells = self._edit()
        if self._cursor < len(cells):
            self._divide(self._cursor)
            cells[self._cursor : self._cursor] = " " * min(count, MAX_COLUMN)
            self._draw_anchors(self._cursor)
            self._freeze()

    def delete(self, count: int) -> None:
        """Delete characters at the cursor; the rest moves left."""
        cells = self._edit()
        if self._cursor < len(cells):
            end = min(self._cursor + count, len(cells))
            self._divide(self._cursor)
            self._divide(end)
            del cells[self._cursor : end]
            self._draw_anchors(self._cursor)

    def blank(self, count: int) -> None:
        """Turn characters at and after the cursor into blanks."""
        cells = self._edit()
        begin, end = self._cursor, min(self._cursor + count, len(cells))
        if begin < end:
            self._divide(begin)
            self._divide(end)
            cells[begin:end] = " " * (end - begin)

    # -- inside ----------------------------------------------------------------

    def _append(self, text: str) -> None:
        pieces = self._pieces
        if pieces and len(pieces[-1]) + len(text) < _JOIN_BELOW:
            pieces[-1] += text
        else:
            pieces.append(text)
        self._kept += len(text)
        self._rope_bytes += byte_length(text)
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
        self._gone_bytes += byte_length(piece)

    def _apply_return(self) -> None:
        if self._return_pending:
            self._return_pending = False
            self._cells_of_line()
            self._cursor = 0

    def _edit(self) -> list[str]:
        self._apply_return()
        return self._cells_of_line()

    def _cells_of_line(self) -> list[str]:
        """Turn the end of the rope into cells, the first time an edit needs them."""
        if self._cells is not None:
            return self._cells
        tail = ""
        while self._pieces and len(tail) < self._window:
            tail = self._pieces.pop() + tail
        frozen = max(0, len(tail) - self._window)
        if frozen:
            self._pieces.append(tail[:frozen])
            tail = tail[frozen:]
        self._kept -= len(tail)
        self._rope_bytes -= byte_length(tail)
        border = self._gone + self._kept
        self._base = border
        self._cells = cells = self._cells_from(tail, border)
        self._cursor = len(cells)
        for follower in self.followers:
            anchor = follower.anchor
            if anchor.chars >= border:
                anchor.cell = len(self._cells_from(tail[: anchor.chars - border], border))
        self._freeze()
        return cells

    @staticmethod
    def _cells_from(text: str, column: int, before: list[str] | None = None) -> list[str]:
        """Lay text out in cells from ``column`` on; ``before`` takes leading combining marks."""
        if text.isascii() and "\t" not in text:
            return list(text)
        cells: list[str] = []
        for char in text:
            if char == "\t":
                cells.append(char)
                cells.extend([""] * (-(column + len(cells)) % _TAB))
                continue
            width = _width(char)
            if width:
                cells.append(char)
                if width == 2:
                    cells.append("")
                continue
            home = cells or before or []
            at = len(home) - 1
            while at > 0 and not home[at]:
                at -= 1
            if at >= 0:
                home[at] += char
            else:
                cells.append(char)
        return cells

    def _overwrite(self, text: str) -> None:
        """Write at the cursor; tabs only move over what is there."""
        if "\t" not in text:
            self._put(text)
            return
        for number, part in enumerate(text.split("\t")):
            if number:
                self._tab()
            if part:
                self._put(part)

    def _tab(self) -> None:
        cells = self._cells_of_line()
        stop = (self.column // _TAB + 1) * _TAB - self._base
        if self._cursor >= len(cells):
            self._pad()
            cells.append("\t")
            cells.extend([""] * (stop - self._cursor - 1))
        self._cursor = stop
        self._freeze()

    def _put(self, text: str) -> None:
        cells = self._cells_of_line()
        begin = self._cursor
        if begin > len(cells):
            self._pad()
        if text.isascii():
            new = list(text)
        else:
            before = cells[:begin] if _width(text[0]) == 0 else None
            new = self._cells_from(text, self._base + begin, before)
            if before is not None:
                cells[:begin] = before
        end = begin + len(new)
        if begin < len(cells):
            self._divide(begin)
            self._divide(end)
        cells[begin:end] = new
        self._cursor = end
        for follower in self.followers:
            anchor = follower.anchor
            if new and anchor.cell is not None and anchor.cell > begin:
                anchor.cell = begin
        if end > self._window:
            self._freeze()

    def _pad(self) -> None:
        cells = self._cells_of_line()
        if self._cursor > len(cells):
            cells.extend(" " * (self._cursor - len(cells)))

    def _divide(self, at: int) -> None:
        """Make ``at`` a border between characters: one that spans it becomes blanks."""
        cells = self._cells
        if cells is None or not 0 < at < len(cells) or cells[at]:
            return  # no such border, or already one
        begin = at
        while begin > 0 and not cells[begin]:
            begin -= 1
        end = at
        while end < len(cells) and not cells[end]:
            end += 1
        cells[begin:end] = " " * (end - begin)

    def _draw_anchors(self, column: int) -> None:
        for follower in self.followers:
            anchor = follower.anchor
            if anchor.cell is not None and anchor.cell > column:
                anchor.cell = column

    def _freeze(self) -> None:
        """Hand the columns left of the window to the rope."""
        cells = self._cells
        if cells is None or len(cells) <= self._window:
            return
        count = len(cells) - self._window
        while count < len(cells) and not cells[count]:
            count += 1  # a wide character or a tab goes whole
        for follower in self.followers:
            anchor = follower.anchor
            if anchor.cell is None:
                continue
            if anchor.cell >= count:
                anchor.cell -= count
            else:
                before = len("".join(cells[: anchor.cell]))
                anchor.chars = self._gone + self._kept + before
                anchor.cell = None
        text = "".join(cells[:count])
        del cells[:count]
        self._base += count
        self._cursor = max(0, self._cursor - count)
        self._append(text)
