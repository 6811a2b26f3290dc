"""Closes: joined, failed, retried, cancelled, in disposal."""

import asyncio
from pathlib import Path

import pytest

from fabric.core.errors import (
    CleanupIncompleteError,
    NodeNotFoundError,
    SandboxModeLockedError,
    SessionLostError,
)
from fabric.core.ids import HostName, RequestId
from fabric.core.model import CloseOutcome, CloseReceipt, EndedProcess, SandboxMode
from fabric.core.settings import RegistrySettings
from tests.support.eventually import eventually
from tests.unit.registry.desk import desk, ended, spawn

SURVIVOR = CloseReceipt(None, survivors=(EndedProcess(99, "stubborn", "SIGKILL"),))


async def test_the_first_caller_closes_and_the_others_join(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        gate = d.nodes["n1"].closing
        gate.shut()
        one = spawn(d.close(owner, session_id))
        await gate.reached()
        two = spawn(d.close(owner, session_id))
        assert [info.session_id for info in await d.registry.list(owner)] == [session_id]
        assert not two.done()
        gate.open()
        first, second = await asyncio.gather(one, two)
        assert first.outcome is CloseOutcome.CLOSED
        assert second.outcome is CloseOutcome.ALREADY_CLOSING
        assert d.nodes["n1"].reasons == [(session_id, "requested by the owner")]
        assert await d.registry.list(owner) == ()


async def test_a_failed_close_names_survivors_and_can_be_tried_again(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner, "x")
        node = d.nodes["n1"]
        node.close_receipts.append(SURVIVOR)
        node.closing.shut()
        one, two = spawn(d.close(owner, session_id)), spawn(d.close(owner, session_id))
        await node.closing.reached()
        node.closing.open()
        for error in (await ended(one), await ended(two)):
            assert isinstance(error, CleanupIncompleteError)
            assert error.metadata["survivors"] == "stubborn (pid 99)"
        assert await d.names(owner) == ["x"]
        with pytest.raises(SandboxModeLockedError):
            await d.registry.set_mode(owner, SandboxMode.WORKSPACE_WRITE, d.rid())
        assert (await d.close(owner, session_id)).outcome is CloseOutcome.CLOSED
        await d.registry.set_mode(owner, SandboxMode.WORKSPACE_WRITE, d.rid())


async def test_a_close_goes_on_when_its_caller_goes_away(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        node = d.nodes["n1"]
        node.closing.shut()
        request = RequestId("same")
        closing = spawn(d.registry.close(owner, session_id, request))
        await node.closing.reached()
        closing.cancel()
        assert isinstance(await ended(closing), asyncio.CancelledError)
        node.closing.open()
        again = await d.registry.close(owner, session_id, request)
        assert again.outcome is CloseOutcome.CLOSED
        assert d.nodes.calls["close"] == 1
        assert await d.registry.close(owner, session_id, request) == again


async def test_a_close_that_is_not_confirmed_in_time_fails_and_stays(tmp_path: Path):
    async with desk(tmp_path, settings=RegistrySettings(close_timeout_s=0.05)) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        d.nodes["n1"].closing.shut()
        with pytest.raises(CleanupIncompleteError, match=r"not confirmed.*0\.05 s"):
            await d.close(owner, session_id)
        assert len(await d.registry.list(owner)) == 1
        d.nodes["n1"].closing.open()
        await d.close(owner, session_id)


async def test_a_close_on_a_node_that_is_away_fails_and_stays(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        d.nodes.away.add(HostName("n1"))
        with pytest.raises(NodeNotFoundError):
            await d.close(owner, session_id)
        d.nodes.away.clear()
        await d.close(owner, session_id)


async def test_a_session_found_lost_at_its_close_is_lost(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        d.nodes["n1"].close_errors.append(SessionLostError("its worker died"))
        for _ in range(2):
            with pytest.raises(SessionLostError, match="its worker died"):
                await d.close(owner, session_id)
        page = await d.registry.read_events(owner)
        assert [event.kind for event in page.events] == ["session_lost"]


async def test_a_session_its_node_does_not_know_counts_as_closed(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        d.nodes["n1"].running.clear()
        result = await d.close(owner, session_id)
        assert (result.outcome, result.receipt) == (CloseOutcome.CLOSED, None)


async def test_disposal_tries_every_session_and_keeps_what_failed(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        ids = [await d.opened(owner) for _ in range(3)]
        d.nodes["n1"].close_receipts.append(SURVIVOR)
        receipt = await d.release(owner)
        assert len(receipt.failed) == 1
        assert set(receipt.closed) | set(receipt.failed) == set(ids)
        assert d.nodes.running == set(receipt.failed)
        d.clock.advance(6)
        await d.registry.tick()
        await eventually(lambda: len(d.registry._books.table.owners) == 0)
        assert d.nodes.running == set()


async def test_disposal_joins_a_close_in_flight(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        gate = d.nodes["n1"].closing
        gate.shut()
        closing = spawn(d.close(owner, session_id))
        await gate.reached()
        release = spawn(d.release(owner))
        gate.open()
        assert (await closing).outcome is CloseOutcome.CLOSED
        assert (await release).closed == (session_id,)
        assert d.nodes.calls["close"] == 1


async def test_a_released_owner_leaves_nothing_behind(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner, "x")
        await d.registry.reserve_task(owner, session_id, "make")
        await d.release(owner)
        rows = d.registry._books.journal.load()
        assert {kind: sorted(found) for kind, found in rows.items() if found} == {
            "tombstones": sorted([owner.owner_id, session_id]),
            "requests": sorted(rows["requests"]),
            "facts": ["keys"],
        }
        d.clock.advance(3601)
        await d.registry.tick()
        rows = d.registry._books.journal.load()
        assert [kind for kind, found in rows.items() if found] == ["facts"]
        assert d.registry._books.calls._scopes == {}
