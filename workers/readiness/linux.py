"""The exact tier on Linux: who sleeps waiting for this terminal's input, by ``/proc``.

The processes looked at are those below the shim (it is their subreaper, so nothing of
the session is elsewhere) that belong to the foreground group. A descriptor counts when it
*is* the session's terminal: the same device node, or ``/dev/tty`` of a process whose
controlling terminal is ours. Comparing the node, not the number, finds a terminal
reopened under another descriptor (node does this) and is not fooled by a pipe on 0.

Polling the slave moves input that was just written from the master's side into the
line discipline, wakes its reader, and only then answers; without it, a fresh write could
still be on its way and every reader would look idle. All files are a few microseconds
each; nothing here blocks. What cannot be read is a miss.
"""

import contextlib
import fcntl
import os
import platform
import select
import stat
import struct
import termios
import time
from collections.abc import Callable, Iterator

from workers.readiness.inspector import Probe, Wait
from workers.readiness.syscalls import (
    MAX_POLL_FDS,
    TABLES,
    Call,
    Shape,
    epoll_fds,
    is_patient,
    is_running,
    parse_call,
    poll_fds,
    select_bytes,
    select_fds,
    signed32,
    timespec_s,
)
from workers.readiness.termios_view import is_line_editor, read_view

MAX_PROCESSES = 4096
_CONTROLLING_TTY = os.makedev(5, 0)


class LinuxInspector:
    """Looks at one session by ``/proc``; ``slave_fd`` must be open on the slave side."""

    def __init__(
        self,
        master_fd: int,
        slave_fd: int,
        root_pid: int,
        shim_pid: int,
        *,
        machine: str | None = None,
    ) -> None:
        self._master_fd = master_fd
        self._slave_fd = slave_fd
        self._root_pid = root_pid
        self._shim_pid = shim_pid
        self._table = TABLES.get(machine or platform.machine(), {})
        node = os.fstat(slave_fd)
        self._node = (node.st_dev, node.st_ino, node.st_rdev)
        self._poll = select.poll()
        self._poll.register(slave_fd, select.POLLIN)

    def foreground(self) -> int | None:
        """Return the foreground process group, None when there is none."""
        try:
            group = os.tcgetpgrp(self._master_fd)
        except OSError:
            return None
        return group if group > 0 else None

    def unread(self) -> int:
        """Return a lower bound of the input bytes nobody has read; 0 means none at all.

        In canonical mode only whole lines count; a lone end-of-file counts as one.
        """
        try:
            ready = bool(self._poll.poll(0))
            count: int = struct.unpack(
                "i", fcntl.ioctl(self._slave_fd, termios.FIONREAD, bytes(4))
            )[0]
        except OSError:
            return 0
        return max(count, 1 if ready else 0)

    def name(self, pid: int) -> str | None:
        """Return the name of the program a process runs, None where it cannot be known."""
        try:
            with open(f"/proc/{pid}/comm") as file:  # noqa: PTH123
                return file.read().rstrip("\n")
        except OSError:
            return None

    def cwd(self, pid: int) -> str | None:
        """Return a process's working directory, None where it cannot be known."""
        try:
            return os.readlink(f"/proc/{pid}/cwd")  # noqa: PTH115  (hot path)
        except OSError:
            return None

    def probe(self, shell_pgid: int | None = None) -> Probe:
        """Look at the foreground group and the input queue now.

        While the shell's own group is in front and its leader waits, the leader is all
        that is looked at: job control leaves nobody else in that group.
        """
        started = time.perf_counter()
        before = self.unread()
        group = self.foreground()
        view = read_view(self._master_fd)
        waits: list[Wait] = []
        polls: list[Wait] = []
        names: set[str] = set()
        busy = blind = False
        read_timeout = view.timeout_s if view else None
        leader = None
        if group is not None and group == shell_pgid and self._table:
            leader = self._leader(group, read_timeout)
        if leader is not None:
            wait, name = leader
            waits.append(wait)
            names.add(name)
        elif group is not None and self._table:
            for pid, name, tty in self._members(group):
                try:
                    for tid, line in _threads(pid):
                        if is_running(line):
                            busy = True
                            continue
                        call = parse_call(line)
                        if call is None:
                            continue
                        patient = self._waits(pid, tty, call, read_timeout)
                        if patient is None:
                            continue
                        switches = _sleeping_switches(pid, tid)
                        if switches is not None:
                            loop = self._table[call.number] in _EVENT_LOOPS
                            (waits if patient else polls).append(Wait(pid, tid, switches, loop))
                            names.add(name)
                except PermissionError:
                    blind = True
                except OSError:
                    continue
        return Probe(
            supported=bool(self._table) and not (blind and not waits),
            foreground_pgid=group,
            waits=tuple(waits),
            unread=max(before, self.unread()),
            canonical=view.canonical if view else None,
            echo=view.echo if view else None,
            busy=busy,
            line_editor=view is not None and is_line_editor(view, frozenset(names)),
            cost_s=time.perf_counter() - started,
            polls=tuple(polls),
        )

    def _leader(self, pid: int, read_timeout: float | None) -> tuple[Wait, str] | None:
        """Return the wait of the shell's main thread and its name, None when it does not wait."""
        try:
            call = parse_call(_text(f"/proc/{pid}/syscall"))
            if call is None or not self._waits(pid, None, call, read_timeout):
                return None
            switches = _sleeping_switches(pid, pid)
            name = _text(f"/proc/{pid}/comm").rstrip("\n")
        except OSError:
            return None
        loop = self._table[call.number] in _EVENT_LOOPS
        return None if switches is None else (Wait(pid, pid, switches, loop), name)

    def _members(self, group: int) -> Iterator[tuple[int, str, int]]:
        """Yield pid, name and terminal device of every process of the group."""
        pending = [self._shim_pid]
        for _ in range(MAX_PROCESSES):
            if not pending:
                return
            pid = pending.pop()
            pending.extend(_children(pid))
            if pid == self._shim_pid:
                continue
            with contextlib.suppress(OSError, ValueError, IndexError):
                name, fields = _stat(pid)
                if int(fields[2]) == group:
                    yield pid, name, int(fields[4])

    def _is_terminal(self, pid: int, tty: int | None, fd: int) -> bool:
        if fd < 0:
            return False
        try:
            node = os.stat(f"/proc/{pid}/fd/{fd}")  # noqa: PTH116  (hot path)
        except OSError:
            return False
        if not stat.S_ISCHR(node.st_mode):
            return False
        if node.st_rdev == _CONTROLLING_TTY:
            number = int(_stat(pid)[1][4]) if tty is None else tty
            return _device(number) == self._node[2]
        return (node.st_dev, node.st_ino, node.st_rdev) == self._node

    def _waits(
        self, pid: int, tty: int | None, call: Call, read_timeout: float | None
    ) -> bool | None:
        """Tell whether the call waits for this terminal's input with patience; None: not at all."""
        shape = self._table.get(call.number)
        if shape is None:
            return None
        if shape is Shape.READ:
            mine = self._is_terminal(pid, tty, signed32(call.args[0]))
            return is_patient(read_timeout) if mine else None
        memory = _Memory(pid)
        try:
            fds, timeout = _SHAPES[shape](call, memory)
        except (OSError, ValueError, OverflowError):
            return None
        finally:
            memory.close()
        return is_patient(timeout) if any(self._is_terminal(pid, tty, fd) for fd in fds) else None


