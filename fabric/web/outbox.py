"""What goes to one page: frames in order, output no faster than the page shows it.

Output and snapshots are counted until the page says it has shown them; with a window of
them on the way, the stream behind waits, and what it would have to wait for is skipped at
its source by a snapshot. So neither this process nor the browser ever holds more than a
window and one snapshot for a page, and a key's echo has no more than that before it. A page
that takes nothing, or shows nothing of what it took, is cut off after a while.
"""

import asyncio
from collections import deque
from typing import Protocol

from fabric.web.frames import Close


class SocketClosed(Exception):  # noqa: N818  (an end, not an error)
    """The connection is over."""


class Ending(Exception):  # noqa: N818  (an end, not an error)
    """The connection is to be closed with a code."""

    def __init__(self, code: Close, why: str = "") -> None:
        super().__init__(why)
        self.code = code
        self.why = why


class Socket(Protocol):
    """One WebSocket of text frames."""

    async def recv(self) -> str:
        """Return the next frame. Raises: SocketClosed, Ending for one that is no text."""
        ...

    async def send(self, text: str) -> None:
        """Hand a frame over, waiting while the connection takes nothing. Raises: SocketClosed."""
        ...

    async def close(self, code: int, why: str) -> None:
        """Close."""
        ...


class Outbox:
    """The sending half of one connection."""

    def __init__(self, socket: Socket, window_bytes: int, stall_s: float) -> None:
        self._socket = socket
        self._left = window_bytes
        self._stall_s = stall_s
        self._shown: deque[tuple[int, int]] = deque()
        self._room = asyncio.Event()
        self.sent_at = 0.0

    async def send(self, text: str) -> None:
        """Send a frame. Raises: SocketClosed, Ending when the page takes nothing."""
        loop = asyncio.get_running_loop()
        self.sent_at = loop.time()
        try:
            async with asyncio.timeout(self._stall_s):
                await self._socket.send(text)
        except TimeoutError:
            raise Ending(Close.SLOW, "the page takes nothing") from None

    async def room(self) -> None:
        """Wait until the page has shown enough to be sent more. Raises: Ending when it does not."""
        while self._left <= 0:
            self._room.clear()
            try:
                async with asyncio.timeout(self._stall_s):
                    await self._room.wait()
            except TimeoutError:
                raise Ending(Close.SLOW, "the page shows nothing of what it is sent") from None

    async def show(self, text: str, sequence: int, size: int) -> None:
        """Send a frame of ``size`` bytes of output that end at ``sequence``."""
        self._left -= size
        self._shown.append((sequence, size))
        await self.send(text)

    def acknowledge(self, sequence: int) -> None:
        """Take note that the page has shown everything up to ``sequence``."""
        while self._shown and self._shown[0][0] <= sequence:
            self._left += self._shown.popleft()[1]
        self._room.set()
