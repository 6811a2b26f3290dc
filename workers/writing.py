"""Input beside sends: bytes, named keys and an end of file, as from a keyboard.

Whoever is attached types while a send may be under way, and is not refused: an interrupt
or an answer typed by a person is what saves a stuck send. So input takes no slot and
waits for no verdict. Its bytes go to the terminal at once and whole, never into the
middle of what a send is still writing, and in the order in which they came; what the
terminal has no room for waits. A send that runs meanwhile is told (``other_input``), and
the session remembers when somebody typed last.

A program that reads nothing for ``write_stall_s`` ends a write with an error that says how
much was taken. Unlike a send's, what was taken stays: it is type-ahead.
"""

import asyncio
import termios
from collections import deque
from typing import TYPE_CHECKING

from fabric.core.attach import MAX_KEYS, WriteReceipt, WriteRequest
from fabric.core.errors import (
    FabricError,
    InputBlockedError,
    InputTooLargeError,
    InternalError,
    InvalidRequestError,
    LimitReachedError,
)
from fabric.core.repeat import Repeats, digest_of
from workers.terminal import keys

if TYPE_CHECKING:
    from workers.session import Session

MAX_WAITING_BYTES = 8_388_608
_Answer = asyncio.Future[WriteReceipt]


class _Piece:
    def __init__(self, request: WriteRequest, data: bytes, offset: int) -> None:
        self.request = request
        self.left = memoryview(data)
        self.total = len(data)
        self.offset = offset
        self.done: _Answer = asyncio.get_running_loop().create_future()


class Writing:
    """The queue of input of one session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._queue: deque[_Piece] = deque()
        self._waiting_bytes = 0
        self._pump: asyncio.Task[None] | None = None
        limits = session.settings.input
        self._repeats: Repeats[_Answer] = Repeats(
            retention_s=limits.request_retention_s, max_entries=limits.max_request_ids
        )
        self.last_at: float | None = None

    async def write(self, request: WriteRequest) -> WriteReceipt:
        """Write and return when the terminal has taken everything.

        A repeated request id writes nothing. Raises: InvalidRequestError,
        InputTooLargeError, InputLineTooLongError, InputBlockedError, SessionExitedError,
        SessionClosingError, LimitReachedError.
        """
        session = self._session
        now = session.clock.monotonic()
        content = digest_of(request.data, request.keys, request.eof)
        earlier = self._repeats.find(request.request_id, content, now)
        if earlier is not None:
            return await asyncio.shield(earlier)
        session.check_writable()
        data = self._bytes_of(request)
        if self._waiting_bytes + len(data) > MAX_WAITING_BYTES:
            raise LimitReachedError("too much input waits for the program to read it")
        session.parts.master.check_lines(data)
        piece = _Piece(request, data, session.log.next_offset)
        self._repeats.reserve(request.request_id, content, piece.done, now)
        piece.done.add_done_callback(lambda _: self._settled(piece))
        self._typed()
        self._queue.append(piece)
        self._waiting_bytes += piece.total
        if self._pump is None and not self._push():
            self._pump = asyncio.get_running_loop().create_task(self._run())
        return await asyncio.shield(piece.done)

    def close(self) -> None:
        """Give up what still waits."""
        if self._pump is not None:
            self._pump.cancel()

    def _bytes_of(self, request: WriteRequest) -> bytes:
        if bool(request.data) + bool(request.keys) + request.eof != 1:
            raise InvalidRequestError("state one of data, keys and eof")
        master, spec = self._session.parts.master, self._session.spec
        if request.eof:
            return master.control_char(termios.VEOF) or b"\x04"
        if request.keys:
            if len(request.keys) > MAX_KEYS:
                raise InvalidRequestError(f"at most {MAX_KEYS} keys are sent at once", field="keys")
            return keys.encode(
                request.keys,
                self._session.transcript.modes,
                term=spec.term,
                erase=master.control_char(termios.VERASE),
            )
        limit = self._session.settings.input.max_send_bytes
        if len(request.data) > limit:
            raise InputTooLargeError(
                f"the input has {len(request.data)} bytes, at most {limit} are taken at once",
                limit_bytes=limit,
            )
        return request.data

    def _typed(self) -> None:
        session = self._session
        self.last_at = session.last_activity_at = session.clock.wall()
        session.is_ready = False
        session.sending.other_input()

    def _push(self) -> bool:
        """Write what the terminal takes; True when nothing waits any more."""
        while self._queue:
            piece = self._queue[0]
            try:
                taken = self._session.parts.master.write_some(piece.left)
            except FabricError as error:
                self._fail(error)
                return True
            except OSError as error:
                self._fail(InternalError(f"writing failed: {error.strerror}"))
                return True
            piece.left = piece.left[taken:]
            if piece.left:
                return False
            self._queue.popleft()
            self._waiting_bytes -= piece.total
            piece.done.set_result(WriteReceipt(piece.total, piece.offset))
        return True

    async def _run(self) -> None:
        stall_s = self._session.settings.input.write_stall_s
        try:
            while not self._push():
                if not await self._session.parts.master.wait_for_room(stall_s):
                    piece = self._queue[0]
                    taken = piece.total - len(piece.left)
                    self._fail(
                        InputBlockedError(
                            f"the program read nothing for {stall_s:g} s; {taken} of"
                            f" {piece.total} bytes were taken",
                            written_bytes=taken,
                            total_bytes=piece.total,
                        )
                    )
                    return
        finally:
            self._pump = None
            self._fail(InputBlockedError("the terminal was let go of before it took the input"))

    def _fail(self, error: FabricError) -> None:
        """End everything that waits: what came later must not overtake what failed."""
        while self._queue:
            piece = self._queue.popleft()
            self._waiting_bytes -= piece.total
            if not piece.done.done():
                piece.done.set_exception(error)
                piece.done.exception()

    def _settled(self, piece: _Piece) -> None:
        self._repeats.settle(piece.request.request_id, self._session.clock.monotonic())
