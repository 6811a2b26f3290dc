"""The gateway's connections to the session workers of its node, one a session."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path

from fabric.core.ids import SessionId
from fabric.core.model import Location
from workers.dial import ChannelClient, ChannelClosedError

MAX_CHANNELS = 1024
MAX_LOCATIONS = 65_536
FIRST_RETRY_S = 0.02
LAST_RETRY_S = 0.25
Locate = Callable[[SessionId], Awaitable[Location]]


class Locations:
    """Where sessions are; a session never moves, so an answer holds until it fails."""

    def __init__(self, locate: Locate) -> None:
        self._locate = locate
        self._known: OrderedDict[SessionId, Location] = OrderedDict()

    async def find(self, session_id: SessionId) -> Location:
        """Say where a session is. Raises: SessionNotFoundError, SessionLostError."""
        known = self._known.get(session_id)
        if known is not None:
            return known
        location = await self._locate(session_id)
        self._known[session_id] = location
        while len(self._known) > MAX_LOCATIONS:
            self._known.popitem(last=False)
        return location

    def forget(self, session_id: SessionId) -> None:
        """Ask again next time."""
        self._known.pop(session_id, None)


class Channels:
    """Open channels by socket, shared by all calls; the least used ones go first."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, ChannelClient] = OrderedDict()
        self._opening: dict[str, asyncio.Task[ChannelClient]] = {}

    async def connect(self, location: Location) -> ChannelClient:
        """Return a channel to the session's worker. Raises: ChannelClosedError."""
        channel = self._open.get(location.socket)
        if channel is not None and channel.is_open:
            self._open.move_to_end(location.socket)
            return channel
        task = self._opening.get(location.socket)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._connect(location))
            self._opening[location.socket] = task
            task.add_done_callback(lambda done: self._settle(location.socket, done))
        # Another call may wait for the same connection when this one is cancelled.
        return await asyncio.shield(task)

    async def reconnect(self, location: Location, within_s: float) -> ChannelClient:
        """Wait for a worker that is being started again. Raises: ChannelClosedError."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        pause = FIRST_RETRY_S
        while True:
            try:
                return await self.connect(location)
            except ChannelClosedError:
                if loop.time() + pause > deadline:
                    raise
            await asyncio.sleep(pause)
            pause = min(LAST_RETRY_S, pause * 2)

    async def close(self) -> None:
        """Drop every channel."""
        for task in list(self._opening.values()):
            task.cancel()
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        open_ones = list(self._open.values())  # each leaves the table by itself when it ends
        for channel in open_ones:
            channel.close()
        await asyncio.gather(*(channel.closed for channel in open_ones), return_exceptions=True)
        self._open.clear()

    async def _connect(self, location: Location) -> ChannelClient:
        channel = await ChannelClient.connect(Path(location.socket), location.key)
        self._open[location.socket] = channel
        channel.closed.add_done_callback(lambda _: self._drop(location.socket, channel))
        while len(self._open) > MAX_CHANNELS:
            _, oldest = self._open.popitem(last=False)
            oldest.close()
        return channel

    def _drop(self, socket: str, channel: ChannelClient) -> None:
        if self._open.get(socket) is channel:
            del self._open[socket]

    def _settle(self, socket: str, task: "asyncio.Task[ChannelClient]") -> None:
        self._opening.pop(socket, None)
        if not task.cancelled():
            task.exception()
