"""What happens within one row of the screen: writing, erasing, shifting.

A row maps columns to cells; a missing column is blank. A wide character is a cell and an
empty one to its right; whatever overwrites, erases or moves one half blanks the other.
Zero-width characters go onto the character before, as one string.

The class is the half of ``workers.text.screen.Screen`` that needs nothing of pyte but
where it keeps its cursor and rows.
"""

import unicodedata
from collections.abc import Callable, MutableMapping
from typing import Any, NamedTuple

INSERT = 4  # mode numbers as pyte keeps them: private ones are shifted by five
WRAP = 7 << 5


class Cell(NamedTuple):
    """One column; ``data`` is a character with its marks, or empty."""

    data: str


Row = MutableMapping[int, Cell]
BLANK = Cell(" ")
_ASCII = [Cell(chr(code)) for code in range(128)]


def divide(row: Row, x: int) -> None:
    """Make a wide character whose halves lie on both sides of ``x`` two blanks."""
    if x > 0 and x in row and not row[x].data:
        row[x - 1] = row[x] = BLANK


def scroll(rows: MutableMapping[int, Row], top: int, bottom: int, count: int) -> None:
    """Move rows ``top`` to ``bottom`` up by ``count``, or down when it is negative."""
    moved = [rows.pop(y, None) for y in range(top, bottom + 1)]
    for y, row in enumerate(moved, top - count):
        if row is not None and top <= y <= bottom:
            rows[y] = row


class Drawing:
    """A screen as far as one row goes; the attributes are the screen's.

    ``width_of`` counts the columns of a character.
    """

    buffer: Any
    cursor: Any
    columns: int
    lines: int
    mode: set[int]
    width_of: Callable[[str], int]
    index: Any
    carriage_return: Any
    _last = ""

    def draw(self, data: str) -> None:
        """Write printable text at the cursor."""
        self._last = data[-1]
        if data.isascii() and INSERT not in self.mode:
            self._draw_ascii(data)
        else:
            for char in data:
                self._draw_char(char)

    def _draw_ascii(self, data: str) -> None:
        cursor, columns = self.cursor, self.columns
        wraps = WRAP in self.mode
        at, end = 0, len(data)
        while at < end:
            if cursor.x == columns:
                if wraps:
                    self._wrap()
                else:
                    cursor.x, at = columns - 1, end - 1
            x = cursor.x
            count = min(end - at, columns - x)
            row = self.buffer[cursor.y]
            divide(row, x)
            divide(row, x + count)
            row.update(
                zip(
                    range(x, x + count),
                    map(_ASCII.__getitem__, data[at : at + count].encode()),
                    strict=True,
                )
            )
            cursor.x = x + count
            at += count

    def _draw_char(self, char: str) -> None:
        width = self.width_of(char)
        cursor, columns = self.cursor, self.columns
        if width <= 0:
            self._combine(char)
            return
        if cursor.x + width > columns:
            if WRAP in self.mode and width <= columns:
                self._wrap()
            else:
                cursor.x = max(0, columns - width)
        if INSERT in self.mode:
            self.insert_characters(width)
        row = self.buffer[cursor.y]
        divide(row, cursor.x)
        divide(row, cursor.x + width)
        row[cursor.x] = Cell(char)
        if width == 2 and cursor.x + 1 < columns:
            row[cursor.x + 1] = Cell("")
        cursor.x = min(cursor.x + width, columns)

    def _wrap(self) -> None:
        self.carriage_return()
        self.index()

    def _combine(self, char: str) -> None:
        """Put a zero-width character onto the one before the cursor."""
        x, row = self.cursor.x - 1, self.buffer[self.cursor.y]
        while x > 0 and not row[x].data:
            x -= 1
        if x >= 0:
            row[x] = Cell(unicodedata.normalize("NFC", row[x].data + char))

    def repeat(self, count: int) -> None:
        """Write the last character again."""
        if self._last:
            self.draw(self._last * min(count, self.columns * self.lines))

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        """Blank from the cursor on (0), up to it (1), or the row (2)."""
        begin, end = {0: (self.cursor.x, self.columns), 1: (0, self.cursor.x + 1)}.get(
            how, (0, self.columns if how == 2 else 0)
        )
        self._blank(begin, min(end, self.columns))

    def erase_characters(self, count: int | None = None) -> None:
        """Blank characters from the cursor on."""
        self._blank(self.cursor.x, min(self.cursor.x + (count or 1), self.columns))

    def _blank(self, begin: int, end: int) -> None:
        row = self.buffer[self.cursor.y]
        if begin < end:
            divide(row, begin)
            divide(row, end)
            for x in range(begin, end):
                row.pop(x, None)

    def insert_characters(self, count: int | None = None) -> None:
        """Insert blanks at the cursor; what leaves the row is lost."""
        self._shift_row(count or 1, 0)

    def delete_characters(self, count: int | None = None) -> None:
        """Delete characters at the cursor; the rest moves left."""
        self._shift_row(0, count or 1)

    def _shift_row(self, inserted: int, deleted: int) -> None:
        row, x = self.buffer[self.cursor.y], self.cursor.x
        if x >= self.columns:
            return
        inserted, deleted = min(inserted, self.columns - x), min(deleted, self.columns - x)
        divide(row, x)
        divide(row, x + deleted)
        divide(row, self.columns - inserted)
        rest = [row[c] for c in range(x + deleted, self.columns - inserted)]
        cells = [BLANK] * inserted + rest + [BLANK] * deleted
        row.update(zip(range(x, self.columns), cells, strict=True))
