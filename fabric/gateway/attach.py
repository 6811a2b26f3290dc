"""One attach through the gateway: events out at the reader's pace, input in, in order.

Three things run side by side in the call: the reader's messages are taken apart, its
input is handed to the session one write after the other, and the session's events are
written. Of what was sent, at most ``window`` bytes may be unacknowledged; then nothing
more is asked of the session, whose byte log goes on without this reader, and what it
misses becomes a gap there. So a stalled reader holds its window, what the session's
channel has credit for, and no more, whatever the program prints.

Input that the session refuses is an event, not the end: a person may go on reading.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable

from fabric.api.v1 import pty_service_pb2 as pb
from fabric.core.attach import AttachEvent, AttachKind, AttachStart, WriteRequest
from fabric.core.errors import DrainingError, FabricError, InputTooLargeError, InvalidRequestError
from fabric.core.ids import SessionId, new_request_id
from fabric.gateway.calls import Call
from fabric.gateway.pauses import with_pauses
from fabric.gateway.ports import SessionsPort
from fabric.wire import attach as wire
from fabric.wire import scalars

MAX_INPUT_BYTES = 262_144
MAX_QUEUED = 16
Write = Callable[[pb.AttachResponse], Awaitable[None]]
Messages = AsyncIterator[pb.AttachRequest]


class Attachment:
    """One reader of one session."""

    def __init__(self, call: Call, sessions: SessionsPort, write: Write) -> None:
        self._call = call
        self._sessions = sessions
        self._out = write
        self._writing = asyncio.Lock()
        self._inputs: asyncio.Queue[WriteRequest | tuple[int, int]] = asyncio.Queue(MAX_QUEUED)
        self._unacknowledged: deque[tuple[int, int]] = deque()
        self._room = asyncio.Event()
        self._left = 0
        self._position = 0
        self._detached = self._over = False
        self._fault: FabricError | None = None

    async def run(self, messages: Messages) -> None:
        """Serve the reader until the session ends, it detaches, or this gateway stops.

        Raises: what the session raises; InvalidRequestError for messages out of order.
        """
        first = await anext(messages, None)
        if first is None or first.WhichOneof("request") != "start":
            raise InvalidRequestError("the first message of an attach must be start")
        session_id, start, window = wire.start_of(first.start)
        self._left = window
        task = self._call.task
        reading = asyncio.ensure_future(self._read(messages))
        reading.add_done_callback(lambda _: self._end(task))
        typing = asyncio.ensure_future(self._type(session_id))
        reason, status = scalars.SESSION_ENDED, None
        try:
            status = await self._show(session_id, start)
        except asyncio.CancelledError:
            if self._fault is not None or self._detached:
                task.uncancel()
                if self._fault is not None:
                    raise self._fault from None
                reason = wire.DETACHED
            elif isinstance(self._call.ending, DrainingError):
                task.uncancel()
                reason = scalars.DRAINING
            else:
                raise
        finally:
            self._over = True
            reading.cancel()
            typing.cancel()
            await asyncio.wait({reading, typing})
        position = self._position
        last = status or AttachEvent(AttachKind.END, position, position)
        try:
            await self._write(wire.end_message(reason, last))
        except Exception:
            if not self._detached:  # else the reader broke off and hears nothing any more
                raise

    def _end(self, task: "asyncio.Task[None]") -> None:
        """Wake the call when its reader is gone."""
        if (self._detached or self._fault is not None) and not self._over:
            task.cancel()

    async def _show(self, session_id: SessionId, start: AttachStart) -> AttachEvent | None:
        events = self._sessions.attach(self._call.caller, session_id, start)
        async with contextlib.aclosing(with_pauses(events)) as paced:
            async for event in paced:
                if event is None:
                    alive = pb.FollowKeepAlive(next_offset=self._position)
                    await self._write(pb.AttachResponse(keep_alive=alive))
                    continue
                self._position = event.next_offset
                if event.kind is AttachKind.END:
                    return event
                size = len(event.data)
                if size:
                    while self._left <= 0:
                        self._room.clear()
                        await self._room.wait()
                    self._left -= size
                    self._unacknowledged.append((event.next_offset, size))
                await self._write(wire.event_message(event))
        return None

    async def _write(self, message: pb.AttachResponse) -> None:
        async with self._writing:
            await self._out(message)

    async def _read(self, messages: Messages) -> None:
        try:
            async for message in messages:
                kind = message.WhichOneof("request")
                if kind == "ack":
                    self._acknowledge(message.ack.next_offset)
                elif kind == "input":
                    await self._inputs.put(self._input(message.input))
                elif kind == "resize":
                    await self._inputs.put(wire.size_of(message.resize))
                else:
                    raise InvalidRequestError("an attach has one start; state a request")
        except FabricError as error:
            self._fault = error
        else:
            await self._inputs.join()  # what was typed before the end is still typed
            self._detached = True

    def _input(self, message: pb.Input) -> WriteRequest:
        request = wire.input_of(message, new_request_id())
        if len(request.data) > MAX_INPUT_BYTES:
            raise InputTooLargeError(
                f"one input of an attach has at most {MAX_INPUT_BYTES} bytes",
                max_bytes=MAX_INPUT_BYTES,
            )
        return request

    def _acknowledge(self, next_offset: int) -> None:
        sent = self._unacknowledged
        while sent and sent[0][0] <= next_offset:
            self._left += sent.popleft()[1]
        self._room.set()

    async def _type(self, session_id: SessionId) -> None:
        caller = self._call.caller
        while True:
            item = await self._inputs.get()
            try:
                if isinstance(item, WriteRequest):
                    await self._sessions.write(caller, session_id, item)
                else:
                    await self._sessions.resize(caller, session_id, *item)
            except FabricError as error:
                refused = pb.AttachRefused(reason=error.reason, message=error.message)
                await self._write(pb.AttachResponse(refused=refused))
            finally:
                self._inputs.task_done()
