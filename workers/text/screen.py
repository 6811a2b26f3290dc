"""The screen view: rows and columns as a person sees them, made on demand.

pyte keeps the grid; it is far too slow for the output path, so it never sits on it. A
snapshot feeds the screen with what came since the last one, as far as that can still
matter (``workers.text.relevance``), and reads the grid.

``Screen`` mends what of pyte would show a person something else, or raise:

- the alternate screen (47, 1047, 1049) is a screen of its own, the main one comes back;
- wide characters: overwriting one half blanks the other, and one that does not fit the
  row wraps; zero-width characters never swallow what follows;
- DECSTBM always homes the cursor, NEL returns it, one saved cursor may be restored often;
- scrolling (SU, SD), repeat (REP) and tab moves (CHT, CBT) work;
- erase with an unknown selector does nothing, ``CSI 3 J`` leaves the screen alone;
- a smaller window loses rows below the cursor first.
"""

import copy
import unicodedata
from collections import defaultdict

from pyte import modes as pyte_modes
from pyte.screens import Char, Cursor, Margins, StaticDefaultDict, wcwidth
from pyte.screens import Screen as PyteScreen

from fabric.core.model import ScreenSnapshot
from workers.text.bytelog import ByteLog
from workers.text.emulate import Emulator
from workers.text.relevance import Origin, Situation, plan

_Row = StaticDefaultDict[int, Char]
_BLANK = Char(" ")
_ASCII = [Char(chr(code)) for code in range(128)]
_WITH_CURSOR = 1049


