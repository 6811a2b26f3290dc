"""How fast terminal bytes become text, pages, captures and screens, in one process.

    python -m tests.load.bench_text [--megabytes 16] [--rounds 5]

Prints medians of CPU time, so other programs on the machine matter little. Exits with 1
when a figure misses its goal. The goals: plain lines 40 MB/s, coloured lines 15 MB/s, a
screen 5 MB behind in 100 ms.
"""

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from workers.text.bytelog import ByteLog
from workers.text.screen import ScreenView
from workers.text.transcript import Transcript

READ_BYTES = 65_536  # what a worker gets from a busy terminal at once
PLAIN_GOAL, COLOUR_GOAL, SCREEN_GOAL_MS = 40.0, 15.0, 100.0
WORDS = b"The quick brown fox jumps over the lazy dog and is away again 0123456789"


@dataclass(frozen=True)
class Stream:
    """One kind of output: a piece that repeats, and the least MB/s (0: no goal)."""

    name: str
    piece: bytes
    goal: float = 0.0


STREAMS = (
    Stream("plain lines", WORDS + b"\r\n", PLAIN_GOAL),
    Stream("numbers (seq)", b"1234567\r\n", PLAIN_GOAL),
    Stream("one endless line", WORDS, PLAIN_GOAL),
    Stream("wide characters", "日本語のテキスト éàü ─│ plain\r\n".encode()),
    Stream(
        "coloured lines (compiler)",
        b"\x1b[01m\x1b[Kmain.c:10:5:\x1b[m\x1b[K \x1b[01;35m\x1b[Kwarning: \x1b[m\x1b[K"
        b"unused variable that nobody asked for\r\n" + WORDS + b"\r\n",
        COLOUR_GOAL,
    ),
    Stream(
        "coloured lines (ls)",
        b"\x1b[0m\x1b[01;34mdirectory\x1b[0m  \x1b[01;32mprogram\x1b[0m  notes.txt\r\n",
        COLOUR_GOAL,
    ),
    Stream("progress bar", b"\r\x1b[Kprogress  55% [==========>         ] 12.3 MB/s"),
    Stream("overstrike", b"a\bab\bbc\bcd\bd\r\n"),
)


def transcript() -> Transcript:
    """A text view with the default bounds, and a send that follows it."""
    made = Transcript(nonce="n0", max_lines=10_000, max_bytes=4 << 20, carry_bytes=65_536)
    made.capture(262_144)
    return made


def cpu(call: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def feed(data: bytes) -> Transcript:
    """Feed as a worker does: a piece, then the question what stands after the mark."""
    made = transcript()
    made.feed(b"\x1b]133;C;n0\x07")
    for begin in range(0, len(data), READ_BYTES):
        made.feed(data[begin : begin + READ_BYTES])
        _ = made.text_since_mark
    return made


def look(data: bytes) -> float:
    """CPU seconds to catch up with ``data`` and show the screen."""
    fd = os.memfd_create("bench", os.MFD_CLOEXEC)
    log = ByteLog(fd, 8 << 20)
    os.close(fd)
    view = ScreenView(40, 160)
    log.append(b"$ flood\r\n")
    view.snapshot(log)
    log.append(data)
    seconds = cpu(lambda: view.snapshot(log))
    log.close()
    return seconds


def main() -> int:
    """Measure everything; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    missed = []

    def row(name: str, value: float, unit: str, goal: float, good: bool) -> None:
        wanted = f"goal {goal:g}" if goal else ""
        sys.stdout.write(f"{name:34} {value:9.1f} {unit:5} {wanted}\n")
        if goal and not good:
            missed.append(name)

    for stream in STREAMS:
        data = stream.piece * (options.megabytes * 1_000_000 // len(stream.piece))
        if not stream.goal:
            data = data[: len(data) // 4]
        times = [cpu(lambda data=data: feed(data)) for _ in range(options.rounds)]  # type: ignore[misc]
        speed = len(data) / statistics.median(times) / 1e6
        row(f"text: {stream.name}", speed, "MB/s", stream.goal, speed >= stream.goal)
    full = feed((WORDS + b"\r\n") * 100_000)
    for name, call in (
        ("page: newest 500 lines", lambda: full.page(0, 500, 262_144)),
        ("page: oldest 500 lines", lambda: full.page(9_500, 500, 262_144)),
        ("tail: 200 lines", lambda: full.tail(full.next_line - 1000, 200, 262_144)),
    ):
        times = [cpu(call) for _ in range(20 * options.rounds)]
        row(name, statistics.median(times) * 1e3, "ms", 0, True)
    for stream in STREAMS:
        data = stream.piece * (5_000_000 // len(stream.piece))
        times = [look(data) for _ in range(options.rounds)]
        value = statistics.median(times) * 1e3
        goal = SCREEN_GOAL_MS if stream.goal else 0
        row(f"screen, 5 MB behind: {stream.name}", value, "ms", goal, value <= goal)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    row("peak memory of this process", peak, "MB", 0, True)
    if missed:
        sys.stdout.write(f"missed: {', '.join(missed)}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
