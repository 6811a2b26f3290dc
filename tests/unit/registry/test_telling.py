"""Tasks, events and reports through the registry."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.core.errors import (
    CapacityReachedError,
    ForeignSessionError,
    InvalidRequestError,
    OwnerNotLiveError,
    SessionNotFoundError,
    TaskNotFoundError,
)
from fabric.core.ids import HostName, SessionId, TaskId
from fabric.core.model import (
    Caller,
    EventKind,
    ExitStatus,
    SessionInfo,
    SessionStatus,
    TaskRecord,
    TaskState,
)
from fabric.core.settings import RegistrySettings, TaskSettings
from tests.support.eventually import eventually
from tests.unit.registry.desk import Desk, desk, ended, spawn


async def start(d: Desk, owner: Caller, session_id: SessionId) -> TaskRecord:
    task_id = await d.registry.reserve_task(owner, session_id, "make all")
    return await d.registry.attach_task(task_id)


def done(record: TaskRecord, state: TaskState = TaskState.COMPLETED) -> TaskRecord:
    return replace(record, state=state, detail="wait: stdin_read")


async def kinds(d: Desk, owner: Caller, cursor: int | None = None) -> list[EventKind]:
    return [event.kind for event in (await d.registry.read_events(owner, cursor)).events]


async def waits(d: Desk, owner: Caller) -> None:
    """Until somebody waits for news of the owner."""
    await eventually(lambda: owner.owner_id in d.registry._books._waiting)


async def test_a_task_runs_settles_and_is_read_after_its_session(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        task_id = await d.registry.reserve_task(owner, session_id, "make all")
        assert await d.registry.list_tasks(owner) == ()
        record = await d.registry.attach_task(task_id)
        assert await d.registry.list_tasks(owner) == (record,)
        assert (await d.registry.stop_task(task_id)).state is TaskState.STOPPING
        settled = await d.registry.settle_task(done(record, TaskState.KILLED), "out", 0)
        assert (settled.state, settled.finished_at) == (TaskState.KILLED, d.clock.wall())
        assert await d.registry.settle_task(done(record), "later", 0) == settled
        await d.close(owner, session_id)
        output = await d.registry.task_output(owner, task_id)
        assert (output.text, output.record) == ("out", settled)
        assert await d.registry.task_record(owner, task_id) == settled
        page = await d.registry.read_events(owner)
        assert [(event.task_id, event.detail) for event in page.events] == [(task_id, "killed")]


async def test_a_refused_send_gives_its_place_back(tmp_path: Path):
    async with desk(tmp_path, tasks=TaskSettings(max_active_per_owner=1)) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        task_id = await d.registry.reserve_task(owner, session_id, "make")
        with pytest.raises(CapacityReachedError, match="task_kill"):
            await d.registry.reserve_task(owner, session_id, "make")
        await d.registry.forget_task(task_id)
        await d.registry.reserve_task(owner, session_id, "make")
        with pytest.raises(TaskNotFoundError):
            await d.registry.attach_task(task_id)


async def test_tasks_belong_to_the_owner_of_a_session(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner, other = await d.acquire("a"), await d.acquire("b")
        session_id = await d.opened(owner)
        with pytest.raises(ForeignSessionError):
            await d.registry.reserve_task(other, session_id, "make")
        with pytest.raises(SessionNotFoundError):
            await d.registry.reserve_task(owner, SessionId("ses_9"), "make")
        record = await start(d, owner, session_id)
        with pytest.raises(ForeignSessionError):
            await d.registry.task_output(other, record.task_id)
        with pytest.raises(TaskNotFoundError):
            await d.registry.task_record(owner, TaskId("tsk_9"))
        with pytest.raises(OwnerNotLiveError):
            await d.registry.list_tasks(Caller(owner.owner_id, 9))


async def test_waiting_for_a_task_ends_with_it_or_in_time(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        record = await start(d, owner, await d.opened(owner))
        early = await d.registry.task_output(owner, record.task_id, wait_s=0.01)
        assert (early.text, early.record.state) == ("", TaskState.RUNNING)
        waiting = [
            spawn(d.registry.task_output(owner, record.task_id, wait_s=60)) for _ in range(3)
        ]
        await waits(d, owner)
        waiting[0].cancel()
        assert isinstance(await ended(waiting[0]), asyncio.CancelledError)
        await d.registry.settle_task(done(record), "out")
        assert [(await item).text for item in waiting[1:]] == ["out", "out"]
        assert d.registry._books._waiting == {}
        for wait_s in (-1.0, 601.0, float("nan")):
            with pytest.raises(InvalidRequestError):
                await d.registry.task_output(owner, record.task_id, wait_s=wait_s)


async def test_a_report_for_a_dead_owner_is_dropped(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        record = await start(d, owner, await d.opened(owner))
        await d.release(owner)
        assert await d.registry.settle_task(done(record), "out") == done(record)
        assert len(d.registry._books.tasks) == 0
        await d.registry.session_exited(record.session_id, ExitStatus(0))
        await d.registry.session_readopted(record.session_id, 2)
        await d.registry.session_described(
            SessionInfo(record.session_id, owner.owner_id, "shell", SessionStatus())
        )
        with pytest.raises(SessionNotFoundError):
            await d.registry.human_handback(record.session_id)


async def test_every_kind_of_event_is_told(tmp_path: Path):
    async with desk(tmp_path, settings=RegistrySettings(lease_s=100)) as d:
        owner = await d.acquire()
        one, two = await d.opened(owner), await d.opened(owner)
        record = await start(d, owner, one)
        await d.registry.session_readopted(one, 2)
        assert (await d.registry.task_record(owner, record.task_id)).state is TaskState.LOST
        await d.registry.session_readopted(one, 2)
        await d.registry.session_exited(one, ExitStatus(exit_code=3))
        await d.registry.human_handback(two)
        await d.registry.session_lost(HostName("n1"), two, "its worker is gone for good")
        d.clock.advance(80)
        await d.registry.tick()
        last = spawn(d.registry.read_events(owner, 6, wait_s=60))
        await waits(d, owner)
        d.clock.advance(30)
        await d.registry.tick()
        page = await last
        assert [event.kind for event in page.events] == [EventKind.OWNER_DISPOSED]
        assert page.ended == "its lease ended"
        stream = d.registry._books.events.read(owner.owner_id, 0, 100).events
        assert [(event.sequence, event.kind) for event in stream] == [
            (1, EventKind.TASK_SETTLED),
            (2, EventKind.SESSION_READOPTED),
            (3, EventKind.SESSION_EXITED),
            (4, EventKind.HUMAN_HANDBACK),
            (5, EventKind.SESSION_LOST),
            (6, EventKind.LEASE_EXPIRING),
            (7, EventKind.OWNER_DISPOSED),
        ]


async def test_a_task_of_the_new_worker_survives_its_late_announcement(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        old = await start(d, owner, session_id)
        task_id = await d.registry.reserve_task(owner, session_id, "make", adoption=2)
        new = await d.registry.attach_task(task_id)
        await d.registry.session_readopted(session_id, 2)
        states = [item.state for item in await d.registry.list_tasks(owner)]
        assert states == [TaskState.LOST, TaskState.RUNNING]
        assert old.task_id != new.task_id


async def test_events_are_acknowledged_and_read_on_from_there(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        for _ in range(3):
            await d.registry.human_handback(session_id)
        await d.registry.acknowledge_events(owner, 2)
        await d.crash()
        page = await d.registry.read_events(owner)
        assert [event.sequence for event in page.events] == [3]
        for limit, wait_s in ((0, 0.0), (1001, 0.0), (1, -1.0), (1, 601.0)):
            with pytest.raises(InvalidRequestError):
                await d.registry.read_events(owner, None, limit, wait_s)
        with pytest.raises(InvalidRequestError):
            await d.registry.read_events(owner, 99, wait_s=60)


async def test_a_wait_for_events_ends_in_time_with_nothing(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        page = await d.registry.read_events(owner, wait_s=0.01)
        assert (page.events, page.ended) == ((), None)
        assert d.registry._books._waiting == {}


async def test_a_reader_of_the_older_epoch_is_sent_away(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        reader = spawn(d.registry.read_events(owner, wait_s=60))
        await waits(d, owner)
        new = await d.acquire()
        error = await ended(reader)
        assert isinstance(error, OwnerNotLiveError)
        assert "re-acquired" in error.message
        assert await kinds(d, new) == []


async def test_a_reader_sees_the_end_of_an_owner_without_sessions(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        reader = spawn(d.registry.read_events(owner, wait_s=60))
        await waits(d, owner)
        await d.release(owner)
        page = await reader
        assert (page.ended, [event.kind for event in page.events]) == (
            "it was released",
            [EventKind.OWNER_DISPOSED],
        )
        with pytest.raises(OwnerNotLiveError):
            await d.registry.read_events(owner)


async def test_an_owner_that_is_being_disposed_of_can_read_how_it_ended(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        await d.open(owner)
        d.nodes["n1"].closing.shut()
        release = spawn(d.release(owner))
        await d.nodes["n1"].closing.reached()
        page = await d.registry.read_events(owner)
        assert page.ended == "it was released"
        with pytest.raises(OwnerNotLiveError):
            await d.registry.read_events(Caller(owner.owner_id, 9))
        d.nodes["n1"].closing.open()
        await release


async def test_who_follows_a_stream_reads_its_end_after_the_owner_is_gone(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        cursor = (await d.registry.read_events(owner)).next_cursor
        version = (await d.registry.news(None, 0)).version
        await d.release(owner)
        news = await d.registry.news(version, 60)
        assert owner.owner_id in news.owners
        page = await d.registry.read_events(owner, cursor)
        assert page.ended == "it was released"
        assert [event.kind for event in page.events] == [EventKind.OWNER_DISPOSED]


async def test_a_take_over_is_news_for_the_readers_it_fences(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        version = (await d.registry.news(None, 0)).version
        await d.acquire()
        assert owner.owner_id in (await d.registry.news(version, 60)).owners