class Screen(PyteScreen):
    """A pyte screen with the behaviour of the terminals people use."""

    def __init__(self, rows: int, cols: int) -> None:
        self.alternate = False
        self._main: dict[int, _Row] | None = None
        self._main_cursor: Cursor | None = None
        self._saved: tuple[Cursor, bool, bool] | None = None
        self._last = ""
        super().__init__(cols, rows)

    # -- reading ---------------------------------------------------------------

    def rendered(self) -> tuple[str, ...]:
        """Return the rows without their trailing blanks."""
        columns = range(self.columns)
        found = []
        for y in range(self.lines):
            row = self.buffer.get(y)
            found.append("".join([row[x].data for x in columns]).rstrip(" ") if row else "")
        return tuple(found)

    @property
    def at_bottom(self) -> bool:
        """Tell whether the cursor is on the last row."""
        return bool(self.cursor.y == self.lines - 1)

    @property
    def scrolls_whole(self) -> bool:
        """Tell whether a newline on the last row scrolls the whole screen."""
        return self.margins is None or self.margins == (0, self.lines - 1)

    @property
    def wraps(self) -> bool:
        """Tell whether text goes on in the next row at the right border."""
        return pyte_modes.DECAWM in self.mode

    # -- drawing ---------------------------------------------------------------

    def draw(self, data: str) -> None:
        """Write printable text at the cursor."""
        self._last = data[-1]
        if data.isascii() and pyte_modes.IRM not in self.mode:
            self._draw_ascii(data)
        else:
            for char in data:
                self._draw_char(char)

    def _draw_ascii(self, data: str) -> None:
        cursor, columns = self.cursor, self.columns
        wraps = pyte_modes.DECAWM in self.mode
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
            self._divide(row, x)
            self._divide(row, x + count)
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
        width = wcwidth(char)
        cursor, columns = self.cursor, self.columns
        if width <= 0:
            if width == 0:
                self._combine(char)
            return
        if cursor.x + width > columns:
            if pyte_modes.DECAWM in self.mode and width <= columns:
                self._wrap()
            else:
                cursor.x = max(0, columns - width)
        if pyte_modes.IRM in self.mode:
            self.insert_characters(width)
        row = self.buffer[cursor.y]
        self._divide(row, cursor.x)
        self._divide(row, cursor.x + width)
        row[cursor.x] = Char(char)
        if width == 2 and cursor.x + 1 < columns:
            row[cursor.x + 1] = Char("")
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
            row[x] = Char(unicodedata.normalize("NFC", row[x].data + char))

    @staticmethod
    def _divide(row: _Row, x: int) -> None:
        """Make a wide character whose halves lie on both sides of ``x`` two blanks."""
        if x > 0 and x in row and not row[x].data:
            row[x - 1] = row[x] = _BLANK

    def repeat(self, count: int) -> None:
        """Write the last character again."""
        if self._last:
            self.draw(self._last * min(count, self.columns * self.lines))

    # -- moving and erasing ----------------------------------------------------

    def next_line(self) -> None:
        """Go to the beginning of the next row."""
        self.index()
        self.carriage_return()

    def tab_forward(self, count: int) -> None:
        """Go to the count-th tab stop to the right."""
        for _ in range(min(count, self.columns)):
            self.tab()

    def tab_back(self, count: int) -> None:
        """Go to the count-th tab stop to the left."""
        for _ in range(min(count, self.columns)):
            self.cursor.x = max((s for s in self.tabstops if s < self.cursor.x), default=0)

    def cursor_to_line(self, line: int | None = None) -> None:
        """Go to a row, in origin mode counted from the region's top."""
        self.cursor.y = (line or 1) - 1
        if pyte_modes.DECOM in self.mode and self.margins is not None:
            self.cursor.y += self.margins.top
        self.ensure_vbounds()

    def scroll_region(self, top: int, bottom: int) -> None:
        """Set the rows that scroll (one-based, 0 is the border) and home the cursor."""
        first, last = max(top, 1) - 1, (bottom or self.lines) - 1
        last = min(last, self.lines - 1)
        if first < last:
            whole = first == 0 and last == self.lines - 1
            self.margins = None if whole else Margins(first, last)
            self.cursor_position()

    def index(self) -> None:
        """Go down a row, scrolling at the bottom of the region."""
        top, bottom = self._region()
        if self.cursor.y == bottom:
            self._scroll(top, bottom, 1)
        else:
            self.cursor.y = min(self.cursor.y + 1, self.lines - 1)

    def reverse_index(self) -> None:
        """Go up a row, scrolling at the top of the region."""
        top, bottom = self._region()
        if self.cursor.y == top:
            self._scroll(top, bottom, -1)
        else:
            self.cursor.y = max(self.cursor.y - 1, 0)

    def insert_lines(self, count: int | None = None) -> None:
        """Insert blank rows at the cursor."""
        self._scroll_from_cursor(-(count or 1))

    def delete_lines(self, count: int | None = None) -> None:
        """Delete rows at the cursor."""
        self._scroll_from_cursor(count or 1)

    def scroll_up(self, count: int) -> None:
        """Move the region's rows up."""
        self._scroll(*self._region(), count)

    def scroll_down(self, count: int) -> None:
        """Move the region's rows down."""
        self._scroll(*self._region(), -count)

    def _region(self) -> tuple[int, int]:
        return self.margins or (0, self.lines - 1)

    def _scroll_from_cursor(self, count: int) -> None:
        top, bottom = self._region()
        if top <= self.cursor.y <= bottom:
            self._scroll(self.cursor.y, bottom, count)
            self.carriage_return()

    def _scroll(self, top: int, bottom: int, count: int) -> None:
        """Move rows up by ``count``, or down when it is negative."""
        buffer = self.buffer
        rows = [buffer.pop(y, None) for y in range(top, bottom + 1)]
        first = top - count
        for y, row in enumerate(rows, first):
            if row is not None and top <= y <= bottom:
                buffer[y] = row

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
            self._divide(row, begin)
            self._divide(row, end)
            for x in range(begin, end):
                row.pop(x, None)

    def erase_in_display(self, how: int = 0, *args: object, **kwargs: object) -> None:
        """Blank below the cursor (0), above it (1), or everything (2)."""
        rows = {
            0: range(self.cursor.y + 1, self.lines),
            1: range(self.cursor.y),
            2: range(self.lines),
        }.get(how, range(0))
        for y in rows:
            self.buffer.pop(y, None)
        if how in (0, 1):
            self.erase_in_line(how)

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
        self._divide(row, x)
        self._divide(row, x + deleted)
        self._divide(row, self.columns - inserted)
        rest = [row[c] for c in range(x + deleted, self.columns - inserted)]
        cells = [_BLANK] * inserted + rest + [_BLANK] * deleted
        row.update(zip(range(x, self.columns), cells, strict=True))

    # -- state -----------------------------------------------------------------

    def save_cursor(self) -> None:
        """Remember where the cursor is; the last one counts."""
        modes = self.mode
        self._saved = (
            copy.copy(self.cursor),
            pyte_modes.DECOM in modes,
            pyte_modes.DECAWM in modes,
        )

    def restore_cursor(self) -> None:
        """Go back to the remembered place, or home."""
        cursor, origin, wraps = self._saved or (Cursor(0, 0), False, True)
        for mode, on in ((pyte_modes.DECOM, origin), (pyte_modes.DECAWM, wraps)):
            (self.mode.add if on else self.mode.discard)(mode)
        hidden = self.cursor.hidden
        self.cursor = copy.copy(cursor)
        self.cursor.hidden = hidden
        self.cursor.x = min(self.cursor.x, self.columns)
        self.ensure_vbounds(use_margins=origin)

    def change_mode(self, number: int, private: bool, on: bool) -> None:
        """Set or reset one mode."""
        mode = number << 5 if private else number
        (self.mode.add if on else self.mode.discard)(mode)
        if mode == pyte_modes.DECOM:
            self.cursor_position()
        elif mode == pyte_modes.DECTCEM:
            self.cursor.hidden = not on

    def alternate_screen(self, number: int, on: bool) -> None:
        """Show the alternate screen, blank, or the main one again."""
        if on == self.alternate:
            return
        self.alternate = on
        if on:
            self._main, self.buffer = self.buffer, _blank_buffer()
            self._main_cursor = copy.copy(self.cursor) if number == _WITH_CURSOR else None
        else:
            self.buffer, self._main = self._main or _blank_buffer(), None
            if self._main_cursor is not None and number == _WITH_CURSOR:
                x, y = self._main_cursor.x, self._main_cursor.y
                self.cursor.x, self.cursor.y = min(x, self.columns), min(y, self.lines - 1)
            self._main_cursor = None

    def soft_reset(self) -> None:
        """Put modes, region and saved cursor back, leaving what is shown."""
        self.margins = None
        self._saved = None
        self.mode = {pyte_modes.DECAWM, pyte_modes.DECTCEM}
        self.cursor.hidden = False

    def reset(self) -> None:
        """Begin anew, on the main screen."""
        self.alternate = False
        self._main = self._main_cursor = self._saved = None
        super().reset()

    def wipe(self, *, at_bottom: bool) -> None:
        """Blank what is shown, with the cursor at the beginning of the first or last row."""
        self.buffer.clear()
        self.cursor.x, self.cursor.y = 0, self.lines - 1 if at_bottom else 0

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        """Change the size: rows below the cursor go first, then rows at the top."""
        rows, cols = lines or self.lines, columns or self.columns
        lost = max(0, self.cursor.y - (rows - 1))
        for buffer in (self.buffer, self._main):
            if buffer is not None:
                _crop(buffer, self.lines, lost, rows, cols)
        self.lines, self.columns = rows, cols
        self.cursor.y -= lost
        self.cursor.x = min(self.cursor.x, cols)
        self.margins = None
        self.tabstops = set(range(8, cols, 8))


