"""What the client tries again, and what it does not."""

import asyncio

import grpc
import grpc.aio
import pytest

from fabric.api.v1 import terminal_service_pb2
from fabric.client import FabricClient
from fabric.client.link import FIRST_TRIES, REPEAT_S, Link
from fabric.core.errors import (
    GatewayUnavailableError,
    RegistryUnavailableError,
    SessionNotFoundError,
)
from fabric.core.ids import RequestId, new_session_id
from fabric.core.model import GatewayKeys
from fabric.core.settings import GatewaySettings
from fabric.gateway.server import Gateway
from fabric.wire.methods import METHODS
from tests.support.eventually import eventually, scaled
from tests.support.fake_fabric import HOST
from tests.support.raw_calls import RawCaller

NOBODY = "127.0.0.1:1"


async def test_a_registry_that_comes_back_is_waited_for(client, fabric):
    fabric.away = 3
    shell = await client.open()
    assert fabric.away == 0
    assert len(fabric.sessions) == 1
    assert "hi" in (await shell.send("echo hi")).viewport


async def test_a_fabric_that_has_answered_is_waited_for_longer_than_one_nobody_has_seen(
    client, fabric
):
    """As long as the registry or a gateway takes to be started again, and some more."""
    fabric.away = FIRST_TRIES + 2
    assert REPEAT_S == client.calls.link._repeat_s >= 15
    await client.open()
    assert fabric.away == 0


async def test_a_registry_that_stays_away_is_reported_in_bounded_time(client, fabric):
    fabric.away, link = 1000, client.calls.link
    link._repeat_s = 0.5
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(RegistryUnavailableError):
        await client.open()
    assert loop.time() - began < scaled(3)
    assert 2 <= 1000 - fabric.away < FIRST_TRIES
    fabric.away = 0


async def test_a_gateway_that_is_started_again_is_waited_for(client, gateway, fabric):
    """Where its supervisor starts it: on the same port, and later than a few tries take."""
    shell = await client.open()
    await gateway.stop(drain_s=0.1)
    link = client.calls.link
    asked = asyncio.create_task(shell.status())
    refused = link._move_from
    tries = 0

    def counted(index: int) -> None:
        nonlocal tries
        tries += 1
        refused(index)

    link._move_from = counted
    await eventually(lambda: tries > FIRST_TRIES, within=15)
    again = Gateway(GatewaySettings(listen=gateway.address), fabric, fabric, host=HOST)
    await again.start()
    assert (await asked).session_id == shell.id
    await client.stop()
    await again.stop(drain_s=0.5)


async def test_a_tail_moves_a_cursor_and_is_tried_again_under_its_id(client, fabric, monkeypatch):
    shell = await client.open()
    asked = []

    async def away(*arguments: object) -> None:
        asked.append(arguments)
        raise RegistryUnavailableError("away")

    monkeypatch.setattr(fabric, "tail", away)
    client.calls.link._repeat_s = 0.5
    with pytest.raises(RegistryUnavailableError):
        await shell.tail()
    assert len(asked) > 1
    assert len({arguments[-1] for arguments in asked}) == 1


async def test_other_errors_are_not_tried_again(client, fabric):
    with pytest.raises(SessionNotFoundError):
        await client.session(new_session_id()).send("echo hi")
    assert len(fabric.forwarded) == 1


async def test_a_repeat_joins_the_call_that_still_runs(client, fabric):
    shell = await client.open()
    name = RequestId("joined")
    first = asyncio.create_task(shell.send("sleep 1000", request_id=name))
    terminal = fabric.sessions[shell.id].terminal
    await eventually(lambda: terminal.busy)
    second = asyncio.create_task(shell.send("sleep 1000", request_id=name))
    await eventually(lambda: len(fabric.forwarded) == 2)
    await shell.signal("SIGINT")
    assert await first == await second
    assert len(fabric.sends) == 1


async def test_the_next_address_is_used_when_one_does_not_answer(gateway, fabric, settings):
    other = Gateway(settings, fabric, fabric, host=HOST)
    await other.start()
    addresses = (NOBODY, gateway.address, other.address)
    async with FabricClient.connect(addresses, agent="me") as client:
        assert client.calls.link.address == gateway.address
        shell = await client.open()
        await gateway.stop()
        assert "over there" in (await shell.send("echo over there")).viewport
        assert client.calls.link.address == other.address
    await other.stop()


async def test_nobody_there_is_reported_soon():
    """In less than what a fabric that has answered is waited for."""
    with pytest.raises(GatewayUnavailableError):
        async with FabricClient.connect(NOBODY):
            pass


async def test_any_gateway_accepts_the_token_of_another(gateway, fabric, settings):
    other = Gateway(settings, fabric, fabric, host=HOST)
    await other.start()
    async with FabricClient.connect(gateway.address, agent="me") as first:
        shell = await first.open()
        async with FabricClient.connect(other.address, owner_token=first.owner_token) as second:
            assert "shared" in (await second.session(shell.id).send("echo shared")).viewport
    await other.stop()


async def test_a_gateway_asks_for_keys_it_has_not_seen(gateway, fabric, settings):
    fabric.keys = GatewayKeys(("n" * 48, *fabric.keys.token_keys), fabric.keys.peer_key)
    newer = Gateway(settings, fabric, fabric, host=HOST)
    await newer.start()
    joins = fabric.joins
    async with (
        FabricClient.connect(newer.address, agent="me", keep=True) as first,
        FabricClient.connect(gateway.address, owner_token=first.owner_token) as second,
    ):
        assert second.owner.owner_id == first.owner.owner_id
    assert fabric.joins == joins + 1
    await newer.stop()


async def test_a_burst_of_calls_is_served_whole(gateway, client):
    shell = await client.open()
    async with RawCaller(gateway.address) as raw:
        raw.owner_token = client.owner_token
        request = terminal_service_pb2.StatusRequest(session_id=shell.id)
        calls = [raw.start("TerminalService.Status", request, timeout=60) for _ in range(4000)]
        answers = await asyncio.gather(*calls)
    assert {answer.session.session_id for answer in answers} == {shell.id}


@pytest.mark.parametrize("repeat", [True, False])
async def test_a_call_that_was_dropped_on_its_way_is_tried_again_where_it_may_be(repeat):
    method, calls = METHODS["TerminalService.List"], 0

    async def drops_the_first(raw: bytes, context: grpc.aio.ServicerContext) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 1:
            await context.abort(grpc.StatusCode.CANCELLED, "")
        return b""

    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(drops_the_first)
    server.add_registered_method_handlers(method.service, {method.name: handler})
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    link = Link((f"127.0.0.1:{port}",))
    call = link.unary(method, method.request(), (), 10, repeat=repeat)
    if repeat:
        assert not (await call).sessions
    else:
        with pytest.raises(GatewayUnavailableError, match="dropped"):
            await call
    assert calls == 1 + repeat
    await link.close()
    await server.stop(None)
