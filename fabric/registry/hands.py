"""The registry's hands: doing what the tables ask for."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any

from fabric.core.errors import FabricError
from fabric.core.ids import OwnerId, SessionId
from fabric.core.model import ReleaseReceipt
from fabric.core.settings import RegistrySettings
from fabric.registry.books import Books, Effect
from fabric.registry.closing import Closings
from fabric.registry.instructions import AbortOpen, CloseSession, Evict, Fence
from fabric.registry.opening import Openings
from fabric.registry.ports import NodesPort
from fabric.registry.waiting import seen, within

_log = logging.getLogger(__name__)
Task = asyncio.Task[Any]


class Hands:
    """Performs effects, each in a task that is kept until it ends."""

    def __init__(
        self,
        books: Books,
        nodes: NodesPort,
        settings: RegistrySettings,
        closings: Closings,
        openings: Openings,
    ) -> None:
        self._books = books
        self._nodes = nodes
        self._settings = settings
        self._closings = closings
        self._openings = openings
        self._work: set[Task] = set()
        self._evicting: set[SessionId] = set()

    def perform(self, effects: Sequence[Effect]) -> list[Task]:
        """Start what the table asked for; return the tasks to wait for, closes and aborts."""
        tasks: list[Task] = []
        for effect in effects:
            if isinstance(effect, CloseSession):
                tasks.append(self._closings.start(effect.session_id, effect.reason))
            elif isinstance(effect, AbortOpen):
                opening = self._openings.abort(effect.session_id, effect.why)
                if opening is not None:
                    tasks.append(opening)
            elif isinstance(effect, Evict):
                self._spawn(self._evict(effect))
            else:
                self._spawn(self._fence(effect))
        return tasks

    async def fence(self, effects: Sequence[Effect]) -> None:
        """Perform the effects of a take-over and wait until the fences are up, bounded."""
        self.perform([effect for effect in effects if not isinstance(effect, Fence)])
        fences = [self._spawn(self._fence(item)) for item in effects if isinstance(item, Fence)]
        if fences:
            await asyncio.wait(fences)

    async def dispose(self, owner_id: OwnerId, why: str) -> ReleaseReceipt:
        """End an owner, or try again what failed, and wait until all of it has settled."""
        table, clock = self._books.table, self._books.clock
        owner = table.owners.find(owner_id)
        before = [] if owner is None else [table.sessions[key] for key in owner.sessions]
        shown = {session.session_id for session in before if session.is_visible}
        effects = self._books.commit(table.dispose(owner_id, why, clock.monotonic()))
        waiting = {*self.perform(effects), *self._openings.of_owner(owner_id)}
        if waiting:
            await asyncio.wait(waiting)
        left = tuple(s.session_id for s in before if s.session_id in table.sessions)
        closed = tuple(key for key in (s.session_id for s in before) if key in shown)
        return ReleaseReceipt(tuple(key for key in closed if key not in left), left)

    async def stop(self) -> None:
        """Cancel what is in flight."""
        await cancel(self._work)

    async def _fence(self, fence: Fence) -> None:
        limit = self._settings.node_call_timeout_s
        call = self._nodes.fence(fence.host, fence.session_id, fence.epoch)
        try:
            await within(limit, f"node {fence.host}", call)
        except FabricError as error:
            # Not lost: every report of the node renews a fence that is behind.
            _log.warning(
                "fence failed", extra={"session": fence.session_id, "reason": error.reason}
            )
        except Exception:  # noqa: BLE001  (one node's fault must not end the others' fences)
            _log.exception("fence failed", extra={"session": fence.session_id})
        else:
            self._books.commit(self._books.table.fenced(fence.session_id, fence.epoch))

    async def _evict(self, evict: Evict) -> None:
        if evict.session_id in self._evicting:
            return
        self._evicting.add(evict.session_id)
        try:
            await self._closings.remove(evict.host, evict.session_id, evict.reason)
        except FabricError as error:
            # The node's next report asks for it again.
            _log.warning(
                "eviction failed", extra={"session": evict.session_id, "reason": error.reason}
            )
        finally:
            self._evicting.discard(evict.session_id)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> Task:
        task = asyncio.get_running_loop().create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)
        task.add_done_callback(seen)
        return task


async def cancel(tasks: Iterable[Task]) -> None:
    """Cancel tasks and wait for their end."""
    rows = list(tasks)
    for task in rows:
        task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*rows, return_exceptions=True)
