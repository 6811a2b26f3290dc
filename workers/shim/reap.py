"""Collects ended children and performs a teardown: the hands of ``teardown.Teardown``.

Everything below the shim becomes its child sooner or later (it is a subreaper), so
``waitpid`` finds every end, and "no child at all" proves that nothing is left. Signals
go through pidfds, opened before the row is read and checked to be alive after: what was
read and what will be signalled are then the same process, whatever happens to its pid.
Where pidfds are missing or descriptors run out, the start time is compared before each
``kill`` instead.
"""

import os
import select
import signal
from collections.abc import Callable, Collection

from workers.shim.listing import Processes
from workers.shim.teardown import (
    Done,
    Event,
    Exited,
    Hurry,
    Scan,
    Scanned,
    Signal,
    Teardown,
    Tick,
    Wait,
)
from workers.shim.tree import Identity, Row

LOOK_S = 0.02
"""How often processes without a pidfd are looked at."""
SCANS = 16


class Ending:
    """How a process ended: a code or the name of a signal, never both."""

    __slots__ = ("code", "signal")

    def __init__(self, code: int | None, signal_name: str | None) -> None:
        self.code = code
        self.signal = signal_name

    @classmethod
    def of(cls, status: int) -> "Ending":
        """Read a wait status."""
        if os.WIFSIGNALED(status):
            return cls(None, signal_name(os.WTERMSIG(status)))
        return cls(os.WEXITSTATUS(status), None)


def signal_name(signo: int) -> str:
    """Name a signal; real-time ones by number."""
    try:
        return signal.Signals(signo).name
    except ValueError:
        return f"SIG{signo}"


def reap() -> list[tuple[int, int]]:
    """Collect every ended child without waiting; (pid, wait status) each."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append((pid, status))


def has_children() -> bool:
    """Tell whether any child, ended or not, is there."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


class Ender:
    """Performs one teardown inside the shim's loop; ``done`` is set when it is over.

    The loop polls ``fds``, calls ``readable`` and ``tick``, and passes on what it reaps.
    ``collect`` must reap (through the loop, so that the root's end is noticed).
    """

    def __init__(
        self,
        machine: Teardown,
        processes: Processes,
        *,
        clock: Callable[[], float],
        collect: Callable[[], None],
        watch: Callable[[int], None],
        unwatch: Callable[[int], None],
    ) -> None:
        self._machine = machine
        self._processes = processes
        self._clock = clock
        self._collect = collect
        self._watch = watch
        self._unwatch = unwatch
        self._me = os.getpid()
        self._fds: dict[Identity, int] = {}
        self._by_fd: dict[int, Identity] = {}
        self._bare: set[Identity] = set()
        self._until: float | None = None
        self._look_at = 0.0
        self._checked: set[Identity] | None = None
        self._is_running = False
        self._events: list[Event] = []
        self.done: Done | None = None

    @property
    def until(self) -> float | None:
        """When ``tick`` is due next, on the clock given."""
        if self.done is not None or self._until is None:
            return None
        return min(self._until, self._look_at) if self._bare else self._until

    def begin(self) -> None:
        """Start."""
        self._run(self._machine.begin())

    def hurry(self, grace_s: float, shell_grace_s: float) -> None:
        """Shorten the graces for another caller."""
        self._feed(Hurry(self._clock(), grace_s, shell_grace_s))

    def readable(self, fd: int) -> None:
        """Take a poll event; a pidfd is readable when its process has ended."""
        identity = self._by_fd.get(fd)
        if identity is not None:
            self._drop(identity)
            self._feed(Exited(identity))

    def reaped(self, pid: int) -> None:
        """Take note that a child was collected."""
        for identity in [i for i in (*self._fds, *self._bare) if i[0] == pid]:
            self._drop(identity)
            self._feed(Exited(identity))

    def tick(self) -> None:
        """Let time pass."""
        self._look_at = self._clock() + LOOK_S
        for identity in self._bare - self._processes.living(self._bare):
            self._drop(identity)
            self._feed(Exited(identity))
        self._feed(Tick(self._clock()))

    def close(self) -> None:
        """Give the descriptors back."""
        for identity in list(self._fds):
            self._drop(identity)
        self._bare.clear()

    def _feed(self, event: Event) -> None:
        self._events.append(event)
        if not self._is_running:
            self._run([])

    def _run(self, instructions: list[Signal | Scan | Wait | Done]) -> None:
        self._is_running = True
        queue = list(instructions)
        while queue or self._events:
            if not queue:
                queue += self._machine.feed(self._events.pop(0))
                continue
            instruction = queue.pop(0)
            if isinstance(instruction, Signal):
                if not self._signal(instruction.identity, instruction.signo):
                    self._drop(instruction.identity)
                    self._events.append(Exited(instruction.identity, missed=True))
                continue
            self._checked = None
            if isinstance(instruction, Scan):
                rows = self._scan(instruction.freeze)
                self._events.append(Scanned(self._clock(), rows))
            elif isinstance(instruction, Wait):
                self._until = instruction.until
                self._look_at = self._clock() + LOOK_S
            else:
                self.done = instruction
                self._until = None
        self._is_running = False

    def _signal(self, identity: Identity, signo: int) -> bool:
        fd = self._fds.get(identity)
        try:
            if fd is not None:
                signal.pidfd_send_signal(fd, signo)
            else:
                if self._checked is None:  # once for a row of signals: a look may cost a run of ps
                    self._checked = self._processes.living({*self._bare, identity})
                if identity not in self._checked:
                    return False
                os.kill(identity[0], signo)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # a set-uid program out of reach: it will be named as a survivor
        return True

    def _scan(self, freeze: bool) -> list[Row]:
        def visit(pid: int, parents: Collection[int]) -> Row | None:
            return self._capture(pid, parents, freeze)

        rows: list[Row] = []
        for _ in range(SCANS):
            self._collect()
            rows = self._processes.below(self._me, visit)
            if any(row.is_living for row in rows) or not has_children():
                break  # else: something changed its parent while we looked
        seen = {row.identity for row in rows}
        for identity in [i for i in (*self._fds, *self._bare) if i not in seen]:
            row = self._processes.row(identity[0])
            if row is not None and row.identity == identity:
                rows.append(row)
            else:
                self._drop(identity)
        return rows

    def _capture(self, pid: int, parents: Collection[int], freeze: bool) -> Row | None:
        """Read a row and pin its process, so that a later signal cannot miss it."""
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return None
        except (OSError, AttributeError):  # no pidfds here, or no descriptor left
            fd = -1
        row = self._processes.row(pid)
        if row is None or row.ppid not in parents or (fd >= 0 and row.is_living and _has_ended(fd)):
            if fd >= 0:
                os.close(fd)
            return None
        identity = row.identity
        if identity in self._fds or not row.is_living:
            if fd >= 0:
                os.close(fd)
        elif fd >= 0:
            self._fds[identity] = fd
            self._by_fd[fd] = identity
            self._bare.discard(identity)
            self._watch(fd)
        else:
            self._bare.add(identity)
        if freeze and row.is_living:
            self._checked = {identity}  # read a moment ago
            self._signal(identity, signal.SIGSTOP)
            self._checked = None
        return row

    def _drop(self, identity: Identity) -> None:
        self._bare.discard(identity)
        fd = self._fds.pop(identity, None)
        if fd is not None:
            del self._by_fd[fd]
            self._unwatch(fd)
            os.close(fd)


def _has_ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
