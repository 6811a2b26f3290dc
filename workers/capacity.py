"""What is left of a machine: pseudo-terminals, memory, descriptors.

Read from the kernel's own counters where it has them (Linux). A number that cannot be
read is ``UNKNOWN`` and never a reason to refuse a session: the kernel will.
"""

import resource
import sys
from dataclasses import dataclass
from pathlib import Path

UNKNOWN = -1
_PTY = Path("/proc/sys/kernel/pty")


@dataclass(frozen=True, slots=True)
class Capacity:
    """Free pseudo-terminals, bytes of memory and descriptors; ``UNKNOWN`` where unreadable."""

    ptys: int = UNKNOWN
    memory_bytes: int = UNKNOWN
    fds: int = UNKNOWN


def read_capacity() -> Capacity:
    """Read what this machine has left, in well under a millisecond."""
    return Capacity(_ptys(), _memory(), _fds())


def parse_ptys(maximum: int, reserve: int, used: int) -> int:
    """Count free pseudo-terminals.

    The kernel keeps ``reserve`` of ``maximum`` for the machine's first devpts; a mount
    inside a container never gets those, so they are not counted here. A machine set
    below its reserve has only the plain maximum.
    """
    usable = maximum - reserve if maximum > reserve else maximum
    return max(0, usable - used)


def parse_memory(meminfo: str) -> int:
    """Return MemAvailable in bytes from the text of /proc/meminfo, or ``UNKNOWN``."""
    for line in meminfo.splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return UNKNOWN


def _number(path: Path) -> int:
    return int(path.read_text())


def _ptys() -> int:
    try:
        return parse_ptys(_number(_PTY / "max"), _number(_PTY / "reserve"), _number(_PTY / "nr"))
    except (OSError, ValueError):
        return UNKNOWN


def _memory() -> int:
    try:
        free = parse_memory(Path("/proc/meminfo").read_text())
    except (OSError, ValueError, IndexError):
        return UNKNOWN
    limit = _cgroup_free()
    return free if limit == UNKNOWN else min(free, limit)


def _cgroup_free() -> int:
    root = Path("/sys/fs/cgroup")
    try:
        return max(0, _number(root / "memory.max") - _number(root / "memory.current"))
    except (OSError, ValueError):  # no v2 hierarchy here, or "max"
        return UNKNOWN


def _fds() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    folder = "/proc/self/fd" if sys.platform == "linux" else "/dev/fd"
    try:
        used = sum(1 for _ in Path(folder).iterdir())
    except OSError:
        return UNKNOWN
    if soft == resource.RLIM_INFINITY:
        return UNKNOWN
    return max(0, soft - used)
