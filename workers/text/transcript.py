"""The text view of a terminal: a log of lines as a person would have seen them.

``Sanitizer`` reduces the bytes, this module acts on what is left, ``Line`` holds the line
being written, ``Scrollback`` the finished ones. The text is a log, not a screen:

- controls that stay within the line are emulated in it (``workers.text.line``);
- a move that leaves the line (cursor up or down, absolute positions, scrolling, insert
  and delete line, the alternate screen, reset) ends the line if there is text on it; what
  follows begins a new one, at the column the cursor then has. So full-screen programs do
  not glue their rows together, and nothing can take back a finished line: ``clear`` and
  ``CSI 3 J`` erase a screen, not the log.
- an erase below the cursor (``CSI J``) acts as an erase to the end of the line.

Rejected: keeping the last rows editable for cursor-up progress bars. A finished line
then could change after it was read, and cursors into the log would mean nothing.

Marks are reported by ``feed`` in order; ``text_since_mark`` is what stands on the
terminal after the latest one. Clearing the screen begins it anew: what was after the
mark is not there any more.
"""

import re

from fabric.core.model import ReadPage, TailPage
from workers.text.capture import Capture
from workers.text.cells import MAX_COLUMN
from workers.text.line import Anchor, Line
from workers.text.marks import Mark, parse_mark
from workers.text.modes import TerminalModes
from workers.text.sanitize import Sanitizer
from workers.text.scrollback import Scrollback

__all__ = ["Capture", "Transcript"]

_ACTION = re.compile(
    "(?P<plain>[\r\b])"
    r"|\x1b(?:\[(?P<params>[0-?]*)(?P<inter>[ -/]*)(?P<final>[@-~])"
    r"|\](?P<mark>[^\x1b]*)\x1b\\|(?P<escape>.))"
)
_SLICE = 262_144
_SINCE_CHARS = 4_096


class _Since:
    """The text after the latest mark, as much as a comparison with a prompt needs."""

    def __init__(self, line: Line) -> None:
        self.anchor: Anchor = line.anchor()
        self._line = line
        self._text = ""

    def add(self, text: str) -> None:
        if len(self._text) < _SINCE_CHARS:
            self._text = (self._text + text[:_SINCE_CHARS])[:_SINCE_CHARS]

    def restart(self) -> None:
        self._text = ""
        self.anchor = self._line.anchor()

    def text(self) -> str:
        left = _SINCE_CHARS - len(self._text)
        return self._text + (self._line.text_from(self.anchor, left) if left else "")


