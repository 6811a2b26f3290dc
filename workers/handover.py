"""Types a person's bytes to the program that they are for, and never to the shell after it.

Between the end of a program and the shell's prompt there is a moment in which nothing
tells the terminal's master that the program has gone; what is written then is read by the
shell, as a command. So the shell is stopped before bytes meant for a program are written:
while it is stopped it can neither take the terminal back nor read, and it has nothing to
do anyway but wait for that program. It goes on when the program has read the bytes; when
the program ends first, what it left unread is withdrawn before the shell goes on. So an
answer never becomes a command, however late the program would have read it. A program
that is on its way out counts as ended, and one that is suspended frees the shell.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from workers.readiness.inspector import Inspector
from workers.terminal.master import Master

STOP_S = 0.02
FIRST_LOOK_S = 0.001
LAST_LOOK_S = 0.05
BACKOFF = 1.3
_LINE_ENDS = (b"\r", b"\n", b"\x04")
_EXITING = 0x4  # PF_EXITING
_PROC = sys.platform == "linux"


class Typed(Enum):
    """What became of the attempt."""

    TAKEN = "taken"  # some or all bytes are with the program
    FULL = "full"  # the program reads nothing just now
    LATER = "later"  # no program is in front; look again


class Handover:
    """The way of a person's bytes to the programs of one session."""

    def __init__(self, master: Master, inspector: Inspector, at_prompt: Callable[[], bool]) -> None:
        self._at_prompt = at_prompt
        self._master = master
        self._inspector = inspector
        self._stopped: int | None = None
        self._front = 0
        self._pause = FIRST_LOOK_S
        self._whole = False
        self._timer: asyncio.TimerHandle | None = None

    def type(self, shell: int | None, data: memoryview) -> tuple[Typed, int]:
        """Write what the terminal takes at once; returns what became of it and the count taken."""
        front = self._inspector.foreground()
        if shell is None:
            return self._write(data)
        if front is None:
            return Typed.LATER, 0
        if front == shell:
            self.release()
            return self._write(data) if self._is_builtin_reading(shell) else (Typed.LATER, 0)
        self._stop(shell)
        if self._inspector.foreground() != front or not self._lives(front):
            self._look()
            return Typed.LATER, 0
        typed, count = self._write(data)
        if count:
            self._front, self._pause = front, FIRST_LOOK_S
            self._whole = bytes(data[count - 1 : count]) in _LINE_ENDS
        self._look()
        return typed, count

    def withdraw(self) -> None:
        """Take back what the program has not read, and let the shell go on."""
        if self._front:
            self._master.discard_input()
        self.release()

    def release(self) -> None:
        """Let the shell go on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        stopped, self._stopped = self._stopped, None
        self._front = 0
        if stopped is not None:
            go_on(stopped)

    def _is_builtin_reading(self, shell: int) -> bool:
        """Tell whether the shell itself reads for a command, and not at its prompt.

        A prompt is printed before it is read at, so once the shell sleeps its mark is there.
        """
        probe = self._inspector.probe(shell)
        if probe.supported and not probe.waits:
            return False
        self._master.drain()
        return not self._at_prompt()

    def _write(self, data: memoryview) -> tuple[Typed, int]:
        count = self._master.write_some(data)
        return (Typed.TAKEN if count else Typed.FULL), count

    def _stop(self, shell: int) -> None:
        """Keep the shell from running; without the right to, it runs on."""
        if self._stopped == shell:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(shell, signal.SIGSTOP)
            self._stopped = shell
        deadline = time.monotonic() + STOP_S
        while self._stopped is not None and _PROC and _state(shell)[0] not in "TtZX":
            if time.monotonic() > deadline:
                break
            time.sleep(0)

    def _look(self) -> None:
        """Decide whether the shell may go on, and withdraw what nobody can read any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._front:
            self.release()
        elif not self._lives(self._front):
            self._master.discard_input()
            self.release()
        elif self._is_read() or self._is_suspended():
            self.release()
        else:
            self._timer = asyncio.get_running_loop().call_later(self._pause, self._look)
            self._pause = min(self._pause * BACKOFF, LAST_LOOK_S)

    def _is_read(self) -> bool:
        """Tell whether the program has taken all of it; the part of a line cannot be seen."""
        if self._inspector.unread():
            return False
        view = self._master.line_view()
        return self._whole or view is None or not view.canonical

    def _is_suspended(self) -> bool:
        return _PROC and _state(self._front)[0] in "Tt"

    def _lives(self, group: int) -> bool:
        """Tell whether the group in front still has a process that could read."""
        if not _PROC:
            return True
        state, exiting = _state(group)
        if state not in "ZX" and not exiting:
            return True
        probe = self._inspector.probe()  # its leader has gone; another of the group may be left
        return bool(probe.waits)


def go_on(pid: int) -> None:
    """Let a stopped process run again."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGCONT)


def _state(pid: int) -> tuple[str, bool]:
    """Return a process's state letter, X when there is none, and whether it is exiting."""
    try:
        raw = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return "X", True
    rest = raw[raw.rindex(b")") + 2 :].split()
    return chr(rest[0][0]), bool(int(rest[6]) & _EXITING)
