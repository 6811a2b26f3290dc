"""The worker's end of a pseudo-terminal: all output in, input out with back-pressure.

A worker keeps a descriptor of the slave side too. It is what ``FIONREAD`` asks, it keeps
what a program printed last from being lost on systems that drop it with the last slave,
and it means that the master reports its end only after ``drain_last``.

A read of the master that finds nothing first moves everything the other side has written
into the queue it reads from, so "read until nothing is left" is an exact barrier: whatever
was written before it began has been delivered when it returns.

Writing. The kernel takes what fits (some 4 kB of line discipline and a few buffers) and
refuses the rest, so a write waits until the reader makes room, while output goes on
being read (a shell echoes what it reads and stops reading when nobody takes the echo).
In canonical mode whole lines are never lost this way, but a single line beyond the
kernel's limit would be cut silently; it is refused before anything is written.
A reader that takes nothing for ``stall_s`` ends the write: what nobody has read is
discarded, so that half of a text cannot run later.
"""

import asyncio
import contextlib
import errno
import fcntl
import os
import struct
import sys
import termios
from collections.abc import Callable

from fabric.core.errors import InputBlockedError, InputLineTooLongError, SessionExitedError
from workers.readiness.termios_view import CANONICAL_LIMIT, TermiosView, longest_line, read_view

READ_BUDGET_BYTES = 262_144  # per turn of the loop, so that a flood does not starve others
WRITE_CHUNK_BYTES = 65_536
LINE_BYTES = 256
_TIOCGPTPEER = 0x5441
_TIOCPTYGNAME = 0x40807453  # macOS
_LAST_DRAIN_READS = 64


def open_slave(master_fd: int) -> int:
    """Open the slave side without making it the controlling terminal."""
    flags = os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC
    if sys.platform == "darwin":
        name = fcntl.ioctl(master_fd, _TIOCPTYGNAME, bytes(128)).split(b"\0", 1)[0]
        return os.open(name, flags)
    fd: int = fcntl.ioctl(master_fd, _TIOCGPTPEER, flags)
    return fd


