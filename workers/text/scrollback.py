"""Numbered lines within two bounds, and pages and tails of them.

The text is one string of whole lines, kept as blocks of many lines: output comes in
blocks, and nobody looks at a single line before it is read. What is *retained* is never
stored, it is computed: the newest ``max_bytes`` bytes of the text (the line being
written included), then the newest ``max_lines`` lines of that. So retention is exact,
does not depend on how the output was divided, and costs nothing while output floods;
blocks wholly outside are dropped as a whole.

Lines are numbered from 0, the first one ever written. The byte bound may cut the oldest
retained line (at a code point); it still counts as a line, and whatever shows it is
marked truncated. After ``renumber`` the first line has a higher number than 0: those
before it are gone. An unterminated last line counts as a line once it has text.

Pages count back from the newest line. ``offset >= total`` is an empty page. A page is
truncated when its bytes were cut, or when it would have shown lines (or a part of one)
that retention has dropped. Tails go forward by absolute line number, whole lines only;
the caller keeps the cursor.
"""

from collections import deque
from dataclasses import dataclass

from fabric.core.model import ReadPage, TailPage
from workers.text.utf8 import byte_length, newest

_SEAL_BYTES = 32_768
_SEAL_ITEMS = 512


@dataclass(slots=True)
class _Block:
    text: str
    first_line: int
    lines: int
    first_byte: int
    size: int


@dataclass(frozen=True, slots=True)
class _Window:
    """What is retained: from ``first_line`` on, of which ``cut`` bytes are missing."""

    first_line: int
    cut: int
    first_byte: int


