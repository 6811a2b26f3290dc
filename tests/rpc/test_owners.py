"""Owners through the real stack: leases, fences, disposal, and what outlives a death."""

import asyncio
from pathlib import Path

import pytest

from fabric.client import FabricClient
from fabric.core.errors import OwnerNotLiveError, SessionNotFoundError
from fabric.core.ids import RequestId
from fabric.core.model import EventKind, Outcome, TaskState
from tests.support.eventually import eventually
from tests.support.local_fabric import LocalFabric, local_fabric

SHORT = {"registry__min_lease_s": "0.2", "registry__sweep_interval_s": "0.05"}


async def _stopped_renewing(client: FabricClient) -> None:
    """What a crashed harness leaves: an owner that nobody renews."""
    await client._end_renewing()
    client.keep = True


def _lives(pid: int | None) -> bool:
    return Path(f"/proc/{pid}").exists()


async def test_a_lease_that_ends_disposes_of_everything_and_says_so():
    async with local_fabric(**SHORT) as fabric:
        async with fabric.client(lease_s=1.0) as client:
            shell = await client.open("shell")
            await shell.send_background("sleep 1000")
            pid = (await shell.status()).pid
            stream = client.events()
            seen: list[EventKind] = []

            async def follow() -> None:
                async for event in stream:
                    seen.append(event.kind)

            following = asyncio.create_task(follow())
            await _stopped_renewing(client)
            await eventually(following.done, within=15)
            await following
            assert EventKind.LEASE_EXPIRING in seen
            assert seen[-1] is EventKind.OWNER_DISPOSED
            assert stream.ended is not None
            assert "lease" in stream.ended
            await eventually(lambda: not _lives(pid), within=10)
            with pytest.raises(OwnerNotLiveError):
                await client.list()
        async with fabric.client() as successor:
            assert successor.owner.owner_id != client.owner.owner_id
            assert await successor.list() == ()
            with pytest.raises(SessionNotFoundError):
                await successor.session(shell.id).status()


async def test_a_harness_that_comes_back_finds_its_sessions_and_fences_its_old_self():
    async with local_fabric() as fabric, fabric.client(keep=True) as crashed:
        shell = await crashed.open("shell", name="work")
        await shell.send("X=kept")
        await _stopped_renewing(crashed)
        async with fabric.client() as back:
            assert back.owner.owner_id == crashed.owner.owner_id
            assert back.owner.epoch == crashed.owner.epoch + 1
            (info,) = await back.list()
            assert (info.session_id, info.name) == (shell.id, "work")
            # The fence holds at the session itself before the new epoch has said a word there.
            with pytest.raises(OwnerNotLiveError):
                await shell.send("echo no")
            with pytest.raises(OwnerNotLiveError):
                await crashed.open("shell")
            with pytest.raises(OwnerNotLiveError):
                await crashed.renew()
            assert "kept" in (await back.session(shell.id).send("echo $X")).viewport


async def _settled_task(fabric: LocalFabric, client: FabricClient):
    shell = await client.open("shell")
    task = await shell.send_background("echo result $((6 * 7))")
    output = await task.output(30)
    assert output.record.state is TaskState.COMPLETED
    return shell, task


async def test_a_settled_result_outlives_session_worker_gateway_and_registry():
    async with local_fabric() as fabric:
        async with fabric.client(keep=True) as client:
            shell, task = await _settled_task(fabric, client)
            await shell.close()
            token, record = client.owner_token, task.record
        await fabric.restart_control()
        async with FabricClient.connect(fabric.address, owner_token=token) as later:
            assert [one.task_id for one in await later.tasks()] == [task.id]
            output = await later.task(record).output()
            assert "result 42" in output.text
            assert output.record.state is TaskState.COMPLETED
            again = await later.task(record).output()
            assert again.text == output.text, "reading takes nothing away"
            assert [event.task_id async for event in _first(later.events(0), 1)] == [task.id]


async def _first(stream, count: int):
    async for event in stream:
        yield event
        count -= 1
        if not count:
            return


async def test_a_stream_of_events_goes_on_over_the_death_of_gateway_and_registry():
    async with local_fabric(gateway__listen="127.0.0.1:0") as fabric:
        client = fabric.client(keep=True)
        await client.start()
        _, task = await _settled_task(fabric, client)
        token = client.owner_token
        events = aiter(client.events(0))
        first = await anext(events)
        assert (first.sequence, first.task_id) == (1, task.id)
        await client.stop()
        await fabric.restart_control()
        async with FabricClient.connect(fabric.address, owner_token=token) as later:
            (info,) = await later.list()
            session = later.session(info.session_id)
            second = asyncio.create_task(anext(aiter(later.events(first.sequence))))
            await session.send("exit 3")
            event = await second
            assert (event.sequence, event.kind) == (2, EventKind.SESSION_EXITED)
            await later.release()


async def test_a_worker_that_dies_is_told_of_and_its_send_is_never_run_again(tmp_path):
    ran = tmp_path / "ran"
    async with local_fabric() as fabric, fabric.client() as client:
        shell = await client.open("shell")
        line = f"echo once >> {ran}; sleep 1"
        name = RequestId("the-one")
        send = asyncio.create_task(shell.send(line, request_id=name))
        await eventually(ran.exists)
        (slot,) = [key for key, one in fabric.slots.workers.items() if one.session is not None]
        await fabric.slots.destroy(slot)
        result = await send
        assert result.outcome is Outcome.UNKNOWN
        assert (await shell.send(line, request_id=name)).outcome is Outcome.UNKNOWN
        event = await anext(aiter(client.events(0)))
        assert (event.kind, event.session_id) == (EventKind.SESSION_READOPTED, shell.id)
        await shell.wait_for(ready=True, timeout_s=10)
        assert "alive" in (await shell.send("echo alive")).viewport
        assert ran.read_text() == "once\n"


async def test_many_waiters_wait_at_once_and_cancelled_ones_leave_nothing():
    async with local_fabric() as fabric, fabric.client() as client:
        shell = await client.open("shell")
        waits = [
            asyncio.create_task(shell.wait_for(f"word{number} ", since_offset=0, timeout_s=60))
            for number in range(100)
        ]
        await eventually(lambda: fabric.gateway.active_calls == 100, within=15)
        observing = next(
            one.session.observing for one in fabric.slots.workers.values() if one.session
        )
        await eventually(lambda: observing._watchers == 100, within=15)
        for wait in waits[50:]:
            wait.cancel()
        await eventually(lambda: observing._watchers == 50, within=15)
        await shell.send("for i in {0..49}; do printf 'word%s ' $i; done; echo")
        results = await asyncio.gather(*waits[:50])
        assert {result.matched for result in results} == {"pattern"}
        await eventually(lambda: observing._watchers == 0 and fabric.gateway.active_calls == 0)
        # Level-triggered: what has been printed already ends a wait at once.
        assert (await shell.wait_for("word7 ", since_offset=0, timeout_s=60)).matched == "pattern"


async def test_a_pattern_that_blows_up_other_engines_takes_linear_time():
    async with local_fabric() as fabric, fabric.client() as client:
        shell = await client.open("shell")
        await shell.send("printf 'a%.0s' {1..30000}; echo")
        result = await shell.wait_for("(a+)+$b", since_offset=0, timeout_s=0.5)
        assert result.matched == "timeout"
