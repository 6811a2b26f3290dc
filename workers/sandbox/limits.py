"""Limit what one session takes: by a cgroup of its own, else by resource limits.

A cgroup (v2) holds for the whole tree of a session, weighs CPU against other sessions, and
tells an out-of-memory kill from any other. It needs a part of the hierarchy that the service
may divide: its own cgroup, if the controllers can be handed on from there, or the one above
when the service was started in a leaf made for that (``DelegateSubgroup=``, or a folder named
like ``LEAVES``). A cgroup that holds processes cannot hand controllers on; moving strangers
out of the way is not ours to do, so such a node is reported as not delegated.

Without it, resource limits are what is left: they hold for each process, not for the tree,
there is none for CPU weight, and one for the number of processes counts per uid, so it is set
only where the session has a uid of its own. What is in force is reported by name.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from fabric.core.model import OpenSpec
from fabric.core.settings import SandboxSettings

LEAVES = ("main", "service", "supervisor", "init")
CONTROLLERS = {"memory": "memory", "pids": "pids", "cpu_weight": "cpu"}
MAX_CPU_WEIGHT = 10_000
OPEN_FILES = 65_536
OUT_OF_MEMORY = "oom"
_MOUNTINFO, _OWN = Path("/proc/self/mountinfo"), Path("/proc/self/cgroup")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one session may take; 0 means no limit. Memory is in bytes."""

    memory: int = 0
    pids: int = 0
    cpu_weight: int = 0

    @classmethod
    def of(cls, settings: SandboxSettings, spec: OpenSpec) -> "Limits":
        """Take the limits of the owner's policy, and the node's where it names none."""
        memory, pids, weight = (
            own if own is not None else default
            for own, default in (
                (spec.memory_max_bytes, settings.memory_max_bytes),
                (spec.pids_max, settings.pids_max),
                (spec.cpu_weight, settings.cpu_weight),
            )
        )
        return cls(memory, pids, min(weight, MAX_CPU_WEIGHT))

    @property
    def wanted(self) -> tuple[str, ...]:
        """Name the limits that are set."""
        return tuple(name for name in CONTROLLERS if getattr(self, name))


@dataclass(frozen=True, slots=True)
class InForce:
    """What holds for a session: names of limits, by which means, and what could not be met."""

    by: str  # cgroup, rlimit, none
    names: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()


def own_cgroup(mountinfo: str, own: str) -> Path | None:
    """Find the folder of the caller's v2 cgroup from the two files of ``/proc/self``."""
    path = next((row[3:] for row in own.splitlines() if row.startswith("0::/")), None)
    if path is None:
        return None
    for row in mountinfo.splitlines():
        fields, _, kind = row.partition(" - ")
        words = fields.split()
        if kind.split(" ", 1)[0] != "cgroup2" or len(words) < 5:
            continue
        root, mount = words[3], words[4]
        if root != "/":  # mounted from below the hierarchy's root
            if path != root and not path.startswith(root + "/"):
                continue
            path = path[len(root) :] or "/"
        return Path(mount) / path.lstrip("/")
    return None


