"""What the registry keeps and tells: tasks, events, and what nodes report of sessions."""

import asyncio
from dataclasses import replace

from fabric.core.errors import (
    CapacityReachedError,
    InvalidRequestError,
    RegistryUnavailableError,
    SessionNotFoundError,
)
from fabric.core.ids import HostName, OwnerId, SessionId, TaskId, new_task_id
from fabric.core.model import (
    Caller,
    EventKind,
    EventPage,
    ExitStatus,
    NewsPage,
    SessionInfo,
    SessionStatus,
    TaskOutput,
    TaskRecord,
    TaskState,
)
from fabric.core.settings import TaskSettings
from fabric.registry.books import Books
from fabric.registry.instructions import Announce, Instruction
from fabric.registry.reconcile import described
from fabric.registry.tasks import ACTIVE

MAX_PAGE_EVENTS = 1000


class Telling:
    """The registry's methods that only touch the books."""

    def __init__(self, books: Books, settings: TaskSettings) -> None:
        self._books = books
        self._task_settings = settings
        self._is_ready = False
        self._is_draining = False

    # Tasks, for owners

    async def list_tasks(self, caller: Caller) -> tuple[TaskRecord, ...]:
        """List the owner's tasks, settled ones too while retained."""
        return self._books.tasks.listed(self._authorise(caller))

    async def task_record(self, caller: Caller, task_id: TaskId) -> TaskRecord:
        """Return one task. Raises: TaskNotFoundError, ForeignSessionError."""
        return self._books.tasks.find(self._authorise(caller), task_id)

    async def task_output(
        self, caller: Caller, task_id: TaskId, cursor: int = 0, wait_s: float = 0.0
    ) -> TaskOutput:
        """Return a settled task's output from ``cursor``, waiting up to ``wait_s`` for its end.

        While the task runs there is no text here; its session's worker has it.
        Raises: TaskNotFoundError, ForeignSessionError, InvalidRequestError.
        """
        owner_id = self._authorise(caller)
        limit = self._task_settings.max_wait_timeout_s
        if not 0 <= wait_s <= limit:
            raise InvalidRequestError(f"wait_s must lie between 0 and {limit:g}", field="wait_s")
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while True:
            output = self._books.tasks.output(owner_id, task_id, cursor)
            left = deadline - loop.time()
            if output.record.state not in ACTIVE or left <= 0:
                return output
            await self._books.news(owner_id, left)
            self._authorise(caller)

    # Tasks, for workers

    async def reserve_task(
        self, caller: Caller, session_id: SessionId, label: str, adoption: int | None = None
    ) -> TaskId:
        """Count a background send that is about to start, and name it.

        ``adoption`` is that of the worker that will run it (default: the one last seen).
        Raises: OwnerNotLiveError, SessionNotFoundError, ForeignSessionError,
        CapacityReachedError, UnsupportedError, InvalidRequestError.
        """
        self._authorise(caller)
        session = self._books.table.find(caller, session_id)
        seen = session.info.adoption if session.info is not None else 1
        record = TaskRecord(
            new_task_id(),
            session.owner_id,
            session_id,
            label,
            TaskState.RUNNING,
            started_at=self._books.clock.wall(),
        )
        self._check_quota(session.owner_id)
        number = adoption if adoption is not None else seen
        rows = self._books.tasks.reserve(record, number, self._books.clock.monotonic())
        self._books.commit(rows, must=True)
        return record.task_id

    async def attach_task(self, task_id: TaskId, record: TaskRecord | None = None) -> TaskRecord:
        """Show a reserved task whose send has started.

        A worker that named the task itself passes its record, which replaces the reserved
        one. Raises: TaskNotFoundError.
        """
        self._require_ready()
        now = self._books.clock.monotonic()
        self._books.commit(self._books.tasks.attach(task_id, record, now))
        return self._books.tasks.record(task_id if record is None else record.task_id)

    async def forget_task(self, task_id: TaskId) -> None:
        """Drop a reservation whose send did not start."""
        self._require_ready()
        self._books.commit(self._books.tasks.forget(task_id))

    async def stop_task(self, task_id: TaskId) -> TaskRecord:
        """Note that a task was told to end. Raises: TaskNotFoundError."""
        self._require_ready()
        self._books.commit(self._books.tasks.stop(task_id))
        return self._books.tasks.record(task_id)

    async def settle_task(
        self,
        record: TaskRecord,
        text: str = "",
        first_cursor: int = 0,
        consumed: int = 0,
        cut: int = 0,
    ) -> TaskRecord:
        """Take a task's final record and output; the first final state stays.

        ``text`` begins at the character ``first_cursor`` of the task's output, of which a
        reader without a cursor has read up to ``consumed`` and in which something is
        missing before ``cut`` (0: nowhere). A task of an owner that is gone is dropped.
        Raises: InvalidRequestError.
        """
        self._require_ready()
        if self._books.table.owners.find(record.owner_id) is None:
            return record
        if record.finished_at is None:
            record = replace(record, finished_at=self._books.clock.wall())
        self._books.settle_task(record, text, first_cursor, consumed, cut)
        return self._books.tasks.record(record.task_id)

    # Events

    async def read_events(
        self, caller: Caller, cursor: int | None = None, limit: int = 100, wait_s: float = 0.0
    ) -> EventPage:
        """Return events after ``cursor`` (None: after the acknowledged), waiting for the first.

        The last page of a disposed owner has ``ended``. Raises: OwnerNotLiveError,
        InvalidRequestError.
        """
        gone = self._books.table.owners.find(caller.owner_id) is None
        if gone and cursor is not None and self._books.events.has_ended(caller.owner_id):
            # Who was following when the owner went reads how it ended.
            return self._books.events.read(caller.owner_id, cursor, limit)
        owner_id = self._may_read(caller)
        if not 1 <= limit <= MAX_PAGE_EVENTS:
            raise InvalidRequestError(f"limit must be 1 to {MAX_PAGE_EVENTS}", field="limit")
        longest = self._task_settings.max_wait_timeout_s
        if not 0 <= wait_s <= longest:
            raise InvalidRequestError(f"wait_s must lie between 0 and {longest:g}", field="wait_s")
        page = self._books.events.read(owner_id, cursor, limit)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        while not self._books.events.has_news(owner_id, cursor):
            left = deadline - loop.time()
            if left <= 0:
                return page
            await self._books.news(owner_id, left)
            if self._books.table.owners.find(owner_id) is not None:
                self._may_read(caller)
            elif not self._books.events.has_news(owner_id, cursor):
                raise self._books.table.owners.not_live(owner_id)
        return self._books.events.read(owner_id, cursor, limit)

    async def acknowledge_events(self, caller: Caller, sequence: int) -> None:
        """Drop the events up to ``sequence``. Raises: OwnerNotLiveError, InvalidRequestError."""
        self._books.commit(self._books.events.acknowledge(self._authorise(caller), sequence))

    async def news(self, version: int | None, wait_s: float) -> NewsPage:
        """Tell a gateway which owners have news after ``version``, waiting for the first.

        Raises: InvalidRequestError.
        """
        self._require_ready()
        longest = self._task_settings.max_wait_timeout_s
        if not 0 <= wait_s <= longest:
            raise InvalidRequestError(f"wait_s must lie between 0 and {longest:g}", field="wait_s")
        return await self._books.feed.after(version, wait_s)

    # What nodes and workers report

    async def session_described(self, info: SessionInfo) -> None:
        """Take a session's newer description: its exit and a re-adoption are announced once."""
        self._require_ready()
        self._books.commit(described(self._books.table, info.session_id, info))

    async def session_exited(self, session_id: SessionId, status: ExitStatus) -> None:
        """Note that a session's program has ended; reports for unknown sessions are dropped."""
        self._require_ready()
        session = self._books.table.sessions.get(session_id)
        if session is not None and session.info is not None:
            info = replace(session.info, status=SessionStatus(status))
            self._books.commit(described(self._books.table, session_id, info))

    async def session_readopted(self, session_id: SessionId, adoption: int) -> None:
        """Note that a session has a new worker; what ran in the old one is lost."""
        self._require_ready()
        session = self._books.table.sessions.get(session_id)
        if session is not None and session.info is not None:
            info = replace(session.info, adoption=adoption)
            self._books.commit(described(self._books.table, session_id, info))

    async def session_lost(
        self, host: HostName, session_id: SessionId | None = None, why: str | None = None
    ) -> None:
        """Give up a session of a node, or all of them, because they are known to be dead."""
        self._require_ready()
        now = self._books.clock.monotonic()
        out: list[Instruction] = []
        for session in list(self._books.table.sessions.values()):
            if session.host == host and session_id in (None, session.session_id):
                reason = why or f"node {host} died"
                out += self._books.table.lost(session.session_id, reason, now)
        self._books.commit(out)

    async def human_handback(self, session_id: SessionId, detail: str | None = None) -> None:
        """Announce that a person has given the terminal back. Raises: SessionNotFoundError."""
        self._require_ready()
        session = self._books.table.sessions.get(session_id)
        if session is None:
            raise SessionNotFoundError(f"unknown session {session_id}", session_id=session_id)
        told = Announce(session.owner_id, EventKind.HUMAN_HANDBACK, session_id, detail=detail)
        self._books.commit([told])

    # Shared

    def _check_quota(self, owner_id: OwnerId) -> None:
        """Hold the tasks of a principal's owners together to what was laid down for it."""
        owners = self._books.table.owners
        owner = owners.find(owner_id)
        limit = None if owner is None else owners.policy(owner.principal).max_tasks
        if owner is None or limit is None:
            return
        mine = owners.of_principal(owner.principal)
        active = sum(self._books.tasks.active(other.owner_id) for other in mine)
        if active >= limit:
            raise CapacityReachedError(
                f"principal {owner.principal} has {active} of {limit} background tasks running,"
                " all its owners together",
                active=active,
                limit=limit,
            )

    def _authorise(self, caller: Caller) -> OwnerId:
        self._require_ready()
        return self._books.table.owners.authorise(caller).owner_id

    def _may_read(self, caller: Caller) -> OwnerId:
        """Let an owner that is being disposed of read how it ended."""
        self._require_ready()
        owner = self._books.table.owners.find(caller.owner_id)
        if owner is None or owner.is_live or owner.epoch != caller.epoch:
            return self._books.table.owners.authorise(caller).owner_id
        return owner.owner_id

    def _require_ready(self) -> None:
        if not self._is_ready:
            raise RegistryUnavailableError(
                "the registry is starting or stopping; try again in a moment"
            )
