"""What a blocked thread waits for, read from its line in ``/proc/<pid>/task/<tid>/syscall``.

The kernel prints ``running`` for a thread that is not asleep, ``-1 sp pc`` for one that
sleeps outside a system call, and ``nr arg0..arg5 sp pc`` for one that sleeps inside. Six
shapes of call can wait for a terminal's input; the number that means each differs by
architecture (x86-64 has its own table, AArch64, RISC-V and LoongArch share the generic
one). Numbers of an unknown architecture, and calls of a 32-bit program on a 64-bit kernel,
match nothing: a miss, never a guess. ``restart_syscall`` is a miss too, since its
arguments do not tell which call is restarted.

A bounded wait (a timeout argument) is told apart from an open one, because a program that
looks for a key every now and then while it works does not wait for input. The rule is
``is_patient``: no timeout, or one of at least ``MIN_TIMED_WAIT_S``.
"""

import struct
from dataclasses import dataclass
from enum import Enum, auto

MIN_TIMED_WAIT_S = 1.0  # a shorter timeout is a poll of a working program
MAX_POLL_FDS = 1024
POLLIN = 0x1
EPOLLIN = 0x1
_READABLE = 0x1 | 0x40 | 0x80  # POLLIN, POLLRDNORM, POLLRDBAND
_FD_BITS = 64


class Shape(Enum):
    """How a call names the descriptors it waits for."""

    READ = auto()  # fd
    SELECT = auto()  # nfds, readfds, -, -, timeval
    PSELECT = auto()  # nfds, readfds, -, -, timespec
    POLL = auto()  # fds, nfds, milliseconds
    PPOLL = auto()  # fds, nfds, timespec
    EPOLL = auto()  # epfd, -, maxevents, milliseconds
    EPOLL_TIMESPEC = auto()  # epfd, -, maxevents, timespec


_X86_64 = {
    0: Shape.READ,  # read
    19: Shape.READ,  # readv
    23: Shape.SELECT,
    270: Shape.PSELECT,
    7: Shape.POLL,
    271: Shape.PPOLL,
    232: Shape.EPOLL,  # epoll_wait
    281: Shape.EPOLL,  # epoll_pwait
    441: Shape.EPOLL_TIMESPEC,  # epoll_pwait2
}
_GENERIC_64 = {
    63: Shape.READ,
    65: Shape.READ,
    72: Shape.PSELECT,
    73: Shape.PPOLL,
    22: Shape.EPOLL,
    441: Shape.EPOLL_TIMESPEC,
}
TABLES = {
    "x86_64": _X86_64,
    "aarch64": _GENERIC_64,
    "riscv64": _GENERIC_64,
    "loongarch64": _GENERIC_64,
}


@dataclass(frozen=True, slots=True)
class Call:
    """A system call a thread sleeps in."""

    number: int
    args: tuple[int, ...]


RUNNING = "running"


def parse_call(line: str) -> Call | None:
    """Read a ``syscall`` line; None for a thread that is in no call, or for nonsense."""
    words = line.split()
    if len(words) < 9:
        return None
    try:
        number = int(words[0])
        args = tuple(int(word, 16) for word in words[1:7])
    except ValueError:
        return None
    return Call(number, args) if number >= 0 else None


def is_running(line: str) -> bool:
    """Tell whether the thread was not asleep when the line was read."""
    return line.startswith(RUNNING)


def signed32(value: int) -> int:
    """Read a C ``int`` out of a register."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def select_bytes(nfds: int) -> int:
    """Return how many bytes of an fd set matter for ``nfds`` descriptors (0: none)."""
    if not 1 <= nfds <= MAX_POLL_FDS:
        return 0
    return (nfds + _FD_BITS - 1) // _FD_BITS * (_FD_BITS // 8)


def select_fds(nfds: int, data: bytes) -> tuple[int, ...]:
    """List the descriptors set in a (little-endian) fd set."""
    if len(data) < select_bytes(nfds):
        return ()
    bits = int.from_bytes(data, "little")
    return tuple(fd for fd in range(nfds) if bits >> fd & 1)


def poll_fds(count: int, data: bytes) -> tuple[int, ...]:
    """List the descriptors a pollfd array wants to read from."""
    usable = min(count, MAX_POLL_FDS, len(data) // 8)
    rows = struct.iter_unpack("<ihh", data[: usable * 8])
    return tuple(fd for fd, events, _ in rows if fd >= 0 and events & _READABLE)


def epoll_fds(fdinfo: str) -> tuple[int, ...]:
    """List the descriptors an epoll instance is armed to read from."""
    found = []
    for line in fdinfo.splitlines():
        if not line.startswith("tfd:"):
            continue
        words = line.replace(":", ": ").split()
        try:
            fd = int(words[1])
            events = int(words[words.index("events:") + 1], 16)
        except (ValueError, IndexError):
            continue
        if events & EPOLLIN:
            found.append(fd)
    return tuple(found)


def timespec_s(data: bytes, *, unit: float) -> float | None:
    """Read seconds and a fraction in ``unit`` (1e-6 timeval, 1e-9 timespec)."""
    if len(data) < 16:
        return None
    seconds, fraction = struct.unpack("<qq", data[:16])
    return float(seconds) + float(fraction) * unit


def is_patient(timeout_s: float | None) -> bool:
    """Tell whether a wait with this timeout (None: none) counts as waiting for input."""
    return timeout_s is None or timeout_s < 0 or timeout_s >= MIN_TIMED_WAIT_S
