"""A node over real shims and terminals; its workers live in this loop."""

import asyncio
import errno
import os
import signal

import pytest

from fabric.core.errors import (
    CapacityReachedError,
    DrainingError,
    PtyExhaustedError,
    SessionLostError,
    SessionNotFoundError,
    SpawnFailedError,
    StartupTimeoutError,
)
from fabric.core.plain import to_plain
from tests.support.eventually import eventually, pause
from tests.support.local_node import broken, local_node
from tests.support.local_worker import CALLER, spec_for
from workers import slot as files
from workers.capacity import Capacity
from workers.dial import ChannelClient
from workers.ending import shim_lives


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def channel_of(local, session_id):
    place = await local.node.locate(session_id)
    return await ChannelClient.connect(place.socket, place.key)


async def echo(local, session_id, text):
    channel = await channel_of(local, session_id)
    try:
        request = {"request_id": f"r{id(text)}", "data": text.encode()}
        args = {"session_id": session_id, "caller": to_plain(CALLER), "request": request}
        return (await channel.call("send", args))["viewport"]
    finally:
        channel.close()
        await channel.closed


async def test_the_pool_fills_and_an_open_takes_a_warm_slot_that_is_then_replaced():
    async with local_node() as local:
        await eventually(lambda: local.warm() == 1)
        (warm,) = local.slots.workers
        result = await local.node.open(spec_for())
        assert local.slot_of(result.info.session_id) == warm
        assert result.info.host == "h1"
        await eventually(lambda: local.warm() == 1)
        assert len(local.slots.created) == 2


async def test_an_open_without_a_warm_slot_starts_one():
    async with local_node(warm_sessions=0) as local:
        result = await local.node.open(spec_for())
        assert "hi" in await echo(local, result.info.session_id, "echo hi")


async def test_a_close_ends_the_tree_the_worker_the_shim_and_the_files():
    async with local_node(warm_sessions=0) as local:
        result = await local.node.open(spec_for())
        assert local.files()
        receipt = await local.node.close(result.info.session_id, "test")
        assert receipt.survivors == ()
        assert not alive(result.info.pid)
        assert not local.slots.workers
        assert not local.files()
        with pytest.raises(SessionNotFoundError):
            await local.node.close(result.info.session_id, "test")


async def test_two_closes_at_once_share_one_teardown():
    async with local_node(warm_sessions=0) as local:
        result = await local.node.open(spec_for())
        session_id = result.info.session_id
        first, second = await asyncio.gather(
            local.node.close(session_id, "a"), local.node.close(session_id, "b")
        )
        assert first == second


async def test_a_full_node_refuses_with_its_numbers_before_anything_starts():
    async with local_node(warm_sessions=0, max_sessions=1) as local:
        await local.node.open(spec_for())
        with pytest.raises(CapacityReachedError, match="1 of 1 sessions") as caught:
            await local.node.open(spec_for())
        assert caught.value.metadata["max_sessions"] == "1"
        assert len(local.slots.created) == 1


@pytest.mark.parametrize(
    ("left", "error", "number"),
    [
        (Capacity(ptys=3), PtyExhaustedError, "3 pseudo-terminals"),
        (Capacity(memory_bytes=1024), CapacityReachedError, "1024 memory_bytes"),
        (Capacity(fds=5), CapacityReachedError, "5 fds"),
    ],
)
async def test_a_machine_that_runs_out_refuses_early_and_says_of_what(left, error, number):
    async with local_node(warm_sessions=0) as local:
        local.capacity = left
        with pytest.raises(error, match=number):
            await local.node.open(spec_for())
        assert not local.slots.created


async def test_a_program_that_cannot_start_leaves_nothing():
    async with local_node(warm_sessions=0) as local:
        with pytest.raises(SpawnFailedError):
            await local.node.open(spec_for("custom", argv=("/no/such/program",)))
        assert not local.files()
        assert not local.slots.workers


async def test_a_worker_that_does_not_start_refuses_the_open_with_the_cause():
    async with local_node(warm_sessions=0) as local:
        local.slots.failing = [broken()]
        with pytest.raises(SpawnFailedError, match="no such program"):
            await local.node.open(spec_for())
        await eventually(lambda: not local.files())


async def test_a_worker_that_hangs_in_its_start_does_not_hang_the_open():
    async with local_node(warm_sessions=0, start_timeout_s=0.2) as local:
        local.slots.gate.clear()
        with pytest.raises((StartupTimeoutError, SpawnFailedError)):
            await local.node.open(spec_for())
        await eventually(lambda: not local.files())


