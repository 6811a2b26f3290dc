"""An attach as the worker serves it: repaint, then bytes, for as long as somebody looks.

The reader sets the pace. Nothing is queued for it here beyond the event being handed over
and what the channel's credit allows (``workers.dial``); a reader that falls behind what
the byte log retains is told of the gap, and one that looks at a screen gets the screen
as it is now instead of bytes that make no sense without those before. So any number of
readers, slow or fast, cost the terminal and each other nothing but the copies made for
them.

Input and size changes come by calls of their own (``workers.writing``, ``resize``); the
last size set holds, and every reader is told.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from fabric.core.attach import AttachEvent, AttachKind, AttachStart
from fabric.core.errors import CursorExpiredError, LimitReachedError
from workers.history import history_above
from workers.observing import CHUNK_BYTES, COALESCE_S

if TYPE_CHECKING:
    from workers.session import Session

MAX_ATTACHED = 64
VIEW_CHUNK_BYTES = 8192  # what is on the way to a person's eyes delays the echo of their keys
SKIP_BYTES = 262_144
QUIET_S = 0.3


class Attaching:
    """The readers attached to one session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self.count = 0

    async def attach(self, start: AttachStart) -> AsyncGenerator[AttachEvent, None]:
        """Yield the events of one reader until the session ends.

        Raises: InvalidRequestError, CursorExpiredError for an ``offset`` that is no longer
        retained, LimitReachedError.
        """
        session = self._session
        if self.count >= MAX_ATTACHED:
            raise LimitReachedError(f"a session serves at most {MAX_ATTACHED} readers at once")
        self.count += 1
        try:
            if start.rows and start.cols and session.status.is_running:
                session.resize(start.rows, start.cols)
            at = session.log.next_offset if start.offset is None else start.offset
            if start.snapshot:
                event = self._snapshot(start.history)
                at = event.next_offset
                yield event
            else:
                session.observing.page(at, 1)  # an offset that is gone is an error, not a gap
            async for event in self._events(at, start):
                yield event
        finally:
            self.count -= 1

    async def _events(self, at: int, start: AttachStart) -> AsyncGenerator[AttachEvent, None]:
        session = self._session
        repaints, history = start.snapshot, start.history
        chunk_bytes = VIEW_CHUNK_BYTES if history else CHUNK_BYTES
        skipped = False
        size = (session.rows, session.cols)
        last = 0.0
        while True:
            if size != (session.rows, session.cols):
                size = (session.rows, session.cols)
                yield AttachEvent(AttachKind.RESIZED, at, at, rows=size[0], cols=size[1])
            if history and session.log.next_offset - at > SKIP_BYTES:
                event, behind, skipped = self._snapshot(False), at, True
                at = event.next_offset
                yield AttachEvent(AttachKind.GAP, behind, at)
                yield event
                continue
            try:
                page = session.observing.page(at, chunk_bytes)
            except CursorExpiredError as gap:
                painted = self._snapshot(history) if repaints else None
                oldest = int(gap.metadata["oldest_offset"])
                behind = at
                at = oldest if painted is None else painted.next_offset
                yield AttachEvent(AttachKind.GAP, behind, at)
                if painted is not None:
                    yield painted
                continue
            if page.data:
                quiet = time.monotonic() - last
                if quiet < COALESCE_S and len(page.data) < chunk_bytes and not page.ended:
                    await asyncio.sleep(COALESCE_S - quiet)
                    last = 0.0
                    continue
                at = page.next_offset
                yield AttachEvent(AttachKind.CHUNK, page.offset, at, page.data)
                last = time.monotonic()
            elif page.ended:
                yield AttachEvent(AttachKind.END, at, at, status=session.status)
                return
            elif not skipped:
                await session.changed.wait()
            elif not await session.changed.wait(QUIET_S):  # the lines that were skipped
                skipped, event = False, self._snapshot(True)
                at = event.next_offset
                yield event

    def _snapshot(self, history: bool) -> AttachEvent:
        session = self._session
        offset, data = session.observing.repaint()
        above, truncated = history_above(session) if history else (b"", False)
        return AttachEvent(
            AttachKind.SNAPSHOT,
            offset,
            offset,
            above + data,
            rows=session.rows,
            cols=session.cols,
            alternate=session.transcript.modes.alternate_screen,
            truncated=truncated,
        )
