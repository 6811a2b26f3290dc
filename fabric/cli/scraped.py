"""Metrics as another process served them: parsed, and two scrapes held against each other.

A counter only says something as a difference, and a histogram's percentile is a guess within
a bucket: the latencies in it are taken as evenly spread, as Prometheus does. A counter that
went back has started anew with its process, so what it shows now is what came since.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fabric.core.errors import InvalidRequestError

_LINE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Scrape:
    """Every row at one time, in seconds of a monotonic clock."""

    at: float = 0.0
    rows: Mapping[str, Mapping[Labels, float]] = field(default_factory=dict)

    def of(self, name: str, **where: str) -> Iterator[tuple[dict[str, str], float]]:
        """Yield labels and value of a metric's rows with these label values."""
        for labels, value in self.rows.get(name, {}).items():
            found = dict(labels)
            if all(found.get(key) == wanted for key, wanted in where.items()):
                yield found, value

    def total(self, name: str, **where: str) -> float | None:
        """Add a metric's rows up; None when there are none."""
        values = [value for _, value in self.of(name, **where)]
        return sum(values) if values else None


def parse(text: str, at: float) -> Scrape:
    """Read the Prometheus text format. Raises: InvalidRequestError."""
    rows: dict[str, dict[Labels, float]] = {}
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        found = _LINE.match(line)
        if found is None:
            raise InvalidRequestError(f"no metric: {line[:100]!r}")
        labels = tuple(
            (key, re.sub(r"\\.", lambda hit: _ESCAPES.get(hit[0], hit[0]), value))
            for key, value in _LABEL.findall(found[2] or "")
        )
        try:
            rows.setdefault(found[1], {})[labels] = float(found[3])
        except ValueError as error:
            raise InvalidRequestError(f"no number: {line[:100]!r}") from error
    return Scrape(at, rows)


def grown(before: Scrape, after: Scrape, name: str) -> dict[Labels, float]:
    """Return by how much each row of a counter has grown."""
    old = before.rows.get(name, {})
    found = {}
    for labels, value in after.rows.get(name, {}).items():
        was = old.get(labels, 0.0)
        found[labels] = value - was if value >= was else value
    return found


def rate(before: Scrape, after: Scrape, name: str, **where: str) -> float:
    """Return a counter's growth in a second, over the rows with these label values."""
    seconds = max(1e-9, after.at - before.at)
    return (
        sum(
            value
            for labels, value in grown(before, after, name).items()
            if all(dict(labels).get(key) == wanted for key, wanted in where.items())
        )
        / seconds
    )


def quantile(before: Scrape, after: Scrape, name: str, share: float, **where: str) -> float | None:
    """Return a percentile of what a histogram took between two scrapes; None for nothing."""
    bounds: dict[float, float] = {}
    for labels, value in grown(before, after, f"{name}_bucket").items():
        found = dict(labels)
        if all(found.get(key) == wanted for key, wanted in where.items()):
            bound = float(found.get("le", "nan"))
            bounds[bound] = bounds.get(bound, 0.0) + value
    ordered = sorted(bounds.items())
    if not ordered or ordered[-1][1] <= 0:
        return None
    wanted, low, seen = share * ordered[-1][1], 0.0, 0.0
    for bound, count in ordered:
        if count >= wanted:
            if bound == float("inf"):
                return low  # all that is known: above the last bound
            within = (wanted - seen) / (count - seen) if count > seen else 0.0
            return low + (bound - low) * within
        low, seen = bound, count
    return low
