"""An owner's events as an asynchronous iterator that survives gateways."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable

from fabric.client.calls import Calls
from fabric.core.errors import FabricError
from fabric.core.model import OwnerEvent

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0


class Events:
    """``async for event in client.events(): ...`` until the owner ends.

    A stream whose gateway went away is taken up again at another one after the last event
    that was handed out, so none is lost or told twice. ``cursor`` is that event's number,
    ``dropped`` counts events the server no longer had, ``ended`` says why the owner ended.
    """

    def __init__(self, calls: Callable[[], Calls], cursor: int | None) -> None:
        self._calls = calls
        self.cursor = cursor
        self.dropped = 0
        self.ended: str | None = None

    async def __aiter__(self) -> AsyncIterator[OwnerEvent]:
        pause = FIRST_PAUSE_S
        while self.ended is None:
            try:
                async for item in self._calls().follow_events(self.cursor):
                    pause = FIRST_PAUSE_S
                    if item.gap:
                        self.dropped += item.gap
                    if item.cursor is not None:
                        self.cursor = item.cursor
                    if item.event is not None:
                        yield item.event
                    if item.ended is not None:
                        self.ended = item.ended
            except FabricError as error:
                if not error.worth_repeating:
                    raise
            if self.ended is None:
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
                pause = min(2 * pause, LONGEST_PAUSE_S)

    async def acknowledge(self) -> None:
        """Let the server forget every event up to ``cursor``."""
        if self.cursor:
            await self._calls().acknowledge_events(self.cursor)
