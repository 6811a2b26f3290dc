"""A node's reports to the registry: what its sessions told, once each, in order.

The registry asks every node for its sessions anyway; reports make it know at once, and
carry what asking cannot: the final output of a task. While the registry is away they wait.
"""

import asyncio
import json
import logging
from typing import Any

from fabric.actors.remote import RemoteRegistry
from fabric.core.errors import FabricError
from fabric.core.ids import HostName, SessionId
from fabric.core.model import ExitStatus, TaskRecord
from fabric.core.plain import from_plain

MAX_WAITING = 4096
FIRST_RETRY_S = 0.1
LAST_RETRY_S = 5.0
Report = tuple[SessionId, dict[str, Any]]
_log = logging.getLogger(__name__)


class Reporter:
    """Send a node's reports one after the other; the oldest go when too many wait."""

    def __init__(self, host: HostName, registry: RemoteRegistry) -> None:
        self._host = host
        self._registry = registry
        self._waiting: asyncio.Queue[Report] = asyncio.Queue()
        self._sender = asyncio.get_running_loop().create_task(self._send_all())

    def report(self, session_id: SessionId, event: dict[str, Any]) -> None:
        """Take one report."""
        if self._waiting.qsize() >= MAX_WAITING:
            self._waiting.get_nowait()
            _log.error("report dropped")
        self._waiting.put_nowait((session_id, event))

    async def stop(self) -> None:
        """Send no more."""
        self._sender.cancel()
        await asyncio.gather(self._sender, return_exceptions=True)

    async def _send_all(self) -> None:
        while True:
            session_id, event = await self._waiting.get()
            pause = FIRST_RETRY_S
            while not await self._sent(session_id, event):
                await asyncio.sleep(pause)
                pause = min(LAST_RETRY_S, pause * 2)

    async def _sent(self, session_id: SessionId, event: dict[str, Any]) -> bool:
        try:
            await self._send(session_id, event)
        except FabricError as error:
            if error.retryable:
                return False
            _log.warning("report refused", extra={"kind": event["kind"], "why": error.message})
        except (KeyError, TypeError, ValueError):
            _log.exception("report not understood", extra={"kind": event.get("kind")})
        return True

    async def _send(self, session_id: SessionId, event: dict[str, Any]) -> None:
        kind = event["kind"]
        if kind == "task_settled":
            record = from_plain(TaskRecord, event["task"])
            await self._registry.settle_task(
                record, event["text"], event["start"], event["consumed"], event["cut"]
            )
        elif kind == "session_exited":
            await self._registry.session_exited(session_id, from_plain(ExitStatus, event))
        elif kind == "human_handback":
            await self._registry.human_handback(session_id, _handback(event))
        elif kind == "session_readopted":
            await self._registry.session_readopted(session_id, int(event["adoption"]))
        elif kind == "session_lost":
            await self._registry.session_lost(
                self._host, session_id, "its shell ended without being closed"
            )


def _handback(event: dict[str, Any]) -> str:
    """Say how a person's interaction ended, without a word of the terminal's text."""
    facts = {
        "generation": int(event["generation"]),
        "sequence": int(event["sequence"]),
        "waitReason": event["wait_reason"],
        "status": "running" if event["running"] else "exited",
    }
    return json.dumps(facts)
