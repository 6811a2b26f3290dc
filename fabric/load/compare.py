"""Two results side by side: which figures moved, and whether for the worse.

A figure counts as worse when it moved the wrong way by more than ``allowed`` of the first
one's value and by more than what a clock or a counter cannot tell apart (``_FLOOR``). Two
runs are noisy: repeat them before believing a small difference.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fabric.load.marks import FIGURES

MORE_IS_BETTER = frozenset({"turns", "rate", "opens_rate"})
NO_JUDGEMENT = frozenset({"turns", "client_busy", "max_ms"})
_FLOOR = {"errors": 0.0, "left_behind": 0.0, "error_share": 0.0}
_FLOOR_ELSE = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of both; ``change`` is relative, None where it cannot be told."""

    figure: str
    before: float | None
    after: float | None
    change: float | None
    worse: bool


def compare(before: Mapping[str, Any], after: Mapping[str, Any], allowed: float) -> tuple[Row, ...]:
    """Compare the figures of two results; ``allowed`` is a share, 0.1 is 10 %."""
    return tuple(
        _row(name, before["figures"].get(name), after["figures"].get(name), allowed)
        for name in FIGURES
    )


def _row(name: str, before: float | None, after: float | None, allowed: float) -> Row:
    if before is None or after is None:
        return Row(name, before, after, None, worse=False)
    moved = after - before
    change = moved / before if before else None
    against = -moved if name in MORE_IS_BETTER else moved
    floor = _FLOOR.get(name, _FLOOR_ELSE if name.endswith("_ms") else 0.0)
    worse = name not in NO_JUDGEMENT and against > floor and against > allowed * abs(before)
    return Row(name, before, after, change, worse)


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Say in what the two runs were not alike, since then their figures may not be either."""
    rows = []
    for part in ("plan", "machine"):
        first, second = dict(before[part]), dict(after[part])
        for row in (first, second):
            row.pop("title", None)
        for name in sorted({*first, *second}):
            if first.get(name) != second.get(name):
                rows.append(f"{part}.{name}: {first.get(name)!r} / {second.get(name)!r}")
    return rows
