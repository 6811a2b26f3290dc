"""One owner's place in the MCP server: connected on first use, and again after a loss.

A seat outlives its client. A gateway that is away makes the call fail with a sentence and
the next call tries again; an owner that is no more (its lease ran out while the gateway was
away, or another program took its name) is acquired anew by the next call.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from fabric.client import tooling
from fabric.client.client import FabricClient
from fabric.client.tooling import ToolAnswer, ToolInfo
from fabric.core.errors import (
    DrainingError,
    FabricError,
    GatewayUnavailableError,
    OwnerNotLiveError,
    UnauthenticatedError,
)
from fabric.core.ids import new_request_id
from fabric.core.model import OwnerEvent

STARTS_ANEW = "; the terminals of this agent are not to be had any more, the next call starts anew"
_log = logging.getLogger(__name__)
Connect = Callable[[], FabricClient]
Tell = Callable[["Seat", OwnerEvent], Awaitable[None]]
Progress = Callable[[float], Awaitable[None]]


class Seat:
    """One owner. ``connect`` makes a client not yet started; ``tell`` hears of every event."""

    def __init__(self, connect: Connect, tell: Tell) -> None:
        self._connect = connect
        self._tell = tell
        self._client: FabricClient | None = None
        self._watching: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._acknowledged: int | None = None

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[FabricClient]:
        """Lend the owner's client, connecting it first where needed.

        Raises: GatewayUnavailableError, UnauthenticatedError, UnsupportedError.
        """
        async with self._lock:
            if self._client is None:
                client = self._connect()
                await client.start()
                self._client = client
                self._watching = asyncio.create_task(self._watch(client), name="mcp-events")
            client = self._client
        try:
            yield client
        except OwnerNotLiveError as error:
            await self._forget(client)
            raise OwnerNotLiveError(error.message + STARTS_ANEW, **error.metadata) from error
        except UnauthenticatedError:
            await self._forget(client)
            raise
        except GatewayUnavailableError:
            if self._is_elsewhere(client):
                await self._forget(client)
            raise

    async def tools(self, surfaces: Sequence[str]) -> tuple[ToolInfo, ...]:
        """List the tools of some families, or all. Raises: what ``client`` raises."""
        async with self.client() as client:
            return (await client.list_tools(*surfaces))[0]

    async def call(self, name: str, arguments: Mapping[str, Any], progress: Progress) -> ToolAnswer:
        """Carry a model's call through; cancelling it interrupts the program.

        A gateway that goes away on the way is left to the next one: the request id makes
        the repeat join the call instead of making it twice.

        Raises: what ``client`` raises.
        """
        request_id = new_request_id()
        async with self.client() as client:
            stream = tooling.stream_tool(client.calls, name, arguments, request_id)
            try:
                async with contextlib.aclosing(stream) as events:  # type: ignore[type-var]
                    async for event in events:
                        if isinstance(event, ToolAnswer):
                            return event
                        await progress(event)
            except (GatewayUnavailableError, DrainingError) as error:
                _log.warning("call taken to another gateway", extra={"reason": error.reason})
            return await client.call_tool(name, arguments, request_id=request_id)

    async def close(self, *, keep: bool) -> None:
        """Let the owner go: released with its sessions, or left to its lease with ``keep``."""
        async with self._lock:
            client, self._client = self._client, None
        if client is None:
            return
        await self._end_watching()
        client.keep = client.keep or keep
        try:
            await client.stop()
        except FabricError as error:
            _log.warning("owner not released", extra={"reason": error.reason})

    async def _forget(self, client: FabricClient) -> None:
        async with self._lock:
            if self._client is not client:
                return
            self._client = None
        await self._end_watching()
        client.keep = True  # there is nothing of ours to release
        with contextlib.suppress(FabricError):
            await client.stop()

    async def _end_watching(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None and watching is not asyncio.current_task():
            watching.cancel()
            await asyncio.wait({watching})

    def _is_elsewhere(self, client: FabricClient) -> bool:
        """Tell whether a client made now would go to another address."""
        try:
            return self._connect().addresses != client.addresses
        except FabricError:
            return False

    async def _watch(self, client: FabricClient) -> None:
        events = client.events(None)
        try:
            async for event in events:
                await self._tell(self, event)
                await events.acknowledge()
        except FabricError as error:
            _log.warning("events not followed any more", extra={"reason": error.reason})
