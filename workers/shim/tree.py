"""Processes as rows, and what follows from them: identity, ancestry, order.

A process is known by (pid, start time): a pid alone may be reused while we look at it.
Rows come from a snapshot that may be torn (a parent read before its child was forked,
a pid seen twice, even a cycle of parents), so every walk here keeps what it has seen
and ends. Children come before parents in every answer, since that is the order in
which they are signalled: a parent that watches its children must not have the time to
replace them.

A zombie has ended, except when only its main thread has: then the others still run and
the kernel shows state Z with more than one thread.
"""

from collections.abc import Collection, Iterable

Identity = tuple[int, int]
"""pid and start time, in the unit of the platform's process listing."""


class Value:
    """A small immutable-by-habit record compared by its fields."""

    __slots__: tuple[str, ...] = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__slots__))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


class Row(Value):
    """One process of a snapshot."""

    __slots__ = ("name", "pid", "ppid", "start", "state", "threads")

    def __init__(
        self, pid: int, ppid: int, start: int, state: str = "S", threads: int = 1, name: str = ""
    ) -> None:
        self.pid = pid
        self.ppid = ppid
        self.start = start
        self.state = state
        self.threads = threads
        self.name = name

    @property
    def identity(self) -> Identity:
        """What tells this process from a later one of the same pid."""
        return (self.pid, self.start)

    @property
    def is_living(self) -> bool:
        """Tell whether it can still run; see the module's word on zombies."""
        return self.state not in ("Z", "X", "x") or self.threads > 1


def parse_stat(line: str) -> Row:
    """Read one ``/proc/<pid>/stat``; the name may hold blanks and parentheses.

    Raises:
        ValueError: The line has not the shape the kernel writes.
    """
    opening, closing = line.find(" ("), line.rfind(") ")
    fields = line[closing + 2 :].split()
    if opening < 1 or closing < opening or len(fields) < 20:
        raise ValueError("malformed stat line")
    return Row(
        pid=int(line[:opening]),
        ppid=int(fields[1]),
        start=int(fields[19]),
        state=fields[0],
        threads=int(fields[17]),
        name=line[opening + 2 : closing],
    )


def descendants(rows: Iterable[Row], root: int) -> list[Row]:
    """List everything below ``root``, children before parents, ``root`` itself excluded."""
    children: dict[int, list[Row]] = {}
    for row in rows:
        children.setdefault(row.ppid, []).append(row)
    seen = {root}
    found: list[Row] = []
    level = [root]
    while level:
        below = []
        for pid in level:
            for row in children.get(pid, ()):
                if row.pid not in seen:
                    seen.add(row.pid)
                    found.append(row)
                    below.append(row.pid)
        level = below
    found.reverse()
    return found


def heads(rows: Collection[Row], root: Identity | None, wrappers: Collection[str]) -> list[Row]:
    """Name the shell and the sandbox wrappers above it, outermost first.

    Without wrappers that is the root alone. A wrapper starts the shell as its first
    child, and leaves when that child does, so the shell is the oldest child of the last
    process called by a wrapper's name. A root whose start time has changed is another
    process, and nothing is taken over from it.
    """
    by_pid = {row.pid: row for row in rows}
    if root is None or root[0] not in by_pid or by_pid[root[0]].start != root[1]:
        return []
    chain = [by_pid[root[0]]]
    while chain[-1].name in wrappers:
        below = [row for row in rows if row.ppid == chain[-1].pid and row not in chain]
        if not below:
            break
        chain.append(min(below, key=lambda row: (row.start, row.pid)))
    return chain
