"""What to do next while a session's processes are being ended: events in, instructions out.

    begin ─▶ TERM ──all gone / grace over──▶ KILL ──new ones──▶ FREEZE ─▶ KILL …
               │ nothing (left)               │ nothing left
               ▼                              ▼
             SHELL (TERM+HUP+CONT) ──shell grace over──▶ SHELL_KILL
               │ gone
               ▼
             TERM again, for what exit traps left behind … ─▶ Done

The order is a promise: descendants first, children before parents, each with its
chance to leave on TERM; the shell only when they are gone. Three decisions need a word.

* The shell is stopped while its descendants are ended, if it has any. Otherwise the end
  of one command would start the next one of the same line: ``sleep 1000; deploy`` must
  not deploy because the session was closed.
* Newcomers within the grace get TERM too (a handler may start a clean-up program), but
  only for a few rounds: something that forks faster than it dies is killed at once.
* What still appears after a round of KILL forks faster than we look. Then everything is
  stopped, top down and again until no new process shows and each has come to a stand, and
  only then killed: a stopped process cannot fork. One that has been told to stop still
  can, if it was inside a fork and has not had the processor since.

A failed teardown leaves the shell running (and continued), names the survivors and may
be tried again with a new machine. Times are seconds of any one monotonic clock.
"""

from collections.abc import Collection, Iterable
from signal import SIGCONT, SIGHUP, SIGKILL, SIGSTOP, SIGTERM

from workers.shim.tree import Identity, Row, Value, heads

KILL_S = 2.0
"""How long killed processes may take to vanish before they are called survivors."""
TERM_ROUNDS = 3
FREEZE_CYCLES = 8
FREEZE_LOOK_S = 0.002
_STANDING = ("T", "t", "D")
"""States in which a process does not fork; D goes over to T before it runs on."""

_TERM, _KILL, _FREEZE, _SHELL, _SHELL_KILL, _DONE = range(6)


class Signal(Value):
    """Send ``signo`` to exactly this process."""

    __slots__ = ("identity", "signo")

    def __init__(self, identity: Identity, signo: int) -> None:
        self.identity = identity
        self.signo = int(signo)


class Scan(Value):
    """List the descendants and answer with ``Scanned``; ``freeze`` stops each as it is found."""

    __slots__ = ("freeze",)

    def __init__(self, freeze: bool = False) -> None:
        self.freeze = freeze


class Wait(Value):
    """Report exits as they happen, and a ``Tick`` at ``until``."""

    __slots__ = ("until",)

    def __init__(self, until: float) -> None:
        self.until = until


class Ended(Value):
    """One process of the receipt; ``signo`` is the last signal it was sent, None if none."""

    __slots__ = ("name", "pid", "signo")

    def __init__(self, pid: int, name: str, signo: int | None) -> None:
        self.pid = pid
        self.name = name
        self.signo = signo


class Done(Value):
    """It is over. ``survivors`` not empty means it failed."""

    __slots__ = ("ended", "survivors")

    def __init__(self, ended: list[Ended], survivors: list[Ended]) -> None:
        self.ended = ended
        self.survivors = survivors


Instruction = Signal | Scan | Wait | Done


class Scanned(Value):
    """Every descendant found, children first, and every captured process that still exists."""

    __slots__ = ("now", "rows")

    def __init__(self, now: float, rows: list[Row]) -> None:
        self.now = now
        self.rows = rows


class Exited(Value):
    """A captured process is gone; ``missed`` says the last signal found it gone already."""

    __slots__ = ("identity", "missed")

    def __init__(self, identity: Identity, missed: bool = False) -> None:
        self.identity = identity
        self.missed = missed


class Tick(Value):
    """Time has passed."""

    __slots__ = ("now",)

    def __init__(self, now: float) -> None:
        self.now = now


class Hurry(Value):
    """A second caller wants it done by these graces, counted from now."""

    __slots__ = ("grace_s", "now", "shell_grace_s")

    def __init__(self, now: float, grace_s: float, shell_grace_s: float) -> None:
        self.now = now
        self.grace_s = grace_s
        self.shell_grace_s = shell_grace_s


