"""A background send's record and its bounded, incremental output.

States: RUNNING -> STOPPING -> COMPLETED | KILLED | FAILED | LOST; the first terminal
outcome wins. Output is addressed by a cursor that counts characters since the start, so
a read may be repeated; what was dropped to stay within the bound is an explicit
truncation. So is a piece that was already cut when it came (its omission line stands in
the text): ``cut`` is the cursor after the last such piece, and whoever reads from before
it is told. A reader that brings no cursor consumes: the task remembers how far it got.
"""

from dataclasses import dataclass, replace

from fabric.core.ids import OwnerId, SessionId, TaskId
from fabric.core.model import TaskOutput, TaskRecord, TaskState

CONSUME = -1
LABEL_CHARS = 80
_TERMINAL = frozenset((TaskState.COMPLETED, TaskState.KILLED, TaskState.FAILED, TaskState.LOST))


def label_of(session_id: SessionId, data: bytes) -> str:
    """Name a task by its session and the head of its text, on one line."""
    text = " ".join(data.decode("utf-8", "replace").split())
    if not text:
        return f"{session_id}: (input)"
    return f"{session_id}: {text[:LABEL_CHARS]}{'…' if len(text) > LABEL_CHARS else ''}"


def is_terminal(state: TaskState) -> bool:
    """Tell whether a state is final."""
    return state in _TERMINAL


@dataclass(slots=True)
class Output:
    """Text kept from the newest end, at most ``max_bytes`` of UTF-8."""

    max_bytes: int
    text: str = ""
    start: int = 0
    consumed: int = 0
    cut: int = 0
    size: int = 0

    @property
    def end(self) -> int:
        """The cursor after the last character."""
        return self.start + len(self.text)

    def append(self, text: str, *, truncated: bool = False) -> None:
        """Add text, ``truncated`` when some of it is missing; drop the oldest above the bound."""
        if not text:
            return
        self.text += text
        if truncated:
            self.cut = self.end
        self.size += len(text.encode())
        if self.size > self.max_bytes:
            raw = self.text.encode()[-self.max_bytes :]
            kept = raw.decode("utf-8", "ignore")
            self.start += len(self.text) - len(kept)
            self.text = kept
            self.size = len(kept.encode())

    def read(self, cursor: int) -> tuple[str, int, bool]:
        """Return (text, next cursor, truncated) from ``cursor``, or from the consumed end."""
        begin = self.consumed if cursor == CONSUME else min(cursor, self.end)
        truncated = begin < max(self.start, self.cut)
        text = self.text[max(begin - self.start, 0) :]
        if cursor == CONSUME:
            self.consumed = self.end
        return text, self.end, truncated


class Task:
    """One background send as its session sees it."""

    def __init__(
        self,
        task_id: TaskId,
        owner_id: OwnerId,
        session_id: SessionId,
        label: str,
        max_output_bytes: int,
        now: float,
    ) -> None:
        self.record = TaskRecord(
            task_id=task_id,
            owner_id=owner_id,
            session_id=session_id,
            label=label,
            state=TaskState.RUNNING,
            started_at=now,
        )
        self.output = Output(max_output_bytes)

    @property
    def is_over(self) -> bool:
        """Tell whether the outcome is fixed."""
        return is_terminal(self.record.state)

    def stop(self) -> None:
        """Note that its end was asked for."""
        if self.record.state is TaskState.RUNNING:
            self.record = replace(self.record, state=TaskState.STOPPING)

    def settle(self, state: TaskState, detail: str, now: float) -> bool:
        """Fix the outcome; a stopping task ends killed. False when it had one already."""
        if self.is_over:
            return False
        if self.record.state is TaskState.STOPPING and state is TaskState.COMPLETED:
            state = TaskState.KILLED
        self.record = replace(self.record, state=state, detail=detail, finished_at=now)
        return True

    def read(self, cursor: int) -> TaskOutput:
        """Return what is new since ``cursor`` (``CONSUME``: since the last such read).

        Once the task is over its report says how far was read, and whoever keeps the report
        goes on from there; so the last reads here repeat instead of consuming.
        """
        if cursor == CONSUME and self.is_over:
            cursor = self.output.consumed
        text, next_cursor, truncated = self.output.read(cursor)
        return TaskOutput(
            text=text, record=self.record, next_cursor=next_cursor, truncated=truncated
        )
