"""Background sends across the fabric: counted while they run, kept for a while afterwards.

Theory. A task is *reserved* before its send has a slot (it counts against the owner's
limit, but nobody sees it), then *attached* when the send has started, or forgotten when
it was refused, so no id is ever shown for a send that did not start:

    reserve --> (reserved) --attach--> RUNNING --stop--> STOPPING
                     |                    |                 |
                  forget             settle: COMPLETED | KILLED | FAILED | LOST

The first final state wins; later reports change nothing. While a task runs its output is
with the session's worker; what the worker hands over at the end is kept here, newest end
first, so it can be read when the session, its worker or the registry has died. Cursors
count characters since the task's first one, as the worker's do.

Kept per owner: ``max_retained_per_owner`` settled tasks, ``max_retained_bytes_per_owner``
of their output, ``retention_s`` each; the oldest settled go first. A reservation that
nothing becomes of is dropped after ``RESERVATION_S``.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from fabric.core.errors import (
    CapacityReachedError,
    ForeignSessionError,
    InternalError,
    InvalidRequestError,
    TaskNotFoundError,
    UnsupportedError,
)
from fabric.core.ids import OwnerId, SessionId, TaskId
from fabric.core.model import TaskOutput, TaskRecord, TaskState
from fabric.core.plain import from_plain, to_plain
from fabric.core.settings import TaskSettings
from fabric.registry.instructions import Change, Drop, Kind, Put

RESERVATION_S = 60.0
MAX_LABEL_CHARS = 200
MAX_DETAIL_CHARS = 500
CONSUME = -1
ACTIVE = (TaskState.RUNNING, TaskState.STOPPING)


@dataclass(slots=True)
class Task:
    """One task; ``text`` begins at the character ``start`` of its output.

    ``consumed`` is how far a reader without a cursor of its own has read; before the
    character ``cut`` something is missing in the middle of the text.
    """

    record: TaskRecord
    attached: bool
    touched_at: float
    adoption: int = 1
    text: str = ""
    start: int = 0
    size: int = 0
    consumed: int = 0
    cut: int = 0

    @property
    def is_active(self) -> bool:
        """Tell whether it counts against the limit."""
        return self.record.state in ACTIVE

    def row(self) -> Put:
        """Return the row to write."""
        return Put(
            Kind.TASK,
            self.record.task_id,
            {
                "record": to_plain(self.record),
                "attached": self.attached,
                "adoption": self.adoption,
                "text": self.text,
                "start": self.start,
                "consumed": self.consumed,
                "cut": self.cut,
            },
        )


class Tasks:
    """The tasks of all owners, in order of their reservation."""

    def __init__(self, settings: TaskSettings) -> None:
        self._settings = settings
        self._tasks: dict[TaskId, Task] = {}
        self._of_owner: dict[OwnerId, dict[TaskId, None]] = {}
        self._of_session: dict[SessionId, set[TaskId]] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def reserve(self, record: TaskRecord, adoption: int, now: float) -> list[Change]:
        """Count a send that is about to start.

        Raises: UnsupportedError, InvalidRequestError, CapacityReachedError.
        """
        if not self._settings.enabled:
            raise UnsupportedError("background sends are switched off here (tasks.enabled)")
        if not record.label.strip() or len(record.label) > MAX_LABEL_CHARS:
            raise InvalidRequestError(
                f"a task's label must have 1 to {MAX_LABEL_CHARS} characters", field="label"
            )
        if record.task_id in self._tasks:
            raise InternalError(f"task id {record.task_id} was used before")
        active = self.active(record.owner_id)
        limit = self._settings.max_active_per_owner
        if active >= limit:
            raise CapacityReachedError(
                f"this owner has {active} of {limit} background tasks running; stop one with"
                " task_kill or wait for one to finish, then try again",
                active=active,
                limit=limit,
            )
        return self._add(Task(record, False, now, adoption))

    def states(self) -> Counter[TaskState]:
        """Count the tasks by their state."""
        return Counter(task.record.state for task in self._tasks.values())

    def active(self, owner_id: OwnerId) -> int:
        """Count an owner's tasks that have not settled, reservations too."""
        return sum(task.is_active for task in self._owned(owner_id))

    def attach(self, task_id: TaskId, record: TaskRecord | None, now: float) -> list[Change]:
        """Show a task whose send has started, under the worker's record if it made one.

        Raises: TaskNotFoundError when nothing was reserved.
        """
        task = self._get(task_id)
        if task.attached:
            return []
        out: list[Change] = []
        if record is not None and record.task_id != task_id:
            if record.task_id in self._tasks:
                return self._take_out(task)
            out += self._take_out(task)
            task = Task(record, True, now, task.adoption)
            return out + self._add(task)
        task.attached = True
        task.touched_at = now
        return [task.row()]

    def forget(self, task_id: TaskId) -> list[Change]:
        """Drop a reservation whose send did not start; anything else stays."""
        task = self._tasks.get(task_id)
        return [] if task is None or task.attached else self._take_out(task)

    def stop(self, task_id: TaskId) -> list[Change]:
        """Note that a running task was told to end. Raises: TaskNotFoundError."""
        task = self._get(task_id)
        if not task.attached:
            raise TaskNotFoundError(f"unknown task {task_id}", task_id=task_id)
        if task.record.state is not TaskState.RUNNING:
            return []
        task.record = replace(task.record, state=TaskState.STOPPING)
        return [task.row()]

    def settle(
        self,
        record: TaskRecord,
        text: str,
        start: int,
        now: float,
        consumed: int = 0,
        cut: int = 0,
    ) -> tuple[bool, list[Change]]:
        """Take a task's final state and output; False when it had a final state before.

        A task that was never attached, because that report got lost, is taken in.
        Raises: InvalidRequestError when the state is not final.
        """
        if record.state in ACTIVE:
            raise InvalidRequestError(f"{record.state.value} is not a final state", field="state")
        out: list[Change] = []
        task = self._tasks.get(record.task_id)
        if task is None:
            task = Task(record, True, now)
            out += self._add(task)
        elif not task.is_active:
            return False, []
        detail = None if record.detail is None else record.detail[:MAX_DETAIL_CHARS]
        task.record = replace(
            task.record, state=record.state, detail=detail, finished_at=record.finished_at
        )
        task.attached = True
        task.touched_at = now
        task.consumed, task.cut = consumed, cut
        self._keep(task, text, start)
        return True, [*out, task.row(), *self._trim(record.owner_id)]

    def lost(
        self, session_id: SessionId, why: str, below_adoption: int | None, wall: float, now: float
    ) -> tuple[list[TaskRecord], list[Change]]:
        """Settle as lost what still ran in a session, and drop its reservations."""
        records: list[TaskRecord] = []
        out: list[Change] = []
        for task_id in sorted(self._of_session.get(session_id, ())):
            task = self._tasks[task_id]
            spared = below_adoption is not None and task.adoption >= below_adoption
            if not task.is_active or spared:
                continue
            if not task.attached:
                out += self._take_out(task)
                continue
            final = replace(task.record, state=TaskState.LOST, detail=why, finished_at=wall)
            out += self.settle(final, task.text, task.start, now)[1]
            records.append(task.record)
        return records, out

    def drop_owner(self, owner_id: OwnerId) -> list[Change]:
        """Forget everything of an owner."""
        out: list[Change] = []
        for task in self._owned(owner_id):
            out += self._take_out(task)
        return out

    def record(self, task_id: TaskId) -> TaskRecord:
        """Return a task's record. Raises: TaskNotFoundError."""
        return self._get(task_id).record

    def find(self, owner_id: OwnerId, task_id: TaskId) -> TaskRecord:
        """Return an owner's task. Raises: TaskNotFoundError, ForeignSessionError."""
        task = self._tasks.get(task_id)
        if task is None or not task.attached:
            raise TaskNotFoundError(f"unknown task {task_id}", task_id=task_id)
        if task.record.owner_id != owner_id:
            raise ForeignSessionError(f"task {task_id} belongs to another owner", task_id=task_id)
        return task.record

    def listed(self, owner_id: OwnerId) -> tuple[TaskRecord, ...]:
        """List an owner's tasks, settled ones too, in the order of their start."""
        return tuple(task.record for task in self._owned(owner_id) if task.attached)

    def output(self, owner_id: OwnerId, task_id: TaskId, cursor: int) -> TaskOutput:
        """Return what is kept of a task's output from ``cursor`` on.

        ``CONSUME`` reads from where the last such read ended.
        While the task runs nothing is kept here and the cursor stays where it is.
        Raises: TaskNotFoundError, ForeignSessionError, InvalidRequestError.
        """
        record = self.find(owner_id, task_id)
        if cursor < CONSUME:
            raise InvalidRequestError("a task's cursor must not be negative", field="cursor")
        task = self._tasks[task_id]
        if task.is_active:
            return TaskOutput("", record, cursor)
        end = task.start + len(task.text)
        begin = task.consumed if cursor == CONSUME else min(cursor, end)
        if cursor == CONSUME:
            task.consumed = end
        text = task.text[max(begin - task.start, 0) :]
        return TaskOutput(text, record, end, truncated=begin < max(task.start, task.cut))

    def tick(self, now: float) -> list[Change]:
        """Drop what is kept for too long."""
        out: list[Change] = []
        for task in list(self._tasks.values()):
            age = now - task.touched_at
            if (not task.attached and age >= RESERVATION_S) or (
                not task.is_active and age >= self._settings.retention_s
            ):
                out += self._take_out(task)
        return out

    def restore(self, key: str, body: dict[str, Any], now: float) -> None:
        """Put back a row of the journal; its retention starts afresh."""
        record = from_plain(TaskRecord, body["record"])
        task = Task(record, bool(body["attached"]), now, int(body["adoption"]))
        task.text, task.start = str(body["text"]), int(body["start"])
        task.consumed, task.cut = int(body.get("consumed", 0)), int(body.get("cut", 0))
        task.size = len(task.text.encode())
        if key == record.task_id:
            self._add(task)

    def _get(self, task_id: TaskId) -> Task:
        task = self._tasks.get(task_id)
        if task is None:
            raise TaskNotFoundError(f"unknown task {task_id}", task_id=task_id)
        return task

    def _owned(self, owner_id: OwnerId) -> Iterable[Task]:
        return [self._tasks[key] for key in self._of_owner.get(owner_id, ())]

    def _add(self, task: Task) -> list[Change]:
        record = task.record
        self._tasks[record.task_id] = task
        self._of_owner.setdefault(record.owner_id, {})[record.task_id] = None
        self._of_session.setdefault(record.session_id, set()).add(record.task_id)
        return [task.row()]

    def _take_out(self, task: Task) -> list[Change]:
        record = task.record
        del self._tasks[record.task_id]
        mine = self._of_owner[record.owner_id]
        del mine[record.task_id]
        if not mine:
            del self._of_owner[record.owner_id]
        there = self._of_session[record.session_id]
        there.discard(record.task_id)
        if not there:
            del self._of_session[record.session_id]
        return [Drop(Kind.TASK, record.task_id)]

    def _keep(self, task: Task, text: str, start: int) -> None:
        limit = self._settings.max_output_bytes
        raw = text.encode("utf-8", "replace")
        if len(raw) > limit:
            kept = raw[-limit:].decode("utf-8", "ignore")
            start += len(text) - len(kept)
            text, raw = kept, kept.encode()
        task.text, task.start, task.size = text, start, len(raw)

    def _trim(self, owner_id: OwnerId) -> list[Change]:
        settled = [task for task in self._owned(owner_id) if not task.is_active]
        settled.sort(key=lambda task: task.touched_at)
        total = sum(task.size for task in settled)
        out: list[Change] = []
        while settled and (
            len(settled) > self._settings.max_retained_per_owner
            or total > self._settings.max_retained_bytes_per_owner
        ):
            total -= settled[0].size
            out += self._take_out(settled.pop(0))
        return out
