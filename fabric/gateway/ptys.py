"""PtyService: exact bytes by offset, new lines by consumer, and a stream."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from fabric.api.v1 import pty_service_pb2 as pb
from fabric.core.errors import DrainingError
from fabric.core.model import BytesPage
from fabric.gateway.calls import Access, Call, Kind, Route, Routes
from fabric.gateway.limits import Limits
from fabric.gateway.ports import SessionsPort
from fabric.wire import convert, requests, scalars

KEEP_ALIVE_S = 15.0
MAX_CHUNK_BYTES = 1_048_576
Write = Callable[[pb.FollowResponse], Awaitable[None]]


class PtyService:
    """Read what sessions print."""

    name = "PtyService"

    def __init__(self, sessions: SessionsPort, limits: Limits) -> None:
        self._sessions = sessions
        self._limits = limits

    def routes(self) -> Routes:
        """Return the handlers by the names of their RPCs."""
        return {
            "ReadBytes": Route(self.read_bytes, Access.DATA, Kind.WAIT),
            "Tail": Route(self.tail, Access.DATA, Kind.QUICK),
            "Follow": Route(self.follow, Access.DATA, Kind.WAIT),
        }

    async def read_bytes(self, call: Call, message: pb.ReadBytesRequest) -> pb.ReadBytesResponse:
        """Return bytes from an offset."""
        request = requests.bytes_of(message)
        wait_s = request.wait_s or 0.0
        if wait_s:
            wait_s = call.wait_s(wait_s, 0.0, self._limits.max_wait_s)
        page = await self._sessions.read_bytes(
            call.caller,
            request.session_id,
            request.offset,
            min(request.max_bytes, MAX_CHUNK_BYTES),
            wait_s,
        )
        return convert.bytes_message(page)

    async def tail(self, call: Call, message: pb.TailRequest) -> pb.TailResponse:
        """Return the lines that are new to a consumer."""
        session_id, consumer, lines = requests.tail_of(message)
        page = await self._sessions.tail(call.caller, session_id, consumer, lines)
        return convert.tail_message(page)

    async def follow(self, call: Call, message: pb.FollowRequest, write: Write) -> None:
        """Stream bytes until the session ends, or this gateway does."""
        session_id, offset = requests.follow_of(message)
        pages = self._sessions.follow(call.caller, session_id, offset)
        position = offset
        reason = scalars.SESSION_ENDED
        try:
            async for page in _with_pauses(pages):
                if page is None:
                    keep_alive = pb.FollowKeepAlive(next_offset=position or 0)
                    await write(pb.FollowResponse(keep_alive=keep_alive))
                    continue
                if position is not None and page.offset > position:
                    gap = pb.FollowGap(offset=position, next_offset=page.offset)
                    await write(pb.FollowResponse(gap=gap))
                for start in range(0, len(page.data), MAX_CHUNK_BYTES):
                    data = page.data[start : start + MAX_CHUNK_BYTES]
                    chunk = pb.FollowChunk(offset=page.offset + start, data=data)
                    await write(pb.FollowResponse(chunk=chunk))
                position = page.next_offset
                if page.ended:
                    break
        except asyncio.CancelledError:
            if not isinstance(call.ending, DrainingError):
                raise
            call.task.uncancel()
            reason = scalars.DRAINING
        end = pb.FollowEnd(reason=reason, next_offset=position or 0)
        await write(pb.FollowResponse(end=end))


async def _with_pauses(pages: AsyncIterator[BytesPage]) -> AsyncIterator[BytesPage | None]:
    """Yield the pages, and None whenever none came for a while."""
    pending: asyncio.Task[BytesPage] | None = None
    try:
        while True:
            if pending is None:
                pending = asyncio.ensure_future(_next(pages))
            done, _ = await asyncio.wait({pending}, timeout=KEEP_ALIVE_S)
            if not done:
                yield None
                continue
            finished, pending = pending, None
            try:
                page = finished.result()
            except StopAsyncIteration:
                return
            yield page
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.wait({pending})
        close = getattr(pages, "aclose", None)
        if close is not None:
            await close()


async def _next(pages: AsyncIterator[BytesPage]) -> BytesPage:
    return await anext(pages)
