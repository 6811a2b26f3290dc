"""Which owners have news, for gateways that serve many readers with one question.

Theory. Every change an owner's readers may wait for is numbered by a *version* that only
grows. A gateway asks for what changed after the version it knows and gets the owners'
names, never the news themselves: those are read by each reader under its own caller. The
list is bounded; a gateway that asks for more than it goes back is told that it ``missed``
something and has all its readers look. Versions begin at the clock's microseconds, so one
of a registry that has died is older than all of its successor and counts as missed.
"""

import asyncio
from collections import deque

from fabric.core.ids import OwnerId
from fabric.core.model import NewsPage

MAX_ENTRIES = 16_384


class Feed:
    """The versions of all owners' news."""

    def __init__(self, wall: float, max_entries: int = MAX_ENTRIES) -> None:
        self._version = int(wall * 1e6)
        self._oldest = self._version  # what a reader must know at least to miss nothing
        self._entries: deque[tuple[int, OwnerId]] = deque()
        self._max_entries = max_entries
        self._waiting: set[asyncio.Future[None]] = set()

    def note(self, owner_id: OwnerId) -> None:
        """Say that an owner's readers should look."""
        self._version += 1
        self._entries.append((self._version, owner_id))
        while len(self._entries) > self._max_entries:
            self._oldest = self._entries.popleft()[0]
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def after(self, version: int | None, wait_s: float) -> NewsPage:
        """Return what changed after ``version``, waiting for the first; None: where it stands."""
        if version is None:
            return NewsPage(self._version, (), missed=False)
        if self._oldest <= version == self._version and wait_s > 0:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(future)
            try:
                await asyncio.wait({future}, timeout=wait_s)
            finally:
                self._waiting.discard(future)
        if not self._oldest <= version <= self._version:
            return NewsPage(self._version, (), missed=True)
        owners: dict[OwnerId, None] = {}
        for number, owner_id in reversed(self._entries):
            if number <= version:
                break
            owners[owner_id] = None
        return NewsPage(self._version, tuple(owners), missed=False)