Event = Scanned | Exited | Tick | Hurry


class _Record:
    """What is known of one captured process."""

    __slots__ = ("before", "is_head", "is_living", "name", "pid", "signo")

    def __init__(self, row: Row, is_head: bool) -> None:
        self.pid = row.pid
        self.name = row.name
        self.is_head = is_head
        self.is_living = True
        self.signo: int | None = None
        self.before: int | None = None


class Teardown:
    """One attempt to end everything below a shim."""

    def __init__(
        self,
        *,
        root: Identity | None,
        grace_s: float,
        shell_grace_s: float,
        wrappers: Collection[str] = (),
        kill_s: float = KILL_S,
    ) -> None:
        self._root = root
        self._wrappers = wrappers
        self._grace_s = grace_s
        self._shell_grace_s = shell_grace_s
        self._kill_s = kill_s
        self._records: dict[Identity, _Record] = {}
        self._heads: list[Identity] | None = None
        self._phase = _TERM
        self._scanning = False
        self._deadline: float | None = None
        self._rounds = 0
        self._cycles = 0
        self._asked: set[Identity] = set()
        self._frozen: set[Identity] = set()
        self._freeze_until = 0.0
        self._stopped_heads: set[Identity] = set()

    def begin(self) -> list[Instruction]:
        """Start it."""
        return self._scan()

    def feed(self, event: Event) -> list[Instruction]:
        """Take an event and say what to do now, in order."""
        if self._phase == _DONE:
            return []
        if isinstance(event, Scanned):
            return self._scanned(event.now, event.rows)
        if isinstance(event, Exited):
            return self._exited(event)
        if isinstance(event, Hurry):
            return self._hurry(event)
        if not self._scanning and self._deadline is not None and event.now >= self._deadline:
            return self._scan()
        return []

    def _scan(self) -> list[Instruction]:
        self._scanning = True
        return [Scan(freeze=self._phase == _FREEZE)]

    def _wait(self) -> list[Instruction]:
        assert self._deadline is not None  # noqa: S101  (every phase that waits sets it)
        return [Wait(self._deadline)]

    def _exited(self, event: Exited) -> list[Instruction]:
        record = self._records.get(event.identity)
        if record is None or not record.is_living:
            return []
        record.is_living = False
        if event.missed:
            record.signo = record.before
        if self._scanning:
            return []
        for_heads = self._phase in (_SHELL, _SHELL_KILL)
        waited = [other for other in self._records.values() if other.is_head == for_heads]
        return [] if any(other.is_living for other in waited) else self._scan()

    def _hurry(self, event: Hurry) -> list[Instruction]:
        self._grace_s = min(self._grace_s, event.grace_s)
        self._shell_grace_s = min(self._shell_grace_s, event.shell_grace_s)
        graces = {_TERM: event.grace_s, _SHELL: event.shell_grace_s}
        if self._deadline is None or self._phase not in graces:
            return []
        self._deadline = min(self._deadline, event.now + graces[self._phase])
        return [] if self._scanning else self._wait()

    def _scanned(self, now: float, rows: list[Row]) -> list[Instruction]:
        self._scanning = False
        living = [row for row in rows if row.is_living]
        if self._heads is None:
            self._heads = [row.identity for row in heads(living, self._root, self._wrappers)]
        present = {row.identity for row in living}
        for identity, record in self._records.items():
            record.is_living = identity in present
        for row in living:
            if row.identity not in self._records:
                self._records[row.identity] = _Record(row, row.identity in self._heads)
        if self._phase in (_SHELL, _SHELL_KILL):
            return self._shell_scanned(now, living)
        rows = [row for row in living if row.identity not in self._heads]
        targets = [row.identity for row in rows]
        if not targets:
            return self._to_shell(now)
        if self._phase == _TERM:
            return self._terminate(now, targets)
        if self._phase == _FREEZE:
            return self._freeze(now, rows)
        return self._kill(now, targets)

    def _terminate(self, now: float, targets: list[Identity]) -> list[Instruction]:
        if self._deadline is None:
            self._deadline = now + self._grace_s
        fresh = [identity for identity in targets if identity not in self._asked]
        if now < self._deadline and (not fresh or self._rounds < TERM_ROUNDS):
            out: list[Instruction] = []
            if fresh:
                self._rounds += 1
                self._asked.update(fresh)
                out += self._stop_shell()
                out += self._signal(fresh, SIGTERM)
                out += [Signal(identity, SIGCONT) for identity in fresh]
            return out + self._wait()
        self._phase = _KILL
        self._deadline = now + self._kill_s
        return self._signal(targets, SIGKILL) + self._wait()

    def _kill(self, now: float, targets: list[Identity]) -> list[Instruction]:
        assert self._deadline is not None  # noqa: S101  (set when killing began)
        fresh = [i for i in targets if self._records[i].signo != SIGKILL]
        if now >= self._deadline or (fresh and self._cycles == FREEZE_CYCLES):
            return self._fail(targets, fresh)
        if not fresh:
            return self._wait()
        self._phase = _FREEZE
        self._cycles += 1
        self._frozen = set()
        self._freeze_until = now + self._kill_s
        self._stopped_heads.update(i for i in self._heads or () if self._records[i].is_living)
        return self._scan()

    def _freeze(self, now: float, rows: list[Row]) -> list[Instruction]:
        targets = [row.identity for row in rows]
        is_new = not self._frozen.issuperset(targets)
        self._frozen.update(targets)
        if now < self._freeze_until:
            if is_new:
                return self._scan()
            if any(row.state not in _STANDING for row in rows):
                self._deadline = now + FREEZE_LOOK_S
                return self._wait()
        self._phase = _KILL
        self._deadline = now + self._kill_s
        return self._signal(targets, SIGKILL) + self._wait()

    def _fail(self, targets: list[Identity], fresh: list[Identity]) -> list[Instruction]:
        out = self._signal(fresh, SIGKILL)
        out += [Signal(i, SIGCONT) for i in sorted(self._stopped_heads)]
        return out + self._finish(targets)

    def _to_shell(self, now: float) -> list[Instruction]:
        living = [i for i in self._heads or () if self._records[i].is_living]
        if not living:
            return self._finish([])
        self._phase = _SHELL
        self._deadline = now + self._shell_grace_s
        shell = living[-1]
        out = self._signal([shell], SIGTERM, SIGHUP)
        out += [Signal(i, SIGCONT) for i in living if i == shell or i in self._stopped_heads]
        self._stopped_heads.clear()
        return out + self._wait()

    def _shell_scanned(self, now: float, living: list[Row]) -> list[Instruction]:
        assert self._deadline is not None  # noqa: S101  (set when the shell's turn came)
        left = [i for i in self._heads or () if self._records[i].is_living]
        if not left:
            self._phase = _TERM
            self._deadline = None
            self._rounds = 0
            self._asked.clear()
            targets = [row.identity for row in living]
            return self._terminate(now, targets) if targets else self._finish([])
        if now < self._deadline:
            return self._wait()
        if self._phase == _SHELL_KILL:
            return self._finish(left)
        self._phase = _SHELL_KILL
        self._deadline = now + self._kill_s
        return self._signal(left, SIGKILL) + self._wait()

    def _stop_shell(self) -> list[Instruction]:
        living = [i for i in self._heads or () if self._records[i].is_living]
        if not living or living[-1] in self._stopped_heads:
            return []
        self._stopped_heads.add(living[-1])
        return [Signal(living[-1], SIGSTOP)]

    def _signal(self, targets: Iterable[Identity], *signos: int) -> list[Instruction]:
        out: list[Instruction] = []
        for identity in targets:
            record = self._records[identity]
            record.before, record.signo = record.signo, int(signos[-1])
            out += [Signal(identity, signo) for signo in signos]
        return out

    def _finish(self, survivors: list[Identity]) -> list[Instruction]:
        self._phase = _DONE
        lists: tuple[list[Ended], list[Ended]] = ([], [])
        for identity, record in self._records.items():
            if record.is_living and identity not in survivors:
                continue  # the shell, left alone because its descendants would not go
            entry = Ended(record.pid, record.name, record.signo)
            lists[identity in survivors].append(entry)
        return [Done(*lists)]
