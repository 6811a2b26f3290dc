"""Tearing sessions down, one attempt at a time for each."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from fabric.core.errors import (
    CleanupIncompleteError,
    DeadlineError,
    FabricError,
    InternalError,
    SessionLostError,
    SessionNotFoundError,
)
from fabric.core.ids import HostName, SessionId
from fabric.core.model import CloseReceipt, EndedProcess
from fabric.core.settings import RegistrySettings
from fabric.registry.books import Books
from fabric.registry.instructions import Change
from fabric.registry.ports import NodesPort
from fabric.registry.waiting import seen, within

_log = logging.getLogger(__name__)
Receipt = CloseReceipt | None
Attempt = asyncio.Task[Receipt]


class Closings:
    """The closes in flight."""

    def __init__(self, books: Books, nodes: NodesPort, settings: RegistrySettings) -> None:
        self._books = books
        self._nodes = nodes
        self._settings = settings
        self._attempts: dict[SessionId, Attempt] = {}

    def start(
        self,
        session_id: SessionId,
        reason: str,
        rows: Callable[[Receipt], Sequence[Change]] | None = None,
    ) -> Attempt:
        """Start a close, or join the one in flight; ``rows`` are written with its success."""
        attempt = self._attempts.get(session_id)
        if attempt is None:
            loop = asyncio.get_running_loop()
            attempt = loop.create_task(self._attempt(session_id, reason, rows))
            self._attempts[session_id] = attempt
            attempt.add_done_callback(seen)
            attempt.add_done_callback(lambda _: self._attempts.pop(session_id, None))
        return attempt

    async def remove(self, host: HostName, session_id: SessionId, reason: str) -> Receipt:
        """End what a node has of a session; None when it has nothing.

        Raises: CleanupIncompleteError, SessionLostError, what the node raises.
        """
        limit = self._settings.close_timeout_s
        try:
            receipt = await within(
                limit, f"node {host}", self._nodes.close(host, session_id, reason)
            )
        except SessionLostError:
            raise
        except SessionNotFoundError:
            return None
        except DeadlineError as error:
            raise CleanupIncompleteError(
                f"the end of session {session_id} was not confirmed: {error.message}",
                session_id=session_id,
                host=host,
            ) from error
        except FabricError:
            raise
        except Exception as error:
            _log.exception("close failed", extra={"host": host, "session": session_id})
            raise InternalError(f"the close of session {session_id} failed") from error
        if receipt.survivors:
            raise CleanupIncompleteError(
                f"session {session_id} left processes behind: {_names(receipt.survivors)};"
                " close it again",
                session_id=session_id,
                host=host,
                survivors=_names(receipt.survivors),
            )
        return receipt

    async def stop(self) -> None:
        """Let go of the attempts; sessions stay as they are in the journal."""
        attempts = set(self._attempts.values())
        for attempt in attempts:
            attempt.cancel()
        if attempts:
            await asyncio.wait(attempts)

    async def _attempt(
        self,
        session_id: SessionId,
        reason: str,
        rows: Callable[[Receipt], Sequence[Change]] | None,
    ) -> Receipt:
        table, clock = self._books.table, self._books.clock
        session = table.sessions.get(session_id)
        if session is None or session.host is None:
            raise SessionNotFoundError(f"unknown session {session_id}", session_id=session_id)
        try:
            receipt = await self.remove(session.host, session_id, reason)
        except SessionLostError as error:
            self._books.commit(table.lost(session_id, error.message, clock.monotonic()))
            raise
        except FabricError as error:
            self._books.commit(table.close_failed(session_id, error.message, clock.monotonic()))
            _log.warning("close failed", extra={"session": session_id, "reason": error.reason})
            raise
        more = rows(receipt) if rows is not None else ()
        self._books.commit([*table.closed(session_id, clock.monotonic()), *more])
        _log.info("session closed", extra={"session": session_id, "host": session.host})
        return receipt


def _names(processes: Sequence[EndedProcess]) -> str:
    return ", ".join(f"{item.name} (pid {item.pid})" for item in processes)
