"""Whose call is served next when several owners call at once.

Theory. A gateway's work on one call is short, so what one owner can do to another is to
have very many calls in work at once. An owner that is alone here is not held up at all.
While calls of more than one owner came within the last ``CONTENDED_S``, each of them has at
most ``share`` *turns*; its further calls wait in its own line, first come first served, and
nobody else's line is touched. So a call of an owner that does not flood never waits, and
finds at most ``share`` calls of each other owner in work beside it.

A turn lasts until the call ends, but at most ``HOLD_S`` (``HOLD_OF_WAITS_S`` for calls that
are made to wait): what takes longer waits for something else than this gateway. A line has
at most ``max_line`` calls; the one too many is refused. The line of an owner moves when one
of its turns ends, which is soon, so no clock of its own is needed.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from fabric.core.errors import QueueFullError

CONTENDED_S = 0.25
HOLD_S = 0.02
HOLD_OF_WAITS_S = 0.002


class Turn:
    """One call's turn; ``end`` gives it back, once."""

    __slots__ = ("_line", "_timer", "_turns")

    def __init__(
        self, turns: "Turns", line: "_Line", loop: asyncio.AbstractEventLoop, hold_s: float
    ) -> None:
        self._turns = turns
        self._line: _Line | None = line
        self._timer = loop.call_later(hold_s, self.end)

    def end(self) -> None:
        """Give the turn back; may be repeated."""
        line, self._line = self._line, None
        if line is not None:
            self._timer.cancel()
            self._turns.ended(line)


class _Line:
    __slots__ = ("calls", "in_turn", "owner_id")

    def __init__(self, owner_id: str) -> None:
        self.owner_id = owner_id
        self.in_turn = 0
        self.calls: deque[asyncio.Future[None]] = deque()


class Turns:
    """The lines of all owners that call. Make it inside the running loop."""

    def __init__(
        self, share: int, max_line: int, waited: Callable[[float], None] = lambda seconds: None
    ) -> None:
        self._waited = waited
        self._share = share
        self._max_line = max_line
        self._loop = asyncio.get_running_loop()
        self._lines: dict[str, _Line] = {}
        self._last = ""  # the owner of the latest call, and when another one called
        self._other_at = -CONTENDED_S

    def __len__(self) -> int:
        """How many owners have calls in work or waiting."""
        return len(self._lines)

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return sum(len(line.calls) for line in self._lines.values())

    async def take(self, owner_id: str, hold_s: float = HOLD_S) -> Turn:
        """Wait for a turn of at most ``hold_s`` seconds. Raises: QueueFullError."""
        now = self._loop.time()
        line = self._lines.get(owner_id)
        if line is None:
            line = self._lines[owner_id] = _Line(owner_id)
        if owner_id != self._last:
            if self._last:
                self._other_at = now
            self._last = owner_id
        if line.calls or (line.in_turn >= self._share and self._is_contended(now)):
            await self._wait(line)
        else:
            line.in_turn += 1
        return Turn(self, line, self._loop, hold_s)

    def ended(self, line: _Line) -> None:
        """Let the next of the line, or as many as there is room for now, have their turns."""
        line.in_turn -= 1
        while line.calls:
            if line.in_turn >= self._share and self._is_contended(self._loop.time()):
                return
            future = line.calls.popleft()
            if not future.done():
                line.in_turn += 1
                future.set_result(None)
        if not line.in_turn:
            self._lines.pop(line.owner_id, None)

    def _is_contended(self, now: float) -> bool:
        return now - self._other_at < CONTENDED_S

    async def _wait(self, line: _Line) -> None:
        if len(line.calls) >= self._max_line:
            raise QueueFullError(
                f"the owner has {len(line.calls)} calls in line at this gateway, as many as it may",
                limit=self._max_line,
            )
        future: asyncio.Future[None] = self._loop.create_future()
        line.calls.append(future)
        began = self._loop.time()
        try:
            await future
            self._waited(self._loop.time() - began)
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.ended(line)  # the turn came just as the call went away
            raise
