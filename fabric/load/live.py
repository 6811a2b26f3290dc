"""How a run goes, on standard error: one line that is rewritten on a terminal, else a few lines."""

import time
from collections.abc import Callable
from typing import TextIO

from fabric.load.histogram import Histogram, summary
from fabric.load.plan import Plan
from fabric.load.tally import Window

PLAIN_EVERY_S = 5.0
REDRAW_EVERY_S = 0.5


class Live:
    """Fold windows of all client processes into one line. ``now`` is the clock, in seconds."""

    def __init__(
        self, plan: Plan, stream: TextIO, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._plan = plan
        self._stream = stream
        self._rewrite = stream.isatty()
        self._every_s = REDRAW_EVERY_S if self._rewrite else PLAIN_EVERY_S
        self._now = now
        self._said_at = now()
        self._recent: list[Window] = []
        self._errors = 0
        self._turns = 0
        self._drawn = False

    def say(self, text: str) -> None:
        """Say what is being done before there are figures."""
        if self._rewrite:
            self._draw(text)
        elif self._due():
            self._stream.write(text + "\n")
            self._stream.flush()

    def take(self, window: Window) -> None:
        """Take a window and say how things are, if it is time to."""
        self._recent.append(window)
        self._errors += window.errors.total()
        self._turns += window.turns.count
        if not self._due():
            return
        line = self.line()
        self._recent.clear()
        if self._rewrite:
            self._draw(line)
        else:
            self._stream.write(line + "\n")
            self._stream.flush()

    def line(self) -> str:
        """Describe what came since the last line."""
        windows = self._recent
        at = max((item.at_s + item.length_s for item in windows), default=0.0)
        seconds = len({round(item.at_s) for item in windows}) or 1
        turns = Histogram.sum_of(item.turns for item in windows)
        figures = summary(turns)
        phase = "warm-up" if at <= self._plan.warmup_s else "run"
        latest = [item for item in windows if item.at_s + item.length_s > at - 0.5]
        parts = [
            f"{at:6.0f}/{self._plan.duration_s:.0f} s {phase}",
            f"{turns.count / seconds:.1f} turns/s",
            f"p50 {_ms(figures['p50_ms'])} p99 {_ms(figures['p99_ms'])} ms",
            f"in work {sum(item.in_work for item in latest)}",
            f"waiting {sum(item.waiting for item in latest)}",
            f"turns {self._turns}",
            f"errors {self._errors}",
        ]
        return "  ".join(parts)

    def close(self) -> None:
        """Leave the line as it is."""
        if self._drawn:
            self._stream.write("\n")
            self._stream.flush()
            self._drawn = False

    def _due(self) -> bool:
        now = self._now()
        if now - self._said_at < self._every_s:
            return False
        self._said_at = now
        return True

    def _draw(self, text: str) -> None:
        self._stream.write(f"\r\x1b[2K{text}")
        self._stream.flush()
        self._drawn = True


def _ms(value: float | int | None) -> str:
    return "-" if value is None else f"{value:.1f}"
