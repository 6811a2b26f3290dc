"""What one send produced: head and tail of a stream of text, however long.

A capture begins at the present position and follows the output on its own: it does not
look into the scrollback, so it stays right when retention drops what it has already
taken. Final text comes in whole lines (the front of an endless line excepted); the line
still being written is looked at when somebody asks.

Above its bound a result keeps its beginning and its end around one line that says how
many bytes are missing, ``[… N bytes omitted …]``. The bound covers that line too. Cuts
are at line ends where one is near, and never inside a code point. Where not even the
omission line fits, the newest bytes are kept.
"""

from collections import deque
from dataclasses import dataclass

from workers.text.line import Anchor, Line
from workers.text.utf8 import byte_length, newest, oldest


@dataclass(frozen=True, slots=True)
class CaptureText:
    """Text within a bound; ``omitted_bytes`` of the original are not in it."""

    text: str
    truncated: bool = False
    omitted_bytes: int = 0


class HeadTail:
    """The beginning and the end of a growing text, at least ``max_bytes`` in all."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._head_room = max_bytes // 2
        self._head: list[str] = []
        self._head_bytes = 0
        self._head_open = True
        self._tail: deque[str] = deque()
        self._tail_bytes = 0
        self._total_bytes = 0

    def add(self, text: str) -> None:
        """Append ``text``, dropping what can belong to neither end any more."""
        size = byte_length(text)
        self._total_bytes += size
        if self._head_open:
            room = self._head_room - self._head_bytes
            if size <= room:
                self._head.append(text)
                self._head_bytes += size
                return
            self._head_open = False
            begin = oldest(text, room)
            if begin:
                self._head.append(begin)
                begun = byte_length(begin)
                self._head_bytes += begun
                text = text[len(begin) :]
                size -= begun
        if size > 2 * self._max_bytes:
            text = newest(text, self._max_bytes)
            size = byte_length(text)
            self._tail.clear()
            self._tail_bytes = 0
        self._tail.append(text)
        self._tail_bytes += size
        while (
            len(self._tail) > 1 and self._tail_bytes - byte_length(self._tail[0]) >= self._max_bytes
        ):
            self._tail_bytes -= byte_length(self._tail.popleft())

    def render(self, end: str = "") -> CaptureText:
        """Return the text followed by ``end``, cut to the bound."""
        limit = self._max_bytes
        head = "".join(self._head)
        tail = "".join(self._tail) + end
        total = self._total_bytes + byte_length(end)
        if total <= limit:
            return CaptureText(head + tail)
        marker = byte_length(_omission(total)) + 2
        room = limit - marker
        if room < 2:
            kept = newest(tail if byte_length(tail) >= limit else head + tail, limit)
            return CaptureText(kept, True, total - byte_length(kept))
        source = head if byte_length(head) >= room // 2 else head + tail
        begin = _to_line_end(oldest(source, room // 2))
        rest = room - byte_length(begin)
        finish = _from_line_begin(newest(tail if byte_length(tail) >= rest else head + tail, rest))
        omitted = total - byte_length(begin) - byte_length(finish)
        gap = "" if not begin or begin.endswith("\n") else "\n"
        text = f"{begin}{gap}{_omission(omitted)}\n{finish}"
        return CaptureText(text, True, omitted)


def _omission(count: int) -> str:
    return f"[… {count} bytes omitted …]"


def _to_line_end(text: str) -> str:
    at = text.rfind("\n")
    return text[: at + 1] if at >= len(text) // 2 else text


def _from_line_begin(text: str) -> str:
    at = text.find("\n")
    return text[at + 1 :] if 0 <= at < len(text) // 2 else text


class Capture:
    """One reader of the output from a position on; made by ``Transcript.capture``."""

    def __init__(self, line: Line, max_bytes: int) -> None:
        self._line: Line | None = line
        self._max_bytes = max_bytes
        self._all = HeadTail(max_bytes)
        self._fresh: HeadTail | None = None
        self._last = ""
        self._last_taken = False
        self.anchor: Anchor = line.anchor()
        line.followers.append(self)

    def add(self, text: str) -> None:
        """Take text that cannot change any more."""
        self._all.add(text)
        if self._fresh is not None:
            self._fresh.add(text)

    def _unfinished(self) -> str:
        return self._last if self._line is None else self._line.text_from(self.anchor)

    def render(self) -> CaptureText:
        """Return everything since the beginning, the line being written included."""
        return self._all.render(self._unfinished())

    def take(self, *, final: bool = False) -> CaptureText:
        """Return what became final since the last take.

        While the capture is open that is whole lines. After ``close``, or with ``final``
        (the last take of an open one), it is also the unfinished line. Together the
        pieces are the output, each part once.
        """
        fresh = self._all if self._fresh is None else self._fresh
        end = ""
        if (final or self._line is None) and not self._last_taken:
            end, self._last_taken = self._unfinished(), True
        self._fresh = HeadTail(self._max_bytes)
        return fresh.render(end)

    def close(self) -> None:
        """Stop here: later output does not belong to it. Closing twice is harmless."""
        if self._line is not None:
            self._last = self._line.text_from(self.anchor)
            self._line.followers.remove(self)
            self._line = None
