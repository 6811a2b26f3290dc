"""What turns and calls came to, in windows of time that can be sent and put together.

A *turn* is one round of a scenario, counted from its intended start; the *calls* inside are
counted as they were made. A window holds what ended in one second of one client process.
The series keeps at most ``MAX_WINDOWS``; a longer run has its windows merged in pairs, so
memory is bounded whatever its length.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from fabric.load.histogram import Histogram

MAX_WINDOWS = 600
MAX_ERROR_KINDS = 64
OTHER = "OTHER"


@dataclass(slots=True)
class Window:
    """What ended within ``length_s`` from ``at_s`` on, of turns that count (or do not)."""

    at_s: float
    length_s: float = 1.0
    counted: bool = True
    turns: Histogram = field(default_factory=Histogram)
    service: Histogram = field(default_factory=Histogram)
    calls: dict[str, Histogram] = field(default_factory=dict)
    owners: dict[int, Histogram] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    output_bytes: int = 0
    in_work: int = 0
    waiting: int = 0

    def turn(self, owner: int, latency_s: float, service_s: float) -> None:
        """Count a turn that went well."""
        self.turns.add(latency_s)
        self.service.add(service_s)
        self.owners.setdefault(owner, Histogram()).add(latency_s)

    def call(self, name: str, seconds: float) -> None:
        """Count a call that went well."""
        self.calls.setdefault(name, Histogram()).add(seconds)

    def error(self, where: str, reason: str) -> None:
        """Count a failure by place and reason; kinds beyond a bound are put together."""
        key = f"{where}: {reason}"
        if key not in self.errors and len(self.errors) >= MAX_ERROR_KINDS:
            key = f"{where}: {OTHER}"
        self.errors[key] += 1

    def merge(self, other: "Window") -> None:
        """Add another window; the times stay."""
        self.turns.merge(other.turns)
        self.service.merge(other.service)
        for mine, theirs in ((self.calls, other.calls), (self.owners, other.owners)):
            _merge(mine, theirs)
        self.errors.update(other.errors)
        self.output_bytes += other.output_bytes
        self.in_work += other.in_work
        self.waiting += other.waiting

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing was counted."""
        return not (self.turns.count or self.calls or self.errors)

    def to_plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "at_s": self.at_s,
            "length_s": self.length_s,
            "counted": self.counted,
            "turns": self.turns.to_plain(),
            "service": self.service.to_plain(),
            "calls": {name: item.to_plain() for name, item in self.calls.items()},
            "owners": {str(number): item.to_plain() for number, item in self.owners.items()},
            "errors": dict(self.errors),
            "output_bytes": self.output_bytes,
            "in_work": self.in_work,
            "waiting": self.waiting,
        }

    @classmethod
    def from_plain(cls, row: Mapping[str, Any]) -> Self:
        """Return what ``to_plain`` was made from. Raises: KeyError, TypeError, ValueError."""
        read = Histogram.from_plain
        return cls(
            at_s=float(row["at_s"]),
            length_s=float(row["length_s"]),
            counted=bool(row["counted"]),
            turns=read(row["turns"]),
            service=read(row["service"]),
            calls={str(name): read(item) for name, item in row["calls"].items()},
            owners={int(number): read(item) for number, item in row["owners"].items()},
            errors=Counter({str(key): int(count) for key, count in row["errors"].items()}),
            output_bytes=int(row["output_bytes"]),
            in_work=int(row["in_work"]),
            waiting=int(row["waiting"]),
        )


def _merge(mine: dict[Any, Histogram], theirs: Mapping[Any, Histogram]) -> None:
    for key, item in theirs.items():
        mine.setdefault(key, Histogram()).merge(item)


class Tally:
    """The whole run: totals of what counts, and a series of windows of everything."""

    def __init__(self, most: int = MAX_WINDOWS) -> None:
        self.total = Window(0.0)
        self.setup = Window(0.0)
        self._most = most
        self._length_s = 1
        self._windows: dict[int, Window] = {}

    def take(self, window: Window) -> None:
        """Add a window of one second of one process."""
        if window.counted:
            self.total.merge(window)
        number = int(window.at_s // self._length_s)
        while number >= self._most:
            self._halve()
            number = int(window.at_s // self._length_s)
        self._place(number, window)

    def _place(self, number: int, window: Window) -> None:
        held = self._windows.get(number)
        if held is None:
            held = Window(float(number * self._length_s), float(self._length_s), window.counted)
            self._windows[number] = held
        held.counted = held.counted and window.counted
        slim = Window(0.0)  # a series holds no owners and no calls: they would not be bounded
        slim.turns, slim.service, slim.errors = window.turns, window.service, window.errors
        slim.output_bytes, slim.in_work = window.output_bytes, window.in_work
        slim.waiting = window.waiting
        held.merge(slim)

    def _halve(self) -> None:
        old, self._windows = self._windows, {}
        self._length_s *= 2
        for number in sorted(old):
            self._place(number // 2, old[number])

    @property
    def series(self) -> Iterable[Window]:
        """The windows in the order of time."""
        return [self._windows[number] for number in sorted(self._windows)]
