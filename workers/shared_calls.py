"""The calls and the stream of a shared terminal, as its worker's channel serves them."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

from fabric.core.attach import AttachEvent, AttachKind, AttachStart
from fabric.core.errors import UnsupportedError
from fabric.core.model import SignalName
from fabric.core.plain import from_plain, to_plain
from fabric.core.shared import PersonRequest, SharedSend, ViewEvent, ViewKind, ViewStart
from workers.channel import Args
from workers.sharing import Sharing

PROOF_BYTES = 32


class SharedCalls:
    """Handlers; ``find`` returns the terminal a caller may use, or raises."""

    def __init__(self, find: Callable[[Args], Sharing | None]) -> None:
        self._find = find
        self.handlers: dict[str, Callable[[Args], Awaitable[Any]]] = {
            "shared_send": self.send,
            "shared_signal": self.signal,
            "shared_reset": self.reset,
            "shared_read": self.read,
            "shared_person": self.person,
        }
        self.streams: dict[str, Callable[[Args], AsyncIterator[Any]]] = {"shared_view": self.view}

    def _sharing(self, args: Args) -> Sharing:
        sharing = self._find(args)
        if sharing is None:
            raise UnsupportedError("this session is no shared terminal")
        return sharing

    async def send(self, args: Args) -> Any:
        """Queue a model's send and wait for its end."""
        request = from_plain(SharedSend, args["request"])
        return to_plain(await self._sharing(args).send(request))

    async def signal(self, args: Args) -> Any:
        """Queue a signal and wait for what it leads to."""
        sharing = self._sharing(args)
        return to_plain(await sharing.signal(SignalName(args["name"]), args["request_id"]))

    async def reset(self, args: Args) -> Any:
        """Queue a reset and wait for the new shell."""
        return to_plain(await self._sharing(args).reset(args["request_id"]))

    async def read(self, args: Args) -> Any:
        """Read the history."""
        return to_plain(self._sharing(args).read(args["offset"], args["count"]))

    async def person(self, args: Args) -> Any:
        """Do what the controller asks for."""
        return await self._sharing(args).person(from_plain(PersonRequest, args["request"]))

    async def view(self, args: Args) -> AsyncIterator[Any]:
        """Stream the screen and the state of the queue to one view."""
        sharing = self._sharing(args)
        start = from_plain(ViewStart, args["start"])
        async with contextlib.aclosing(view(sharing, start)) as events:
            async for event in events:
                yield to_plain(event)


async def view(sharing: Sharing, start: ViewStart) -> AsyncGenerator[ViewEvent, None]:
    """Yield the events of one view until the generation it looks at is over.

    The reader sets the pace: nothing is kept for it but the event at hand. The final screen
    of a shell that ended stays until a reset.
    """
    generation, session = sharing.turns.generation, sharing.session
    proof = secrets.token_urlsafe(PROOF_BYTES)
    reason = sharing.claim(start, proof)
    screen: AsyncGenerator[AttachEvent, None] | None
    screen = session.attaching.attach(AttachStart(history=True))
    loop = asyncio.get_running_loop()
    waiting: dict[str, asyncio.Future[Any]] = {}
    last = None
    try:
        yield ViewEvent(
            ViewKind.ATTACHED,
            generation,
            controller=not reason,
            resume="" if reason else proof,
            reason=reason,
        )
        while sharing.turns.generation == generation:
            status = sharing.status()
            if status != last:
                last = status
                yield ViewEvent(ViewKind.STATUS, generation, status=status)
                continue
            if "screen" not in waiting and screen is not None:
                waiting["screen"] = loop.create_task(_next(screen))
            if "change" not in waiting:
                waiting["change"] = sharing.changed.next()
            await asyncio.wait(waiting.values(), return_when=asyncio.FIRST_COMPLETED)
            if waiting["change"].done():
                del waiting["change"]
            shown = waiting.get("screen")
            if shown is not None and screen is not None and shown.done():
                del waiting["screen"]
                event = shown.result()
                if event is None or event.kind is AttachKind.END:
                    await screen.aclose()
                    screen = None
                else:
                    yield ViewEvent(ViewKind.SCREEN, generation, screen=event)
        yield ViewEvent(ViewKind.RESET, generation)
    finally:
        if not reason:  # first: who comes back right away must find that it has left
            sharing.controller_left(start.view)
        for task in waiting.values():
            task.cancel()
        await asyncio.gather(*waiting.values(), return_exceptions=True)
        if screen is not None:
            await screen.aclose()


async def _next(events: AsyncGenerator[Any, None]) -> Any:
    return await anext(events, None)
