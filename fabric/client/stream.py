"""The bytes of a session as a reader and a writer: what a protocol's client builds on.

A task of its own reads ahead into a bounded buffer, so a read that is cancelled loses
nothing, and a consumer that does not read holds back only itself. When the gateway goes
away the stream goes on from the same offset, here or at the next address: no byte comes
twice and none is left out unsaid. Bytes that the session no longer had when they were
asked for are a gap: it ends the frame being read, then raises CursorExpiredError once, and
reading goes on behind it.

Nothing is parsed and nothing is decoded.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable
from types import TracebackType
from typing import Self

from fabric.client.calls import Calls
from fabric.core.attach import WriteRequest
from fabric.core.errors import (
    CursorExpiredError,
    DrainingError,
    FabricError,
    GatewayUnavailableError,
    InvalidRequestError,
    RegistryUnavailableError,
)
from fabric.core.ids import RequestId, SessionId, new_request_id
from fabric.core.model import BytesPage

DEFAULT_LIMIT_BYTES = 1_048_576
MAX_RESUMES = 12
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
ENTER = b"\r"
_AWAY = (DrainingError, GatewayUnavailableError, RegistryUnavailableError)


class PtyStream:
    """An asynchronous reader and writer of one session. Use it in ``async with``.

    ``offset`` is that of the next byte a read returns; it is all that is needed to go on
    later.
    """

    def __init__(
        self,
        calls: Callable[[], Calls],
        session_id: SessionId,
        offset: int = 0,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
    ) -> None:
        if offset < 0 or limit_bytes <= 0:
            raise InvalidRequestError("offset must not be negative and limit_bytes positive")
        self._calls = calls
        self.session_id = session_id
        self.offset = offset
        self._limit = limit_bytes
        self._buffer = bytearray()
        self._gap: tuple[int, int] | None = None
        self._ended = False
        self._error: FabricError | None = None
        self._more = asyncio.Event()
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to read ahead."""
        self._task = asyncio.get_running_loop().create_task(self._pump(), name="pty-stream")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop reading; the session goes on."""
        await self.aclose()

    async def aclose(self) -> None:
        """Stop reading; the session goes on. May be repeated."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        self._ended = True
        self._more.set()

    # -- reading ---------------------------------------------------------------

    def at_eof(self) -> bool:
        """Tell whether every byte was read and none can come."""
        return self._ended and not self._buffer

    async def read(self, max_bytes: int = 65_536) -> bytes:
        """Return what is there, waiting for the first byte; empty at the end.

        Raises: CursorExpiredError at a gap (metadata: offset, oldest_offset), what the
        session raises.
        """
        while not self._buffer:
            if not await self._wait():
                return b""
        return self._take(min(max_bytes, len(self._buffer)))

    async def readexactly(self, count: int) -> bytes:
        """Return ``count`` bytes. Raises: asyncio.IncompleteReadError, and what read raises."""
        if count > self._limit:
            raise InvalidRequestError(f"a frame has at most {self._limit} bytes")
        while len(self._buffer) < count:
            if self._stops():
                raise asyncio.IncompleteReadError(self._take(len(self._buffer)), count)
            await self._wait()
        return self._take(count)

    async def readuntil(self, separator: bytes = b"\n") -> bytes:
        """Return the bytes up to and with ``separator``.

        Raises: asyncio.IncompleteReadError with what came before the end or a gap;
        asyncio.LimitOverrunError when the limit was reached without it, and the bytes stay
        to be read otherwise; what read raises.
        """
        if not separator:
            raise InvalidRequestError("a separator has at least one byte")
        searched = 0
        while True:
            at = self._buffer.find(separator, searched)
            if at >= 0:
                return self._take(at + len(separator))
            searched = max(0, len(self._buffer) - len(separator) + 1)
            if len(self._buffer) >= self._limit:
                raise asyncio.LimitOverrunError("no separator within the limit", searched)
            if self._stops():
                raise asyncio.IncompleteReadError(self._take(len(self._buffer)), None)
            if not await self._wait():
                raise asyncio.IncompleteReadError(b"", None)

    async def readline(self) -> bytes:
        """Return a line with its end; without one at the end or a gap; empty at the end."""
        try:
            return await self.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial

    def __aiter__(self) -> Self:
        """Iterate over the lines."""
        return self

    async def __anext__(self) -> bytes:
        """Return the next line."""
        line = await self.readline()
        if not line:
            raise StopAsyncIteration
        return line

    def _stops(self) -> bool:
        """Tell whether a frame begun in the buffer can never be completed."""
        return bool(self._buffer) and (self._gap is not None or self._ended)

    def _take(self, count: int) -> bytes:
        data = bytes(memoryview(self._buffer)[:count])
        del self._buffer[:count]
        self.offset += count
        if len(self._buffer) < self._limit:
            self._room.set()
        return data

    async def _wait(self) -> bool:
        """Wait until more is in the buffer; False at the end. Raises at a gap."""
        before = len(self._buffer)
        while len(self._buffer) == before:
            if not self._buffer and self._gap is not None:
                (first, behind), self._gap = self._gap, None
                self.offset = behind
                self._room.set()
                raise CursorExpiredError(
                    f"the bytes {first} to {behind} were dropped before they were read",
                    offset=first,
                    oldest_offset=behind,
                )
            if self._gap is not None:
                return True
            if self._ended:
                if self._error is not None:
                    raise self._error
                return bool(self._buffer)
            if self._task is None:
                raise InvalidRequestError("use the stream in `async with`")
            self._more.clear()
            await self._more.wait()
        return True

    # -- reading ahead ---------------------------------------------------------

    async def _pump(self) -> None:
        at, failures = self.offset, 0
        try:
            while True:
                try:
                    pages = self._calls().follow(self.session_id, at)
                    async with contextlib.aclosing(pages) as stream:  # type: ignore[type-var]
                        async for page in stream:
                            failures = 0
                            at = await self._add(page, at)
                            if page.ended:
                                return
                except _AWAY:
                    failures += 1
                    if failures > MAX_RESUMES:
                        raise
                    pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**failures)
                    await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
        except FabricError as error:
            self._error = error
        finally:
            self._ended = True
            self._more.set()

    async def _add(self, page: BytesPage, at: int) -> int:
        if page.offset > at:
            self._gap = (at, page.offset)
            self._more.set()
            while self._gap is not None:
                self._room.clear()
                await self._room.wait()
        if page.data:
            self._buffer += page.data
            self._more.set()
        while len(self._buffer) >= self._limit:
            self._room.clear()
            await self._room.wait()
        return page.next_offset

    # -- writing ---------------------------------------------------------------

    async def write(self, data: bytes, *, request_id: RequestId | None = None) -> int:
        """Put bytes into the terminal, verbatim; return when it has taken them, how many.

        Raises: InputBlockedError, InputLineTooLongError, SessionExitedError.
        """
        request = WriteRequest(request_id or new_request_id(), data)
        return (await self._calls().write(self.session_id, request)).written_bytes

    async def writeline(self, text: str | bytes) -> None:
        """Type a line and Enter."""
        data = text.encode() if isinstance(text, str) else text
        await self.write(data + ENTER)

    async def keys(self, *names: str) -> None:
        """Press named keys: ``Enter``, ``Ctrl-C``, ``Up``, ``F5``, …"""
        request = WriteRequest(new_request_id(), keys=names)
        await self._calls().write(self.session_id, request)

    async def eof(self) -> None:
        """Send the terminal's end-of-file character."""
        await self._calls().write(self.session_id, WriteRequest(new_request_id(), eof=True))

    async def resize(self, rows: int, cols: int) -> None:
        """Change the terminal's size."""
        await self._calls().resize(self.session_id, rows, cols, new_request_id())
