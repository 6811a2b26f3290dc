r"""Bytes to reduced text: the first half of the text view.

In: the bytes of a terminal, divided anywhere. Out: text in which only these controls are
left: ``\n``, ``\t``, lone ``\r``, ``\b``, and complete *actions*, escape sequences that
the second half (``workers.text.transcript``) acts on: moves and edits within the line,
moves that leave the line, mode changes, marks of our own nonce. Everything else is gone:
colours, titles, clipboard writes, charset shifts, device requests, and every other C0,
DEL and C1 code.

Rules, chosen so that no stream can ever hide text that comes after it:

- UTF-8 is decoded incrementally; what is invalid becomes U+FFFD. A C1 *code point*
  (U+0080-U+009F) is dropped and never opens a string or a sequence.
- A CSI sequence ends at its final byte; a character that cannot stand in one ends it
  without effect and is itself kept.
- A control string (OSC, DCS, SOS, PM, APC, and the title string ``ESC k``) ends at BEL or
  ``ESC \``. CAN, SUB, any other ESC, and a newline abort it: no string we know spans
  lines, and an unterminated one may cost the rest of its line, not the session.
- What is not complete at the end of a piece is carried to the next, ``carry`` characters
  at most. A longer one is dropped as far as the bound and the rest flows as text.
- ``\r`` before ``\n`` is dropped (``\r\r\n`` too): one newline. The rule for a CR at the
  very end of a piece is the second half's: there a lone CR has no effect until the next
  character shows that it was not half a newline.

The bulk runs in C: one decode, ``bytes.translate`` to find junk, one substitution for
colours. Only a piece with a control string, or with actions, is looked at sequence by
sequence. Whole, byte by byte or cut anywhere, the result is the same.
"""

import codecs
import re

from workers.text.marks import MARK_PREFIX

# Finals of CSI sequences the line emulation acts on; every other CSI is removed.
_ACTION_FINALS = "@ABCDEFGHIJKLMPSTXZ`abdefhlrsu"
_ACTION_ESCAPES = frozenset("78cDEM=>")

_JUNK_BYTES = bytes(c for c in range(32) if c not in b"\x07\x08\t\n\r\x18\x1a\x1b") + b"\x7f"
_JUNK = re.compile("[\x00-\x06\x0b\x0c\x0e-\x17\x19\x1c-\x1f\x7f-\x9f]+")
_STRING_ENDS = re.compile("[\x07\x18\x1a]+")
_STRING_STOP = re.compile("[\x07\x18\x1a\x1b\n]")
_CRS_BEFORE_LF = re.compile("\r+\n")
_OPENERS = tuple("\x1b" + kind for kind in "]P_^Xk")

_BORING_FINALS = "".join(chr(c) for c in range(0x40, 0x7F) if chr(c) not in _ACTION_FINALS + "m")


def _boring_pattern(limit: int) -> re.Pattern[str]:
    """Match what can be removed at sight, left to right, where no control string opens.

    The last alternative takes a sequence that another ESC aborts: were it left behind,
    removing that other one would join it with text it has nothing to do with.
    """
    n = f"{{0,{limit}}}"
    return re.compile(
        f"\x1b\\[[0-?]{n}m"
        f"|\x1b\\[[0-?]{n}[{re.escape(_BORING_FINALS)}]"
        "|\x1b[ -/][0-~]"
        f"|\x1b(?:\\[[0-?]{n})?[ -/]{n}(?=\x1b)"
    )


def sequence_pattern(limit: int) -> re.Pattern[str]:
    """Match whatever begins with an ESC, complete or not, as far as ``limit`` allows.

    Groups: CSI ``params inter final``; control string ``kind body end``; other ``shift
    escape``. A group that is None is missing: the sequence was cut or is malformed.
    """
    n = f"{{0,{limit}}}"
    return re.compile(
        "\x1b(?:"
        f"\\[(?P<params>[0-?]{n})(?P<inter>[ -/]{n})(?P<final>[@-~])?"
        f"|(?P<kind>[\\]PX^_k])(?P<body>[^\x07\x18\x1a\x1b\n]{n})"
        "(?P<end>[\x07\x18\x1a]|\x1b\\\\)?"
        f"|(?P<shift>[ -/]{n})(?P<escape>[0-~])?"
        ")"
    )