class Transcript:
    """One terminal's text, fed with its bytes."""

    def __init__(self, *, nonce: str, max_lines: int, max_bytes: int, carry_bytes: int) -> None:
        self._nonce = nonce
        self._sanitizer = Sanitizer(nonce=nonce, carry=carry_bytes)
        self._scrollback = Scrollback(max_lines, max_bytes)
        self._line = Line(max_bytes)
        self._since: _Since | None = None
        self._saved: tuple[int, int] | None = None
        self._home = False
        self._last_char = ""
        self.modes = TerminalModes()

    # -- writing ---------------------------------------------------------------

    def feed(self, data: bytes) -> list[Mark]:
        """Take the next bytes of the terminal; return the marks among them, in order."""
        marks: list[Mark] = []
        if len(data) <= _SLICE:
            self._act(self._sanitizer.feed(data), marks)
        else:
            view = memoryview(data)
            for begin in range(0, len(data), _SLICE):
                self._act(self._sanitizer.feed(bytes(view[begin : begin + _SLICE])), marks)
        return marks

    def renumber(self, by: int) -> None:
        """Number the lines ``by`` higher: as many came before what was fed."""
        self._scrollback.renumber(by)
        if self._saved is not None:
            self._saved = (self._saved[0] + by, self._saved[1])

    def flush(self) -> None:
        """End the stream: what was incomplete shows as U+FFFD or vanishes."""
        self._act(self._sanitizer.flush(), [])

    def _act(self, text: str, marks: list[Mark]) -> None:
        if not text:
            return
        if "\x1b" in text and "\r" not in text and "\b" not in text and self._line.is_plain:
            # An erase at the end of a line that is only appended to does nothing.
            bare = text.replace("\x1b[K", "").replace("\x1b[0K", "")
            if "\x1b" not in bare:
                text = bare
        if "\x1b" not in text and "\r" not in text and "\b" not in text:
            self._write(text)
            return
        begin = 0
        for match in _ACTION.finditer(text):
            if match.start() > begin:
                self._write(text[begin : match.start()])
            begin = match.end()
            plain, final = match["plain"], match["final"]
            if plain == "\r":
                self._line.carriage_return()
            elif plain:
                self._line.backspace()
            elif final is not None:
                self._control(match["params"], match["inter"], final)
            elif match["mark"] is not None:
                self._mark(match["mark"], marks)
            else:
                self._escape(match["escape"])
        if begin < len(text):
            self._write(text[begin:])

    def _write(self, text: str) -> None:
        if not text:
            return
        self._last_char = text[-1]
        self._home = False
        first = text.find("\n")
        if first < 0:
            self._line.write(text)
            return
        self._line.write(text[:first])
        self._finish_line()
        last = text.rfind("\n") + 1
        if last > first + 1:
            whole = text[first + 1 : last]
            self._scrollback.append(whole)
            for follower in self._line.followers:
                follower.add(whole)
        self._line.write(text[last:])

    def _finish_line(self) -> None:
        lost = self._line.lost_bytes
        self._scrollback.append(self._line.finish() + "\n", lost)

    def _leave_line(self, column: int) -> None:
        """End the line if it has text, and put the cursor on a fresh one."""
        if self._line.text().strip():
            self._finish_line()
        else:
            self._line.clear()
        self._line.to_column(column)

    # -- controls --------------------------------------------------------------

    def _control(self, params: str, inter: str, final: str) -> None:
        if inter or params[:1] in ("<", "=", ">", "?"):
            if final in "hl" and params[:1] == "?" and not inter:
                self._private_mode(_numbers(params[1:]), final == "h")
            elif final == "p" and inter == "!":
                self.modes = self.modes.after_soft_reset()
            return
        numbers = _numbers(params)
        first = numbers[0] if numbers else 0
        count = max(1, first)
        line = self._line
        if final == "K":
            line.erase(first)
        elif final in "Ca":
            line.move(count)
        elif final == "D":
            line.move(-count)
        elif final in "G`":
            line.to_column(count - 1)
        elif final == "P":
            line.delete(count)
        elif final == "@":
            line.insert(count)
        elif final == "X":
            line.blank(count)
        elif final == "I":
            line.next_stop(min(count, MAX_COLUMN))
        elif final == "Z":
            line.next_stop(-min(count, MAX_COLUMN))
        elif final == "b":
            if self._last_char not in ("", "\n", "\t"):
                line.write(self._last_char * min(count, MAX_COLUMN))
        elif final == "J":
            self._erase_display(first)
        elif final in "su":
            self._remember() if final == "s" else self._recall()
        elif final in "Hf":
            self._leave_line(max(1, numbers[1] if len(numbers) > 1 else 1) - 1)
            self._home = first <= 1 and not line.column
        elif final in "ABdeST":
            self._leave_line(line.column)
        elif final in "EFLMr":
            self._leave_line(0)

    def _escape(self, code: str) -> None:
        if code == "7":
            self._remember()
        elif code == "8":
            self._recall()
        elif code in "=>":
            self.modes = self.modes.with_keypad(code == "=")
        elif code in "DM":
            self._leave_line(self._line.column)
        elif code == "E":
            self._leave_line(0)
        else:  # c: reset
            self._leave_line(0)
            self.modes = TerminalModes()
            self._restart_since()

    def _erase_display(self, how: int) -> None:
        if how == 0:
            self._line.erase(0)
            if self._home:
                self._restart_since()
        elif how == 1:
            self._line.erase(1)
        elif how == 2:
            self._leave_line(self._line.column)
            self._restart_since()

    def _private_mode(self, numbers: list[int], on: bool) -> None:
        before = self.modes.alternate_screen
        self.modes = self.modes.with_private(numbers, on)
        if self.modes.alternate_screen != before:
            self._leave_line(0)

    def _remember(self) -> None:
        self._saved = (self._scrollback.next_line, self._line.column)

    def _recall(self) -> None:
        row, column = self._saved or (-1, 0)
        if row == self._scrollback.next_line:
            self._line.to_column(column)
        else:
            self._leave_line(column)

    # -- marks -----------------------------------------------------------------

    def _mark(self, body: str, marks: list[Mark]) -> None:
        mark = parse_mark(body, self._nonce)
        if mark is None:
            return
        marks.append(mark)
        if self._since is not None:
            self._line.followers.remove(self._since)
        self._since = _Since(self._line)
        self._line.followers.append(self._since)

    def _restart_since(self) -> None:
        if self._since is not None:
            self._since.restart()

    @property
    def text_since_mark(self) -> str | None:
        """Printable text after the latest mark (its first 4096 characters); None: no mark yet."""
        return None if self._since is None else self._since.text()

    # -- reading ---------------------------------------------------------------

    def capture(self, max_bytes: int) -> Capture:
        """Begin a send's own output at the present position."""
        return Capture(self._line, max_bytes)

    def page(self, offset: int, count: int, max_bytes: int) -> ReadPage:
        """Return ``count`` lines above the newest ``offset`` in at most ``max_bytes``."""
        return self._scrollback.page(
            offset, count, max_bytes, self._line.text(), self._line.lost_bytes
        )

    def tail(self, next_line: int, lines: int, max_bytes: int) -> TailPage:
        """Return the newest ``lines`` whole lines from the absolute ``next_line`` on."""
        return self._scrollback.tail(
            next_line, lines, max_bytes, self._line.text(), self._line.lost_bytes
        )

    @property
    def next_line(self) -> int:
        """The absolute number of the line being written."""
        return self._scrollback.next_line

    @property
    def total_lines(self) -> int:
        """How many lines are retained, an unterminated last one included."""
        return self._retained()[0]

    @property
    def dropped_lines(self) -> int:
        """How many lines retention has dropped."""
        return self._retained()[1]

    @property
    def dropped_bytes(self) -> int:
        """How many bytes retention has dropped."""
        return self._retained()[2]

    def _retained(self) -> tuple[int, int, int]:
        return self._scrollback.retained(self._line.text(), self._line.lost_bytes)


def _numbers(params: str) -> list[int]:
    """Read CSI parameters; what is no number counts as 0 (its default)."""
    numbers = []
    for field in params.split(";"):
        digits = field.partition(":")[0]
        numbers.append(min(int(digits), 65_535) if digits.isascii() and digits.isdigit() else 0)
    return numbers
