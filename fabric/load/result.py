"""The result of a run as plain data: written, read again, and boiled down to figures.

``figures`` are the numbers that marks, comparisons and people look at; each is None where
the run could not know it. The file has a ``version``; another one is refused.
"""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fabric.core.errors import InvalidRequestError
from fabric.load.histogram import Histogram, summary
from fabric.load.marks import FIGURES, Verdict
from fabric.load.plan import Plan
from fabric.load.processes import Sample
from fabric.load.runner import Outcome
from fabric.load.tally import Window

VERSION = 1
KIND = "pty-fabric load result"
MB = 1_048_576
CORE_PACKAGES = ("pty-fabric", "ray", "grpcio", "uvloop", "protobuf")


def build(
    plan: Plan, outcome: Outcome, samples: list[Sample], load_before: float
) -> dict[str, Any]:
    """Make the result of a run; ``marks`` are added by ``judged``."""
    tally = outcome.tally
    counted_s = max(0.0, outcome.elapsed_s - plan.warmup_s)
    owners = {number: summary(item) for number, item in sorted(tally.total.owners.items())}
    return {
        "kind": KIND,
        "version": VERSION,
        "title": plan.title,
        "plan": asdict(plan),
        "machine": machine(load_before),
        "began_at": outcome.began_at,
        "elapsed_s": round(outcome.elapsed_s, 3),
        "counted_s": round(counted_s, 3),
        "interrupted": outcome.interrupted,
        "sessions": outcome.sessions,
        "failures": outcome.failures,
        "figures": figures(plan, outcome, samples, counted_s),
        "turns": _described(tally.total.turns),
        "service": _described(tally.total.service),
        "calls": {name: summary(item) for name, item in sorted(tally.total.calls.items())},
        "setup_calls": {name: summary(item) for name, item in sorted(tally.setup.calls.items())},
        "errors": dict(tally.total.errors.most_common()),
        "setup_errors": dict(tally.setup.errors.most_common()),
        "owners": owners,
        "series": [_row(window) for window in tally.series],
        "processes": [sample.to_plain() for sample in samples],
        "marks": [],
    }


def _described(histogram: Histogram) -> dict[str, Any]:
    return {**summary(histogram), "histogram": histogram.to_plain()}


def _row(window: Window) -> dict[str, Any]:
    row = summary(window.turns)
    return {
        "at_s": window.at_s,
        "length_s": window.length_s,
        "counted": window.counted,
        **{name: row[name] for name in ("count", "p50_ms", "p90_ms", "p99_ms", "max_ms")},
        "service_p99_ms": summary(window.service)["p99_ms"],
        "errors": window.errors.total(),
        "output_bytes": window.output_bytes,
        "in_work": window.in_work,
        "waiting": window.waiting,
    }


def figures(
    plan: Plan, outcome: Outcome, samples: list[Sample], counted_s: float
) -> dict[str, float | None]:
    """Boil a run down to the numbers that marks are about."""
    total, setup = outcome.tally.total, outcome.tally.setup
    turns, service = summary(total.turns), summary(total.service)
    errors = total.errors.total() + setup.errors.total() + len(outcome.failures)
    opens = total.calls.get("open")
    found: dict[str, float | None] = {
        "turns": total.turns.count,
        "errors": errors,
        "error_share": errors / max(1, total.turns.count + errors),
        "rate": total.turns.count / counted_s if counted_s else None,
        "opens_rate": opens.count / counted_s if opens and counted_s else None,
        **{name: turns[name] for name in ("p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms")},
        "service_p50_ms": service["p50_ms"],
        "service_p99_ms": service["p99_ms"],
        "slowest_owner_ratio": slowest_ratio(total.owners),
        "left_behind": outcome.sessions_left + outcome.owners_left,
        "client_busy": outcome.busy,
        **_of_processes(plan, samples, outcome),
    }
    return {name: _rounded(found.get(name)) for name in FIGURES}


