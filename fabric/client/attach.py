"""An attach from the reader's side: events in, input out, acknowledgements by themselves."""

from types import TracebackType
from typing import Self

from fabric.api.v1 import pty_service_pb2 as pb
from fabric.client.calls import Calls
from fabric.client.link import Duplex
from fabric.core.attach import AttachEvent, AttachKind, AttachStart, WriteRequest
from fabric.core.errors import DrainingError, InvalidRequestError
from fabric.core.ids import SessionId, new_request_id
from fabric.wire import attach as wire
from fabric.wire import scalars

ACKS_PER_WINDOW = 4


class Attachment:
    """One attach, for as long as the ``async with`` block runs.

        async with session.attach(rows=24, cols=80) as attached:
            await attached.write(b"ls\\r")
            async for event in attached:
                ...

    Iterate over it for the events; asking for the next one acknowledges those before, so a
    reader that is slow holds back only itself. The last event is ``END``. Input that the
    session refuses comes back as an event ``REFUSED``.
    """

    def __init__(
        self,
        calls: Calls,
        session_id: SessionId,
        start: AttachStart,
        window_bytes: int | None = None,
    ) -> None:
        self._calls = calls
        self._start = wire.start_message(session_id, start, window_bytes)
        self._window = window_bytes or wire.DEFAULT_WINDOW_BYTES
        self._stream: Duplex | None = None
        self._taken = 0
        self._over = False

    async def __aenter__(self) -> Self:
        """Begin to attach."""
        self._stream = self._calls.attach()
        try:
            await self._stream.write(self._start)
        except BaseException:
            self._stream.cancel()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Break the attach off; the session goes on."""
        if self._stream is not None:
            self._stream.cancel()

    def __aiter__(self) -> Self:
        """Iterate over the events."""
        return self

    async def __anext__(self) -> AttachEvent:
        """Return the next event. Raises: what ended the attach; DrainingError."""
        while not self._over:
            message: pb.AttachResponse | None = await self._open().read()
            if message is None:
                break
            event = wire.event_of(message)
            if event is None:
                continue
            await self._acknowledge(event)
            if event.kind is AttachKind.END:
                self._over = True
                if message.end.reason == scalars.DRAINING:
                    raise DrainingError(
                        "the gateway is shutting down", next_offset=event.next_offset
                    )
            return event
        raise StopAsyncIteration

    async def _acknowledge(self, event: AttachEvent) -> None:
        self._taken += len(event.data)
        if self._taken * ACKS_PER_WINDOW >= self._window:
            self._taken = 0
            ack = pb.AttachAck(next_offset=event.next_offset)
            await self._open().write(pb.AttachRequest(ack=ack))

    def _open(self) -> Duplex:
        if self._stream is None:
            raise InvalidRequestError("use the attach in `async with`")
        return self._stream

    async def write(self, data: bytes) -> None:
        """Type bytes. Raises: GatewayUnavailableError once the attach has ended."""
        await self._input(WriteRequest(new_request_id(), data))

    async def keys(self, *names: str) -> None:
        """Press named keys: ``Enter``, ``Ctrl-C``, ``Up``, ``F5``, …"""
        await self._input(WriteRequest(new_request_id(), keys=names))

    async def eof(self) -> None:
        """Send the terminal's end-of-file character."""
        await self._input(WriteRequest(new_request_id(), eof=True))

    async def _input(self, request: WriteRequest) -> None:
        await self._open().write(pb.AttachRequest(input=wire.input_message(request)))

    async def resize(self, rows: int, cols: int) -> None:
        """Give the terminal another size."""
        await self._open().write(pb.AttachRequest(resize=wire.size_message(rows, cols)))

    async def detach(self) -> None:
        """Let what was typed be taken, then end; the last event follows."""
        await self._open().finish()
