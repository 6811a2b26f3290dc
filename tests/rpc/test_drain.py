"""A gateway that shuts down: in order, and everybody is told."""

import asyncio

import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from fabric.client import FabricClient
from fabric.core.errors import DrainingError, RegistryUnavailableError
from fabric.core.settings import GatewaySettings, SettingsError
from fabric.gateway.server import Gateway
from tests.support.eventually import eventually
from tests.support.fake_fabric import HOST


async def _impatient(gateway: Gateway) -> FabricClient:
    """A client that does not wait long for a gateway to be started again."""
    client = FabricClient.connect(gateway.address, keep=True)
    await client.start()
    client.calls.link._repeat_s = 0.5
    return client


async def _health(address: str, service: str = "") -> str:
    async with grpc.aio.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
        return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


async def test_health_speaks_for_the_server_and_each_service(gateway):
    assert await _health(gateway.address) == "SERVING"
    assert await _health(gateway.address, "fabric.api.v1.TerminalService") == "SERVING"


async def test_reflection_names_the_services(gateway):
    async with grpc.aio.insecure_channel(gateway.address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        async for answer in stub.ServerReflectionInfo(iter([request]), timeout=5):
            names = {item.name for item in answer.list_services_response.service}
    assert "fabric.api.v1.PtyService" in names
    assert "grpc.health.v1.Health" in names


async def test_a_running_send_finishes_while_new_calls_are_refused(gateway, fabric):
    client = await _impatient(gateway)
    shell = await client.open()
    terminal = fabric.sessions[shell.id].terminal
    send = asyncio.create_task(shell.send("sleep 1000"))
    await eventually(lambda: terminal.busy)
    stopping = asyncio.create_task(gateway.stop(drain_s=20))
    await eventually(lambda: not fabric.gateways)
    assert await _health(gateway.address) == "NOT_SERVING"
    with pytest.raises(DrainingError):
        await client.calls.tail(shell.id, "", None)
    terminal.interrupted.set()
    assert "^C" in (await send).viewport
    await stopping
    await client.stop()


async def test_waits_and_streams_end_at_once_with_a_reason(gateway, fabric):
    client = await _impatient(gateway)
    shell = await client.open()
    terminal = fabric.sessions[shell.id].terminal
    stream = client.calls.follow(shell.id, 0)
    await anext(stream)

    async def drained() -> DrainingError:
        with pytest.raises(DrainingError) as caught:
            async for _ in stream:
                pass
        return caught.value

    following = asyncio.create_task(drained())
    send = asyncio.create_task(shell.send("sleep 1000"))
    await eventually(lambda: gateway.active_calls == 2)
    stopping = asyncio.create_task(gateway.stop(drain_s=60))
    assert int((await following).metadata["next_offset"]) >= 2
    assert not send.done(), "the stream ended while the drain still waits for the send"
    terminal.interrupted.set()
    await send
    await stopping
    await client.stop()


async def test_what_is_left_after_the_drain_is_ended_and_cleaned_up(gateway, fabric):
    client = await _impatient(gateway)
    shell = await client.open()
    terminal = fabric.sessions[shell.id].terminal
    calls = client.calls
    send = asyncio.create_task(shell.send("sleep 1000"))
    await eventually(lambda: terminal.busy)
    await gateway.stop(drain_s=0.1)
    assert terminal.cleaned == 1
    with pytest.raises(DrainingError):
        await send
    assert calls.link.address == gateway.address
    await client.stop()


async def test_when_the_fabric_goes_down_for_good_everybody_is_told_at_once(gateway, fabric):
    """Nobody waits for a send or tries again, neither where nobody is left to answer."""
    client = await _impatient(gateway)
    shell = await client.open()
    terminal = fabric.sessions[shell.id].terminal
    send = asyncio.create_task(shell.send("sleep 1000"))
    stream = asyncio.create_task(_drain(shell.follow(0)))
    await eventually(lambda: terminal.busy and gateway.active_calls == 2)
    began = asyncio.get_running_loop().time()
    await gateway.evict()
    for call in (send, stream, shell.status()):
        with pytest.raises(DrainingError) as caught:
            await call
        assert not caught.value.worth_repeating
    await gateway.stop(drain_s=60)
    assert asyncio.get_running_loop().time() - began < 3
    assert terminal.cleaned == 1
    await client.stop()


async def _drain(stream):
    async for _ in stream:
        pass


async def test_a_call_that_was_told_of_the_drain_says_so_when_nobody_answers_any_more(
    gateway, fabric
):
    client = await _impatient(gateway)
    shell = await client.open()
    terminal = fabric.sessions[shell.id].terminal
    send = asyncio.create_task(shell.send("sleep 1000"))
    await eventually(lambda: terminal.busy)
    await gateway.stop(drain_s=0.1)
    with pytest.raises(DrainingError) as caught:
        await send
    assert caught.value.worth_repeating
    await client.stop()


async def test_stopping_twice_and_without_starting_is_harmless(fabric, settings):
    gateway = Gateway(settings, fabric, fabric, host=HOST)
    await gateway.stop()
    await gateway.start()
    await gateway.stop()
    await gateway.stop()


async def test_a_port_in_use_is_a_clear_error(gateway, fabric):
    second = Gateway(GatewaySettings(listen=gateway.address), fabric, fabric, host=HOST)
    with pytest.raises(SettingsError, match="cannot listen"):
        await second.start()


async def test_a_gateway_that_cannot_join_leaves_its_port(fabric, settings, monkeypatch):
    async def away(*_: object) -> None:
        raise RegistryUnavailableError("away")

    monkeypatch.setattr(fabric, "join", away)
    gateway = Gateway(settings, fabric, fabric, host=HOST)
    with pytest.raises(RegistryUnavailableError):
        await gateway.start()
    monkeypatch.undo()
    again = Gateway(GatewaySettings(listen=gateway.address), fabric, fabric, host=HOST)
    await again.start()
    await again.stop()
