"""The worker's end of the session channel: a unix socket that answers many calls at once.

A peer must run as the same user and know the slot's key before anything else is read.
A call runs as a task of its own; CANCEL cancels that task. When the connection is lost
without CANCEL the caller has not said that it lost interest, so calls are told apart:
the handler's task is cancelled with ``DISCONNECTED`` as its message, and may choose to
go on in the background.
"""

import asyncio
import hmac
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

from fabric.core.errors import CancelledCallError, FabricError, InternalError, InvalidRequestError
from fabric.core.tracing import Tracer
from workers import telling
from workers.frames import VERSION, Decoder, FrameError, Kind, encode
from workers.peer import peer_uid

Args = dict[str, Any]
Handler = Callable[[Args], Awaitable[Any]]
StreamHandler = Callable[[Args], AsyncIterator[Any]]

DISCONNECTED = "disconnected"
_log = logging.getLogger(__name__)


class ChannelServer:
    """Serve ``handlers`` and ``streams`` on a socket at ``path`` to holders of ``key``."""

    def __init__(
        self,
        path: Path,
        key: str,
        handlers: Mapping[str, Handler],
        streams: Mapping[str, StreamHandler] | None = None,
        *,
        tracer: Tracer | None = None,
        host: str = "",
    ) -> None:
        self.tracer = tracer
        self.host = host
        self.path = path
        self.key = key.encode()
        self.handlers = handlers
        self.streams = streams or {}
        self.connections: set[_Connection] = set()
        self._server: asyncio.AbstractServer | None = None

    async def start(self) -> None:
        """Bind, replacing a stale socket file. Raises: OSError."""
        loop = asyncio.get_running_loop()
        self.path.unlink(missing_ok=True)
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # The mask is the whole process's: nobody else may run before it is put back.
            old = os.umask(0o177)
            try:
                sock.bind(str(self.path))
            finally:
                os.umask(old)
            self._server = await loop.create_unix_server(
                lambda: _Connection(self), sock=sock, backlog=128
            )
        except BaseException:
            sock.close()
            raise

    async def close(self) -> None:
        """Stop listening, drop every connection and remove the socket file."""
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.drop()
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None
        self.path.unlink(missing_ok=True)


class _Connection(asyncio.Protocol):
    def __init__(self, server: ChannelServer) -> None:
        self._server = server
        self._decoder = Decoder()
        self._transport: asyncio.Transport | None = None
        self._greeted = False
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._credits: dict[int, _Credit] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        try:
            allowed = peer_uid(transport.get_extra_info("socket").fileno()) == os.getuid()
        except OSError:
            allowed = False
        if not allowed:
            _log.warning("channel peer refused")
            self._transport.abort()
            return
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self._transport = None
        for task in self._tasks.values():
            task.cancel(DISCONNECTED)

    def drop(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._decoder.feed(data):
                self._handle(frame)
        except FrameError as error:
            _log.warning("channel frame refused", extra={"fault": str(error)})
            self.drop()

    def _handle(self, frame: list[Any]) -> None:
        kind = frame[0]
        if not self._greeted:
            self._greet(frame)
        elif kind is Kind.CALL:
            self._begin(frame[1], self._call(frame[1], frame[2], frame[3]))
        elif kind is Kind.STREAM:
            self._credits[frame[1]] = _Credit(frame[4])
            self._begin(frame[1], self._stream(frame[1], frame[2], frame[3]))
        elif kind is Kind.CREDIT:
            credit = self._credits.get(frame[1])
            if credit is not None:
                credit.add(frame[2])
        elif kind is Kind.CANCEL:
            task = self._tasks.get(frame[1])
            if task is not None:
                task.cancel()
        else:
            raise FrameError(f"a client may not send {kind.name}")

    def _greet(self, frame: list[Any]) -> None:
        if frame[0] is not Kind.HELLO or not isinstance(frame[2], str):
            raise FrameError("the first frame must be HELLO")
        if frame[1] != VERSION:
            self._write(
                Kind.FAULT,
                0,
                InvalidRequestError.reason,
                f"channel version {frame[1]} is not spoken here, only {VERSION}",
                {},
            )
            raise FrameError("unknown channel version")
        if not hmac.compare_digest(frame[2].encode(), self._server.key):
            raise FrameError("wrong channel key")
        self._greeted = True
        self._write(Kind.HELLO, VERSION, "")

    def _begin(self, call_id: int, work: Any) -> None:
        if call_id in self._tasks:
            work.close()
            raise FrameError("a call id is used twice")
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[call_id] = task

    async def _call(self, call_id: int, method: str, args: Args) -> None:
        span, code = None, "OK"
        try:
            span = telling.begin(self._server.tracer, self._server.host, method, args)
            handler = self._server.handlers.get(method)
            if handler is None:
                raise InvalidRequestError(f"the worker has no method {method!r}")
            self._write(Kind.RESULT, call_id, await handler(args))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  (the boundary)
            code = self._fault(call_id, error)
        finally:
            self._tasks.pop(call_id, None)
            if span is not None:
                span.end(code)

    async def _stream(self, call_id: int, method: str, args: Args) -> None:
        credit = self._credits[call_id]
        span, code = None, "OK"
        try:
            span = telling.begin(self._server.tracer, self._server.host, method, args)
            handler = self._server.streams.get(method)
            if handler is None:
                raise InvalidRequestError(f"the worker has no stream {method!r}")
            items = handler(args)
            try:
                async for item in items:
                    await credit.take()
                    self._write(Kind.CHUNK, call_id, item)
            finally:
                await cast(Any, items).aclose()
            self._write(Kind.END, call_id)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  (the boundary)
            code = self._fault(call_id, error)
        finally:
            self._tasks.pop(call_id, None)
            self._credits.pop(call_id, None)
            if span is not None:
                span.end(code)

    def _fault(self, call_id: int, error: BaseException) -> str:
        if isinstance(error, asyncio.CancelledError):
            error = CancelledCallError("the call was cancelled")
        elif not isinstance(error, FabricError):
            _log.error("call failed inside the worker", exc_info=error)
            error = InternalError("the worker failed inside; its log has the details")
        self._write(Kind.FAULT, call_id, error.reason, error.message, error.metadata)
        return error.reason

    def _write(self, kind: Kind, *items: Any) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(encode(kind, *items))


class _Credit:
    """How many chunks the client still takes."""

    def __init__(self, left: int) -> None:
        self._left = left
        self._more = asyncio.Event()

    def add(self, count: int) -> None:
        self._left += count
        self._more.set()

    async def take(self) -> None:
        while self._left <= 0:
            self._more.clear()
            await self._more.wait()
        self._left -= 1