def slowest_ratio(owners: Mapping[int, Histogram]) -> float | None:
    """Divide the slowest owner's p99 by the median owner's; None below two owners."""
    tails = sorted(item.percentile(0.99) or 0.0 for item in owners.values())
    if len(tails) < 2:
        return None
    middle = tails[(len(tails) - 1) // 2]
    return tails[-1] / middle if middle else None


def _of_processes(plan: Plan, samples: list[Sample], outcome: Outcome) -> dict[str, float | None]:
    """Memory and descriptors over time, CPU for each turn of the whole run."""
    steady = [sample for sample in samples if sample.at_s >= plan.warmup_s and sample.kinds]
    if not steady:
        return {}
    last, kinds = steady[-1], steady[-1].kinds
    each = [
        kinds[kind].pss / kinds[kind].count / MB for kind in ("worker", "shim") if kind in kinds
    ]
    found: dict[str, float | None] = {
        "session_pss_mb": sum(each) if len(each) == 2 else None,
        "gateway_pss_mb": kinds["gateway"].largest_pss / MB if "gateway" in kinds else None,
        "memory_growth": growth(steady, "pss"),
        "descriptor_growth": growth(steady, "descriptors"),
    }
    first = samples[0]
    turns = sum(
        window.turns.count
        for window in outcome.tally.series
        if first.at_s <= window.at_s <= last.at_s
    )
    if turns and last is not first:
        found["cpu_ms_per_turn"] = 1e3 * (last.total("cpu_s") - first.total("cpu_s")) / turns
        if "gateway" in kinds and "gateway" in first.kinds:
            spent = kinds["gateway"].cpu_s - first.kinds["gateway"].cpu_s
            found["gateway_cpu_ms_per_turn"] = 1e3 * spent / turns
    return found


def growth(samples: list[Sample], name: str) -> float | None:
    """Say how much the last quarter's mean lies above the third's; None below eight samples.

    Means of quarters, because single samples swing with what is open at the moment.
    """
    half = samples[len(samples) // 2 :]
    if len(half) < 4:
        return None
    early, late = half[: len(half) // 2], half[len(half) // 2 :]
    before = sum(item.total(name) for item in early) / len(early)
    after = sum(item.total(name) for item in late) / len(late)
    return after / before - 1 if before else None


def judged(result: dict[str, Any], verdicts: tuple[Verdict, ...]) -> dict[str, Any]:
    """Add the verdicts of marks; without marks a result has none."""
    rows = [
        {"mark": item.mark.text, "value": item.value, "passed": item.passed} for item in verdicts
    ]
    return {**result, "marks": rows}


def write(result: Mapping[str, Any], path: Path) -> None:
    """Write a result as JSON, whole or not at all. Raises: InvalidRequestError."""
    write_text(path, json.dumps(result, indent=1))


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises: InvalidRequestError."""
    spare = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        spare.write_text(text, encoding="utf-8")
        spare.replace(path)
    except OSError as error:
        raise InvalidRequestError(f"cannot write {path}: {error.strerror}") from error
    finally:
        spare.unlink(missing_ok=True)


def read(path: Path) -> dict[str, Any]:
    """Read a result. Raises: InvalidRequestError for anything else."""
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequestError(f"cannot read the result {path}: {error}") from error
    if not isinstance(row, dict) or row.get("kind") != KIND:
        raise InvalidRequestError(f"{path} is no result of fabric load")
    if row.get("version") != VERSION:
        raise InvalidRequestError(
            f"{path} has version {row.get('version')!r}, this program reads {VERSION}"
        )
    return row


def machine(load_before: float) -> dict[str, Any]:
    """Say what the run was made on; ``load_before`` is the load average at its start."""
    model = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    found = {}
    for name in CORE_PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # a client's machine need not have them all
            continue
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": round(load_before, 2),
        "packages": found,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
