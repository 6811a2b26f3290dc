"""Numbers and how they are shown: medians, p99, memory of processes, the machine."""

import json
import os
import platform
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("ray", "grpcio", "protobuf", "uvloop", "msgpack")


def p50(times: Iterable[float]) -> float:
    """The median."""
    return statistics.median(times)


def p99(times: Iterable[float]) -> float:
    """The 99th percentile, nearest rank."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, round(len(ordered) * 0.99))]


def ms(seconds: float) -> float:
    """Seconds as milliseconds, rounded for people."""
    return round(seconds * 1e3, 3)


async def timed(count: int, call: Callable[[], Awaitable[object]]) -> list[float]:
    """Time ``count`` calls one after the other."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        await call()
        times.append(time.perf_counter() - start)
    return times


def pss_mb(pid: int) -> float:
    """The proportional set size of a process in MB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def processes(marker: str) -> list[int]:
    """Pids of live processes whose command line holds ``marker``."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if marker in line and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    model = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        **{name: version(name) for name in PACKAGES},
    }


class Report:
    """Rows of figures, printed as they come and dumped at the end."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []

    def row(self, what: str, limit: str = "", ok: bool | None = None, **figures: object) -> None:
        """Add and print one row; ``ok`` None means that it is only reported."""
        self.rows.append({"what": what, "limit": limit, "ok": ok, **figures})
        shown = "  ".join(f"{key} {value}" for key, value in figures.items())
        verdict = "" if ok is None else ("  ok" if ok else "  MISSED")
        print(f"{what:<46} {shown}{f'  (limit {limit})' if limit else ''}{verdict}", flush=True)

    def dump(self, path: str) -> None:
        """Write the rows and the machine as JSON."""
        Path(path).write_text(json.dumps({"machine": machine(), "rows": self.rows}, indent=1))

    @property
    def missed(self) -> int:
        """How many limits were missed."""
        return sum(row["ok"] is False for row in self.rows)
