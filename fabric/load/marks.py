"""Pass marks: limits on the figures of a result, as rows of a TOML table.

A mark is ``<figure>_max`` or ``<figure>_min`` with a number; the figures are those of
``fabric.load.result.figures``. A figure that the run could not measure fails its mark: what
was not seen is not known to be good.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fabric.core.errors import InvalidRequestError

FIGURES = {
    "turns": "turns that were counted",
    "errors": "turns and calls that failed, and wrong output",
    "error_share": "errors divided by turns and errors",
    "rate": "turns a second",
    "opens_rate": "opens a second",
    "p50_ms": "median latency of a turn from its intended start",
    "p90_ms": "90th percentile of the same",
    "p99_ms": "99th percentile of the same",
    "p999_ms": "99.9th percentile of the same",
    "max_ms": "the slowest turn",
    "slowest_owner_ratio": "the slowest owner's p99 divided by the median owner's",
    "service_p50_ms": "median time of a turn once it had begun",
    "service_p99_ms": "99th percentile of the same",
    "session_pss_mb": "PSS of one session's worker and shim",
    "gateway_pss_mb": "PSS of the largest gateway",
    "memory_growth": "growth of the fabric's PSS over the last half, 0.1 is 10 %",
    "descriptor_growth": "growth of the fabric's descriptors over the last half",
    "cpu_ms_per_turn": "CPU of all processes of the fabric for one turn",
    "gateway_cpu_ms_per_turn": "CPU of the gateways for one turn",
    "left_behind": "owners and sessions that could not be released",
    "client_busy": "share of a core that the busiest client process used",
}


@dataclass(frozen=True, slots=True)
class Mark:
    """One limit."""

    figure: str
    least: bool
    limit: float

    @property
    def text(self) -> str:
        """The limit as people write it."""
        return f"{self.figure} {'>=' if self.least else '<='} {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A mark and what was found; ``value`` None was not measured."""

    mark: Mark
    value: float | None

    @property
    def passed(self) -> bool:
        """Tell whether the limit holds."""
        if self.value is None:
            return False
        return self.value >= self.mark.limit if self.mark.least else self.value <= self.mark.limit


def parse_marks(row: Mapping[str, Any]) -> tuple[Mark, ...]:
    """Read the rows of a table. Raises: InvalidRequestError for an unknown figure."""
    marks = []
    for name, limit in row.items():
        figure, _, side = name.rpartition("_")
        if side not in ("max", "min") or figure not in FIGURES:
            known = ", ".join(FIGURES)
            raise InvalidRequestError(
                f"marks.{name} is not known; a figure with _max or _min, figures: {known}",
                field=name,
            )
        if isinstance(limit, bool) or not isinstance(limit, int | float):
            raise InvalidRequestError(f"marks.{name} must be a number", field=name)
        marks.append(Mark(figure, side == "min", float(limit)))
    return tuple(marks)


def judge(marks: tuple[Mark, ...], figures: Mapping[str, float | None]) -> tuple[Verdict, ...]:
    """Hold every mark against the figures."""
    return tuple(Verdict(mark, figures.get(mark.figure)) for mark in marks)