def _blank_buffer() -> dict[int, _Row]:
    return defaultdict(lambda: StaticDefaultDict(_BLANK))


def _crop(buffer: dict[int, _Row], height: int, lost: int, rows: int, cols: int) -> None:
    kept = [buffer.pop(y, None) for y in range(height)][lost : lost + rows]
    for y, row in enumerate(kept):
        if row is not None:
            for x in [x for x in row if x >= cols]:
                del row[x]
            if row[cols - 1].data and wcwidth(row[cols - 1].data[0]) == 2:
                row[cols - 1] = _BLANK
            buffer[y] = row


class ScreenView:
    """The screen of one session; costs nothing until somebody looks at it."""

    def __init__(self, rows: int, cols: int) -> None:
        self._screen = Screen(rows, cols)
        self._emulator = Emulator(self._screen)
        self._offset = 0
        self._resizes: list[tuple[int | None, int, int]] = []

    def resize(self, rows: int, cols: int, at: int | None = None) -> None:
        """Note that the terminal has a new size from the offset ``at`` on.

        Without ``at`` the change counts from the last snapshot on.
        """
        last = self._resizes[-1] if self._resizes else None
        if last is not None and last[0] == at:
            self._resizes.pop()
        self._resizes.append((at, rows, cols))

    def snapshot(self, log: ByteLog) -> ScreenSnapshot:
        """Bring the screen up to the end of ``log`` and return what it shows.

        Rows come without their trailing blanks; the cursor is zero-based.
        """
        end = log.next_offset
        for at, rows, cols in self._resizes:
            if at is not None:
                self._catch_up(log, min(at, end))
            self._screen.resize(rows, cols)
        self._resizes.clear()
        self._catch_up(log, end)
        screen = self._screen
        return ScreenSnapshot(
            rows=screen.lines,
            cols=screen.columns,
            lines=screen.rendered(),
            cursor_row=screen.cursor.y,
            cursor_col=min(screen.cursor.x, screen.columns - 1),
            cursor_visible=not screen.cursor.hidden,
            alternate=screen.alternate,
            offset=end,
            title=screen.title,
        )

    def _catch_up(self, log: ByteLog, end: int) -> None:
        begin = max(self._offset, log.first_offset)
        lost = begin > self._offset
        if begin >= end:
            return
        data = log.read(begin, end - begin)[1]
        self._offset = end
        screen, emulator = self._screen, self._emulator
        pending = emulator.take_pending()
        situation = Situation(
            rows=screen.lines,
            cols=screen.columns,
            column=screen.cursor.x,
            at_bottom=screen.at_bottom,
            scrolls_whole=screen.scrolls_whole,
            alternate=screen.alternate,
            wraps=screen.wraps,
            lost=lost,
        )
        for step in plan(data if lost else pending + data, situation):
            if step.origin is not Origin.PRESENT:
                screen.wipe(at_bottom=step.origin is Origin.BOTTOM)
            emulator.feed(step.data)
