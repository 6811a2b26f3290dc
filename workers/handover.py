"""Types a person's bytes to the program that they are for, and never to the shell after it.

Between the end of a program and the shell's prompt there is a moment in which nothing
tells the terminal's master that the program has gone; what is written then is read by the
shell, as a command. So before bytes meant for a program are written the shell is stopped:
while it is stopped it can neither take the terminal back nor read. If the program in front
is still alive then, the bytes are written; if it died while they were, they are withdrawn
before the shell goes on. What a program leaves unread when it ends later is type-ahead, as
on any terminal.
"""

import contextlib
import os
import signal
import sys
import time
from enum import Enum
from pathlib import Path

from workers.readiness.inspector import Inspector
from workers.terminal.master import Master

STOP_S = 0.02
_PROC = sys.platform == "linux"


class Typed(Enum):
    """What became of the attempt."""

    TAKEN = "taken"  # some or all bytes are with the program
    FULL = "full"  # the program reads nothing just now
    LATER = "later"  # no program is in front; look again
    WITHDRAWN = "withdrawn"  # the program ended meanwhile; nothing reached the shell


def type_at_program(
    master: Master, inspector: Inspector, shell: int | None, data: memoryview
) -> tuple[Typed, int]:
    """Write what the terminal takes at once; returns what became of it and the count taken."""
    front = inspector.foreground()
    if shell is None or front is None:
        return _write(master, data)
    if front == shell:
        probe = inspector.probe(shell)  # a builtin of the shell may be what reads
        waits = bool(probe.waits) or not probe.supported
        return _write(master, data) if waits else (Typed.LATER, 0)
    with _stopped(shell):
        if inspector.foreground() != front or not _is_alive(front, inspector):
            return Typed.LATER, 0
        typed, count = _write(master, data)
        if count and not _is_alive(front, inspector):
            master.discard_input()
            return Typed.WITHDRAWN, 0
        return typed, count


def _write(master: Master, data: memoryview) -> tuple[Typed, int]:
    count = master.write_some(data)
    return (Typed.TAKEN if count else Typed.FULL), count


class _stopped:  # noqa: N801  (reads as a statement)
    """Keep a process from running; without the right to, it runs on."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._sent = False

    def __enter__(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self._pid, signal.SIGSTOP)
            self._sent = True
        deadline = time.monotonic() + STOP_S
        while self._sent and _PROC and _state(self._pid) not in "TtZX":
            if time.monotonic() > deadline:
                break
            time.sleep(0)

    def __exit__(self, *exc: object) -> None:
        if self._sent:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self._pid, signal.SIGCONT)


def _is_alive(group: int, inspector: Inspector) -> bool:
    """Tell whether the group in front still has a process that could read."""
    if not _PROC:
        return True
    if _state(group) not in "ZX":
        return True
    probe = inspector.probe()  # the leader has gone; another of its group may be left
    return bool(probe.waits) or probe.busy


def _state(pid: int) -> str:
    """Return the state letter of a process, X when there is none."""
    try:
        raw = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return "X"
    return chr(raw[raw.rindex(b")") + 2])
