"""The raw floor: one bash on one PTY in this process, nothing in between.

Every figure of ``tests.load.bench`` is read beside these, measured in the same run, so
that a noisy machine moves both.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

# The mark stands undeclared: with declared invisible text and TERM=dumb, readline draws the
# prompt twice, and a round trip would seem to end at the stale one.
MARK = b"\x1b]7770;floor\x07"
ENV = {"PATH": os.environ["PATH"], "TERM": "dumb", "PS1": r"\e]7770;floor\a$ "}


class Bare:
    """A bash of our own on a bare PTY, ready when its marker has come."""

    def __init__(self, *before: str) -> None:
        argv = [*before, "/bin/bash", "--noprofile", "--norc", "-i"]
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, ENV)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
        self._poll = select.poll()
        self._poll.register(self.fd, select.POLLIN)
        self.until_ready()

    def until_ready(self) -> int:
        """Read up to the next prompt and return how many bytes came."""
        tail, count = b"", 0
        while MARK + b"$ " not in tail:
            self._poll.poll()
            data = os.read(self.fd, 65536)
            count += len(data)
            tail = tail[-64:] + data
        return count

    def send(self, text: bytes) -> int:
        """Type a line and read up to the next prompt."""
        os.write(self.fd, text + b"\r")
        return self.until_ready()

    def close(self) -> None:
        """End the shell."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def echo_seconds(count: int) -> list[float]:
    """Time ``count`` round trips of ``echo hi``."""
    bare = Bare()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        bare.send(b"echo hi")
        times.append(time.perf_counter() - start)
    bare.close()
    return times


def open_seconds(count: int) -> list[float]:
    """Time ``count`` opens up to the first prompt."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        bare = Bare()
        times.append(time.perf_counter() - start)
        bare.close()
    return times


def bulk_rate(lines: int) -> tuple[float, int]:
    """Read ``seq lines`` and return (bytes a second, bytes)."""
    bare = Bare()
    start = time.perf_counter()
    count = bare.send(b"seq %d" % lines)
    rate = count / (time.perf_counter() - start)
    bare.close()
    return rate, count
