"""The task table against a dictionary that a person could keep."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fabric.core.errors import CapacityReachedError, TaskNotFoundError
from fabric.core.ids import OwnerId, SessionId, TaskId
from fabric.core.model import TaskRecord, TaskState
from fabric.core.settings import TaskSettings
from fabric.registry.instructions import Change, Put
from fabric.registry.tasks import ACTIVE, RESERVATION_S, Tasks
from tests.support.models import model_settings

SETTINGS = TaskSettings(
    max_active_per_owner=3, max_retained_per_owner=4, max_retained_bytes_per_owner=40,
    max_output_bytes=16, retention_s=100,
)  # fmt: skip
OWNERS = st.sampled_from([OwnerId("own_1"), OwnerId("own_2")])
SESSIONS = st.sampled_from([SessionId("ses_1"), SessionId("ses_2")])
FINAL = st.sampled_from([state for state in TaskState if state not in ACTIVE])
INDEX = st.integers(0, 9)
RESERVED = "reserved"


class TasksModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.tasks = Tasks(SETTINGS)
        self.now = 0.0
        self.count = 0
        self.records: dict[TaskId, TaskRecord] = {}
        self.states: dict[TaskId, str] = {}
        self.finals: dict[TaskId, TaskState] = {}
        self.rows: dict[str, dict[str, object]] = {}

    def write(self, changes: list[Change]) -> None:
        for change in changes:
            if isinstance(change, Put):
                self.rows[change.key] = change.body
            else:
                del self.rows[change.key]
                self.states.pop(TaskId(change.key), None)

    def pick(self, index: int) -> TaskId:
        recent = list(self.records)[-8:]
        return recent[index % len(recent)]

    @initialize()
    def begin(self) -> None:
        self.start(OwnerId("own_1"), SessionId("ses_1"))

    @rule(owner=OWNERS, session=SESSIONS)
    def start(self, owner: OwnerId, session: SessionId) -> None:
        self.count += 1
        record = TaskRecord(TaskId(f"tsk_{self.count}"), owner, session, "label", TaskState.RUNNING)
        active = [
            key for key, state in self.states.items()
            if self.records[key].owner_id == owner and state in (RESERVED, *ACTIVE)
        ]  # fmt: skip
        if len(active) >= 3:
            with pytest.raises(CapacityReachedError):
                self.tasks.reserve(record, 1, self.now)
            return
        self.records[record.task_id] = record
        self.states[record.task_id] = RESERVED
        self.write(self.tasks.reserve(record, 1, self.now))

    @rule(index=INDEX)
    def attach(self, index: int) -> None:
        key = self.pick(index)
        if key not in self.states:
            with pytest.raises(TaskNotFoundError):
                self.tasks.attach(key, None, self.now)
            return
        self.write(self.tasks.attach(key, None, self.now))
        if self.states[key] == RESERVED:
            self.states[key] = TaskState.RUNNING

    @rule(index=INDEX)
    def forget(self, index: int) -> None:
        key = self.pick(index)
        gone = self.states.get(key) == RESERVED
        before = set(self.states)
        self.write(self.tasks.forget(key))
        assert before - set(self.states) == ({key} if gone else set())

    @rule(index=INDEX)
    def stop(self, index: int) -> None:
        key = self.pick(index)
        if self.states.get(key, RESERVED) == RESERVED:
            with pytest.raises(TaskNotFoundError):
                self.tasks.stop(key)
            return
        self.write(self.tasks.stop(key))
        if self.states[key] == TaskState.RUNNING:
            self.states[key] = TaskState.STOPPING

    @rule(index=INDEX, state=FINAL, text=st.text(max_size=30) | st.just("0123456789" * 3))
    def settle(self, index: int, state: TaskState, text: str) -> None:
        key = self.pick(index)
        if key not in self.states:
            return
        active = self.states[key] in (RESERVED, *ACTIVE)
        record = TaskRecord(
            key, self.records[key].owner_id, self.records[key].session_id, "", state
        )
        first, changes = self.tasks.settle(record, text, 0, self.now)
        assert first is active
        if first:
            self.states[key] = state
            self.finals[key] = state
        self.write(changes)
        if first and key in self.states:
            page = self.tasks.output(record.owner_id, key, 0)
            assert text.endswith(page.text)
            assert page.truncated == (page.text != text)
            assert page.next_cursor == len(text)
            assert len(page.text.encode()) <= SETTINGS.max_output_bytes

    @rule(session=SESSIONS)
    def lose(self, session: SessionId) -> None:
        hit = [
            key for key, state in self.states.items()
            if self.records[key].session_id == session and state in ACTIVE
        ]  # fmt: skip
        reserved = [
            key for key, state in self.states.items()
            if self.records[key].session_id == session and state == RESERVED
        ]  # fmt: skip
        records, changes = self.tasks.lost(session, "gone", None, 0.0, self.now)
        assert sorted(record.task_id for record in records) == sorted(hit)
        for key in hit:
            self.states[key] = self.finals[key] = TaskState.LOST
        self.write(changes)
        assert not set(reserved) & set(self.states)

    @rule(owner=OWNERS)
    def drop(self, owner: OwnerId) -> None:
        self.write(self.tasks.drop_owner(owner))
        assert not [key for key in self.states if self.records[key].owner_id == owner]

    @rule(seconds=st.integers(1, 60))
    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        self.write(self.tasks.tick(self.now))

    @rule()
    def restart(self) -> None:
        fresh = Tasks(SETTINGS)
        for key in self.tasks._tasks:  # in the order of their start, as their ids need not be
            fresh.restore(key, self.rows[key], self.now)
        for owner in (OwnerId("own_1"), OwnerId("own_2")):
            assert fresh.listed(owner) == self.tasks.listed(owner)
        self.tasks = fresh

    @invariant()
    def the_list_is_what_the_model_says(self) -> None:
        for owner in (OwnerId("own_1"), OwnerId("own_2")):
            listed = {item.task_id: item.state for item in self.tasks.listed(owner)}
            shown = {
                key: state for key, state in self.states.items()
                if self.records[key].owner_id == owner and state != RESERVED
            }  # fmt: skip
            if not any(state == RESERVED for state in self.states.values()):
                assert listed == shown
            assert set(listed) <= set(self.states)
            assert all(listed[key] == self.finals[key] for key in listed if key in self.finals)

    @invariant()
    def bounds_hold(self) -> None:
        for owner in (OwnerId("own_1"), OwnerId("own_2")):
            mine = self.tasks._owned(owner)
            settled = [task for task in mine if not task.is_active]
            assert len(settled) <= SETTINGS.max_retained_per_owner
            assert sum(task.size for task in settled) <= SETTINGS.max_retained_bytes_per_owner
            assert sum(task.is_active for task in mine) <= SETTINGS.max_active_per_owner
        assert SETTINGS.retention_s > RESERVATION_S

    @invariant()
    def the_journal_has_the_same(self) -> None:
        assert set(self.rows) == set(self.tasks._tasks)
        for key, task in self.tasks._tasks.items():
            assert self.rows[key] == task.row().body


TestTasksModel = pytest.mark.timeout(120)(TasksModel.TestCase)
TestTasksModel.settings = model_settings()
