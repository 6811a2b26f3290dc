"""The caller's end of the session channel: one connection, many calls at once."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

from fabric.core.errors import (
    DeadlineError,
    FabricError,
    OutcomeUnknownError,
    SessionLostError,
    error_of,
)
from workers.frames import VERSION, Decoder, FrameError, Kind, encode

CONNECT_TIMEOUT_S = 5.0
STREAM_CREDIT = 32
# How long a cancelled call waits for the worker's word that it has ended; longer than the
# worker itself waits for a program to stop.
CANCELLED_S = 1.25
_log = logging.getLogger(__name__)


class ChannelClosedError(SessionLostError):
    """The worker's end of the channel went away."""


class ChannelClient(asyncio.Protocol):
    """A connection to one session worker. Make it with ``connect``."""

    def __init__(self, path: Path, key: str) -> None:
        self.path = path
        self._key = key
        self._decoder = Decoder()
        self._transport: asyncio.Transport | None = None
        self._ids = itertools.count(1)
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._streams: dict[int, asyncio.Queue[tuple[Kind, Any]]] = {}
        self._hello: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def connect(cls, path: Path, key: str) -> "ChannelClient":
        """Connect and greet. Raises: ChannelClosedError when nobody answers there."""
        client = cls(path, key)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await loop.create_unix_connection(lambda: client, str(path))
                await client._hello
        except (OSError, TimeoutError) as error:
            client.close()
            raise ChannelClosedError("the session's worker does not answer") from error
        except BaseException:
            client.close()
            raise
        return client

    @property
    def is_open(self) -> bool:
        """Tell whether calls can be made."""
        return self._transport is not None and not self._transport.is_closing()

    def close(self) -> None:
        """Drop the connection; open calls fail."""
        if self._transport is not None:
            self._transport.abort()
        if self._hello.done() and not self._hello.cancelled():
            self._hello.exception()

    async def call(
        self, method: str, args: dict[str, Any] | None = None, timeout_s: float | None = None
    ) -> Any:
        """Call and await the answer; cancelling this coroutine cancels the call there.

        Cancelling waits for the call's end there, ``CANCELLED_S`` at most.

        Raises: what the worker raised; OutcomeUnknownError when the connection was lost
        under the call; ChannelClosedError when it was lost before; DeadlineError.
        """
        call_id = next(self._ids)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._write(encode(Kind.CALL, call_id, method, args or {}))
        self._calls[call_id] = answer
        try:
            if timeout_s is None:
                return await answer
            async with asyncio.timeout(timeout_s):
                return await answer
        except TimeoutError as error:
            self._cancel(call_id)
            raise DeadlineError(f"{method} did not answer within {timeout_s:g} s") from error
        except asyncio.CancelledError:
            self._cancel(call_id)
            await self._ended(call_id)
            raise
        finally:
            self._calls.pop(call_id, None)

    async def _ended(self, call_id: int) -> None:
        if not self.is_open:
            return
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls[call_id] = answer
        await asyncio.wait({answer}, timeout=CANCELLED_S)
        if answer.done():
            answer.exception()  # seen: that it was cancelled

    async def stream(self, method: str, args: dict[str, Any] | None = None) -> AsyncIterator[Any]:
        """Yield the items of a stream; leaving the loop cancels it there."""
        call_id = next(self._ids)
        items: asyncio.Queue[tuple[Kind, Any]] = asyncio.Queue()
        self._write(encode(Kind.STREAM, call_id, method, args or {}, STREAM_CREDIT))
        self._streams[call_id] = items
        ended = False
        taken = 0
        try:
            while True:
                kind, value = await items.get()
                if kind is not Kind.CHUNK:
                    ended = True
                    if kind is Kind.END:
                        return
                    raise cast(FabricError, value)
                taken += 1
                if taken * 2 >= STREAM_CREDIT:
                    self._write(encode(Kind.CREDIT, call_id, taken))
                    taken = 0
                yield value
        finally:
            self._streams.pop(call_id, None)
            if not ended:
                self._cancel(call_id)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the worker."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(encode(Kind.HELLO, VERSION, self._key))

    def data_received(self, data: bytes) -> None:
        """Hand answers to their calls."""
        try:
            for frame in self._decoder.feed(data):
                self._handle(frame)
        except FrameError as error:
            _log.warning("channel frame refused", extra={"fault": str(error)})
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what waits."""
        self._transport = None
        gone = ChannelClosedError("the session's worker closed the channel")
        if not self._hello.done():
            self._hello.set_exception(gone)
        for answer in self._calls.values():
            if not answer.done():
                answer.set_exception(
                    OutcomeUnknownError("the session's worker went away under the call")
                )
        for items in self._streams.values():
            items.put_nowait((Kind.FAULT, gone))
        if not self.closed.done():
            self.closed.set_result(None)

    def _handle(self, frame: list[Any]) -> None:
        kind = frame[0]
        if kind is Kind.HELLO:
            if not self._hello.done():
                self._hello.set_result(None)
            return
        call_id = frame[1]
        value: Any = frame[2] if len(frame) > 2 else None
        if kind is Kind.FAULT:
            value = error_of(frame[2], frame[3], frame[4])
            if not self._hello.done():
                self._hello.set_exception(value)
                return
        items = self._streams.get(call_id)
        if items is not None:
            items.put_nowait((kind, value))
            return
        answer = self._calls.get(call_id)
        if answer is None or answer.done():
            return
        if kind is Kind.FAULT:
            answer.set_exception(value)
        else:
            answer.set_result(value)

    def _cancel(self, call_id: int) -> None:
        if self.is_open:
            self._write(encode(Kind.CANCEL, call_id))

    def _write(self, frame: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ChannelClosedError("the session's worker closed the channel")
        self._transport.write(frame)
