"""Bytes to calls on a screen: the parser of the screen view.

The grammar is the text view's (``workers.text.sanitize``): UTF-8 only, C1 code points
mean nothing, control strings are bounded and end at a newline. Parameters are checked
here and a call gets exactly the arguments it can take, so no sequence, however odd, can
raise in the screen behind. Colours are dropped: a snapshot shows characters.

Nothing is ever answered: device and status requests are no calls.
"""

import codecs
import re
from typing import Any

from workers.text.modes import ALTERNATE_SCREENS
from workers.text.sanitize import sequence_pattern

CARRY_CHARS = 4_096
MAX_TITLE = 1_024
_CONTROLS = re.compile("[\x07-\x0d\x18\x1a]")
_JUNK = re.compile("[\x00-\x06\x0e-\x17\x19\x1c-\x1f\x7f-\x9f]+")
_IGNORED_MODES = frozenset({3, 5, 40})  # 132 columns, reverse screen: a person's are fixed


_COUNTED = {
    "A": "cursor_up",
    "B": "cursor_down",
    "e": "cursor_down",
    "C": "cursor_forward",
    "a": "cursor_forward",
    "D": "cursor_back",
    "E": "cursor_down1",
    "F": "cursor_up1",
    "G": "cursor_to_column",
    "`": "cursor_to_column",
    "d": "cursor_to_line",
    "L": "insert_lines",
    "M": "delete_lines",
    "@": "insert_characters",
    "P": "delete_characters",
    "X": "erase_characters",
    "S": "scroll_up",
    "I": "tab_forward",
    "Z": "tab_back",
    "b": "repeat",
}
_ESCAPES = {
    "7": "save_cursor",
    "8": "restore_cursor",
    "c": "reset",
    "D": "index",
    "E": "next_line",
    "M": "reverse_index",
    "H": "set_tab_stop",
}
_SIMPLE = {
    "\b": "backspace",
    "\t": "tab",
    "\n": "linefeed",
    "\x0b": "linefeed",
    "\x0c": "linefeed",
    "\r": "carriage_return",
}


class Emulator:
    """Feeds one display; keeps what is incomplete until more comes.

    The display is a ``workers.text.screen.Screen`` or what has its methods. Counts are at
    least 1, rows and columns are one-based.
    """

    def __init__(self, display: Any) -> None:
        self._display = display
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._sequence = sequence_pattern(CARRY_CHARS)
        self._carry = ""
        self._counted = {final: getattr(display, name) for final, name in _COUNTED.items()}
        self._escapes = {code: getattr(display, name) for code, name in _ESCAPES.items()}
        self._simple = {code: getattr(display, name) for code, name in _SIMPLE.items()}

    def take_pending(self) -> bytes:
        """Return what was incomplete so far as bytes, and forget it."""
        pending = self._carry.encode() + self._decoder.getstate()[0]
        self._carry = ""
        self._decoder.reset()
        return pending

    def feed(self, data: bytes) -> None:
        """Act on the next bytes."""
        text = self._carry + _JUNK.sub("", self._decoder.decode(data))
        self._carry = ""
        begin = 0
        at = text.find("\x1b")
        while at >= 0:
            if at > begin:
                self._plain(text[begin:at])
            match = self._sequence.match(text, at)
            assert match is not None  # noqa: S101  (the pattern matches a lone ESC)
            begin = match.end()
            if not self._act(match) and (
                begin == len(text) or (begin == len(text) - 1 and text[-1] == "\x1b")
            ):
                self._carry = text[at:]
                return
            at = text.find("\x1b", begin)
        if begin < len(text):
            self._plain(text[begin:])

    def _plain(self, text: str) -> None:
        begin = 0
        for match in _CONTROLS.finditer(text):
            if match.start() > begin:
                self._display.draw(text[begin : match.start()])
            begin = match.end()
            call = self._simple.get(match[0])
            if call is not None:
                call()
        if begin < len(text):
            self._display.draw(text[begin:])

    def _act(self, match: re.Match[str]) -> bool:
        """Perform one sequence; False if it is not complete."""
        final, kind, escape = match["final"], match["kind"], match["escape"]
        if final is not None:
            self._control(match["params"], match["inter"], final)
        elif kind is not None:
            end = match["end"]
            if end is None:
                return False
            if kind == "]" and end in ("\x07", "\x1b\\") and match["body"][:2] in ("0;", "2;"):
                self._display.set_title(match["body"][2 : MAX_TITLE + 2])
        elif escape is not None:
            if match["shift"]:
                if match["shift"] == "#" and escape == "8":
                    self._display.alignment_display()
            elif escape in self._escapes:
                self._escapes[escape]()
        else:
            return False
        return True

    def _control(self, params: str, inter: str, final: str) -> None:
        display = self._display
        private = params[:1] in ("<", "=", ">", "?")
        if final in "hl" and not inter and (not private or params[0] == "?"):
            self._modes(numbers_of(params.lstrip("?")), private, final == "h")
            return
        if inter or (private and not (params[0] == "?" and final in "JK")):
            if inter == "!" and final == "p":
                display.soft_reset()
            return
        numbers = numbers_of(params.lstrip("?"))
        first = numbers[0]
        if final in self._counted:
            self._counted[final](max(1, first))
        elif final in "Hf":
            display.cursor_position(max(1, first), max(1, numbers[1] if len(numbers) > 1 else 1))
        elif final == "J":
            display.erase_in_display(first)
        elif final == "K":
            display.erase_in_line(first)
        elif final == "T":
            if len(numbers) == 1:  # with five it is a mouse request
                display.scroll_down(max(1, first))
        elif final == "r":
            display.scroll_region(first, numbers[1] if len(numbers) > 1 else 0)
        elif final == "g":
            display.clear_tab_stop(first)
        elif final == "s" and not params:
            display.save_cursor()
        elif final == "u" and not params:
            display.restore_cursor()

    def _modes(self, numbers: list[int], private: bool, on: bool) -> None:
        for number in numbers:
            if private and number in ALTERNATE_SCREENS:
                self._display.alternate_screen(number, on)
            elif not private or number not in _IGNORED_MODES:
                self._display.change_mode(number, private, on)


def numbers_of(params: str) -> list[int]:
    """Read CSI parameters, at least one; what is no number counts as 0 (its default)."""
    numbers = []
    for field in params.split(";"):
        digits = field.partition(":")[0]
        numbers.append(min(int(digits[:6]), 9_999) if digits.isdigit() else 0)
    return numbers