async def test_a_cancelled_open_has_removed_everything_when_it_returns():
    async with local_node(warm_sessions=0) as local:
        # A program that never asks for input keeps the open in its start-up.
        work = asyncio.create_task(local.node.open(spec_for("custom", argv=("/bin/sleep", "1000"))))
        await eventually(lambda: any(w.session for w in local.slots.workers.values()), within=5)
        (worker,) = local.slots.workers.values()
        pid = worker.session.info().pid
        assert alive(pid)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert not alive(pid)
        assert not local.files()
        assert (await local.node.state()).sessions == 0


async def test_an_open_cancelled_while_it_waits_for_a_slot_leaves_the_slot_to_the_pool():
    async with local_node(warm_sessions=0) as local:
        local.slots.gate.clear()
        work = asyncio.create_task(local.node.open(spec_for()))
        await eventually(lambda: local.files())
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        local.slots.gate.set()
        await eventually(lambda: local.warm() == 1)


async def test_a_session_survives_its_worker_and_says_so():
    async with local_node(warm_sessions=0) as local:
        result = await local.node.open(spec_for())
        session_id = result.info.session_id
        await echo(local, session_id, "X=42")
        await local.slots.crash(local.slot_of(session_id))
        held = local.node._sessions[session_id]
        # Nobody restarts workers here as Ray does, so the node makes a new one itself.
        await eventually(lambda: held.info.adoption == 2, within=10)
        assert "42" in await echo(local, session_id, "echo $X")
        await eventually(lambda: "session_readopted" in [e["kind"] for _, e in local.events])
        ((_, info, _),) = await local.node.sessions()
        assert info.adoption == 2


async def test_a_session_whose_shell_and_worker_are_gone_is_lost_and_cleaned_up():
    async with local_node(warm_sessions=0, start_timeout_s=5.0) as local:
        result = await local.node.open(spec_for())
        session_id = result.info.session_id
        slot_id = local.slot_of(session_id)
        shim = local.slots.workers[slot_id].shim
        os.kill(shim.shim_pid, 9)
        await local.slots.crash(slot_id)
        await eventually(lambda: not local.node._sessions, within=10)
        with pytest.raises(SessionLostError):
            await local.node.close(session_id, "test")
        await eventually(lambda: not local.files())
        assert (session_id, {"kind": "session_lost"}) in local.events


async def test_a_session_without_a_worker_is_closed_through_its_shim():
    async with local_node(warm_sessions=0) as local:
        result = await local.node.open(spec_for())
        session_id = result.info.session_id
        local.slots.gate.clear()
        await local.slots.crash(local.slot_of(session_id))
        receipt = await local.node.close(session_id, "test")
        assert receipt.survivors == ()
        assert not alive(result.info.pid)
        assert not local.files()


async def test_a_dead_warm_slot_is_replaced():
    async with local_node() as local:
        await eventually(lambda: local.warm() == 1)
        (old,) = local.slots.workers
        await local.slots.crash(old)
        await eventually(lambda: local.warm() == 1 and old not in local.slots.workers)


async def test_a_node_that_starts_again_finds_its_sessions_and_its_warm_slots():
    async with local_node() as local:
        result = await local.node.open(spec_for())
        session_id = result.info.session_id
        await eventually(lambda: local.warm() == 1)
        workers = dict(local.slots.workers)
        await local.node.stop()
        local.node = local.make()
        await local.node.start()
        assert local.slots.workers == workers
        assert local.warm() == 1
        ((_, info, spec),) = await local.node.sessions()
        assert (info.pid, spec.session_id) == (result.info.pid, session_id)
        assert "hi" in await echo(local, session_id, "echo hi")


async def test_a_machine_whose_workers_all_died_adopts_its_sessions_with_new_ones():
    async with local_node() as local:
        result = await local.node.open(spec_for())
        session_id = result.info.session_id
        await echo(local, session_id, "X=42")
        await local.node.stop()
        await local.slots.crash_all()
        local.node = local.make()
        await local.node.start()
        ((_, info, _),) = await local.node.sessions()
        assert info.pid == result.info.pid
        assert info.adoption == 2
        assert "42" in await echo(local, session_id, "echo $X")
        await eventually(lambda: local.warm() == 1)


