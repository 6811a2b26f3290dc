"""What a view shows: the shared terminal, or any one session read-only, as one stream.

Both come as the events of a shared terminal's view, so that a page need not know them
apart: a session is one whose queue nobody may join.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import TypeVar

from fabric.core.attach import AttachEvent, AttachKind, AttachStart
from fabric.core.errors import SessionNotFoundError
from fabric.core.ids import SessionId
from fabric.core.model import Caller, SessionInfo
from fabric.core.shared import SHARED_NAME, SharedStatus, ViewEvent, ViewKind, ViewStart
from fabric.gateway.ports import RegistryPort, SessionsPort
from fabric.gateway.shared import SharedTerminals
from fabric.web.tickets import Grant, Kind

_T = TypeVar("_T")
READONLY = "readonly"
DISPOSED = "disposed"
GENERATION = 1  # of what has no generations


@dataclass(frozen=True, slots=True)
class Sources:
    """The way from a view to the fabric."""

    registry: RegistryPort
    sessions: SessionsPort
    terminals: SharedTerminals
    look_s: float

    async def find(self, grant: Grant) -> SessionInfo:
        """Return the session to show; the shared terminal is made when there is none.

        Raises: SessionNotFoundError, OwnerNotLiveError, CapacityReachedError, …
        """
        wanted = grant.session_id
        for _ in range(2):
            if grant.kind is Kind.SHARED:
                wanted = await self.terminals.find(grant.caller)
            for info in await self.registry.list(grant.caller):
                if info.session_id == wanted:
                    return info
            if grant.kind is Kind.SHARED:
                self.terminals.forget(grant.caller.owner_id)  # it was closed; make the next
        raise SessionNotFoundError("the session is gone")

    def events(
        self, caller: Caller, info: SessionInfo, start: ViewStart
    ) -> AsyncGenerator[ViewEvent, None]:
        """Stream what a view shows."""
        if info.name == SHARED_NAME:
            return _passed_on(self.sessions.shared_view(caller, info.session_id, start))
        return self._session(caller, info)

    async def snapshot(self, caller: Caller, info: SessionInfo) -> AttachEvent | None:
        """Return what paints the screen as it is now."""
        start = ViewStart("snapshot", readonly=True)
        async with contextlib.aclosing(self.events(caller, info, start)) as events:
            async for event in events:
                if event.screen is not None and event.screen.kind is AttachKind.SNAPSHOT:
                    return event.screen
        return None

    async def _session(self, caller: Caller, info: SessionInfo) -> AsyncGenerator[ViewEvent, None]:
        yield ViewEvent(ViewKind.ATTACHED, GENERATION, reason=READONLY)
        yield _status(exited=not info.status.is_running)
        screens = self.sessions.attach(caller, info.session_id, AttachStart(history=True))
        async with contextlib.aclosing(_passed_on(screens)) as events:
            async for event in events:
                if event.kind is AttachKind.END:
                    break
                yield ViewEvent(ViewKind.SCREEN, GENERATION, screen=event)
        yield _status(exited=True)
        while True:  # nothing tells of the end of what has already ended but the list
            await asyncio.sleep(self.look_s)
            if not await self._is_there(caller, info.session_id):
                break
        yield _status(exited=True, queue=DISPOSED)

    async def _is_there(self, caller: Caller, session_id: SessionId) -> bool:
        return any(info.session_id == session_id for info in await self.registry.list(caller))


def _status(*, exited: bool, queue: str = READONLY) -> ViewEvent:
    status = SharedStatus(GENERATION, queue, None, 0, None, None, exited)
    return ViewEvent(ViewKind.STATUS, GENERATION, status=status)


async def _passed_on(items: AsyncIterator[_T]) -> AsyncGenerator[_T, None]:
    """Make a stream one that can be closed."""
    try:
        async for item in items:
            yield item
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()
