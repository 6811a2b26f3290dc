"""Two gateways of one fabric: what a client notices when one of them goes."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from fabric.client import FabricClient
from fabric.client.link import Link
from fabric.core.errors import DrainingError, GatewayUnavailableError
from fabric.core.ids import new_request_id
from fabric.gateway.server import Gateway
from tests.support.eventually import eventually
from tests.support.fake_fabric import HOST
from tests.support.faults import FaultProxy
from tests.support.local_fabric import local_fabric


@pytest.fixture
async def second(fabric, settings):
    gateway = Gateway(settings, fabric, fabric, host=HOST)
    await gateway.start()
    yield gateway
    await gateway.stop(drain_s=0.5)


async def test_a_stream_goes_on_at_the_other_gateway_without_gap_or_repetition():
    """Real shells; the first gateway's connections break as if its process were killed."""
    async with local_fabric() as fabric, AsyncExitStack() as stack:
        other = Gateway(fabric.settings.gateway, fabric.registry, fabric.sessions, host="local")
        stack.push_async_callback(other.stop, 1.0)
        await other.start()
        killed = FaultProxy(fabric.address, seed=1)
        killed.active = False
        await killed.__aenter__()
        addresses = (killed.address, other.address)
        async with FabricClient.connect(addresses, mode="danger-full-access") as client:
            shell = await client.open("shell")
            before = (await shell.send("echo one")).next_offset
            seen, at = bytearray(), before

            async def follow(offset):
                nonlocal at
                async for page in shell.follow(offset):
                    assert page.offset == at
                    seen.extend(page.data)
                    at = page.next_offset

            following = asyncio.create_task(follow(None))
            await eventually(lambda: fabric.gateway.active_calls == 1)
            assert client.calls.link.address == killed.address
            await shell.send("(for n in 1 2 3 4 5 6; do echo line-$n; sleep 0.1; done) &")
            await eventually(lambda: b"line-2" in seen)
            await killed.__aexit__()
            await eventually(lambda: seen.count(b"line-6\r\n") == 1, within=15)
            assert client.calls.link.address == other.address
            assert "two" in (await shell.send("echo two")).viewport
            assert [seen.count(b"line-%d\r\n" % n) for n in range(1, 7)] == [1] * 6
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def test_a_stream_that_had_no_byte_yet_loses_none(fabric, gateway, second):
    addresses = (gateway.address, second.address)
    async with FabricClient.connect(addresses) as client:
        shell = await client.open()
        terminal = fabric.sessions[shell.id].terminal
        stream = shell.follow()
        first = asyncio.create_task(anext(stream))
        await eventually(lambda: gateway.active_calls == 1)
        await gateway.stop(drain_s=5)
        begin = terminal.end
        await shell.send("echo hi")
        page = await first
        assert page.offset == begin
        assert page.data
        await stream.aclose()


async def test_a_send_that_a_dying_gateway_took_is_not_run_twice(fabric, gateway, second):
    """The repeat goes to the other gateway under the same request id and joins it there."""
    addresses = (gateway.address, second.address)
    async with FabricClient.connect(addresses) as client:
        shell = await client.open()
        request_id = new_request_id()
        first = await shell.send("echo hi", request_id=request_id)
        await gateway.stop(drain_s=0.5)
        again = await shell.send("echo hi", request_id=request_id)
        assert again == first
        assert client.calls.link.address == second.address


async def test_addresses_that_are_not_serving_are_skipped(fabric, gateway, second, settings):
    """The next in turn is asked for its health first, whatever it would answer to a call."""
    draining = Gateway(settings, fabric, fabric, host=HOST)
    await draining.start()
    draining._guard.draining = True
    await draining._health.enter_graceful_shutdown()
    link = Link(("127.0.0.1:9", draining.address, "127.0.0.1:10", second.address))
    link._move_from(0)
    await link._skip_silent(asyncio.get_running_loop().time() + 30)
    assert link.address == second.address
    await link.close()
    await draining.stop(drain_s=0.1)


async def test_a_stream_nobody_takes_up_ends_with_the_reason(fabric, gateway, monkeypatch):
    monkeypatch.setattr("fabric.client.following.MAX_FAILURES", 2)
    client = FabricClient.connect(gateway.address, keep=True)
    await client.start()
    shell = await client.open()
    stream = shell.follow(0)
    await anext(stream)
    reading = asyncio.ensure_future(_drain(stream))
    await gateway.stop(drain_s=1)
    with pytest.raises((DrainingError, GatewayUnavailableError)):
        await reading
    await client.stop()


async def _drain(stream):
    async for _ in stream:
        pass
