"""What to print on a terminal of the same size so that it shows what another one shows.

A person who attaches sees the screen as it is, and everything printed afterwards lands
where the program means it to: so the picture is followed by the state that later output
depends on. In this order:

1. back to a known state (soft reset, main screen, normal keys, no mouse reports);
2. the main screen's rows, then, if the program shows the alternate one, that one over it,
   so that the main screen comes back when the program leaves;
3. the scroll region and the wrap, origin and insert modes;
4. the cursor. One that stands behind the last column waits there to wrap with the next
   character; a terminal gets into that state only by printing the last character again;
5. what the program asked of the keyboard and mouse (``TerminalModes``).

Colours are not in the picture: a screen keeps characters. Programs that paint the whole
screen repaint it, in colour, when their window changes.

Every row is printed at its place and nothing is left to line ends, so a picture never
scrolls, and a terminal of another size shows as much of it as it can.
"""

from dataclasses import dataclass

from workers.text.modes import TerminalModes

RESET = (
    b"\x1b[!p\x1b[?1049l\x1b[?1l\x1b>\x1b[?2004l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l"
    b"\x1b[?1006l\x1b[?1004l\x1b[?7h\x1b[?6l\x1b[4l\x1b[r\x1b[m\x1b(B\x0f\x1b[?25h"
)
_CLEAR = b"\x1b[H\x1b[2J"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cursor is, counted from 0; behind the last column it waits to wrap.

    ``last`` is the row's last character and ``last_column`` where that begins.
    """

    row: int
    column: int
    last: str = " "
    last_column: int = 0


@dataclass(frozen=True, slots=True)
class Picture:
    """A screen's characters and what its next character depends on; all counts from 0.

    ``under`` is the main screen while ``rows`` is the alternate one, and ``under_cursor``
    where its cursor waits, None when the program comes back with the present one.
    """

    size: tuple[int, int]
    rows: tuple[str, ...]
    cursor: Place
    cursor_visible: bool = True
    under: tuple[str, ...] | None = None
    under_cursor: Place | None = None
    region: tuple[int, int] | None = None
    origin: bool = False
    wraps: bool = True
    insert: bool = False
    title: str = ""


def repaint(picture: Picture, modes: TerminalModes) -> bytes:
    """Return the bytes that paint ``picture`` and put the terminal into its state."""
    columns = picture.size[1]
    made = bytearray(RESET)
    if picture.title:
        made += f"\x1b]2;{picture.title}\x07".encode("utf-8", "replace")
    made += _CLEAR
    if picture.under is not None:
        made += _rows(picture.under)
        if picture.under_cursor is None:
            made += b"\x1b[?1047h" + _CLEAR
        else:
            made += _to(picture.under_cursor, 0, columns) + b"\x1b[?1049h" + _CLEAR
    made += _rows(picture.rows)
    top = 0
    if picture.region is not None:
        made += f"\x1b[{picture.region[0] + 1};{picture.region[1] + 1}r".encode()
    if not picture.wraps:
        made += b"\x1b[?7l"
    if picture.origin:  # places count from the region from now on
        made += b"\x1b[?6h"
        top = 0 if picture.region is None else picture.region[0]
    made += _to(picture.cursor, top, columns)
    if picture.insert:
        made += b"\x1b[4h"
    made += _keyboard(modes)
    if not picture.cursor_visible:
        made += b"\x1b[?25l"
    return bytes(made)


def _to(place: Place, top: int, columns: int) -> bytes:
    """Put the cursor into its place, which counts from row ``top``."""
    row = max(0, place.row - top)
    if place.column < columns:
        return _at(row, place.column)
    return _at(row, place.last_column) + place.last.encode("utf-8", "replace")


def _at(row: int, column: int) -> bytes:
    return f"\x1b[{row + 1};{column + 1}H".encode()


def _rows(rows: tuple[str, ...]) -> bytes:
    made = bytearray()
    for y, row in enumerate(rows):
        if row:
            made += _at(y, 0) + row.encode("utf-8", "replace")
    return bytes(made)


def _keyboard(modes: TerminalModes) -> bytes:
    made = b""
    for number, on in (
        (1, modes.application_cursor),
        (2004, modes.bracketed_paste),
        (1004, modes.focus_events),
        (1006, modes.mouse_sgr),
    ):
        if on:
            made += f"\x1b[?{number}h".encode()
    if modes.application_keypad:
        made += b"\x1b="
    if modes.mouse:
        made += f"\x1b[?{modes.mouse}h".encode()
    return made
