"""What an owner is told without asking, on its way to MCP clients.

Two eras of the protocol differ here. A connection that began with a handshake can be told
at any time: every notice is a log message, and a resource update where the client has
subscribed to the task. Later versions know no messages without a request: their clients
open a listen stream, which the bus below feeds. Either way the resource
``fabric://tasks/<task id>`` holds the notice, for whoever wants to read it again.
"""

import asyncio
import logging
from typing import Any

import mcp_types as types
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from fabric.core.errors import FabricError
from fabric.core.model import EventKind, OwnerEvent
from fabric.mcp.seat import Seat
from fabric.tools import render

TASKS_URI = "fabric://tasks/"
LOGGER = "pty-fabric"
MAX_NOTICE_BYTES = 4096
TELL_TIMEOUT_S = 5.0
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_log = logging.getLogger(__name__)
_SESSION_NEWS = {
    EventKind.SESSION_EXITED: ("notice", "has exited"),
    EventKind.SESSION_LOST: ("warning", "was lost with its node or worker; open a new one"),
    EventKind.SESSION_READOPTED: ("info", "goes on after its worker was replaced"),
}


class Audience:
    """Who hears of one owner: connections of the handshake era, and listen streams."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self.level = "info"
        self.subscribed: set[str] = set()
        self._sessions: dict[str, ServerSession] = {}

    def join(self, key: str, session: ServerSession) -> None:
        """Remember how to reach a connection; the last call's session serves."""
        if session.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._sessions[key] = session

    async def tell(self, seat: Seat, event: OwnerEvent) -> None:
        """Pass an event on to everybody; a client that is gone is no error."""
        if event.kind is EventKind.TASK_SETTLED and event.task_id is not None:
            text = await _notice(seat, event.task_id)
            if text:
                await self._message("notice", text)
            await self._updated(f"{TASKS_URI}{event.task_id}")
        elif event.kind in _SESSION_NEWS:
            level, words = _SESSION_NEWS[event.kind]
            await self._message(level, f"terminal session {event.session_id} {words}")

    async def _message(self, level: Any, text: str) -> None:
        if LEVELS.index(level) < LEVELS.index(self.level):
            return
        params = types.LoggingMessageNotificationParams(level=level, data=text, logger=LOGGER)
        await self._send(types.LoggingMessageNotification(params=params))

    async def _updated(self, uri: str) -> None:
        if uri in self.subscribed:
            params = types.ResourceUpdatedNotificationParams(uri=uri)
            await self._send(types.ResourceUpdatedNotification(params=params))
        await self._bus.publish(ResourceUpdated(uri))

    async def _send(self, notification: Any) -> None:
        for session in list(self._sessions.values()):
            try:
                # A client that does not read must not hold up the events of its owner.
                async with asyncio.timeout(TELL_TIMEOUT_S):
                    await session.send_notification(notification)
            except Exception as error:  # noqa: BLE001  (whatever a transport raises when gone)
                _log.debug("client not told", extra={"error": type(error).__name__})


async def _notice(seat: Seat, task_id: str) -> str | None:
    try:
        async with seat.client() as client:
            for record in await client.tasks():
                if record.task_id == task_id:
                    return render.notice(record, MAX_NOTICE_BYTES)
    except FabricError as error:
        _log.warning("notice not made", extra={"reason": error.reason})
    return None
