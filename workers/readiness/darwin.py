"""What macOS lets us see: the foreground group, the input queue, no sleepers.

There is no ``/proc``, so the exact tier is never supported: a shell prompt settles by its
mark, everything else by silence. The foreground group comes from the master (the kernel
answers there without asking for a controlling terminal), and where that fails from
``ps``, whose ``tpgid`` column is the group of the terminal of the process.
"""

import fcntl
import os
import select
import struct
import subprocess
import termios
import time

import psutil

from workers.readiness.inspector import Probe
from workers.readiness.termios_view import is_line_editor, read_view

PS_TIMEOUT_S = 2.0
_PS = "/bin/ps"


def parse_tpgid(text: str) -> int | None:
    """Read ``ps -o tpgid= -p PID``; None for no answer, no terminal, or nonsense."""
    words = text.split()
    if len(words) != 1:
        return None
    try:
        group = int(words[0])
    except ValueError:
        return None
    return group if group > 0 else None


class DarwinInspector:
    """Looks at one session without the exact tier."""

    def __init__(self, master_fd: int, slave_fd: int, root_pid: int) -> None:
        self._master_fd = master_fd
        self._slave_fd = slave_fd
        self._root_pid = root_pid

    def foreground(self) -> int | None:
        """Return the foreground process group, None when there is none."""
        try:
            group = os.tcgetpgrp(self._master_fd)
        except OSError:
            return parse_tpgid(_ps("-o", "tpgid=", "-p", str(self._root_pid)))
        return group if group > 0 else None

    def unread(self) -> int:
        """Return a lower bound of the input bytes nobody has read; 0 means none at all."""
        poller = select.poll()
        poller.register(self._slave_fd, select.POLLIN)
        try:
            ready = bool(poller.poll(0))
            count: int = struct.unpack(
                "i", fcntl.ioctl(self._slave_fd, termios.FIONREAD, bytes(4))
            )[0]
        except OSError:
            return 0
        return max(count, 1 if ready else 0)

    def name(self, pid: int) -> str | None:
        """Return the name of the program a process runs, None where it cannot be known."""
        try:
            return str(psutil.Process(pid).name())
        except psutil.Error:
            return None

    def cwd(self, pid: int) -> str | None:
        """Return a process's working directory, None where it cannot be known."""
        try:
            return str(psutil.Process(pid).cwd())
        except (psutil.Error, OSError):
            return None

    def probe(self, shell_pgid: int | None = None) -> Probe:
        """Look at the foreground group and the input queue now."""
        started = time.perf_counter()
        view = read_view(self._master_fd)
        return Probe(
            supported=False,
            foreground_pgid=self.foreground(),
            unread=self.unread(),
            canonical=view.canonical if view else None,
            echo=view.echo if view else None,
            line_editor=view is not None and is_line_editor(view, frozenset()),
            cost_s=time.perf_counter() - started,
        )


def _ps(*args: str) -> str:
    try:
        done = subprocess.run(
            [_PS, *args], capture_output=True, text=True, timeout=PS_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
