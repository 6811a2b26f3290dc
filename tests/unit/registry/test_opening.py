"""Every race of an open: with its caller, its owner, its node, its twin."""

import asyncio
from pathlib import Path

import pytest

from fabric.core.errors import (
    CapacityReachedError,
    CleanupIncompleteError,
    DrainingError,
    InvalidRequestError,
    NameTakenError,
    NodeNotFoundError,
    OwnerNotLiveError,
    PtyExhaustedError,
    RegistryUnavailableError,
    SandboxModeLockedError,
    SandboxUnavailableError,
    SpawnFailedError,
    StartupTimeoutError,
)
from fabric.core.ids import HostName, RequestId
from fabric.core.model import CloseReceipt, EndedProcess, OpenRequest, SandboxMode
from fabric.core.settings import RegistrySettings
from fabric.registry.session import SessionState
from tests.support.eventually import eventually
from tests.support.fake_nodes import FakeNodes, node_state
from tests.unit.registry.desk import Desk, desk, ended, spawn

SURVIVOR = CloseReceipt(None, survivors=(EndedProcess(99, "stubborn", "SIGKILL"),))
CONFINED = SandboxMode.WORKSPACE_WRITE


def states(d: Desk) -> list[SessionState]:
    return [session.state for session in d.registry._books.table.sessions.values()]


async def nothing_left(d: Desk) -> None:
    assert d.nodes.running == set()
    assert states(d) == []
    assert d.registry._openings._openings == {}
    assert not d.registry._books.table.load
    rows = d.registry._books.journal.load()
    assert rows["sessions"] == {}