class _Memory:
    """Reads another process's memory and descriptor table."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._fd = -1

    def read(self, address: int, size: int) -> bytes:
        if not address or size <= 0:
            return b""
        if self._fd < 0:
            self._fd = os.open(f"/proc/{self._pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._fd, size, address)

    def timeout(self, address: int, unit: float) -> float | None:
        """Read a timeout; None for no timeout. Raises: ValueError when it is unreadable."""
        if not address:
            return None
        value = timespec_s(self.read(address, 16), unit=unit)
        if value is None:
            raise ValueError("unreadable timeout")
        return value

    def fdinfo(self, fd: int) -> str:
        return _text(f"/proc/{self._pid}/fdinfo/{fd}", 1 << 16)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


_Found = tuple[tuple[int, ...], float | None]


def _select(call: Call, memory: _Memory, unit: float) -> _Found:
    nfds = signed32(call.args[0])
    data = memory.read(call.args[1], select_bytes(nfds))
    return select_fds(nfds, data) if data else (), memory.timeout(call.args[4], unit)


def _polled(call: Call, memory: _Memory) -> tuple[int, ...]:
    count = call.args[1]
    return poll_fds(count, memory.read(call.args[0], min(count, MAX_POLL_FDS) * 8))


def _millis(value: int) -> float | None:
    millis = signed32(value)
    return None if millis < 0 else millis / 1000


def _epoll(call: Call, memory: _Memory) -> tuple[int, ...]:
    if signed32(call.args[2]) < 1:
        return ()
    return epoll_fds(memory.fdinfo(signed32(call.args[0])))


_SHAPES: dict[Shape, Callable[[Call, _Memory], _Found]] = {
    Shape.SELECT: lambda call, memory: _select(call, memory, 1e-6),
    Shape.PSELECT: lambda call, memory: _select(call, memory, 1e-9),
    Shape.POLL: lambda call, memory: (_polled(call, memory), _millis(call.args[2])),
    Shape.PPOLL: lambda call, memory: (
        _polled(call, memory),
        memory.timeout(call.args[2], 1e-9),
    ),
    Shape.EPOLL: lambda call, memory: (_epoll(call, memory), _millis(call.args[3])),
    Shape.EPOLL_TIMESPEC: lambda call, memory: (
        _epoll(call, memory),
        memory.timeout(call.args[3], 1e-9),
    ),
}
_EVENT_LOOPS = frozenset({Shape.EPOLL, Shape.EPOLL_TIMESPEC})


def _text(path: str, size: int = 4096) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, size).decode("utf-8", "replace")
    finally:
        os.close(fd)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for tid in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  (hot path)
            with contextlib.suppress(OSError):
                text = _text(f"/proc/{pid}/task/{tid}/children", 1 << 16)
                found.extend(int(word) for word in text.split())
    except OSError:
        pass
    return found


def _stat(pid: int) -> tuple[str, list[str]]:
    """Return a process's name and the fields after it (state, ppid, pgrp, session, tty...)."""
    text = _text(f"/proc/{pid}/stat")
    start, end = text.index("("), text.rindex(")")
    return text[start + 1 : end], text[end + 1 :].split()


def _threads(pid: int) -> Iterator[tuple[int, str]]:
    for name in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  (hot path)
        try:
            line = _text(f"/proc/{pid}/task/{name}/syscall")
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield int(name), line


def _sleeping_switches(pid: int, tid: int) -> int | None:
    """Return the voluntary switches of a thread that sleeps interruptibly, else None."""
    state = switches = ""
    try:
        text = _text(f"/proc/{pid}/task/{tid}/status")
        state = text.partition("\nState:")[2][:2].strip()
        switches = text.partition("\nvoluntary_ctxt_switches:")[2].partition("\n")[0].strip()
    except OSError:
        return None
    return int(switches) if state == "S" and switches.isdigit() else None


def _device(number: int) -> int:
    """Turn the terminal number of ``stat`` into a device number."""
    return os.makedev(number >> 8 & 0xFFF, number & 0xFF | number >> 12 & 0xFFF00)
