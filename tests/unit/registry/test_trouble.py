"""Nodes that answer nonsense, late or not at all; what cannot be done is tried again."""

import asyncio
from pathlib import Path

import pytest

from fabric.core.errors import (
    DeadlineError,
    InternalError,
    NodeNotFoundError,
    RegistryUnavailableError,
)
from fabric.core.ids import HostName
from fabric.core.model import CloseReceipt, EndedProcess, OpenRequest
from fabric.core.settings import RegistrySettings
from fabric.registry.waiting import every, to_the_end, within
from tests.support.eventually import eventually
from tests.support.fake_nodes import FakeNodes, node_state
from tests.unit.registry.desk import desk, ended, spawn

SURVIVOR = CloseReceipt(None, survivors=(EndedProcess(99, "stubborn", "SIGKILL"),))


async def test_a_close_that_breaks_is_an_internal_error_and_may_be_repeated(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        d.nodes["n1"].close_errors.append(ZeroDivisionError("secret detail"))
        with pytest.raises(InternalError) as failure:
            await d.close(owner, session_id)
        assert "secret detail" not in failure.value.message
        await d.close(owner, session_id)


async def test_a_fence_that_fails_is_renewed_with_the_next_report(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        d.nodes["n1"].fence_errors += [NodeNotFoundError("away"), ZeroDivisionError("broken")]
        new = await d.acquire()
        running = d.nodes["n1"].running[session_id]
        assert running.epoch == owner.epoch
        for _ in range(2):
            await d.registry.poll()
            await eventually(lambda: not d.registry._hands._work)
        assert running.epoch == new.epoch
        assert d.registry._books.table.sessions[session_id].fenced_epoch == new.epoch


async def test_an_eviction_that_fails_is_asked_for_again(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        await d.opened(owner)
        await d.registry.session_lost(HostName("n1"))
        await d.release(owner)
        node = d.nodes["n1"]
        node.close_receipts.append(SURVIVOR)
        node.closing.shut()
        await d.registry.poll()
        await node.closing.reached()
        await d.registry.poll()
        node.closing.open()
        await eventually(lambda: not d.registry._hands._work)
        assert d.nodes.calls["close"] == 1
        assert len(d.nodes.running) == 1
        await d.registry.poll()
        await eventually(lambda: d.nodes.running == set())


async def test_a_node_that_answers_nonsense_counts_as_silent(tmp_path: Path):
    nodes = FakeNodes(node_state("n1"), node_state("n2"))
    async with desk(tmp_path, nodes, RegistrySettings(node_call_timeout_s=0.02)) as d:
        owner = await d.acquire()
        await d.open(owner, "one", host=HostName("n1"))
        await d.open(owner, "two", host=HostName("n2"))
        sessions = nodes.sessions

        async def broken(host: HostName) -> object:
            if host == "n1":
                raise ValueError("nonsense")
            return await sessions(host)

        nodes.sessions = broken  # type: ignore[method-assign,assignment]
        nodes["n2"].asked.shut()
        assert await d.names(owner) == ["one", "two"]
        nodes["n2"].asked.open()
        assert await d.names(owner) == ["one", "two"]


async def test_a_node_that_is_away_is_named_when_it_is_looked_for(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        d.nodes.away.add(HostName("n1"))
        with pytest.raises(RegistryUnavailableError, match="n1"):
            await d.registry.locate(session_id)
        d.nodes.down = True
        with pytest.raises(RegistryUnavailableError):
            await d.registry.nodes()


async def test_questions_at_one_time_are_one_question(tmp_path: Path):
    async with desk(tmp_path) as d:
        before = d.nodes.calls["states"]
        await asyncio.gather(*(d.registry.nodes() for _ in range(20)))
        assert d.nodes.calls["states"] == before + 1


async def test_a_question_in_flight_ends_with_the_registry(tmp_path: Path):
    async with desk(tmp_path) as d:
        asked = asyncio.Event()

        async def silent() -> tuple[()]:
            asked.set()
            await asyncio.Event().wait()
            return ()

        d.nodes.states = silent  # type: ignore[method-assign,assignment]
        question = spawn(d.registry.nodes())
        await asked.wait()
        await d.registry.stop()
        assert isinstance(await ended(question), RegistryUnavailableError)


async def test_sessions_of_several_owners_open_at_once(tmp_path: Path):
    nodes = FakeNodes(node_state("n1", max_sessions=60), node_state("n2", max_sessions=60))
    async with desk(tmp_path, nodes) as d:
        owners = [await d.acquire("a"), await d.acquire("b")]
        results = await asyncio.gather(
            *(d.registry.open(owner, OpenRequest(d.rid(), "shell")) for owner in owners * 50)
        )
        assert len({result.info.session_id for result in results}) == 100
        assert d.registry._books.table.load == {"n1": 50, "n2": 50}
        assert [len(await d.registry.list(owner)) for owner in owners] == [50, 50]
        await asyncio.gather(*(d.release(owner) for owner in owners))
        assert nodes.running == set()


async def test_a_bounded_wait_outlives_nothing():
    started = asyncio.Event()

    async def stubborn() -> None:
        started.set()
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return

    with pytest.raises(DeadlineError, match=r"it did not answer within 0\.01 s"):
        await within(0.01, "it", stubborn())
    started.clear()
    waiting = spawn(within(60, "it", stubborn()))
    await started.wait()
    waiting.cancel()
    assert isinstance(await ended(waiting), asyncio.CancelledError)

    async def gives_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(DeadlineError, match="gave up"):
        await within(60, "it", gives_up())


async def test_a_step_to_the_end_is_not_cut_short():
    gate, begun = asyncio.Event(), asyncio.Event()

    async def step() -> str:
        begun.set()
        await gate.wait()
        return "done"

    task = spawn(to_the_end(step()))
    await begun.wait()
    task.cancel()
    await asyncio.wait({task}, timeout=0)
    gate.set()
    assert await task == ("done", True)


async def test_a_sweep_goes_on_whatever_happens():
    seen: list[int] = []
    enough = asyncio.Event()

    async def step() -> None:
        seen.append(len(seen))
        if len(seen) == 1:
            raise RegistryUnavailableError("away")
        if len(seen) == 2:
            raise ZeroDivisionError
        enough.set()

    task = every(0.001, step)
    await enough.wait()
    task.cancel()
    assert isinstance(await ended(task), asyncio.CancelledError)
