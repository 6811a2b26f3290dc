"""PtyService: exact bytes by offset, new lines by consumer, streams, and input."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from fabric.api.v1 import pty_service_pb2 as pb
from fabric.core.errors import DrainingError
from fabric.gateway.attach import Attachment
from fabric.gateway.calls import Access, Call, Kind, Route, Routes
from fabric.gateway.limits import Limits
from fabric.gateway.pauses import with_pauses
from fabric.gateway.ports import SessionsPort
from fabric.gateway.terminals import refuse_large
from fabric.wire import attach as wire
from fabric.wire import convert, requests, scalars

MAX_CHUNK_BYTES = 1_048_576
Write = Callable[[pb.FollowResponse], Awaitable[None]]


class PtyService:
    """Read what sessions print, and type."""

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
            "Write": Route(self.write, Access.DATA, Kind.WORK),
            "Attach": Route(self.attach, Access.DATA, Kind.WAIT),
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
        request = requests.tail_of(message)
        page = await self._sessions.tail(
            call.caller,
            request.session_id,
            request.consumer,
            request.lines or self._limits.pty.tail_lines,
            request.request_id,
        )
        return convert.tail_message(page)

    async def write(self, call: Call, message: pb.WriteRequest) -> pb.WriteResponse:
        """Put input into the terminal."""
        session_id, request = wire.write_of(message)
        refuse_large(request.data, self._limits)
        return wire.receipt_message(await self._sessions.write(call.caller, session_id, request))

    async def attach(
        self, call: Call, messages: AsyncIterator[pb.AttachRequest], write: Callable[[Any], Any]
    ) -> None:
        """Connect a reader that may also type."""
        await Attachment(call, self._sessions, write).run(messages)

    async def follow(self, call: Call, message: pb.FollowRequest, write: Write) -> None:
        """Stream bytes until the session ends, or this gateway does."""
        session_id, offset = requests.follow_of(message)
        pages = self._sessions.follow(call.caller, session_id, offset)
        position = offset
        reason = scalars.SESSION_ENDED
        try:
            async for page in with_pauses(pages):
                if page is None or not (page.data or page.ended):
                    position = position if page is None else page.next_offset
                    if position is None:
                        continue  # nothing is known that could be told
                    keep_alive = pb.FollowKeepAlive(next_offset=position)
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