class Master:
    """Reads and writes one pseudo-terminal on the running loop."""

    def __init__(
        self,
        master_fd: int,
        *,
        stall_s: float = 10.0,
        slave_fd: int | None = None,
    ) -> None:
        """Take over ``master_fd`` (and ``slave_fd``, opened here when None)."""
        os.set_blocking(master_fd, False)
        self.fd = master_fd
        self.slave_fd = open_slave(master_fd) if slave_fd is None else slave_fd
        self.bytes_read = 0
        self.line = b""  # what came since the last line end, at most LINE_BYTES, raw
        self._stall_s = stall_s
        self._buffer = bytearray(READ_BUDGET_BYTES)
        self._view = memoryview(self._buffer)
        self._on_data: Callable[[bytes], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = False
        self._accepts = True
        self._lock = asyncio.Lock()
        self._rooms: set[asyncio.Future[None]] = set()
        self._open_bytes = 0
        self._pending = memoryview(b"")
        self._total = 0

    def start(self, on_data: Callable[[bytes], None]) -> None:
        """Begin to deliver output, in pieces of up to ``READ_BUDGET_BYTES``."""
        self._on_data = on_data
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self.fd, self.drain)

    @property
    def is_ended(self) -> bool:
        """Tell whether no output can follow."""
        return self._ended

    def drain(self) -> int:
        """Deliver what has been written until nothing is left; return how many bytes.

        Stops after ``READ_BUDGET_BYTES``; a result that large is no barrier.
        """
        filled = 0
        while filled < READ_BUDGET_BYTES and not self._ended:
            try:
                count = os.readv(self.fd, [self._view[filled:]])
            except BlockingIOError:
                break
            except InterruptedError:
                continue
            except OSError:  # EIO: every slave is closed
                self._end()
                break
            if count == 0:
                self._end()
                break
            filled += count
        if filled and self._on_data is not None:
            data = bytes(self._view[:filled])
            self.bytes_read += filled
            end = data.rfind(b"\n")
            self.line = (data[end + 1 :] if end >= 0 else self.line + data)[-LINE_BYTES:]
            self._on_data(data)
        return filled

    async def drain_last(self) -> None:
        """Deliver the rest after the top-level process ended; returns at the end of output.

        A process that still holds the terminal does not delay it.
        """
        self.close_slave()
        for _ in range(_LAST_DRAIN_READS):
            if self.drain() == 0:
                return
            await asyncio.sleep(0)

    def line_view(self) -> TermiosView | None:
        """Return the terminal's settings, None when it is gone."""
        return read_view(self.fd) if self.fd >= 0 else None

    def check_lines(self, data: bytes) -> None:
        """Refuse a line longer than the terminal can collect. Raises: InputLineTooLongError."""
        view = self.line_view()
        if view is None:
            return
        longest, _ = longest_line(data, view, self._open_bytes)
        if longest > CANONICAL_LIMIT:
            raise InputLineTooLongError(
                f"a line of {longest} bytes exceeds the {CANONICAL_LIMIT} bytes that the program's"
                " terminal mode can collect; nothing was written",
                limit_bytes=CANONICAL_LIMIT,
                line_bytes=longest,
            )

    async def write(self, data: bytes) -> None:
        """Check and write every byte, waiting for room; writers queue up behind each other.

        Raises: InputLineTooLongError (nothing written) and what ``flush`` raises.
        """
        async with self._lock:
            self.check_lines(data)
            if not self.write_now(data):
                await self.flush(self._stall_s)

    def write_now(self, data: bytes) -> bool:
        """Give the terminal what it takes at once; False when ``flush`` has to do the rest.

        Raises: SessionExitedError.
        """
        if self._pending:
            raise RuntimeError("an earlier write is not flushed")
        view = self.line_view()
        if view is not None:
            self._open_bytes = longest_line(data, view, self._open_bytes)[1]
        self._pending = memoryview(data)
        self._total = len(data)
        while self._pending and self._write_some():
            pass
        return not self._pending

    async def flush(self, stall_s: float) -> None:
        """Write what ``write_now`` left over, as fast as the program reads.

        A cancelled flush forgets the rest; what the terminal has taken stays.
        Raises: InputBlockedError when nothing was read for ``stall_s`` seconds (metadata:
        ``written_bytes`` that the terminal took, ``total_bytes``), SessionExitedError.
        """
        try:
            while self._pending:
                if self._write_some() or await self.wait_for_room(stall_s):
                    continue
                written = self._total - len(self._pending)
                self.discard_input()
                raise InputBlockedError(
                    f"the program read nothing for {stall_s:g} s; {written} of {self._total}"
                    " bytes were taken, and what was unread is withdrawn",
                    written_bytes=written,
                    total_bytes=self._total,
                )
        finally:
            self._pending = memoryview(b"")

    def write_some(self, data: memoryview) -> int:
        """Give the terminal what it takes at once, behind no other write; return how much.

        0 while another write is under way or when there is no room: ``wait_for_room`` and
        try again. Raises: SessionExitedError.
        """
        if self._pending:
            return 0
        view = self.line_view()
        self._pending = data
        try:
            self._write_some()
            taken = len(data) - len(self._pending)
        finally:
            self._pending = memoryview(b"")
        if view is not None and taken:
            self._open_bytes = longest_line(bytes(data[:taken]), view, self._open_bytes)[1]
        return taken

    def discard_input(self) -> None:
        """Throw away input that nobody has read."""
        with contextlib.suppress(termios.error, OSError, ValueError):
            termios.tcflush(self.slave_fd, termios.TCIFLUSH)
        self._open_bytes = 0

    def resize(self, rows: int, cols: int) -> None:
        """Set the window size; the foreground group is told by the kernel."""
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", rows, cols, 0, 0))

    def size(self) -> tuple[int, int] | None:
        """Return rows and columns as the terminal has them, None when it has none."""
        with contextlib.suppress(OSError):
            rows, cols, _, _ = struct.unpack(
                "4H", fcntl.ioctl(self.fd, termios.TIOCGWINSZ, bytes(8))
            )
            if rows and cols:
                return rows, cols
        return None

    def control_char(self, index: int) -> bytes:
        """Return a character the terminal is set to (``termios.VEOF``, …); empty for none."""
        try:
            value = termios.tcgetattr(self.fd)[6][index]
        except (termios.error, OSError):
            return b""
        code = value if isinstance(value, bytes) else bytes([value])
        return b"" if code in (b"\x00", b"\xff") else code

    def stop_input(self) -> None:
        """Refuse writes from now on, and end one that waits."""
        self._accepts = False
        self._wake()

    def resume_input(self) -> None:
        """Accept writes again."""
        self._accepts = True

    def close_slave(self) -> None:
        """Give up the slave side; the master then ends with the last program on it."""
        if self.slave_fd >= 0:
            os.close(self.slave_fd)
            self.slave_fd = -1

    def close(self) -> None:
        """Let go of the terminal."""
        self._end()
        self._on_data = None
        self.close_slave()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _write_some(self) -> bool:
        """Write a piece of what is pending; False when there is no room."""
        if self._ended or not self._accepts:
            self._pending = memoryview(b"")
            raise SessionExitedError("the terminal takes no input any more")
        try:
            count = os.write(self.fd, self._pending[:WRITE_CHUNK_BYTES])
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._pending = memoryview(b"")
            if error.errno != errno.EIO:
                raise
            raise SessionExitedError("the terminal takes no input any more") from error
        self._pending = self._pending[count:]
        return count > 0

    async def wait_for_room(self, stall_s: float) -> bool:
        """Wait until the terminal takes more; False when it does not for ``stall_s`` seconds."""
        loop = asyncio.get_running_loop()
        room: asyncio.Future[None] = loop.create_future()
        if not self._rooms:
            loop.add_writer(self.fd, self._wake)
        self._rooms.add(room)
        try:
            async with asyncio.timeout(stall_s):
                await room
        except TimeoutError:
            return False
        finally:
            self._rooms.discard(room)
            if self.fd >= 0 and not self._rooms:
                loop.remove_writer(self.fd)
        return True

    def _wake(self) -> None:
        for room in self._rooms:
            if not room.done():
                room.set_result(None)

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self.fd)
        self._wake()


def bracketed(data: bytes) -> bytes:
    """Wrap multi-line text for a reader that asked for bracketed paste.

    Line ends at its end stay outside, so that they still submit. Text that holds one of
    the brackets would break out of them and goes as it is.
    """
    body = data.rstrip(b"\r\n")
    if not (b"\n" in body or b"\r" in body) or b"\x1b[201~" in data or b"\x1b[200~" in data:
        return data
    return b"\x1b[200~" + body + b"\x1b[201~" + data[len(body) :]
