"""The task table with literals."""

from dataclasses import replace

import pytest

from fabric.core.errors import (
    CapacityReachedError,
    ForeignSessionError,
    InternalError,
    InvalidRequestError,
    TaskNotFoundError,
    UnsupportedError,
)
from fabric.core.ids import OwnerId, SessionId, TaskId
from fabric.core.model import TaskRecord, TaskState
from fabric.core.settings import TaskSettings
from fabric.registry.instructions import Change, Drop, Kind, Put
from fabric.registry.tasks import CONSUME, Tasks

OWNER, OTHER = OwnerId("own_1"), OwnerId("own_2")
SESSION = SessionId("ses_1")


def record(key: str, state: TaskState = TaskState.RUNNING, owner: OwnerId = OWNER) -> TaskRecord:
    return TaskRecord(TaskId(key), owner, SESSION, f"label {key}", state, started_at=1.0)


def final(key: str, state: TaskState = TaskState.COMPLETED, owner: OwnerId = OWNER) -> TaskRecord:
    return replace(record(key, state, owner), detail="wait: stdin_read", finished_at=2.0)


def tasks(**settings: object) -> Tasks:
    return Tasks(TaskSettings(**settings))  # type: ignore[arg-type]


def started(made: Tasks, *keys: str, now: float = 0.0) -> None:
    for key in keys:
        made.reserve(record(key), 1, now)
        made.attach(TaskId(key), None, now)


def dropped(changes: list[Change]) -> list[str]:
    return [item.key for item in changes if isinstance(item, Drop)]


def listed(made: Tasks, owner: OwnerId = OWNER) -> list[tuple[str, str]]:
    return [(item.task_id, item.state.value) for item in made.listed(owner)]


def test_a_reservation_counts_but_is_not_seen():
    made = tasks(max_active_per_owner=1)
    (row,) = made.reserve(record("t1"), 1, 0.0)
    assert isinstance(row, Put)
    assert listed(made) == []
    with pytest.raises(TaskNotFoundError):
        made.find(OWNER, TaskId("t1"))
    with pytest.raises(CapacityReachedError, match="1 of 1 background tasks") as failure:
        made.reserve(record("t2"), 1, 0.0)
    assert failure.value.metadata == {"active": "1", "limit": "1"}
    with pytest.raises(TaskNotFoundError):
        made.stop(TaskId("t1"))
    made.reserve(record("t3", owner=OTHER), 1, 0.0)
    assert made.forget(TaskId("t1")) == [Drop(Kind.TASK, "t1")]
    assert made.forget(TaskId("t1")) == []
    made.reserve(record("t2"), 1, 0.0)


def test_what_may_not_start_leaves_nothing():
    with pytest.raises(UnsupportedError):
        tasks(enabled=False).reserve(record("t1"), 1, 0.0)
    made = tasks()
    for label in ("", "  ", "x" * 201):
        with pytest.raises(InvalidRequestError):
            made.reserve(replace(record("t1"), label=label), 1, 0.0)
    made.reserve(record("t1"), 1, 0.0)
    with pytest.raises(InternalError):
        made.reserve(record("t1"), 1, 0.0)
    assert len(made) == 1


def test_attaching_shows_the_task_once():
    made = tasks()
    with pytest.raises(TaskNotFoundError):
        made.attach(TaskId("t1"), None, 0.0)
    started(made, "t1")
    assert made.attach(TaskId("t1"), None, 0.0) == []
    assert listed(made) == [("t1", "running")]
    assert made.forget(TaskId("t1")) == []
    assert made.record(TaskId("t1")).label == "label t1"


def test_a_worker_may_name_the_task_itself():
    made = tasks()
    made.reserve(record("t1"), 1, 0.0)
    out = made.attach(TaskId("t1"), record("w1"), 0.0)
    assert dropped(out) == ["t1"]
    assert listed(made) == [("w1", "running")]
    made.reserve(record("t2"), 1, 0.0)
    assert made.attach(TaskId("t2"), record("w1"), 0.0) == [Drop(Kind.TASK, "t2")]
    assert listed(made) == [("w1", "running")]


