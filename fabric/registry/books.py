"""The registry's books: the pure tables, and one transaction for each stimulus.

``commit`` turns instructions into rows (announcements become events, lost tasks become
records), writes them in one transaction and hands back what is left to be done. When the
journal cannot be written, the rows are kept and written with the next transaction; calls
that begin something new are refused meanwhile (``must``), calls that end something go on.
"""

import asyncio
import logging
from collections.abc import Sequence

from fabric.core.clock import Clock
from fabric.core.errors import RegistryUnavailableError
from fabric.core.ids import OwnerId
from fabric.core.model import TaskRecord
from fabric.core.settings import RegistrySettings, TaskSettings
from fabric.registry.calls import Calls
from fabric.registry.events import Events, announce_task
from fabric.registry.feed import Feed
from fabric.registry.instructions import (
    AbortOpen,
    Announce,
    Change,
    CloseSession,
    Drop,
    Evict,
    Fence,
    Instruction,
    Kind,
    OwnerGone,
    Put,
    TasksLost,
)
from fabric.registry.journal import Journal
from fabric.registry.table import Table
from fabric.registry.tasks import Tasks

_log = logging.getLogger(__name__)
Effect = AbortOpen | CloseSession | Evict | Fence


class Books:
    """Table, tasks, events, request ids, and the journal they are written to."""

    def __init__(
        self, settings: RegistrySettings, tasks: TaskSettings, journal: Journal, clock: Clock
    ) -> None:
        self.clock = clock
        self.journal = journal
        self.table = Table(settings)
        self.tasks = Tasks(tasks)
        self.events = Events(max_events=tasks.max_events_per_owner)
        self.calls = Calls(
            retention_s=settings.request_retention_s,
            max_entries=settings.max_request_ids,
            clock=clock,
            write=self.write,
        )
        self.feed = Feed(clock.wall())
        self._unsaved: dict[tuple[Kind, str], Change] = {}
        self._waiting: dict[OwnerId, set[asyncio.Future[None]]] = {}

    def commit(self, instructions: Sequence[Instruction], *, must: bool = False) -> list[Effect]:
        """Write the rows of one stimulus; return what is to be done now.

        Raises: RegistryUnavailableError with ``must``, when the journal cannot be written.
        """
        rows: list[Change] = []
        effects: list[Effect] = []
        news: set[OwnerId] = set()
        for item in instructions:
            if isinstance(item, Put | Drop):
                rows.append(item)
            elif isinstance(item, Announce):
                rows += self.events.append(item, self.clock.wall())
                news.add(item.owner_id)
            elif isinstance(item, TasksLost):
                rows += self._lose_tasks(item, news)
            elif isinstance(item, OwnerGone):
                rows += self.tasks.drop_owner(item.owner_id)
                rows += self.events.drop_owner(item.owner_id)
                news.add(item.owner_id)
            else:
                effects.append(item)
        self.write(rows, must=must)
        for owner_id in news:
            self.wake(owner_id)
        return effects

    def settle_task(
        self, record: TaskRecord, text: str, start: int, consumed: int = 0, cut: int = 0
    ) -> None:
        """Record a task's end and announce it once. Raises: InvalidRequestError."""
        now = self.clock.monotonic()
        first, rows = self.tasks.settle(record, text, start, now, consumed, cut)
        told = [self._task_event(record)] if first else []
        self.commit([*rows, *told])

    def write(self, rows: Sequence[Change], *, must: bool = False) -> None:
        """Write rows in one transaction, with those that could not be written before."""
        for row in rows:
            key = (row.kind, row.key)
            self._unsaved.pop(key, None)
            self._unsaved[key] = row
        if not self._unsaved:
            return
        try:
            self.journal.apply(self._unsaved.values())
        except RegistryUnavailableError:
            _log.error("journal not written", extra={"rows": len(self._unsaved)})
            if must:
                raise
        else:
            self._unsaved.clear()

    def wake(self, owner_id: OwnerId) -> None:
        """Wake who waits for news of an owner."""
        self.feed.note(owner_id)
        for future in self._waiting.pop(owner_id, ()):
            if not future.done():
                future.set_result(None)

    async def news(self, owner_id: OwnerId, limit_s: float) -> None:
        """Wait for news of an owner, at most ``limit_s`` seconds."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner_id, set()).add(future)
        try:
            await asyncio.wait({future}, timeout=limit_s)
        finally:
            waiting = self._waiting.get(owner_id)
            if waiting is not None:
                waiting.discard(future)
                if not waiting:
                    del self._waiting[owner_id]

    def _lose_tasks(self, item: TasksLost, news: set[OwnerId]) -> list[Change]:
        clock = self.clock
        records, rows = self.tasks.lost(
            item.session_id, item.why, item.below_adoption, clock.wall(), clock.monotonic()
        )
        for record in records:
            rows += self.events.append(self._task_event(record), clock.wall())
            news.add(record.owner_id)
        return rows

    @staticmethod
    def _task_event(record: TaskRecord) -> Announce:
        detail = record.state.value
        return announce_task(record.owner_id, record.session_id, record.task_id, detail)
