"""The list of an owner's sessions, as a page shows it, and tickets to watch each of them."""

import asyncio
import time
from typing import Any

from fabric.core.errors import LimitReachedError, SessionNotFoundError
from fabric.core.model import SessionInfo
from fabric.web import frames
from fabric.web.desk import Desk, Guest
from fabric.web.outbox import Outbox
from fabric.web.sources import GENERATION, READONLY, Sources


class Overview:
    """One page's list. What it may watch is what it was told of last."""

    def __init__(self, desk: Desk, sources: Sources, guest: Guest, outbox: Outbox) -> None:
        self._desk = desk
        self._sources = sources
        self._guest = guest
        self._outbox = outbox
        self._known: dict[str, SessionInfo] = {}

    async def begin(self) -> None:
        """Say what this view is."""
        desk, grant = self._desk, self._guest.grant
        resume = desk.passes.issue(grant, self._guest.view, "")
        shown = desk.shown(grant, None)
        await self._outbox.send(frames.attached(GENERATION, shown, reason=READONLY, resume=resume))

    async def show(self) -> None:
        """Tell of the sessions again and again. Raises: OwnerNotLiveError, …"""
        while True:
            found = await self._sources.registry.list(self._guest.grant.caller)
            self._known = {info.session_id: info for info in found}
            now = time.time()
            rows = [_row(info, now) for info in found]
            await self._outbox.send(frames.render("sessions", GENERATION, sessions=rows))
            await asyncio.sleep(self._sources.look_s)

    async def watch(self, session: str) -> None:
        """Give a ticket to watch one of the sessions, or say why not."""
        try:
            info = self._known.get(session)
            if info is None:
                raise SessionNotFoundError("the list has no such session")
            ticket = self._desk.ticket_for(self._guest.grant.caller, info)
        except (SessionNotFoundError, LimitReachedError) as error:
            await self._outbox.send(frames.fault(GENERATION, error.reason, error.message))
            return
        made = frames.render("watch", GENERATION, session=session, ticket=ticket)
        await self._outbox.send(made)


def _row(info: SessionInfo, now: float) -> dict[str, Any]:
    return {
        "id": info.session_id,
        "name": info.name or "",
        "program": info.type,
        "node": info.host or "",
        "state": _state(info),
        "age_s": _since(info.created_at, now),
        "last_activity_s": _since(info.last_activity_at, now),
    }


def _state(info: SessionInfo) -> str:
    if not info.status.is_running:
        return "exited"
    return "busy" if info.busy else "ready"


def _since(then: float, now: float) -> float | None:
    return round(max(0.0, now - then), 1) if then else None
