"""A registry that starts again: what it knows, what the nodes know, and the difference."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.core.errors import (
    OutcomeUnknownError,
    OwnerNotLiveError,
    SandboxModeLockedError,
    SessionLostError,
    SessionNotFoundError,
)
from fabric.core.ids import AgentId, HostName, Principal, RequestId, SessionId
from fabric.core.model import (
    Caller,
    CloseOutcome,
    CloseReceipt,
    EndedProcess,
    EventKind,
    SandboxMode,
    TaskRecord,
    TaskState,
)
from fabric.core.settings import RegistrySettings
from fabric.registry.session import SessionState
from tests.support.eventually import eventually
from tests.support.fake_nodes import FakeNodes, node_state
from tests.unit.registry.desk import Desk, desk, ended, spawn


async def kinds(d: Desk, owner: Caller) -> list[EventKind]:
    return [event.kind for event in (await d.registry.read_events(owner)).events]


async def test_everything_is_there_after_a_crash(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire(mode=SandboxMode.WORKSPACE_WRITE)
        request = RequestId("same")
        result = await d.open(owner, "x", request_id=request)
        closed = await d.opened(owner, "y")
        answer = await d.registry.close(owner, closed, RequestId("gone"))
        before = await d.registry.list(owner)
        await d.crash()
        assert await d.registry.list(owner) == before
        assert await d.open(owner, "x", request_id=request) == result
        assert await d.registry.close(owner, closed, RequestId("gone")) == answer
        with pytest.raises(SessionNotFoundError):
            await d.registry.locate(closed)
        with pytest.raises(SandboxModeLockedError):
            await d.registry.set_mode(owner, SandboxMode.READ_ONLY, d.rid())
        again = await d.acquire()
        assert again == Caller(owner.owner_id, 2)


async def test_an_answer_of_acquire_survives_a_crash(tmp_path: Path):
    async with desk(tmp_path) as d:
        args = (Principal("p"), AgentId("a"), None, None, RequestId("same"))
        grant = await d.registry.acquire(*args)
        await d.crash()
        assert await d.registry.acquire(*args) == grant
        d.clock.advance(601)
        assert (await d.registry.acquire(*args)).epoch == 2


async def test_a_whole_lease_is_granted_after_a_restart(tmp_path: Path):
    async with desk(tmp_path, settings=RegistrySettings(lease_s=100)) as d:
        owner = await d.acquire()
        d.clock.advance(99)
        await d.crash()
        d.clock.advance(99)
        await d.registry.tick()
        assert await d.registry.list(owner) == ()
        d.clock.advance(2)
        await d.registry.tick()
        with pytest.raises(OwnerNotLiveError):
            await d.registry.list(owner)


async def test_a_session_the_node_lost_meanwhile_is_lost(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        d.nodes["n1"].running.clear()
        await d.crash()
        assert await d.registry.list(owner) == ()
        with pytest.raises(SessionLostError):
            await d.registry.locate(session_id)
        assert await kinds(d, owner) == ["session_lost"]


async def test_a_session_of_a_node_that_is_away_is_kept_until_the_time_is_over(tmp_path: Path):
    async with desk(tmp_path, settings=RegistrySettings(lost_timeout_s=60)) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner, "x")
        d.nodes.away.add(HostName("n1"))
        await d.crash()
        d.clock.advance(59)
        await d.registry.tick()
        assert await d.names(owner) == ["x"]
        d.nodes.away.clear()
        await d.registry.poll()
        d.clock.advance(30)
        await d.registry.tick()
        assert (await d.registry.locate(session_id)).host == "n1"
        d.nodes.away.add(HostName("n1"))
        await d.registry.poll()
        d.clock.advance(61)
        await d.registry.tick()
        with pytest.raises(SessionLostError, match="n1 did not answer for 60 s"):
            await d.registry.locate(session_id)


async def test_a_lost_session_that_comes_back_is_taken_back(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner, "x")
        await d.registry.session_lost(HostName("n1"))
        assert await d.registry.list(owner) == ()
        await d.registry.poll()
        assert await d.names(owner) == ["x"]
        assert (await d.registry.locate(session_id)).host == "n1"
        assert await kinds(d, owner) == ["session_lost", "session_readopted"]


@pytest.mark.parametrize("change", ["mode", "owner"])
async def test_a_lost_session_of_another_time_is_evicted(tmp_path: Path, change: str):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        await d.opened(owner, "x")
        await d.registry.session_lost(HostName("n1"))
        if change == "mode":
            await d.registry.set_mode(owner, SandboxMode.WORKSPACE_WRITE, d.rid())
        else:
            await d.release(owner)
        await d.registry.poll()
        await eventually(lambda: d.nodes.running == set())


async def test_sessions_are_adopted_by_their_labels_when_the_journal_is_gone(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire(mode=SandboxMode.WORKSPACE_WRITE)
        session_id = await d.opened(owner, "x")
        taken = await d.acquire()
        await d.opened(taken, "y")
        await d.registry.stop()
        d.path = tmp_path / "another.db"
        await d.build().start(watch=False)
        with pytest.raises(OwnerNotLiveError):
            await d.registry.list(Caller(owner.owner_id, 1))
        again = await d.acquire()
        assert again == Caller(owner.owner_id, 3)
        assert sorted(map(str, await d.names(again))) == ["x", "y"]
        assert d.nodes["n1"].running[session_id].epoch == 3
        with pytest.raises(SandboxModeLockedError):
            await d.registry.set_mode(again, SandboxMode.READ_ONLY, d.rid())
        d.clock.advance(1000)
        await d.registry.tick()
        await eventually(lambda: d.nodes.running == set())


async def test_an_open_in_flight_at_the_crash_is_removed_and_may_be_repeated(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        node = d.nodes["n1"]
        node.opening.shut()
        request = RequestId("same")
        opening = spawn(d.open(owner, "x", request_id=request))
        await node.opening.reached()
        await d.crash()
        assert [s.state for s in d.registry._books.table.sessions.values()] == []
        node.opening.open()
        await eventually(lambda: len(d.nodes.running) == 1)
        await d.registry.poll()
        await eventually(lambda: d.nodes.running == set())
        await ended(opening)
        await d.open(owner, "x", request_id=request)
        assert await d.names(owner) == ["x"]


async def test_an_open_that_came_up_during_the_crash_is_closed(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        node = d.nodes["n1"]
        opened = await d.opened(owner, "x")
        session = d.registry._books.table.sessions[opened]
        session.state = SessionState.OPENING  # as the journal of a killed registry has it
        d.registry._books.write([session.row()])
        await d.crash()
        assert await d.registry.list(owner) == ()
        with pytest.raises(SandboxModeLockedError):
            await d.registry.set_mode(owner, SandboxMode.WORKSPACE_WRITE, d.rid())
        await d.registry.tick()
        await eventually(lambda: d.nodes.running == set())
        assert node.reasons == [(opened, "retry of a failed cleanup")]
        await d.registry.set_mode(owner, SandboxMode.WORKSPACE_WRITE, d.rid())


async def test_an_open_whose_command_may_have_run_is_not_run_again(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        d.nodes["n1"].opening.shut()
        request = RequestId("same")
        opening = spawn(d.open(owner, request_id=request, command="deploy"))
        await d.nodes["n1"].opening.reached()
        await d.crash()
        d.nodes["n1"].opening.open()
        await ended(opening)
        for _ in range(2):
            with pytest.raises(OutcomeUnknownError, match="not run again"):
                await d.open(owner, request_id=request, command="deploy")
        await d.crash()
        with pytest.raises(OutcomeUnknownError):
            await d.open(owner, request_id=request, command="deploy")


async def test_a_close_in_flight_at_the_crash_is_finished(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        gate = d.nodes["n1"].closing
        gate.shut()
        request = RequestId("same")
        first = spawn(d.registry.close(owner, session_id, request))
        await gate.reached()
        await d.crash()
        await gate.reached(2)
        gate.open()
        result = await d.registry.close(owner, session_id, request)
        assert result.outcome is CloseOutcome.CLOSED
        await ended(first)
        assert d.nodes.running == set()
        await d.crash()
        assert await d.registry.close(owner, session_id, request) == replace(result)


async def test_a_close_in_flight_at_the_stop_is_finished_after_the_start(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        gate = d.nodes["n1"].closing
        gate.shut()
        request = RequestId("same")
        first = spawn(d.registry.close(owner, session_id, request))
        await gate.reached()
        await d.registry.stop()
        assert (await ended(first)).reason == "REGISTRY_UNAVAILABLE"  # type: ignore[union-attr]
        gate.open()
        await d.build().start(watch=False)
        result = await d.registry.close(owner, session_id, request)
        assert result.outcome is CloseOutcome.CLOSED


async def test_a_release_in_flight_at_the_crash_is_finished(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        await d.opened(owner)
        gate = d.nodes["n1"].closing
        gate.shut()
        request = RequestId("same")
        first = spawn(d.registry.release(owner, request))
        await gate.reached()
        await d.crash()
        with pytest.raises(OwnerNotLiveError, match="it was released"):
            await d.open(owner)
        fresh = await d.acquire()
        assert fresh.owner_id != owner.owner_id
        gate.open()
        receipt = await d.registry.release(owner, request)
        assert receipt.failed == ()
        await ended(first)
        assert d.nodes.running == set()


async def test_a_disposal_that_failed_goes_on_after_the_crash(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        await d.opened(owner)
        d.nodes["n1"].close_receipts.append(
            CloseReceipt(None, survivors=(EndedProcess(9, "x", "SIGKILL"),))
        )
        assert len((await d.release(owner)).failed) == 1
        await d.crash()
        await d.registry.tick()
        await eventually(lambda: len(d.registry._books.table.owners) == 0)
        assert d.nodes.running == set()


async def test_a_registry_starts_without_nodes_and_finds_them_later(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        await d.opened(owner, "x")
        d.nodes.down = True
        await d.crash()
        assert await d.names(owner) == ["x"]
        d.nodes.down = False
        await d.registry.poll()
        await d.open(owner, "y")
        assert await d.names(owner) == ["x", "y"]


async def test_a_report_from_before_a_change_does_not_undo_it(tmp_path: Path):
    """The node was asked before the open and before the close, and answers after both."""
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        old = await d.opened(owner, "old")
        asked = d.nodes["n1"].asked
        asked.shut()
        poll = spawn(d.registry.poll())
        await asked.reached(2)
        new = await d.opened(owner, "new")
        await d.close(owner, old)
        asked.open()
        await poll
        assert d.nodes.running == {new}
        assert await d.names(owner) == ["new"]
        assert d.nodes["n1"].reasons == [(old, "requested by the owner")]


async def test_the_background_watch_notices_by_itself(tmp_path: Path):
    settings = RegistrySettings(sweep_interval_s=0.01, node_poll_interval_s=0.01)
    async with desk(tmp_path, settings=settings) as d:
        await d.registry.stop()
        await d.build().start()
        owner = await d.acquire()
        session_id = await d.opened(owner)
        del d.nodes["n1"].running[session_id]
        page = await d.registry.read_events(owner, wait_s=4)
        assert [event.kind for event in page.events] == [EventKind.SESSION_LOST]
        d.nodes.down = True
        await eventually(lambda: d.nodes.calls["states"] > 3)
        d.clock.advance(1000)
        last = await d.registry.read_events(owner, page.next_cursor, wait_s=4)
        while last.ended is None:
            last = await d.registry.read_events(owner, last.next_cursor, wait_s=4)
        assert last.ended == "its lease ended"


async def test_tasks_and_events_survive_a_crash(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        done = await d.registry.reserve_task(owner, session_id, "make")
        running = await d.registry.reserve_task(owner, session_id, "watch")
        await d.registry.attach_task(done)
        await d.registry.attach_task(running)
        record = TaskRecord(done, owner.owner_id, session_id, "make", TaskState.COMPLETED)
        await d.registry.settle_task(record, "all built\n")
        before = await d.registry.read_events(owner)
        await d.crash()
        assert await d.registry.read_events(owner) == before
        output = await d.registry.task_output(owner, done)
        assert (output.text, output.record.state) == ("all built\n", "completed")
        await d.close(owner, session_id)
        states = {task.task_id: task.state for task in await d.registry.list_tasks(owner)}
        assert states == {done: TaskState.COMPLETED, running: TaskState.LOST}
        assert await kinds(d, owner) == ["task_settled", "task_settled"]


async def test_two_nodes_are_judged_apart(tmp_path: Path):
    nodes = FakeNodes(node_state("n1"), node_state("n2"))
    async with desk(tmp_path, nodes) as d:
        owner = await d.acquire()
        one = await d.opened(owner, "one", host=HostName("n1"))
        two = await d.opened(owner, "two", host=HostName("n2"))
        nodes.away.add(HostName("n2"))
        del nodes["n1"].running[one]
        await d.registry.poll()
        assert await d.names(owner) == ["two"]
        nodes.away.clear()
        assert (await d.registry.locate(two)).host == "n2"
        with pytest.raises(SessionLostError):
            await d.registry.locate(one)
        with pytest.raises(SessionNotFoundError):
            await d.registry.locate(SessionId("ses_aaaaaaaaaaaaaaaa"))
        await asyncio.gather(*(d.close(owner, key) for key in (two,)))