class SessionCgroup:
    """The cgroup of one session. It is made for one session and never used for another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def procs(self) -> str:
        """Name the file by which a process joins: ``0`` written to it means the writer."""
        return str(self.folder / "cgroup.procs")

    def was_out_of_memory(self) -> bool:
        """Tell whether the kernel killed a process here for want of memory."""
        return self._kills() > 0

    def kill(self) -> bool:
        """Kill every process in it at once; False where the kernel (before 5.14) cannot."""
        try:
            (self.folder / "cgroup.kill").write_text("1", encoding="ascii")
        except OSError:
            return False
        return True

    def remove(self) -> bool:
        """Remove it; False while a process is left."""
        try:
            self.folder.rmdir()
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def _kills(self) -> int:
        try:
            rows = (self.folder / "memory.events").read_text(encoding="ascii").splitlines()
        except OSError:
            return 0
        return next((int(row.split()[1]) for row in rows if row.startswith("oom_kill ")), 0)


class Cgroups:
    """A part of the hierarchy that the service may divide among its sessions."""

    def __init__(self, base: Path, controllers: frozenset[str]) -> None:
        self.base = base
        self.controllers = controllers

    def create(self, name: str, limits: Limits) -> tuple[SessionCgroup, InForce]:
        """Make the cgroup of a session and set its limits.

        Raises: OSError when the kernel refuses; nothing is left of the attempt.
        """
        folder = self.base / f"fabric-{name}"
        folder.mkdir(exist_ok=True)
        try:
            met = [name for name in limits.wanted if CONTROLLERS[name] in self.controllers]
            for wanted in met:
                self._limit(folder, wanted, getattr(limits, wanted))
        except OSError:
            with contextlib.suppress(OSError):
                folder.rmdir()
            raise
        unmet = tuple(wanted for wanted in limits.wanted if wanted not in met)
        return SessionCgroup(folder), InForce("cgroup", tuple(met), unmet)

    def find(self, name: str) -> SessionCgroup | None:
        """Find the cgroup of a session that a worker before us made."""
        folder = self.base / f"fabric-{name}"
        return SessionCgroup(folder) if folder.is_dir() else None

    @staticmethod
    def _limit(folder: Path, wanted: str, value: int) -> None:
        files = {"memory": "memory.max", "pids": "pids.max", "cpu_weight": "cpu.weight"}
        (folder / files[wanted]).write_text(str(value), encoding="ascii")
        if wanted == "memory":
            # Memory that is swapped out is not spared, and a session must not thrash the disk.
            with contextlib.suppress(OSError):
                (folder / "memory.swap.max").write_text("0", encoding="ascii")


def delegated(own: Path | None) -> Cgroups | None:
    """Find what the service may divide; None where the node delegates nothing."""
    if own is None:
        return None
    candidates = [own]
    if own.name in LEAVES:
        candidates.append(own.parent)
    for base in candidates:
        controllers = _enable(base)
        if controllers:
            return Cgroups(base, controllers)
    return None


def detect() -> Cgroups | None:
    """Find what this process may divide on this machine."""
    try:
        mountinfo, own = _MOUNTINFO.read_text(), _OWN.read_text()
    except OSError:
        return None
    return delegated(own_cgroup(mountinfo, own))


def _enable(base: Path) -> frozenset[str]:
    """Hand on every controller of ours that the cgroup has; empty when it may not."""
    wanted = set(CONTROLLERS.values())
    try:
        offered = wanted & set((base / "cgroup.controllers").read_text().split())
        control = base / "cgroup.subtree_control"
        missing = offered - set(control.read_text().split())
        if not offered or not os.access(base, os.W_OK):
            return frozenset()
        if missing:
            control.write_text(" ".join(f"+{name}" for name in sorted(missing)))
    except OSError:
        return frozenset()
    return frozenset(offered)


def resource_limits(
    limits: Limits, *, own_uid: bool
) -> tuple[tuple[tuple[str, int], ...], InForce]:
    """List the resource limits of a session without a cgroup, and what they are good for.

    ``own_uid`` says that nothing else on the machine runs under the session's uid.
    """
    rows = base_limits()
    met: list[str] = []
    if limits.memory:
        rows.append(("RLIMIT_DATA", limits.memory))
        met.append("memory")
    if limits.pids and own_uid:
        rows.append(("RLIMIT_NPROC", limits.pids))
        met.append("pids")
    unmet = tuple(name for name in limits.wanted if name not in met)
    return tuple(rows), InForce("rlimit" if met else "none", tuple(met), unmet)


def base_limits() -> list[tuple[str, int]]:
    """List the limits every session has: no core files, a sane number of open files."""
    return [("RLIMIT_CORE", 0), ("RLIMIT_NOFILE", OPEN_FILES)]
