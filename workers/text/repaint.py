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
class Picture:
    """A screen's characters and what its next character depends on; all counts from 0.

    ``under`` is the main screen while ``rows`` is the alternate one, and ``under_cursor``
    where its cursor waits. ``cursor`` may stand one column behind the last.
    """

    size: tuple[int, int]
    rows: tuple[str, ...]
    cursor: tuple[int, int]
    cursor_visible: bool = True
    under: tuple[str, ...] | None = None
    under_cursor: tuple[int, int] | None = None
    last: str = ""
    last_column: int = 0
    region: tuple[int, int] | None = None
    origin: bool = False
    wraps: bool = True
    insert: bool = False
    title: str = ""


def repaint(picture: Picture, modes: TerminalModes) -> bytes:
    """Return the bytes that paint ``picture`` and put the terminal into its state."""
    made = bytearray(RESET)
    if picture.title:
        made += f"\x1b]2;{picture.title}\x07".encode("utf-8", "replace")
    made += _CLEAR
    if picture.under is not None:
        made += _rows(picture.under)
        if picture.under_cursor is not None:
            made += _at(*picture.under_cursor)
        made += b"\x1b[?1049h" + _CLEAR
    made += _rows(picture.rows)
    row, column = picture.cursor
    top = 0
    if picture.region is not None:
        top, bottom = picture.region
        made += f"\x1b[{top + 1};{bottom + 1}r".encode()
    waits = column >= picture.size[1]
    if waits and picture.last:
        made += _at(row, picture.last_column) + picture.last.encode("utf-8", "replace")
    if not picture.wraps:
        made += b"\x1b[?7l"
    if picture.origin:
        made += b"\x1b[?6h"  # it homes the cursor, so the place is counted from the region
        row -= top
    if not waits:
        made += _at(max(row, 0), column)
    elif picture.origin and picture.last:
        made += _at(max(row, 0), picture.last_column) + picture.last.encode("utf-8", "replace")
    if picture.insert:
        made += b"\x1b[4h"
    made += _keyboard(modes)
    if not picture.cursor_visible:
        made += b"\x1b[?25l"
    return bytes(made)


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