@pytest.mark.parametrize("rolled_back", [False, True])
async def test_a_session_that_was_never_published_is_ended_at_the_next_start(rolled_back):
    async with local_node(warm_sessions=0) as local:
        work = asyncio.create_task(local.node.open(spec_for("custom", argv=("/bin/sleep", "1000"))))
        await eventually(lambda: any(w.session for w in local.slots.workers.values()))
        (worker,) = local.slots.workers.values()
        pid = worker.session.info().pid
        # As if the node had been killed: nothing of it may run, nothing may be tidied up.
        work_files = local.files()
        local.node._pool.finish = lambda held: asyncio.sleep(0)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        assert local.files() == work_files
        if rolled_back:  # its worker looks blank now, but its shim is used up
            await eventually(lambda: worker.session is None)
        local.node = local.make()
        await local.node.start()
        assert not alive(pid)
        assert local.warm() == 0
        assert not local.files()


async def test_a_draining_node_keeps_its_sessions_and_takes_no_more():
    async with local_node() as local:
        result = await local.node.open(spec_for())
        await eventually(lambda: local.warm() == 1)
        await local.node.drain()
        with pytest.raises(DrainingError):
            await local.node.open(spec_for())
        state = await local.node.state()
        assert state.draining
        assert "hi" in await echo(local, result.info.session_id, "echo hi")
        await eventually(lambda: len(local.slots.workers) == 1)


async def test_state_counts_what_there_is():
    async with local_node(max_sessions=5) as local:
        await eventually(lambda: local.warm() == 1)
        local.capacity = Capacity(ptys=100, memory_bytes=2**40, fds=1000)
        await local.node.open(spec_for())
        state = await local.node.state()
        assert (state.sessions, state.max_sessions, state.ptys_free) == (1, 5, 100)


async def test_a_fenced_session_refuses_older_epochs():
    async with local_node(warm_sessions=0) as local:
        result = await local.node.open(spec_for())
        await local.node.fence(result.info.session_id, 9)
        with pytest.raises(Exception, match="newer owner token"):
            await echo(local, result.info.session_id, "echo hi")


async def test_a_drain_outlives_the_node_until_it_is_undone():
    async with local_node() as local:
        await eventually(lambda: local.warm() == 1)
        first = set(local.slots.workers)
        await local.node.drain()
        await local.node.stop()
        local.node = local.make()
        await local.node.start()
        with pytest.raises(DrainingError):
            await local.node.open(spec_for())
        await local.node.resume()
        result = await local.node.open(spec_for())
        assert "hi" in await echo(local, result.info.session_id, "echo hi")
        assert not first & set(local.slots.workers), "what was warm before the drain is gone"


async def test_a_shell_does_not_end_for_want_of_a_worker():
    """A machine too busy to start a worker in time, or a cluster that is away for longer."""
    async with local_node(warm_sessions=0, start_timeout_s=1.0) as local:
        session_id = (await local.node.open(spec_for())).info.session_id
        held = local.node._sessions[session_id]
        local.slots.gate.clear()
        await local.slots.crash(held.config.slot_id)
        await eventually(lambda: held.recovery is not None)
        recovery = held.recovery
        await pause(3.5, because="both ways to a worker have run out of time, twice")
        assert not recovery.done()
        local.slots.gate.set()
        await eventually(lambda: held.is_connected, within=10)
        await eventually(lambda: held.recovery is None, within=10)
        assert "hi" in await echo(local, session_id, "echo hi")


async def test_a_session_whose_shim_is_gone_is_given_up_at_once():
    async with local_node(warm_sessions=0) as local:
        session_id = (await local.node.open(spec_for())).info.session_id
        config = local.node._sessions[session_id].config
        assert shim_lives(config)
        shim = local.slots.workers[config.slot_id].shim
        os.kill(shim.shim_pid, signal.SIGKILL)
        await eventually(lambda: not shim_lives(config))
        await local.slots.crash(config.slot_id)
        await eventually(lambda: session_id not in local.node._sessions, within=20)


@pytest.mark.parametrize("write", [1, 2], ids=["before the start", "after it"])
async def test_a_full_disk_refuses_the_open_and_leaves_nothing(monkeypatch, write):
    async with local_node(warm_sessions=1) as local:
        await eventually(lambda: local.warm() == 1)
        kept = await local.node.open(spec_for())
        await eventually(lambda: local.warm() == 1)
        save, writes = files.save, 0

        def full(record):
            nonlocal writes
            writes += record.spec is not None
            if writes == write and record.spec is not None:
                raise OSError(errno.ENOSPC, "No space left on device")
            save(record)

        monkeypatch.setattr(files, "save", full)
        with pytest.raises(CapacityReachedError, match="No space left"):
            await local.node.open(spec_for())
        assert "hi" in await echo(local, kept.info.session_id, "echo hi")
        assert "hi" in await echo(
            local, (await local.node.open(spec_for())).info.session_id, "echo hi"
        )
        assert (await local.node.state()).sessions == 2