async def test_a_name_is_taken_while_its_open_is_pending(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        gate = d.nodes["n1"].opening
        gate.shut()
        first = spawn(d.open(owner, "x"))
        await gate.reached()
        with pytest.raises(NameTakenError, match="already being created"):
            await d.open(owner, "x")
        other = spawn(d.open(owner, "y"))
        await gate.reached(2)
        assert await d.registry.list(owner) == ()
        gate.open()
        await asyncio.gather(first, other)
        assert sorted(filter(None, await d.names(owner))) == ["x", "y"]


async def test_a_failed_open_frees_its_name_and_leaves_nothing(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        d.nodes["n1"].open_errors.append(SpawnFailedError("no such directory"))
        with pytest.raises(SpawnFailedError):
            await d.open(owner, "x")
        assert d.nodes.calls["close"] == 0
        await nothing_left(d)
        await d.open(owner, "x")


async def test_an_open_that_failed_in_a_way_nobody_knows_is_cleaned_up(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        d.nodes["n1"].open_errors.append(OSError("the wire broke"))
        with pytest.raises(Exception, match="failed") as failure:
            await d.open(owner, "x")
        assert failure.value.reason == "INTERNAL"  # type: ignore[attr-defined]
        assert d.nodes.calls["close"] == 1
        await nothing_left(d)


async def test_cancelling_an_open_removes_what_comes_up_late(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        node = d.nodes["n1"]
        node.ignores_cancel = True
        node.opening.shut()
        opening = spawn(d.open(owner, "x"))
        await node.opening.reached()
        opening.cancel()
        await node.opening.reached(2)
        assert not opening.done()
        assert states(d) == [SessionState.ABORTING]
        with pytest.raises(SandboxModeLockedError):
            await d.registry.set_mode(owner, CONFINED, d.rid())
        node.opening.open()
        assert isinstance(await ended(opening), asyncio.CancelledError)
        assert [reason for _, reason in node.reasons] == ["open rolled back"]
        await nothing_left(d)
        await d.open(owner, "x")


async def test_cancelling_an_open_whose_node_obeys_closes_nothing(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        gate = d.nodes["n1"].opening
        gate.shut()
        opening = spawn(d.open(owner, "x"))
        await gate.reached()
        opening.cancel()
        assert isinstance(await ended(opening), asyncio.CancelledError)
        assert d.nodes.calls["close"] == 0
        await nothing_left(d)


async def test_cancelling_before_the_first_step_has_no_effect_at_all(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        opening = spawn(d.open(owner))
        opening.cancel()
        assert isinstance(await ended(opening), asyncio.CancelledError)
        assert d.nodes.calls["open"] == 0
        await nothing_left(d)


async def test_a_failed_rollback_counts_as_activity_until_it_is_gone(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        node = d.nodes["n1"]
        node.ignores_cancel = True
        node.opening.shut()
        node.close_receipts.append(SURVIVOR)
        opening = spawn(d.open(owner, "x"))
        await node.opening.reached()
        opening.cancel()
        node.opening.open()
        assert isinstance(await ended(opening), asyncio.CancelledError)
        assert states(d) == [SessionState.UNCLEAN]
        assert await d.registry.list(owner) == ()
        with pytest.raises(SandboxModeLockedError):
            await d.registry.set_mode(owner, CONFINED, d.rid())
        node.ignores_cancel = False
        await d.close(owner, await d.opened(owner, "x"))
        with pytest.raises(SandboxModeLockedError):
            await d.registry.set_mode(owner, CONFINED, d.rid())
        d.clock.advance(6)
        await d.registry.tick()
        await eventually(lambda: states(d) == [])
        await d.registry.set_mode(owner, CONFINED, d.rid())


async def test_a_failed_rollback_is_tried_again_by_the_disposal(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        node = d.nodes["n1"]
        node.open_errors.append(RuntimeError("half started"))
        node.close_errors.append(CleanupIncompleteError("pid 99 lives"))
        with pytest.raises(CleanupIncompleteError, match="pid 99 lives") as failure:
            await d.open(owner, "x")
        assert failure.value.metadata["cause"] == "INTERNAL"
        (unclean,) = d.registry._books.table.sessions
        node.close_errors.append(CleanupIncompleteError("pid 99 lives"))
        receipt = await d.release(owner)
        assert receipt.failed == (unclean,)
        assert receipt.closed == ()
        assert (await d.release(owner)).failed == ()
        await nothing_left(d)
        with pytest.raises(OwnerNotLiveError):
            await d.release(owner)


async def test_the_end_of_the_owner_aborts_its_open_and_waits_for_it(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        node = d.nodes["n1"]
        node.ignores_cancel = True
        node.opening.shut()
        opening = spawn(d.open(owner, "x"))
        await node.opening.reached()
        release = spawn(d.release(owner))
        await node.opening.reached(2)
        assert not opening.done()
        assert not release.done()
        node.opening.open()
        error = await ended(opening)
        assert isinstance(error, OwnerNotLiveError)
        assert "it was released" in error.message
        assert (await release).failed == ()
        await nothing_left(d)


async def test_a_rollback_that_fails_for_a_dead_owner_is_told_to_both(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        node = d.nodes["n1"]
        node.ignores_cancel = True
        node.opening.shut()
        node.close_receipts += [SURVIVOR, SURVIVOR]
        opening = spawn(d.open(owner, "x"))
        await node.opening.reached()
        release = spawn(d.release(owner))
        await node.opening.reached(2)
        node.opening.open()
        error = await ended(opening)
        assert isinstance(error, CleanupIncompleteError)
        assert error.metadata["cause"] == "OWNER_NOT_LIVE"
        assert "stubborn (pid 99)" in error.message
        assert len((await release).failed) == 1


async def test_a_take_over_aborts_the_opens_of_the_older_epoch(tmp_path: Path):
    async with desk(tmp_path) as d:
        old = await d.acquire()
        gate = d.nodes["n1"].opening
        gate.shut()
        opening = spawn(d.open(old, "x"))
        await gate.reached()
        new = await d.acquire()
        error = await ended(opening)
        assert isinstance(error, OwnerNotLiveError)
        assert "re-acquired (epoch 2)" in error.message
        gate.open()
        await d.open(new, "x")
        assert await d.names(new) == ["x"]


async def test_a_lease_that_ends_during_an_open_aborts_it(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        gate = d.nodes["n1"].opening
        gate.shut()
        opening = spawn(d.open(owner))
        await gate.reached()
        d.clock.advance(500)
        await d.registry.tick()
        error = await ended(opening)
        assert isinstance(error, OwnerNotLiveError)
        assert "its lease ended" in error.message
        await nothing_left(d)


async def test_stopping_the_registry_rolls_opens_back(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        kept = await d.opened(owner, "kept")
        gate = d.nodes["n1"].opening
        gate.shut()
        opening = spawn(d.open(owner, "x"))
        await gate.reached(2)
        await d.registry.stop()
        assert isinstance(await ended(opening), RegistryUnavailableError)
        assert d.nodes.running == {kept}
        gate.open()
        await d.build().start(watch=False)
        assert await d.names(owner) == ["kept"]


async def test_an_open_ends_in_time_whatever_its_node_does(tmp_path: Path):
    settings = RegistrySettings(open_timeout_s=0.05, close_timeout_s=0.05)
    async with desk(tmp_path, settings=settings) as d:
        owner = await d.acquire()
        node = d.nodes["n1"]
        node.opening.shut()
        with pytest.raises(StartupTimeoutError, match=r"within 0\.05 s"):
            await d.open(owner)
        await nothing_left(d)
        node.ignores_cancel = True
        node.closing.shut()
        with pytest.raises(CleanupIncompleteError) as failure:
            await d.open(owner)
        assert failure.value.metadata["cause"] == "STARTUP_TIMEOUT"
        assert states(d) == [SessionState.UNCLEAN]
        node.opening.open()
        node.closing.open()
        await d.release(owner)


async def test_a_session_that_comes_up_after_everybody_gave_up_is_evicted(tmp_path: Path):
    settings = RegistrySettings(open_timeout_s=0.05, close_timeout_s=0.05)
    async with desk(tmp_path, settings=settings) as d:
        owner = await d.acquire()
        node = d.nodes["n1"]
        node.ignores_cancel = True
        node.opening.shut()
        with pytest.raises(StartupTimeoutError):
            await d.open(owner)
        assert states(d) == []
        node.opening.open()
        await eventually(lambda: len(d.nodes.running) == 1)
        await d.registry.poll()
        await eventually(lambda: d.nodes.running == set())


async def test_a_full_node_leads_to_the_next_one(tmp_path: Path):
    nodes = FakeNodes(node_state("n1", warm=9), node_state("n2"), node_state("n3"))
    async with desk(tmp_path, nodes) as d:
        owner = await d.acquire()
        nodes["n1"].open_errors.append(PtyExhaustedError("no pty"))
        nodes["n2"].open_errors.append(CapacityReachedError("no memory"))
        assert (await d.open(owner)).info.host == "n3"
        assert d.registry._books.table.load == {"n3": 1}


async def test_when_no_node_takes_it_the_numbers_are_told(tmp_path: Path):
    nodes = FakeNodes(node_state("n1"), node_state("n2"))
    async with desk(tmp_path, nodes) as d:
        owner = await d.acquire()
        nodes["n1"].open_errors.append(PtyExhaustedError("n1 has 0 pseudo-terminals left"))
        nodes["n2"].open_errors.append(CapacityReachedError("n2 runs 64 of 64"))
        with pytest.raises(CapacityReachedError, match=r"n1 has 0 .*n2 runs 64 of 64"):
            await d.open(owner)
        await nothing_left(d)


async def test_room_is_counted_with_pending_opens(tmp_path: Path):
    nodes = FakeNodes(node_state("n1", max_sessions=2))
    async with desk(tmp_path, nodes) as d:
        owner = await d.acquire()
        nodes["n1"].opening.shut()
        pending = [spawn(d.open(owner)) for _ in range(2)]
        await nodes["n1"].opening.reached(2)
        with pytest.raises(CapacityReachedError, match=r"2 of 2 in use \(n1 2/2\)") as failure:
            await d.open(owner)
        assert failure.value.metadata == {"sessions": "2", "limit": "2"}
        nodes["n1"].opening.open()
        await asyncio.gather(*pending)


async def test_a_node_that_has_just_joined_is_found(tmp_path: Path):
    nodes = FakeNodes(node_state("n1", max_sessions=1))
    async with desk(tmp_path, nodes) as d:
        owner = await d.acquire()
        await d.open(owner)
        nodes.nodes[HostName("n2")] = FakeNodes(node_state("n2"))["n2"]
        assert (await d.open(owner)).info.host == "n2"


async def test_a_node_that_cannot_confine_is_refused(tmp_path: Path):
    nodes = FakeNodes(node_state("n1", sandbox_kinds=()))
    async with desk(tmp_path, nodes) as d:
        owner = await d.acquire(mode=CONFINED)
        with pytest.raises(SandboxUnavailableError, match=r"workspace.*n1 cannot.*bubblewrap"):
            await d.open(owner)
        await d.registry.set_mode(owner, SandboxMode.DANGER_FULL_ACCESS, d.rid())
        await d.open(owner)
        with pytest.raises(NodeNotFoundError, match="'n9'"):
            await d.open(owner, host=HostName("n9"))
        with pytest.raises(NodeNotFoundError, match="'darwin'"):
            await d.open(owner, os="darwin")


async def test_a_cluster_that_does_not_answer_is_no_reason_to_hang(tmp_path: Path):
    nodes = FakeNodes()
    async with desk(tmp_path, nodes) as d:
        owner = await d.acquire()
        nodes.away.add(HostName("n1"))
        with pytest.raises(CapacityReachedError):
            await d.open(owner)
        nodes.down = True
        with pytest.raises(RegistryUnavailableError):
            await d.open(owner)
        nodes.down = False
        nodes.away.clear()
        await d.open(owner)


async def test_draining_nodes_take_nothing(tmp_path: Path):
    nodes = FakeNodes(node_state("n1", draining=True))
    async with desk(tmp_path, nodes) as d:
        with pytest.raises(DrainingError, match="n1"):
            await d.open(await d.acquire())


async def test_limits_of_an_owner_come_with_numbers(tmp_path: Path):
    settings = RegistrySettings(max_sessions_per_owner=2, max_pending_opens_per_owner=1)
    async with desk(tmp_path, settings=settings) as d:
        owner = await d.acquire()
        d.nodes["n1"].opening.shut()
        first = spawn(d.open(owner))
        await d.nodes["n1"].opening.reached()
        with pytest.raises(CapacityReachedError, match="1 of 1 opens in flight"):
            await d.open(owner)
        d.nodes["n1"].opening.open()
        await first
        await d.open(owner)
        with pytest.raises(CapacityReachedError, match="2 of 2 sessions"):
            await d.open(owner)


async def test_a_repeat_joins_the_open_and_gets_its_answer(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        gate = d.nodes["n1"].opening
        gate.shut()
        request = RequestId("same")
        one = spawn(d.open(owner, "x", request_id=request))
        await gate.reached()
        two = spawn(d.open(owner, "x", request_id=request))
        with pytest.raises(InvalidRequestError) as failure:
            await d.open(owner, "y", request_id=request)
        assert failure.value.reason == "REQUEST_ID_CONFLICT"
        gate.open()
        assert await one == await two == await d.open(owner, "x", request_id=request)
        assert d.nodes.calls["open"] == 1


async def test_an_open_is_rolled_back_only_when_its_last_caller_goes(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        gate = d.nodes["n1"].opening
        gate.shut()
        request = RequestId("same")
        one = spawn(d.open(owner, "x", request_id=request))
        await gate.reached()
        two = spawn(d.open(owner, "x", request_id=request))
        one.cancel()
        assert isinstance(await ended(one), asyncio.CancelledError)
        gate.open()
        assert (await two).info.name == "x"


async def test_a_repeat_during_the_rollback_starts_anew(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        node = d.nodes["n1"]
        node.ignores_cancel = True
        node.opening.shut()
        request = RequestId("same")
        one = spawn(d.open(owner, "x", request_id=request))
        await node.opening.reached()
        one.cancel()
        await node.opening.reached(2)
        two = spawn(d.open(owner, "x", request_id=request))
        node.opening.open()
        assert isinstance(await ended(one), asyncio.CancelledError)
        assert (await two).info.session_id in d.nodes.running
        assert len(d.nodes.running) == 1


async def test_an_answer_that_nobody_took_is_undone(tmp_path: Path):
    """The open ends in the very step in which its only caller is cancelled."""
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        gate = d.nodes["n1"].opening
        gate.shut()
        opening = spawn(d.open(owner, "x", request_id=RequestId("same")))
        await gate.reached()
        (running,) = d.registry._openings._openings.values()
        running.task.add_done_callback(lambda _: opening.cancel())
        gate.open()
        assert isinstance(await ended(opening), asyncio.CancelledError)
        assert d.nodes.running == set()
        assert await d.registry.list(owner) == ()
        await d.open(owner, "x", request_id=RequestId("same"))


async def test_an_answer_that_somebody_took_is_not_undone(tmp_path: Path):
    """One caller has the answer; the other is cancelled in the step in which it would get it."""
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        gate = d.nodes["n1"].opening
        gate.shut()
        request = RequestId("same")

        async def first() -> None:
            await d.open(owner, "x", request_id=request)
            second.cancel()

        one = spawn(first())
        await gate.reached()
        second = spawn(d.open(owner, "x", request_id=request))
        await d.registry.list(owner)
        gate.open()
        await one
        assert isinstance(await ended(second), asyncio.CancelledError)
        assert await d.names(owner) == ["x"]
        assert len(d.nodes.running) == 1


async def test_an_answer_is_forgotten_after_its_retention(tmp_path: Path):
    async with desk(tmp_path, settings=RegistrySettings(request_retention_s=60, lease_s=900)) as d:
        owner = await d.acquire()
        first = await d.opened(owner, request_id=RequestId("same"))
        d.clock.advance(59)
        assert await d.opened(owner, request_id=RequestId("same")) == first
        d.clock.advance(2)
        assert await d.opened(owner, request_id=RequestId("same")) != first


async def test_a_second_cancel_does_not_leave_the_rollback_undone(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        node = d.nodes["n1"]
        node.ignores_cancel = True
        node.opening.shut()
        opening = spawn(d.open(owner, "x"))
        await node.opening.reached()
        opening.cancel()
        await node.opening.reached(2)
        opening.cancel()
        assert isinstance(await ended(opening), asyncio.CancelledError)
        node.opening.open()
        await node.closing.reached()
        await d.release(owner)
        await nothing_left(d)


async def test_a_journal_that_cannot_be_written_refuses_new_work_only(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        journal = d.registry._books.journal
        apply = journal.apply

        def broken(changes: object) -> None:
            raise RegistryUnavailableError("disk full")

        journal.apply = broken  # type: ignore[method-assign,assignment]
        with pytest.raises(RegistryUnavailableError, match="disk full"):
            await d.open(owner, "x")
        assert d.nodes.calls["open"] == 1
        await d.close(owner, session_id)
        journal.apply = apply  # type: ignore[method-assign]
        await d.open(owner, "x")
        assert d.registry._books._unsaved == {}
        assert list(journal.load()["sessions"]) == list(d.nodes.running)


async def test_the_spec_carries_what_the_caller_and_the_settings_say(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire("agent", "principal")
        request = OpenRequest(
            d.rid(), "python", "x", cwd="/tmp", env=(("A", "b"),), rows=24, term="xterm"
        )
        result = await d.registry.open(owner, request)
        spec = d.nodes["n1"].running[result.info.session_id].spec
        assert spec.argv == ("python3", "-q")
        assert (spec.principal, spec.agent, spec.epoch) == ("principal", "agent", 1)
        assert (spec.rows, spec.cols, spec.term, spec.cwd) == (24, 160, "xterm", "/tmp")
        assert spec.created_at == d.clock.wall()
