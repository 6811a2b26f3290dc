"""The part of a line that can still be edited: one string a column.

- A character with the marks combined onto it is one cell; a wide one is followed by an
  empty cell; a tab is followed by empty cells up to its stop. So columns are exact, and
  joining the cells gives back the characters, untouched.
- Overwriting half of a wide character or of a tab leaves blanks in the other half.
- A tab over text that is there only moves; at the end of the line it is written.
- Moves never leave the line: the left border stops them, and ``MAX_COLUMN`` bounds how
  far beyond the text the cursor may go. A gap is filled when something is written.

Every edit returns the leftmost column it may have changed, for whoever holds positions.
"""

import unicodedata

MAX_COLUMN = 2_048
TAB = 8


def width_of(char: str) -> int:
    """Count the columns of a printable character: 0, 1 or 2."""
    if char < "\u0300":
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def lay_out(text: str, column: int, before: list[str] | None = None) -> list[str]:
    """Turn text that begins at ``column`` into cells.

    Marks at its very beginning are combined onto the last cell of ``before``, if any.
    """
    if text.isascii() and "\t" not in text:
        return list(text)
    cells: list[str] = []
    for char in text:
        if char == "\t":
            cells.append(char)
            cells.extend([""] * (-(column + len(cells)) % TAB))
            continue
        width = width_of(char)
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


class Cells:
    """Cells and a cursor; ``base`` is the column of the first cell."""

    __slots__ = ("base", "cells", "cursor")

    def __init__(self, text: str, base: int) -> None:
        self.base = base
        self.cells = lay_out(text, base)
        self.cursor = len(self.cells)

    def shown(self, begin: int = 0) -> str:
        """Return the text from cell ``begin`` on, blanks right of the cursor left out."""
        cells = self.cells
        end = len(cells)
        while end > self.cursor and cells[end - 1] == " ":
            end -= 1
        return "".join(cells[begin:end])

    @property
    def column(self) -> int:
        """The cursor's column."""
        return self.base + self.cursor

    def to_column(self, column: int) -> None:
        """Put the cursor on ``column``."""
        self.cursor = min(max(0, column - self.base), max(len(self.cells), MAX_COLUMN))

    def to_stop(self, count: int) -> None:
        """Go ``count`` tab stops to the right, or to the left when negative."""
        left = count < 0
        self.to_column(max(0, (self.column - left) // TAB + count + left) * TAB)

    def write(self, text: str) -> int:
        """Write printable text and tabs at the cursor."""
        if "\t" not in text:
            return self._put(text)
        changed = self.cursor
        for number, part in enumerate(text.split("\t")):
            if number:
                self._tab()
            if part:
                self._put(part)
        return changed

    def erase(self, how: int) -> int:
        """Blank from the cursor on (0), up to and including it (1), or all (2)."""
        cells = self.cells
        if how == 0:
            self._divide(self.cursor)
            del cells[self.cursor :]
        elif how == 1:
            border = min(self.cursor + 1, len(cells))
            self._divide(border)
            cells[:border] = " " * border
        elif how == 2:
            cells.clear()
        return len(cells)

    def insert(self, count: int) -> int:
        """Insert blanks at the cursor."""
        if self.cursor < len(self.cells):
            self._divide(self.cursor)
            self.cells[self.cursor : self.cursor] = " " * min(count, MAX_COLUMN)
        return self.cursor

    def delete(self, count: int) -> int:
        """Delete characters at the cursor; the rest moves left."""
        begin, end = self.cursor, min(self.cursor + count, len(self.cells))
        if begin < end:
            self._divide(begin)
            self._divide(end)
            del self.cells[begin:end]
        return begin

    def blank(self, count: int) -> int:
        """Turn characters at and after the cursor into blanks."""
        begin, end = self.cursor, min(self.cursor + count, len(self.cells))
        if begin < end:
            self._divide(begin)
            self._divide(end)
            self.cells[begin:end] = " " * (end - begin)
        return begin

    def cut_front(self, window: int) -> tuple[int, list[str]]:
        """Keep at most ``window`` columns; return how many left and what they were."""
        cells = self.cells
        count = max(0, len(cells) - window)
        while 0 < count < len(cells) and not cells[count]:
            count += 1  # a wide character or a tab goes whole
        front = cells[:count]
        del cells[:count]
        self.base += count
        self.cursor = max(0, self.cursor - count)
        return count, front

    def _put(self, text: str) -> int:
        cells = self.cells
        begin = self.cursor
        if begin > len(cells):
            self._pad()
        if text.isascii():
            new = list(text)
        else:
            before = cells[:begin] if width_of(text[0]) == 0 else None
            new = lay_out(text, self.base + begin, before)
            if before is not None:
                cells[:begin] = before
        end = begin + len(new)
        if begin < len(cells):
            self._divide(begin)
            self._divide(end)
        cells[begin:end] = new
        self.cursor = end
        return begin

    def _tab(self) -> None:
        stop = (self.column // TAB + 1) * TAB - self.base
        if self.cursor >= len(self.cells):
            self._pad()
            self.cells.append("\t")
            self.cells.extend([""] * (stop - self.cursor - 1))
        self.cursor = stop

    def _pad(self) -> None:
        self.cells.extend(" " * (self.cursor - len(self.cells)))

    def _divide(self, at: int) -> None:
        """Make ``at`` a border between characters: one that spans it becomes blanks."""
        cells = self.cells
        if not 0 < at < len(cells) or cells[at]:
            return  # no such border, or already one
        begin = at
        while begin > 0 and not cells[begin]:
            begin -= 1
        end = at
        while end < len(cells) and not cells[end]:
            end += 1
        cells[begin:end] = " " * (end - begin)
