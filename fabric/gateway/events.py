"""EventService: one ordered stream an owner, taken up again from a cursor."""

import asyncio
import random
from collections.abc import Awaitable, Callable

from fabric.api.v1 import event_service_pb2 as pb
from fabric.core.errors import DrainingError, RegistryUnavailableError
from fabric.core.model import Caller, EventPage
from fabric.gateway.calls import Access, Call, Kind, Route, Routes
from fabric.gateway.news import News, Waiter
from fabric.gateway.ports import RegistryPort
from fabric.wire import events

KEEP_ALIVE_S = 30.0
PAGE_EVENTS = 100
RETRY_S = 1.0
Write = Callable[[pb.FollowEventsResponse], Awaitable[None]]


class EventService:
    """Tell owners what happens to what they hold."""

    name = "EventService"

    def __init__(self, registry: RegistryPort, news: News) -> None:
        self._registry = registry
        self._news = news

    def routes(self) -> Routes:
        """Return the handlers by the names of their RPCs."""
        return {
            "FollowEvents": Route(self.follow, Access.OWNER, Kind.WAIT),
            "AcknowledgeEvents": Route(self.acknowledge, Access.OWNER, Kind.QUICK),
        }

    async def follow(self, call: Call, message: pb.FollowEventsRequest, write: Write) -> None:
        """Stream the owner's events until it or this gateway ends."""
        cursor = events.cursor_of(message)
        caller = call.caller
        reason, detail = events.OWNER_ENDED, ""
        try:
            async with self._news.waiter(caller.owner_id) as waiter:
                page = await self._registry.read_events(caller, cursor, PAGE_EVENTS)
                while True:
                    await _write_page(page, write)
                    cursor = page.next_cursor
                    if page.ended is not None:
                        detail = page.ended
                        break
                    if len(page.events) < PAGE_EVENTS:
                        await _until_woken(waiter, cursor, write)
                    page = await self._read(caller, cursor)
        except asyncio.CancelledError:
            if not isinstance(call.ending, DrainingError):
                raise
            call.task.uncancel()
            reason = events.DRAINING
        end = pb.EventEnd(reason=reason, cursor=cursor or 0, detail=detail)
        await write(pb.FollowEventsResponse(end=end))

    async def _read(self, caller: Caller, cursor: int | None) -> EventPage:
        """Read on; a registry that is away for a while does not end the stream."""
        while True:
            try:
                return await self._registry.read_events(caller, cursor, PAGE_EVENTS)
            except RegistryUnavailableError:
                await asyncio.sleep(RETRY_S)

    async def acknowledge(
        self, call: Call, message: pb.AcknowledgeEventsRequest
    ) -> pb.AcknowledgeEventsResponse:
        """Let go of the events up to one."""
        await self._registry.acknowledge_events(call.caller, message.sequence)
        return pb.AcknowledgeEventsResponse()


async def _until_woken(waiter: Waiter, cursor: int, write: Write) -> None:
    """Wait for news; show now and then that the stream lives, without asking the registry.

    The pauses are spread out, however many streams began together.
    """
    while not await waiter.wait(KEEP_ALIVE_S * random.uniform(0.5, 1.0)):  # noqa: S311
        alive = pb.EventKeepAlive(cursor=cursor)
        await write(pb.FollowEventsResponse(keep_alive=alive))


async def _write_page(page: EventPage, write: Write) -> None:
    if page.dropped:
        gap = pb.EventGap(dropped=page.dropped)
        await write(pb.FollowEventsResponse(gap=gap))
    for event in page.events:
        await write(pb.FollowEventsResponse(event=events.event_message(event)))
