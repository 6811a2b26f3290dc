"""The fabric's processes on this machine: memory, descriptors and CPU, by kind.

Linux only; elsewhere nothing is found, and the report says so. PSS (each shared page divided
by its sharers) is what a process adds to a machine; RSS counts shared pages in full.
"""

import contextlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KINDS = ("gateway", "worker", "shim", "registry", "node", "ray", "supervisor")
_PROC = Path("/proc")
_SIZES = re.compile(r"^(Rss|Pss):\s+(\d+) kB", re.MULTILINE)  # not SwapPss
_RAY = ("gcs_server", "raylet", "fabric.actors.raynode", "idle_agent.py", "default_worker.py")


@dataclass(frozen=True, slots=True)
class Found:
    """One process and what it is."""

    pid: int
    kind: str


@dataclass(slots=True)
class Use:
    """What the processes of one kind use: bytes, descriptors, CPU seconds so far."""

    count: int = 0
    rss: int = 0
    pss: int = 0
    largest_pss: int = 0
    descriptors: int = 0
    cpu_s: float = 0.0


@dataclass(slots=True)
class Sample:
    """All kinds at one time, in seconds from the start of the run."""

    at_s: float
    kinds: dict[str, Use] = field(default_factory=dict)

    def total(self, name: str) -> float:
        """Add one figure up over the kinds."""
        return float(sum(getattr(use, name) for use in self.kinds.values()))

    def to_plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        kinds = {
            kind: {name: getattr(use, name) for name in Use.__slots__}
            for kind, use in self.kinds.items()
        }
        return {"at_s": round(self.at_s, 3), "kinds": kinds}


def kind_of(line: str) -> str | None:
    """Say what a command line of the fabric's is; None for anything else."""
    if "fabric.cli serve" in line or "/fabric serve" in line:
        return "gateway"
    if "workers/shim/__main__.py" in line:
        return "shim"
    for name, kind in (
        ("SessionHost", "worker"),
        ("RegistryHost", "registry"),
        ("NodeHost", "node"),
    ):
        if line.startswith(f"ray::{name}"):
            return kind
    if any(name in line for name in _RAY):
        return "ray"
    return "supervisor" if "fabric.cli up" in line else None


def find(state_dir: Path, mark: str) -> list[Found]:
    """Find the processes of the fabric of a state folder by its name and its cluster's mark."""
    found = []
    folder = str(state_dir)
    signs = {f"FABRIC_STATE_DIR={folder}".encode()}
    if mark:
        signs.add(f"FABRIC_CLUSTER_MARK={mark}".encode())
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            kind = kind_of(line)
            if kind is None:
                continue
            ours = folder in line and kind in ("gateway", "shim", "supervisor")
            if ours or signs & set((entry / "environ").read_bytes().split(b"\0")):
                found.append(Found(int(entry.name), kind))
    return found


def use_of(pid: int, tick: int) -> Use | None:
    """Read what one process uses; None when it has gone."""
    folder = _PROC / str(pid)
    try:
        rollup = (folder / "smaps_rollup").read_text()
        facts = (folder / "stat").read_text().rpartition(")")[2].split()
        descriptors = sum(1 for _ in (folder / "fd").iterdir())
    except OSError:
        return None
    sizes = {name: 1024 * int(size) for name, size in _SIZES.findall(rollup)}
    cpu_s = (int(facts[11]) + int(facts[12])) / tick
    pss = sizes.get("Pss", 0)
    return Use(1, sizes.get("Rss", 0), pss, pss, descriptors, cpu_s)


class Watcher:
    """Samples of a fabric's processes, at most ``most`` of them: then every second one goes.

    The CPU of a kind is the sum of what was seen to be spent, so that processes that end
    take nothing back; what one spends after its last sample is not seen.
    """

    def __init__(self, list_them: Callable[[], list[Found]], most: int = 1000) -> None:
        self._list = list_them
        self._most = most
        self._spent: dict[str, float] = {}
        self._last: dict[int, float] = {}
        self.samples: list[Sample] = []

    def look(self, began: float) -> None:
        """Take a sample; ``began`` is the start of the run on the monotonic clock.

        Blocks for about a millisecond a process.
        """
        sample, tick = Sample(time.monotonic() - began), os.sysconf("SC_CLK_TCK")
        last, self._last = self._last, {}
        for process in self._list():
            use = use_of(process.pid, tick)
            if use is None:
                continue
            whole = sample.kinds.setdefault(process.kind, Use())
            whole.count += 1
            whole.rss += use.rss
            whole.pss += use.pss
            whole.largest_pss = max(whole.largest_pss, use.pss)
            whole.descriptors += use.descriptors
            self._last[process.pid] = use.cpu_s
            before = last.get(process.pid, 0.0)
            spent = use.cpu_s - before if use.cpu_s >= before else use.cpu_s
            self._spent[process.kind] = self._spent.get(process.kind, 0.0) + spent
        for kind, whole in sample.kinds.items():
            whole.cpu_s = self._spent[kind]
        self.samples.append(sample)
        if len(self.samples) > self._most:
            del self.samples[1:-1:2]
