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
from collections import defaultdict

from pyte import modes as pyte_modes
from pyte.screens import Cursor, Margins, StaticDefaultDict, wcwidth
from pyte.screens import Screen as PyteScreen

from fabric.core.model import ScreenSnapshot
from workers.text.bytelog import ByteLog
from workers.text.drawing import BLANK, Cell, Drawing, scroll
from workers.text.emulate import Emulator
from workers.text.modes import TerminalModes
from workers.text.relevance import Origin, Situation, plan
from workers.text.repaint import Picture, Place, repaint

_Rows = dict[int, StaticDefaultDict[int, Cell]]
_WITH_CURSOR = 1049


class Screen(Drawing, PyteScreen):
    """A pyte screen with the behaviour of the terminals people use."""

    width_of = staticmethod(wcwidth)

    def __init__(self, rows: int, cols: int) -> None:
        self.alternate = False
        self._main: _Rows | None = None
        self._main_cursor: Cursor | None = None
        self._saved: tuple[Cursor, bool, bool] | None = None
        super().__init__(cols, rows)

    # -- reading ---------------------------------------------------------------

    def rendered(self) -> tuple[str, ...]:
        """Return the rows without their trailing blanks."""
        return self._render(self.buffer)

    def _render(self, buffer: _Rows) -> tuple[str, ...]:
        columns = range(self.columns)
        found = []
        for y in range(self.lines):
            row = buffer.get(y)
            found.append("".join([row[x].data for x in columns]).rstrip(" ") if row else "")
        return tuple(found)

    def picture(self) -> Picture:
        """Return what another terminal needs to go on from here."""
        under, waiting = self._main, self._main_cursor
        return Picture(
            size=(self.lines, self.columns),
            rows=self.rendered(),
            cursor=self._place(self.buffer, self.cursor),
            cursor_visible=not self.cursor.hidden,
            under=None if under is None else self._render(under),
            under_cursor=None if under is None or waiting is None else self._place(under, waiting),
            region=None if self.margins is None else (self.margins.top, self.margins.bottom),
            origin=pyte_modes.DECOM in self.mode,
            wraps=self.wraps,
            insert=pyte_modes.IRM in self.mode,
            title=self.title,
        )

    def _place(self, buffer: _Rows, cursor: Cursor) -> Place:
        row, x = buffer.get(cursor.y), self.columns - 1
        while row and x > 0 and not row[x].data:
            x -= 1
        return Place(cursor.y, cursor.x, row[x].data if row else " ", x)

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
            scroll(self.buffer, top, bottom, 1)
        else:
            self.cursor.y = min(self.cursor.y + 1, self.lines - 1)

    def reverse_index(self) -> None:
        """Go up a row, scrolling at the top of the region."""
        top, bottom = self._region()
        if self.cursor.y == top:
            scroll(self.buffer, top, bottom, -1)
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
        scroll(self.buffer, *self._region(), count)

    def scroll_down(self, count: int) -> None:
        """Move the region's rows down."""
        scroll(self.buffer, *self._region(), -count)

    def _region(self) -> tuple[int, int]:
        return self.margins or (0, self.lines - 1)

    def _scroll_from_cursor(self, count: int) -> None:
        top, bottom = self._region()
        if top <= self.cursor.y <= bottom:
            scroll(self.buffer, self.cursor.y, bottom, count)
            self.carriage_return()

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


def _blank_buffer() -> _Rows:
    return defaultdict(lambda: StaticDefaultDict(BLANK))


def _crop(buffer: _Rows, height: int, lost: int, rows: int, cols: int) -> None:
    kept = [buffer.pop(y, None) for y in range(height)][lost : lost + rows]
    for y, row in enumerate(kept):
        if row is not None:
            for x in [x for x in row if x >= cols]:
                del row[x]
            if row[cols - 1].data and wcwidth(row[cols - 1].data[0]) == 2:
                row[cols - 1] = BLANK
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
        end = self._bring_up(log)
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

    def repaint(self, log: ByteLog, modes: TerminalModes) -> tuple[int, bytes]:
        """Bring the screen up to the end of ``log``; return that offset and what paints it."""
        end = self._bring_up(log)
        return end, repaint(self._screen.picture(), modes)

    def _bring_up(self, log: ByteLog) -> int:
        end = log.next_offset
        for at, rows, cols in self._resizes:
            if at is not None:
                self._catch_up(log, min(at, end))
            self._screen.resize(rows, cols)
        self._resizes.clear()
        self._catch_up(log, end)
        return end

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
