"""What can be seen of a session without touching it: pages, bytes, streams, waits.

Readers never slow the terminal. A stream that falls behind what the byte log retains
goes on from the oldest byte; every piece carries its offset, so the gap is plain to see.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from fabric.core.errors import (
    CursorExpiredError,
    InvalidRequestError,
    LimitReachedError,
    SessionLostError,
)
from fabric.core.model import (
    BytesPage,
    ReadPage,
    ScreenSnapshot,
    TailPage,
    WaitCondition,
    WaitResult,
)
from workers.text.transcript import Transcript
from workers.wait import Watch, check

if TYPE_CHECKING:
    from workers.session import Session
    from workers.text.screen import ScreenView

CHUNK_BYTES = 65_536
COALESCE_S = 0.004
MAX_WATCHERS = 256
READY_LOOK_S = 0.05
MAX_SIZES = 256
_SAFE = 2**53


class Observing:
    """The reading half of a session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._watchers = 0
        self._screen: ScreenView | None = None
        self._sizes: list[tuple[int, int, int]] = [(0, session.rows, session.cols)]

    def read(self, offset: int, count: int) -> ReadPage:
        """Return a page counted back from the newest line. Raises: InvalidRequestError."""
        if not 0 <= offset < _SAFE:
            raise InvalidRequestError("offset must be a non-negative safe integer")
        if not 0 < count < _SAFE:
            raise InvalidRequestError("count must be a positive safe integer")
        session = self._session
        return session.transcript.page(offset, count, session.settings.scrollback.read_max_bytes)

    def tail(self, consumer: str, lines: int, token: int = 0) -> TailPage:
        """Return whole lines that are new to ``consumer`` and move its cursor.

        A ``token`` (not 0) that is that of the consumer's last tail repeats it.
        Raises: InvalidRequestError.
        """
        if not 0 < lines < _SAFE:
            raise InvalidRequestError("lines must be a positive safe integer")
        session = self._session
        cursors = session.parts.cursors
        start = cursors.begin(consumer, token)
        page = session.transcript.tail(start, lines, session.settings.scrollback.read_max_bytes)
        cursors.move(consumer, start, page.next_line, token)
        return page

    def snapshot(self) -> ScreenSnapshot:
        """Show the screen as a person sees it."""
        return self._view().snapshot(self._session.log)

    def repaint(self) -> tuple[int, bytes]:
        """Return what paints the screen on another terminal, and the offset it stands for."""
        session = self._session
        return self._view().repaint(session.log, session.transcript.modes)

    def _view(self) -> "ScreenView":
        if self._screen is None:
            # Imported on the first look: most sessions are never looked at, and the
            # emulator's library is a tenth of a worker's memory.
            from workers.text.screen import ScreenView

            self._screen = ScreenView(*self._sizes[0][1:])
            for at, rows, cols in self._sizes[1:]:
                self._screen.resize(rows, cols, at)
        return self._screen

    def resized(self) -> None:
        """Note the session's present size; output from now on was meant for it."""
        session = self._session
        at = session.log.next_offset
        if self._screen is not None:
            self._screen.resize(session.rows, session.cols, at)
            return
        if self._sizes[-1][0] == at:
            self._sizes.pop()
        self._sizes.append((at, session.rows, session.cols))
        del self._sizes[:-MAX_SIZES]

    async def read_bytes(self, offset: int, max_bytes: int, wait_s: float) -> BytesPage:
        """Return bytes from ``offset``, waiting for the first. Raises: CursorExpiredError."""
        if offset < 0 or max_bytes <= 0 or wait_s < 0:
            raise InvalidRequestError("offset, max_bytes and wait_s must not be negative or zero")
        session = self._session
        deadline = time.monotonic() + wait_s
        while True:
            page = self.page(offset, min(max_bytes, CHUNK_BYTES * 16))
            left = deadline - time.monotonic()
            if page.data or page.ended or left <= 0:
                return page
            await session.changed.wait(left)

    async def follow(self, offset: int | None) -> AsyncIterator[BytesPage]:
        """Stream bytes from ``offset`` (None: from now on) until nothing more can come."""
        session = self._session
        at = session.log.next_offset if offset is None else offset
        if offset is None:
            # Where "now" was: whoever breaks off before the first byte can go on from here.
            yield BytesPage(at, b"", at, session.log.first_offset)
        last = 0.0
        while True:
            try:
                page = self.page(at, CHUNK_BYTES)
            except CursorExpiredError as gap:
                at = int(gap.metadata["oldest_offset"])
                continue
            if page.data:
                quiet = time.monotonic() - last
                if quiet < COALESCE_S and len(page.data) < CHUNK_BYTES and not page.ended:
                    await asyncio.sleep(COALESCE_S - quiet)
                    last = 0.0
                    continue
                yield page
                last = time.monotonic()
                at = page.next_offset
            elif page.ended:
                yield page
                return
            else:
                await session.changed.wait()

    async def wait_for(self, condition: WaitCondition, timeout_s: float) -> WaitResult:
        """Wait for the first condition that holds. Raises: InvalidRequestError, LimitReached."""
        check(condition)
        if timeout_s < 0:
            raise InvalidRequestError("timeout_s must not be negative")
        if self._watchers >= MAX_WATCHERS:
            raise LimitReachedError(f"a session serves at most {MAX_WATCHERS} waits at once")
        self._watchers += 1
        try:
            return await self._wait(condition, timeout_s)
        finally:
            self._watchers -= 1

    async def _wait(self, condition: WaitCondition, timeout_s: float) -> WaitResult:
        session = self._session
        scrollback = session.settings.scrollback
        text = Transcript(
            nonce=session.nonce,
            max_lines=scrollback.lines,
            max_bytes=scrollback.send_max_bytes * 2,
            carry_bytes=scrollback.carry_bytes,
        )
        capture = text.capture(scrollback.send_max_bytes)
        watch = Watch(condition, session.status)
        since = condition.since_offset
        at = session.log.next_offset if since is None else since
        if at < 0:
            raise InvalidRequestError("since_offset must not be negative")
        deadline = time.monotonic() + timeout_s
        truncated = False
        matched: str | None = None
        while True:
            while matched is None:
                try:
                    page = self.page(at, CHUNK_BYTES * 4)
                except CursorExpiredError as gap:
                    at, truncated = int(gap.metadata["oldest_offset"]), True
                    continue
                if not page.data:
                    break
                text.feed(page.data)
                at = page.next_offset
                partial = text.page(0, 1, scrollback.read_max_bytes).text
                matched = watch.output(capture.take().text, partial)
            now = time.monotonic()
            silent = now - session.last_output_at
            if matched is None and condition.ready and self._is_ready():
                matched = watch.ready()
            if matched is None:
                matched = watch.quiet(silent)
            if matched is None and page.ended:
                matched = watch.exited(session.status)
            if matched is None and now >= deadline:
                matched = "timeout"
            if matched is not None:
                shown = capture.render()
                return WaitResult(
                    matched=matched,
                    text=shown.text,
                    status=session.status,
                    match_text=watch.match_text,
                    next_offset=at,
                    truncated=shown.truncated or truncated,
                )
            left = deadline - now
            if condition.quiet_s is not None:
                left = min(left, condition.quiet_s - silent)
            if condition.ready and not session.sending.is_busy:
                left = min(left, READY_LOOK_S)
            await session.changed.wait(max(left, 0.0))

    def _is_ready(self) -> bool:
        """Tell whether the program waits for input now, with the same proof a send asks for.

        After a verdict that was no proof (a timeout, an interrupt) no event says that the
        program has come back to its prompt, so it is looked at.
        """
        session = self._session
        if session.is_ready:
            return True
        if session.sending.is_busy or not session.status.is_running:
            return False
        inspector, shell = session.parts.inspector, session.sending.memory.shell_pgid
        before = inspector.probe(shell)
        if not before.waits or before.unread or session.parts.master.drain():
            return False
        after = inspector.probe(shell)
        session.is_ready = not after.unread and bool(set(before.waits) & set(after.waits))
        return session.is_ready

    def page(self, offset: int, max_bytes: int) -> BytesPage:
        """Return the bytes that are there.

        Raises: CursorExpiredError, InvalidRequestError, SessionLostError (the worker stops).
        """
        session = self._session
        if session.is_abandoned:
            raise SessionLostError("the session's worker stops", session_id=session.spec.session_id)
        log = session.log
        if offset > log.next_offset:
            raise InvalidRequestError(
                f"offset {offset} lies beyond the end at {log.next_offset}",
                next_offset=log.next_offset,
            )
        start, data = log.read(offset, max_bytes)
        return BytesPage(
            offset=start,
            data=bytes(data),
            next_offset=start + len(data),
            oldest_offset=log.first_offset,
            ended=session.is_over and start + len(data) >= log.next_offset,
        )