def test_the_first_final_state_stays():
    made = tasks()
    started(made, "t1")
    assert len(made.stop(TaskId("t1"))) == 1
    assert made.stop(TaskId("t1")) == []
    assert listed(made) == [("t1", "stopping")]
    first, _ = made.settle(final("t1", TaskState.KILLED), "out", 0, 5.0)
    assert first
    assert made.settle(final("t1", TaskState.FAILED), "other", 0, 6.0) == (False, [])
    assert made.stop(TaskId("t1")) == []
    settled = made.find(OWNER, TaskId("t1"))
    assert (settled.state, settled.detail, settled.finished_at) == ("killed", "wait: stdin_read", 2)
    assert settled.started_at == 1.0
    assert made.output(OWNER, TaskId("t1"), 0).text == "out"


def test_a_state_that_is_not_final_settles_nothing():
    with pytest.raises(InvalidRequestError, match="not a final state"):
        tasks().settle(record("t1"), "", 0, 0.0)


def test_a_settlement_that_overtakes_the_attachment_is_taken_in():
    made = tasks()
    assert made.settle(final("t0"), "a", 0, 0.0)[0]
    made.reserve(record("t1"), 1, 0.0)
    assert made.settle(final("t1"), "b", 0, 0.0)[0]
    assert made.attach(TaskId("t1"), None, 0.0) == []
    assert listed(made) == [("t0", "completed"), ("t1", "completed")]


def test_output_is_read_by_cursor_and_may_be_read_again():
    made = tasks(max_output_bytes=8)
    started(made, "t1")
    running = made.output(OWNER, TaskId("t1"), 3)
    assert (running.text, running.next_cursor, running.truncated) == ("", 3, False)
    made.settle(final("t1"), "0123456789äö", 100, 0.0)
    for _ in range(2):
        page = made.output(OWNER, TaskId("t1"), 0)
        assert (page.text, page.next_cursor, page.truncated) == ("6789äö", 112, True)
    page = made.output(OWNER, TaskId("t1"), 108)
    assert (page.text, page.next_cursor, page.truncated) == ("89äö", 112, False)
    for cursor in (112, 999):
        page = made.output(OWNER, TaskId("t1"), cursor)
        assert (page.text, page.next_cursor, page.truncated) == ("", 112, False)
    with pytest.raises(InvalidRequestError):
        made.output(OWNER, TaskId("t1"), -2)


def test_a_reader_without_a_cursor_consumes():
    made = tasks(max_output_bytes=4)
    started(made, "t1")
    assert made.output(OWNER, TaskId("t1"), CONSUME).text == ""
    made.settle(final("t1"), "012345", 0, 0.0)
    page = made.output(OWNER, TaskId("t1"), CONSUME)
    assert (page.text, page.next_cursor, page.truncated) == ("2345", 6, True)
    page = made.output(OWNER, TaskId("t1"), CONSUME)
    assert (page.text, page.next_cursor, page.truncated) == ("", 6, False)
    assert made.output(OWNER, TaskId("t1"), 2).text == "2345"


def test_output_that_came_cut_says_so_also_after_a_restart():
    made = tasks()
    rows = made.settle(final("t1"), "a\n[… 9 bytes omitted …]\nz\n", 0, 0.0, cut=25)[1]
    again = tasks()
    again.restore("t1", [row for row in rows if isinstance(row, Put)][-1].body, 0.0)
    for kept in (made, again):
        assert [kept.output(OWNER, TaskId("t1"), at).truncated for at in (0, 24, 25)] == [
            True,
            True,
            False,
        ]
        assert kept.output(OWNER, TaskId("t1"), CONSUME).truncated
        assert not kept.output(OWNER, TaskId("t1"), CONSUME).truncated


def test_output_is_cut_at_a_whole_character():
    made = tasks(max_output_bytes=3)
    made.settle(final("t1"), "äöü", 0, 0.0)
    page = made.output(OWNER, TaskId("t1"), 0)
    assert (page.text, page.next_cursor, page.truncated) == ("ü", 3, True)