class Scrollback:
    """The finished lines of one terminal."""

    def __init__(self, max_lines: int, max_bytes: int) -> None:
        self._max_lines = max_lines
        self._max_bytes = max_bytes
        self._blocks: deque[_Block] = deque()
        self._loose: list[str] = []
        self._loose_lines = 0
        self._loose_bytes = 0
        self._sealed_lines = 0
        self._sealed_bytes = 0
        self._origin_line = 0

    @property
    def next_line(self) -> int:
        """The number of the line being written."""
        return self._sealed_lines + self._loose_lines

    def renumber(self, by: int) -> None:
        """Number the lines ``by`` higher: as many came before the first one seen here."""
        self._origin_line += by
        self._sealed_lines += by
        for block in self._blocks:
            block.first_line += by

    def append(self, text: str, lost_bytes: int = 0) -> None:
        """Add whole lines, each ended by a newline.

        ``lost_bytes`` of the first line's front are already gone.
        """
        if lost_bytes:
            self._seal()
            self._sealed_bytes += lost_bytes
        self._loose.append(text)
        self._loose_lines += text.count("\n")
        self._loose_bytes += byte_length(text)
        if self._loose_bytes >= _SEAL_BYTES or len(self._loose) >= _SEAL_ITEMS:
            self._seal()

    def _seal(self) -> None:
        if not self._loose:
            return
        text = "".join(self._loose)
        block = _Block(
            text, self._sealed_lines, self._loose_lines, self._sealed_bytes, self._loose_bytes
        )
        self._blocks.append(block)
        self._sealed_lines += self._loose_lines
        self._sealed_bytes += self._loose_bytes
        self._loose.clear()
        self._loose_lines = self._loose_bytes = 0
        oldest_byte = self._sealed_bytes - self._max_bytes
        oldest_line = self._sealed_lines - self._max_lines
        blocks = self._blocks
        while (
            blocks[0].first_byte + blocks[0].size <= oldest_byte
            or blocks[0].first_line + blocks[0].lines <= oldest_line
        ) and len(blocks) > 1:
            blocks.popleft()

    # -- what is retained ------------------------------------------------------

    def _window(self, current: str, current_lost: int) -> _Window:
        self._seal()
        end_line = self._sealed_lines + bool(current)
        end_byte = self._sealed_bytes + current_lost + byte_length(current)
        oldest_byte = end_byte - self._max_bytes
        if oldest_byte > self._sealed_bytes:  # only the end of the line being written
            kept = byte_length(newest(current, self._max_bytes))
            lost = end_byte - self._sealed_bytes - kept
            return _Window(self._sealed_lines, lost, end_byte - kept)
        by_bytes = self._from_byte(oldest_byte)
        oldest_line = end_line - self._max_lines
        if oldest_line <= by_bytes.first_line:
            return by_bytes
        return _Window(oldest_line, 0, self._byte_of(oldest_line))

    def _from_byte(self, byte: int) -> _Window:
        """Find the line that ``byte`` falls into and how much of it is cut."""
        if byte <= 0:
            return _Window(self._origin_line, 0, 0)
        if byte == self._sealed_bytes:
            return _Window(self._sealed_lines, 0, byte)
        block = next(b for b in self._blocks if byte < b.first_byte + b.size)
        at = max(0, byte - block.first_byte)
        data = block.text.encode()
        while data[at] & 0xC0 == 0x80:
            at += 1
        line = block.first_line + data.count(b"\n", 0, at)
        begin = data.rfind(b"\n", 0, at) + 1
        if at > begin and data[at] == 0x0A:  # nothing is left of this line but its end
            at += 1
            line += 1
            begin = at
        return _Window(line, at - begin, block.first_byte + at)

    def _byte_of(self, line: int) -> int:
        if line >= self._sealed_lines:
            return self._sealed_bytes
        block = next(b for b in self._blocks if line < b.first_line + b.lines)
        count = line - block.first_line
        rest = block.text.split("\n", count)[-1]
        return block.first_byte + block.size - byte_length(rest)

    def _lines(self, begin: int, end: int) -> list[str]:
        """Return the finished lines ``begin`` to ``end`` (absolute, end excluded)."""
        found: list[list[str]] = []
        for block in reversed(self._blocks):
            if block.first_line >= end:
                continue
            if block.first_line + block.lines <= begin:
                break
            lines = block.text.split("\n")
            first = max(0, begin - block.first_line)
            last = min(block.lines, end - block.first_line)
            found.append(lines[first:last])
        return [line for lines in reversed(found) for line in lines]

    def retained(self, current: str, current_lost: int = 0) -> tuple[int, int, int]:
        """Return retained lines, dropped lines, dropped bytes."""
        window = self._window(current, current_lost)
        total = self._sealed_lines + bool(current) - window.first_line
        return total, window.first_line, window.first_byte

    # -- reading ---------------------------------------------------------------

    def page(
        self, offset: int, count: int, max_bytes: int, current: str, current_lost: int = 0
    ) -> ReadPage:
        """Return ``count`` lines above the newest ``offset``, in reading order."""
        window = self._window(current, current_lost)
        end_line = self._sealed_lines + bool(current)
        total = end_line - window.first_line
        dropped = window.first_byte > 0 or self._origin_line > 0
        if offset >= total:
            return ReadPage(
                "", total, offset, offset, dropped, window.first_line, window.first_byte
            )
        end = end_line - offset
        begin = max(window.first_line, end - count)
        lines = self._lines(begin, min(end, self._sealed_lines))
        if end > self._sealed_lines:
            lines.append(current)
        missing = dropped and offset + count > total
        if begin == window.first_line and window.cut:
            missing = True
            if begin < self._sealed_lines:
                lines[0] = newest(lines[0], byte_length(lines[0]) - window.cut)
            else:
                lines[0] = newest(current, self._max_bytes)
        text = "\n".join(lines)
        kept = newest(text, max_bytes)
        pieces = len(lines) if len(kept) == len(text) else (kept.count("\n") + 1 if kept else 0)
        return ReadPage(
            kept,
            total,
            offset,
            offset + pieces,
            missing or len(kept) < len(text),
            window.first_line,
            window.first_byte,
        )

    def tail(
        self, next_line: int, lines: int, max_bytes: int, current: str, current_lost: int = 0
    ) -> TailPage:
        """Return the newest ``lines`` finished lines from ``next_line`` on."""
        window = self._window(current, current_lost)
        end = self._sealed_lines
        if next_line > end:  # a cursor of another life of this terminal
            return TailPage("", 0, True, end)
        first = min(window.first_line, end)
        begin = max(next_line, first, end - lines)
        missing = begin > next_line
        found = self._lines(begin, end)
        if found and begin == window.first_line and window.cut:
            missing = True
            found[0] = newest(found[0], byte_length(found[0]) - window.cut)
        text = "\n".join(found)
        if byte_length(text) > max_bytes:
            missing = True
            text, found = _whole_lines(found, max_bytes)
        return TailPage(text, len(found), missing, end)


def _whole_lines(lines: list[str], max_bytes: int) -> tuple[str, list[str]]:
    """Keep the newest whole lines of too many; at least the end of the last one."""
    kept = 0
    room = max_bytes
    while (room := room - byte_length(lines[-1 - kept]) - bool(kept)) >= 0:
        kept += 1
    if kept == 0:
        cut = newest(lines[-1], max_bytes)
        return cut, [cut]
    found = lines[-kept:]
    return "\n".join(found), found
