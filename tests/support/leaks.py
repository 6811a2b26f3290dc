"""What a test left behind: processes, threads, open descriptors, a mask for new files.

A process is its pid *and* start time, so a reused pid is not mistaken for an old process.
On Linux the test run is a child subreaper: what detaches itself (a double fork, a session of
its own) becomes a child of the run and is found as well.
"""

import contextlib
import ctypes
import gc
import os
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
# Threads that a library keeps for the life of the process, by the name of what they run.
_LASTING_THREADS = ("_poll_wrapper", "grpc", "asyncio_", "ray", "pytest_timeout", "pydevd")
_LASTING_DESCRIPTORS = ("anon_inode:[eventpoll]", "anon_inode:[eventfd]", "/dev/urandom")


@dataclass(frozen=True)
class Process:
    pid: int
    start_time: int
    parent: int
    name: str
    state: str

    @property
    def identity(self) -> tuple[int, int]:
        return (self.pid, self.start_time)


@dataclass(frozen=True)
class Snapshot:
    processes: frozenset[tuple[int, int]] = frozenset()
    threads: frozenset[int] = frozenset()
    descriptors: dict[int, str] = field(default_factory=dict)
    umask: str = ""


def become_subreaper() -> None:
    """Make orphans of this run its children (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> list[Process]:
    """Every process below this one, zombies left out; parents come first."""
    table = _process_table()
    below: list[Process] = []
    parents = [os.getpid()]
    while parents:
        parent = parents.pop()
        children = [item for item in table if item.parent == parent]
        below.extend(children)
        parents.extend(item.pid for item in children)
    return [item for item in below if item.state not in "ZX"]


def reap_orphans() -> None:
    """Take the exit status of dead children nobody waits for."""
    for item in _process_table():
        if item.parent == os.getpid() and item.state == "Z":
            with contextlib.suppress(ChildProcessError):
                os.waitpid(item.pid, os.WNOHANG)


def take() -> Snapshot:
    """Remember what there is now."""
    return Snapshot(
        frozenset(item.identity for item in descendants()),
        frozenset(thread.ident or 0 for thread in threading.enumerate()),
        _descriptors(),
        _umask(),
    )


def since(before: Snapshot, *, with_cluster: bool = False) -> list[str]:
    """Say what is there now and was not in ``before``, one sentence each.

    With ``with_cluster`` a Ray cluster shared by the run is left alone: only the programs below
    a shim count, since pools of idle workers come and go by themselves.
    """
    gc.collect()
    now = descendants()
    new = [item for item in now if item.identity not in before.processes]
    if with_cluster:
        shims = {item.pid for item in now if "workers/shim" in item.name}
        new = [item for item in new if item.parent in shims]
    rows = [f"process {item.pid} ({item.name})" for item in new]
    if _umask() != before.umask:
        rows.append(f"umask {_umask()}, it was {before.umask}")
    if with_cluster:
        return rows
    rows += [
        f"thread {thread.name}"
        for thread in threading.enumerate()
        if (thread.ident or 0) not in before.threads
        and not any(name in thread.name for name in _LASTING_THREADS)
    ]
    rows += [
        f"descriptor {number} -> {target}"
        for number, target in _descriptors().items()
        if before.descriptors.get(number) != target
        and not target.startswith(_LASTING_DESCRIPTORS)
        and len(_descriptors()) > len(before.descriptors)
    ]
    return rows


def _process_table() -> list[Process]:
    if sys.platform != "linux":
        return []
    table = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError):
            raw = (folder / "stat").read_text(errors="replace")
            _, _, rest = raw.rpartition(")")
            facts = rest.split()
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            name = line.strip()[:120] or raw[raw.find("(") : raw.rfind(")") + 1]
            table.append(Process(int(folder.name), int(facts[19]), int(facts[1]), name, facts[0]))
    return table


def _umask() -> str:
    status = Path("/proc/self/status")
    rows = status.read_text().splitlines() if status.is_file() else []
    return next((row.split()[1] for row in rows if row.startswith("Umask")), "")


def _descriptors() -> dict[int, str]:
    folder = Path("/proc/self/fd")
    found: dict[int, str] = {}
    if folder.is_dir():
        for entry in folder.iterdir():
            with contextlib.suppress(OSError):
                target = str(entry.readlink())
                if not target.startswith(f"/proc/{os.getpid()}/fd"):
                    found[int(entry.name)] = target
    return found