def _complete_pattern(limit: int) -> re.Pattern[str]:
    """Match the actions that need no closer look."""
    finals = re.escape(_ACTION_FINALS)
    escapes = "".join(sorted(_ACTION_ESCAPES))
    return re.compile(f"\x1b(?:\\[[0-?]{{0,{limit}}}[{finals}]|[{escapes}])")


class Sanitizer:
    """Turns bytes into reduced text, keeping what is incomplete for the next piece."""

    def __init__(self, *, nonce: str, carry: int) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")("replace")
        self._nonce = nonce
        self._limit = carry
        self._boring = _boring_pattern(carry)
        self._complete = _complete_pattern(carry)
        self._sequence = sequence_pattern(carry)
        self._carry: list[str] = []
        self._carried = 0

    def feed(self, data: bytes) -> str:
        """Reduce the next piece of the stream."""
        text = self._decode.decode(data)
        if not text.isascii() or len(data.translate(None, _JUNK_BYTES)) != len(data):
            text = _JUNK.sub("", text)
        if self._carried:
            joined = self._join(text)
            if joined is None:
                return ""
            text = joined
        if "\x1b" in text:
            text = self._without_sequences(text)
        elif "\x07" in text or "\x18" in text or "\x1a" in text:
            text = _STRING_ENDS.sub("", text)
        if "\r" in text:
            text = text.replace("\r\n", "\n")
            if "\r\n" in text:
                text = _CRS_BEFORE_LF.sub("\n", text)
        return text

    def flush(self) -> str:
        """End the stream: an incomplete character shows, an incomplete sequence vanishes."""
        text = self._decode.decode(b"", final=True)
        self._decode.reset()
        joined = self._join(text) if text else None
        reduced = self._without_sequences(joined) if joined else ""
        self._carry.clear()
        self._carried = 0
        return reduced

    def _join(self, text: str) -> str | None:
        """Put the carried part before ``text``; None while a long string simply goes on."""
        if (
            self._carried > 256
            and self._carried + len(text) < self._limit
            and self._carry[0][1:2] in "]P_^Xk"
            and not self._carry[-1].endswith("\x1b")
            and not _STRING_STOP.search(text)
        ):
            if text:
                self._carry.append(text)
                self._carried += len(text)
            return None
        text = "".join(self._carry) + text
        self._carry.clear()
        self._carried = 0
        return text

    def _without_sequences(self, text: str) -> str:
        found = [at for at in map(text.find, _OPENERS) if at >= 0]
        border = min(found, default=len(text))
        # Before the first control string an ESC can only be the start of a sequence.
        head = self._boring.sub("", text[:border])
        if border < len(text) or head.count("\x1b") != len(self._complete.findall(head)):
            return self._by_sequence(head + text[border:])
        return self._closed([head])

    def _by_sequence(self, text: str) -> str:
        parts: list[str] = []
        begin = 0
        end = len(text)
        at = text.find("\x1b")
        while at >= 0:
            parts.append(text[begin:at])
            match = self._sequence.match(text, at)
            assert match is not None  # noqa: S101  (the pattern matches a lone ESC)
            begin = match.end()
            final, kind, escape = match["final"], match["kind"], match["escape"]
            if kind is not None:
                closed = match["end"]
                if closed is None and (begin == end or (begin == end - 1 and text[-1] == "\x1b")):
                    return self._hold(parts, text, at)
                if kind == "]" and closed in ("\x07", "\x1b\\"):
                    body = match["body"]
                    if body.startswith(MARK_PREFIX) and self._nonce in body:
                        parts.append(f"\x1b]{body}\x1b\\")
            elif final is not None:
                if final in _ACTION_FINALS or (final == "p" and match["inter"] == "!"):
                    parts.append(match[0])
            elif escape is not None:
                if not match["shift"] and escape in _ACTION_ESCAPES:
                    parts.append(match[0])
            elif begin == end:
                return self._hold(parts, text, at)
            at = text.find("\x1b", begin)
        parts.append(text[begin:])
        return self._closed(parts)

    def _hold(self, parts: list[str], text: str, at: int) -> str:
        self._carry.append(text[at:])
        self._carried = len(text) - at
        return self._closed(parts)

    @staticmethod
    def _closed(parts: list[str]) -> str:
        return _STRING_ENDS.sub("", "".join(parts))