def test_unpaired_surrogates_do_not_stop_a_settlement():
    made = tasks()
    made.settle(final("t1"), "a\ud800b", 0, 0.0)
    assert made.output(OWNER, TaskId("t1"), 0).next_cursor == 3


def test_a_foreign_task_is_not_an_unknown_one():
    made = tasks()
    started(made, "t1")
    with pytest.raises(ForeignSessionError):
        made.output(OTHER, TaskId("t1"), 0)
    with pytest.raises(TaskNotFoundError):
        made.find(OTHER, TaskId("t2"))
    assert listed(made, OTHER) == []


def test_what_runs_in_a_lost_session_is_lost():
    made = tasks()
    made.settle(final("t0"), "", 0, 0.0)
    started(made, "t1", "t2")
    made.stop(TaskId("t2"))
    made.reserve(record("t3"), 1, 0.0)
    records, changes = made.lost(SESSION, "its node died", None, 9.0, 1.0)
    assert [(item.task_id, item.state, item.finished_at) for item in records] == [
        ("t1", "lost", 9.0),
        ("t2", "lost", 9.0),
    ]
    assert dropped(changes) == ["t3"]
    assert listed(made) == [("t0", "completed"), ("t1", "lost"), ("t2", "lost")]
    assert made.lost(SESSION, "again", None, 9.0, 1.0) == ([], [])
    assert made.lost(SessionId("ses_9"), "x", None, 9.0, 1.0) == ([], [])


def test_a_replaced_worker_loses_only_its_own_tasks():
    made = tasks()
    started(made, "t1")
    made.reserve(record("t2"), 2, 0.0)
    made.attach(TaskId("t2"), None, 0.0)
    made.lost(SESSION, "its worker was replaced", 2, 9.0, 1.0)
    assert listed(made) == [("t1", "lost"), ("t2", "running")]


def test_settled_tasks_are_kept_by_number_size_and_time():
    made = tasks(max_retained_per_owner=2, max_retained_bytes_per_owner=10, retention_s=50)
    for number, text in enumerate(("aaaa", "bbbb", "cc")):
        made.settle(final(f"t{number}"), text, 0, float(number))
    assert [key for key, _ in listed(made)] == ["t1", "t2"]
    started(made, "t3", now=3.0)
    assert dropped(made.settle(final("t3"), "ddddddddd", 0, 4.0)[1]) == ["t1", "t2"]
    made.settle(final("o1", owner=OTHER), "eeeeeeee", 0, 4.0)
    assert made.tick(53.9) == []
    assert dropped(made.tick(54.0)) == ["t3", "o1"]
    assert len(made) == 0


def test_an_output_above_the_owners_share_is_not_kept_at_all():
    made = tasks(max_retained_bytes_per_owner=3)
    assert dropped(made.settle(final("t1"), "four", 0, 0.0)[1]) == ["t1"]


def test_reservations_do_not_last():
    made = tasks()
    made.reserve(record("t1"), 1, 0.0)
    started(made, "t2")
    assert made.tick(59.0) == []
    assert dropped(made.tick(60.0)) == ["t1"]
    assert listed(made) == [("t2", "running")]


def test_an_owners_tasks_go_with_it():
    made = tasks()
    started(made, "t1")
    made.settle(final("t2"), "x", 0, 0.0)
    made.settle(final("o1", owner=OTHER), "x", 0, 0.0)
    assert sorted(dropped(made.drop_owner(OWNER))) == ["t1", "t2"]
    assert made.drop_owner(OWNER) == []
    assert len(made) == 1


def test_rows_bring_tasks_back():
    made = tasks()
    started(made, "t1")
    made.reserve(record("t2"), 3, 0.0)
    made.settle(final("t3"), "text", 7, 0.0, consumed=9)
    fresh = tasks()
    for task in made._tasks.values():
        row = task.row()
        fresh.restore(row.key, row.body, 0.0)
    assert fresh._tasks == made._tasks
    assert fresh.output(OWNER, TaskId("t3"), 7).text == "text"
    assert fresh.output(OWNER, TaskId("t3"), CONSUME).text == "xt"
