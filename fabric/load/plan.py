"""What a load run does: a frozen value, checked at once, from a TOML file and flags."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from fabric.core.errors import InvalidRequestError
from fabric.load.marks import Mark, parse_marks
from fabric.load.schedule import Arrival

SCENARIOS = ("echo", "repl", "build", "task", "churn", "human")
_MODES = ("", "read-only", "workspace-write", "danger-full-access")
_BOUNDS: dict[str, tuple[float, float]] = {
    "owners": (1, 4096), "sessions": (1, 256), "processes": (1, 64), "think_s": (0, 3600),
    "pace_s": (0, 3600), "rate": (0, 1e6), "duration_s": (0.1, 86_400), "warmup_s": (0, 86_400),
    "ramp_s": (0, 86_400), "turns": (0, 10**9), "open_at_once": (1, 64), "grace_s": (0.1, 600),
    "lease_s": (5, 86_400), "backlog": (1, 10**6), "build_lines": (1, 10**7),
    "task_s": (0.05, 3600), "pollers": (0, 16), "sample_s": (0.5, 3600), "seed": (0, 2**31),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """One run. Times are in seconds.

    ``owners`` times ``sessions`` users run ``scenarios`` by weight. A closed loop has
    ``think_s`` between a user's turns, or with ``pace_s`` a fixed beat; ``rate`` above 0
    makes an open loop of so many turns a second over all users. The run ends after
    ``duration_s`` or ``turns`` (0: unbounded) turns; what ends in the first ``warmup_s``
    is not counted. ``backlog`` bounds the turns that wait for busy sessions of an open loop.
    """

    title: str = ""
    owners: int = 4
    sessions: int = 1
    scenarios: dict[str, int] = field(default_factory=lambda: {"echo": 1})
    think_s: float = 0.0
    pace_s: float = 0.0
    rate: float = 0.0
    spacing: Arrival = Arrival.POISSON
    duration_s: float = 30.0
    warmup_s: float = 3.0
    ramp_s: float = 0.0
    turns: int = 0
    processes: int = 1
    open_at_once: int = 4
    grace_s: float = 10.0
    lease_s: float = 60.0
    mode: str = ""
    backlog: int = 10_000
    build_lines: int = 20_000
    task_s: float = 2.0
    pollers: int = 1
    sample_s: float = 5.0
    seed: int = 1

    def __post_init__(self) -> None:
        """Check ranges and relations. Raises: InvalidRequestError."""
        for name, (least, most) in _BOUNDS.items():
            value = getattr(self, name)
            if not least <= value <= most:
                raise _wrong(name, value, f"must lie between {least:g} and {most:g}")
        if self.mode not in _MODES:
            raise _wrong("mode", self.mode, f"must be one of {', '.join(_MODES[1:])}")
        unknown = set(self.scenarios) - set(SCENARIOS)
        if unknown or not self.scenarios or min(self.scenarios.values()) < 1:
            raise _wrong("scenarios", self.scenarios, f"name=weight of {', '.join(SCENARIOS)}")
        if self.warmup_s >= self.duration_s:
            raise _wrong("warmup_s", self.warmup_s, "must be below duration_s: nothing would count")
        if self.rate and (self.think_s or self.pace_s):
            raise _wrong("rate", self.rate, "an open loop has no think_s and no pace_s")
        if self.pace_s and self.think_s:
            raise _wrong("pace_s", self.pace_s, "is instead of think_s, not beside it")
        if self.processes > self.owners:
            raise _wrong("processes", self.processes, "must not exceed owners")

    @property
    def users(self) -> int:
        """How many sessions are driven at once."""
        return self.owners * self.sessions


def _wrong(name: str, value: object, rule: str) -> InvalidRequestError:
    return InvalidRequestError(f"load.{name} = {value!r}: {rule}", field=name)


def plan_of(row: Mapping[str, Any], base: Plan | None = None) -> Plan:
    """Put given values over a plan's. Raises: InvalidRequestError naming the wrong one."""
    kinds = {item.name: item.type for item in fields(Plan)}
    changes: dict[str, Any] = {}
    for name, value in row.items():
        if name not in kinds:
            known = ", ".join(kinds)
            raise InvalidRequestError(f"load.{name} is not known; known are {known}", field=name)
        changes[name] = _typed(name, kinds[name], value)
    return replace(base or Plan(), **changes)


def _typed(name: str, kind: Any, value: Any) -> Any:
    if name == "scenarios":
        if isinstance(value, str):
            value = {value: 1}
        good = isinstance(value, dict) and all(type(item) is int for item in value.values())
        if not good:
            raise _wrong(name, value, "must read name = weight")
        return dict(value)
    if name == "spacing":
        try:
            return Arrival(value)
        except ValueError as error:
            raise _wrong(name, value, f"must be one of {', '.join(Arrival)}") from error
    if kind is float and type(value) in (int, float):
        return float(value)
    if type(value) is not kind:
        raise _wrong(name, value, f"must be of type {kind.__name__}")
    return value


def read_plan(path: Path) -> tuple[Plan, tuple[Mark, ...]]:
    """Read ``[load]`` and ``[marks]`` of a TOML file. Raises: InvalidRequestError."""
    try:
        rows = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequestError(f"cannot read the plan {path}: {error}") from error
    unknown = set(rows) - {"load", "marks"}
    if unknown:
        raise InvalidRequestError(f"{path}: unknown table {min(unknown)}; [load] and [marks]")
    return plan_of(rows.get("load", {})), parse_marks(rows.get("marks", {}))
