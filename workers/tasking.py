"""Background sends of a session: started, read, killed, settled."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fabric.core.errors import InvalidRequestError, OutcomeUnknownError, TaskNotFoundError
from fabric.core.ids import TaskId, new_task_id
from fabric.core.model import (
    Outcome,
    SendRequest,
    SendResult,
    TaskOutput,
    TaskRecord,
    TaskState,
    WaitReason,
)
from fabric.core.plain import to_plain
from workers.pulse import Pulse
from workers.tasks import Task, label_of

if TYPE_CHECKING:
    from workers.sending import Running
    from workers.session import Session

MAX_TASKS = 64


def detail_of(result: SendResult) -> str:
    """Say in a few words how a background send ended."""
    end = result.status.exit
    if end is None:
        return f"wait: {result.wait_reason.value}"
    known = end.exit_code if end.exit_code is not None else end.signal
    return f"session exited: {'unknown' if known is None else known}"


class Tasking:
    """The tasks of one session; settled ones stay until newer ones push them out."""

    def __init__(self, session: "Session", notify: Callable[[str, dict[str, Any]], None]) -> None:
        self._session = session
        self._notify = notify
        self._tasks: dict[TaskId, Task] = {}
        self._runs: dict[TaskId, Running] = {}
        self._started: dict[str, TaskId] = {}
        self._settled = Pulse()

    def start(self, request: SendRequest, *, known_only: bool = False) -> TaskRecord:
        """Start a background send; the same request id gives the same task.

        ``known_only`` starts nothing new. Raises: what a send raises before its first byte;
        OutcomeUnknownError when a worker that died had begun it; TaskNotFoundError.
        """
        known = self._started.get(request.request_id)
        if known is not None and known in self._tasks:
            self._session.sending.find(request)
            return self._tasks[known].record
        if known_only:
            raise TaskNotFoundError("no task was started under this request id here")
        if self._session.sending.find(request) is not None:
            raise OutcomeUnknownError(
                "this send was begun before and its task is not known here any more; it is not"
                " run again under this request id",
                request_id=request.request_id,
            )
        session = self._session
        run = session.sending.begin(request)
        task = Task(
            new_task_id(),
            session.spec.owner_id,
            session.spec.session_id,
            label_of(session.spec.session_id, request.data),
            session.settings.scrollback.send_max_bytes,
            session.clock.wall(),
        )
        task_id = task.record.task_id
        self._tasks[task_id] = task
        self._runs[task_id] = run
        self._started[request.request_id] = task_id
        self._drop_old()
        run.before_end = lambda: self._pull(task_id, final=True)
        run.done.add_done_callback(lambda done: self._on_done(task, done))
        return task.record

    async def output(self, task_id: TaskId, cursor: int, wait_s: float) -> TaskOutput:
        """Return new output, waiting up to ``wait_s`` for the end. Raises: TaskNotFoundError."""
        if wait_s < 0:
            raise InvalidRequestError("the wait must not be negative")
        task = self._find(task_id)
        deadline = time.monotonic() + wait_s
        while not task.is_over and (left := deadline - time.monotonic()) > 0:
            await self._settled.wait(left)
        self._pull(task_id, final=False)
        return task.read(cursor)

    def kill(self, task_id: TaskId) -> TaskRecord:
        """Interrupt the foreground group for real. Raises: TaskNotFoundError."""
        task = self._find(task_id)
        if not task.is_over:
            task.stop()
            self._session.sending.cancel(self._runs[task_id])
        return task.record

    def records(self) -> tuple[TaskRecord, ...]:
        """List what is known."""
        return tuple(task.record for task in self._tasks.values())

    def _find(self, task_id: TaskId) -> Task:
        task = self._tasks.get(task_id)
        if task is None:
            raise TaskNotFoundError(f"no task {task_id} is known here", task_id=task_id)
        return task

    def _pull(self, task_id: TaskId, *, final: bool) -> None:
        task, run = self._tasks[task_id], self._runs.get(task_id)
        if run is not None and not run.is_closed:
            piece = run.capture.take(final=final)
            task.output.append(piece.text, truncated=piece.truncated)

    def _on_done(self, task: Task, done: "asyncio.Future[SendResult]") -> None:
        now = self._session.clock.wall()
        error = None if done.cancelled() else done.exception()
        if done.cancelled():
            task.settle(TaskState.LOST, "the worker stopped", now)
        elif error is not None:
            task.settle(TaskState.FAILED, str(error), now)
        else:
            result = done.result()
            state = TaskState.COMPLETED
            if result.outcome is Outcome.CANCELLED or result.wait_reason is WaitReason.CANCELLED:
                state = TaskState.KILLED
            task.settle(state, detail_of(result), now)
        self._runs.pop(task.record.task_id, None)
        self._notify(
            "task_settled",
            {
                "task": to_plain(task.record),
                "text": task.output.text,
                "start": task.output.start,
                "consumed": task.output.consumed,
                "cut": task.output.cut,
            },
        )
        self._settled.send()

    def _drop_old(self) -> None:
        for task_id in [key for key, task in self._tasks.items() if task.is_over]:
            if len(self._tasks) <= MAX_TASKS:
                return
            del self._tasks[task_id]
            self._started = {
                request: held for request, held in self._started.items() if held != task_id
            }
