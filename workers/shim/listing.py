"""Reads processes from the system: ``/proc`` on Linux, ``ps`` where there is none.

``Processes`` is the port the teardown looks through. On Linux the descendants are found
by walking ``/proc/<pid>/task/*/children`` from the shim down, which costs a few system
calls per descendant and nothing per stranger; kernels without these files fall back to
one pass over ``/proc``. A walk may miss what is re-parented while it looks, so whoever
needs certainty asks again until it also has no child left (the shim is the subreaper of
everything below it).
"""

import os
import sys
from collections.abc import Callable, Collection

from workers.shim.tree import Identity, Row, descendants, parse_stat

Visit = Callable[[int, Collection[int]], Row | None]
"""Called with each pid found, before its children are read, and the pids its parent may have.

It returns the row, or None when the process has gone or has another parent: then the pid
was reused since the parent's list was read.
"""


class Processes:
    """What the teardown needs to know about the processes of this machine."""

    def row(self, pid: int) -> Row | None:
        """Return one process, None when there is none."""
        raise NotImplementedError

    def below(self, root: int, visit: Visit) -> list[Row]:
        """Return the descendants of ``root``, children first, each passed to ``visit``."""
        raise NotImplementedError

    def living(self, identities: Collection[Identity]) -> set[Identity]:
        """Return those of these processes, exactly these, that can still run."""
        rows = [self.row(pid) for pid, _ in identities]
        found = {row.identity for row in rows if row is not None and row.is_living}
        return found.intersection(identities)


class ProcProcesses(Processes):
    """Linux."""

    def __init__(self, *, with_children_files: bool | None = None) -> None:
        if with_children_files is None:
            own = f"/proc/self/task/{os.getpid()}/children"
            with_children_files = os.path.exists(own)  # noqa: PTH110  (pathlib costs 3 ms of start)
        self._with_children_files = with_children_files

    def row(self, pid: int) -> Row | None:
        """Return one process, None when there is none."""
        data = _read(f"/proc/{pid}/stat")
        if data is None:
            return None
        try:
            return parse_stat(data.decode("utf-8", "replace"))
        except ValueError:
            return None

    def below(self, root: int, visit: Visit) -> list[Row]:
        """Return the descendants of ``root``, children first, each passed to ``visit``."""
        if not self._with_children_files:
            return self._below_by_parent(root, visit)
        found: list[Row] = []
        seen = {root}
        ahead = [root]
        while ahead:
            for child in self._children(ahead.pop()):
                if child in seen:
                    continue
                row = visit(child, seen)
                if row is not None:
                    seen.add(child)
                    found.append(row)
                    ahead.append(child)
        return descendants(found, root)

    def _children(self, pid: int) -> list[int]:
        try:
            threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  (as above)
        except OSError:
            return []
        found = []
        for thread in threads:
            found += (_read(f"/proc/{pid}/task/{thread}/children") or b"").split()
        return [int(child) for child in found]

    def _below_by_parent(self, root: int, visit: Visit) -> list[Row]:
        rows = [self.row(int(name)) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208
        return _visited([row for row in rows if row is not None], root, visit)


class PsProcesses(Processes):
    """Systems without ``/proc`` (macOS): one ``ps`` run for each look."""

    def row(self, pid: int) -> Row | None:
        """Return one process, None when there is none."""
        rows = self._list("-p", str(pid))
        return rows[0] if rows else None

    def living(self, identities: Collection[Identity]) -> set[Identity]:
        """Return those of these processes, exactly these, that can still run."""
        rows = self._list("-p", ",".join(str(pid) for pid, _ in identities)) if identities else []
        return {row.identity for row in rows if row.is_living}.intersection(identities)

    def below(self, root: int, visit: Visit) -> list[Row]:
        """Return the descendants of ``root``, children first, each passed to ``visit``."""
        return _visited(self._list("-ax"), root, visit)

    def _list(self, *which: str) -> list[Row]:
        import subprocess  # only here: it would double the memory of the shim elsewhere

        ps = subprocess.Popen(
            ["/bin/ps", *which, "-o", "pid=,ppid=,state=,lstart=,comm="],
            env={"LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            listing, _ = ps.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            ps.kill()
            listing, _ = ps.communicate()
        return [row for row in parse_ps(listing.decode("utf-8", "replace")) if row.pid != ps.pid]


_MONTHS = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}


def parse_ps(listing: str) -> list[Row]:
    """Read the lines of ``ps -o pid=,ppid=,state=,lstart=,comm=``; odd lines are left out.

    ``lstart`` (``Mon Jan  2 15:04:05 2006``) becomes a number that grows with time.
    """
    rows = []
    for line in listing.splitlines():
        fields = line.split(None, 8)
        if len(fields) < 9:
            continue
        try:
            pid, ppid = int(fields[0]), int(fields[1])
            hours, minutes, secs = (int(part) for part in fields[6].split(":"))
            days = (int(fields[7]) * 12 + _MONTHS[fields[4]]) * 31 + int(fields[5])
        except (ValueError, KeyError):
            continue
        start = ((days * 24 + hours) * 60 + minutes) * 60 + secs
        name = fields[8].rsplit("/", 1)[-1].strip()
        rows.append(Row(pid=pid, ppid=ppid, start=start, state=fields[2][0], name=name))
    return rows


def processes() -> Processes:
    """Choose the listing of this platform."""
    return ProcProcesses() if sys.platform == "linux" else PsProcesses()


def _visited(rows: list[Row], root: int, visit: Visit) -> list[Row]:
    below = descendants(rows, root)
    parents = {root, *(row.pid for row in below)}
    seen = [visit(row.pid, parents) for row in reversed(below)]
    return [row for row in reversed(seen) if row is not None]


def _read(path: str) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        data = os.read(fd, 65536)
        chunk = data
        while len(chunk) == 65536:
            chunk = os.read(fd, 65536)
            data += chunk
    except OSError:  # the process left between open and read
        return None
    finally:
        os.close(fd)
    return data
