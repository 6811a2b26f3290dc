"""Which processes live below this one; Linux and macOS."""

import contextlib
import ctypes
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Process:
    """One process and what it is called."""

    pid: int
    parent: int
    name: str
    is_zombie: bool = False


def adopt_orphans() -> None:
    """Become the parent of what detaches itself below us, so that ``below`` finds it (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reap_orphans() -> None:
    """Collect dead children nobody waits for."""
    for process in _table():
        if process.parent == os.getpid() and process.is_zombie:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def below() -> list[Process]:
    """List the living processes below this one."""
    children: dict[int, list[Process]] = {}
    for process in _table():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    parents = [os.getpid()]
    while parents:
        for child in children.get(parents.pop(), []):
            parents.append(child.pid)
            if not child.is_zombie and child.pid != os.getpid():
                found.append(child)
    return found


def _table() -> list[Process]:
    if Path("/proc/self/stat").exists():
        rows = [_from_proc(folder) for folder in Path("/proc").glob("[0-9]*")]
        return [row for row in rows if row is not None]
    listing = subprocess.run(
        ["/bin/ps", "-axo", "pid=,ppid=,stat=,comm="], capture_output=True, text=True, check=True
    )
    found = []
    for line in listing.stdout.splitlines():
        pid, parent, state, name = line.split(None, 3)
        if name != "/bin/ps":
            found.append(Process(int(pid), int(parent), name, state.startswith("Z")))
    return found


def _from_proc(folder: Path) -> Process | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        head, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
        state, parent = rest.split()[:2]
        return Process(int(folder.name), int(parent), head.partition("(")[2], state in "ZX")
    return None
