"""A call that broke off and one that was given up are different things."""

import asyncio

import pytest

from fabric.api.v1 import terminal_service_pb2
from fabric.client import FabricClient
from fabric.core.errors import DeadlineError
from fabric.core.ids import RequestId
from fabric.core.settings import GatewaySettings
from fabric.gateway.server import Gateway
from tests.support.eventually import eventually
from tests.support.fake_fabric import HOST
from tests.support.raw_calls import RawCaller


@pytest.fixture
def settings() -> GatewaySettings:
    return GatewaySettings(listen="127.0.0.1:0", drain_s=2.0, abandon_grace_s=5.0)


@pytest.fixture
async def raw(gateway):
    async with RawCaller(gateway.address) as raw:
        await raw.acquire()
        yield raw


def _send(session_id: str, request_id: str):
    return terminal_service_pb2.SendRequest(
        request_id=request_id, session_id=session_id, data=b"sleep 1000"
    )


def _cancel(request_id: str):
    return terminal_service_pb2.CancelCallRequest(request_id=request_id)


async def test_a_send_that_broke_off_is_joined_by_its_repeat(raw, fabric, gateway):
    session_id = await raw.open()
    terminal = fabric.sessions[session_id].terminal
    first = raw.start("TerminalService.Send", _send(session_id, "r1"), timeout=60)
    await eventually(lambda: terminal.busy)
    first.cancel()
    second = raw.start("TerminalService.Send", _send(session_id, "r1"), timeout=60)
    await eventually(lambda: len(fabric.forwarded) == 2)
    assert terminal.cancelled == 0
    terminal.interrupted.set()
    assert (await second).viewport
    assert len(fabric.sends) == 1
    await eventually(lambda: gateway.active_calls == 0)


async def test_a_repeat_may_come_to_another_gateway(raw, fabric, gateway, settings):
    other = Gateway(settings, fabric, fabric, host=HOST)
    await other.start()
    session_id = await raw.open()
    terminal = fabric.sessions[session_id].terminal
    first = raw.start("TerminalService.Send", _send(session_id, "r1"), timeout=60)
    await eventually(lambda: terminal.busy)
    first.cancel()
    async with RawCaller(other.address) as elsewhere:
        elsewhere.owner_token = raw.owner_token
        second = elsewhere.start("TerminalService.Send", _send(session_id, "r1"), timeout=60)
        await eventually(lambda: len(fabric.forwarded) == 2)
        terminal.interrupted.set()
        assert (await second).viewport
    assert len(fabric.sends) == 1
    await other.stop()


@pytest.mark.parametrize("first_word", ["break", "give up"])
async def test_a_send_that_was_given_up_ends_at_once(raw, fabric, gateway, first_word):
    session_id = await raw.open()
    terminal = fabric.sessions[session_id].terminal
    call = raw.start("TerminalService.Send", _send(session_id, "r1"), timeout=60)
    await eventually(lambda: terminal.busy)
    if first_word == "break":
        call.cancel()
    answer = await raw.call("TerminalService.CancelCall", _cancel("r1"))
    assert answer.found
    call.cancel()
    await eventually(lambda: terminal.cleaned == 1 and gateway.active_calls == 0, within=2)


async def test_nobody_coming_back_is_a_cancellation(fabric):
    gateway = Gateway(
        GatewaySettings(listen="127.0.0.1:0", abandon_grace_s=0.1), fabric, fabric, host=HOST
    )
    await gateway.start()
    async with RawCaller(gateway.address) as raw:
        await raw.acquire()
        session_id = await raw.open()
        terminal = fabric.sessions[session_id].terminal
        call = raw.start("TerminalService.Send", _send(session_id, "r1"), timeout=60)
        await eventually(lambda: terminal.busy)
        call.cancel()
        await eventually(lambda: terminal.cleaned == 1 and gateway.active_calls == 0)
    await gateway.stop()


async def test_giving_up_a_call_of_another_owner_finds_nothing(raw, fabric, gateway):
    session_id = await raw.open()
    terminal = fabric.sessions[session_id].terminal
    call = raw.start("TerminalService.Send", _send(session_id, "r1"), timeout=60)
    await eventually(lambda: terminal.busy)
    async with RawCaller(gateway.address) as other:
        await other.acquire("another")
        assert not (await other.call("TerminalService.CancelCall", _cancel("r1"))).found
    assert terminal.busy
    await raw.call("TerminalService.CancelCall", _cancel("r1"))
    call.cancel()
    await eventually(lambda: terminal.cleaned == 1)


async def test_a_caller_that_stays_is_not_ended_by_one_that_gives_up(raw, client, fabric):
    shell = await client.open()
    terminal = fabric.sessions[shell.id].terminal
    name = RequestId("joined")
    stays = asyncio.create_task(shell.send("sleep 1000", request_id=name))
    await eventually(lambda: terminal.busy)
    leaves = asyncio.create_task(shell.send("sleep 1000", request_id=name))
    await eventually(lambda: len(fabric.forwarded) == 2)
    leaves.cancel()
    await asyncio.wait({leaves})
    await shell.signal("SIGINT")
    assert (await stays).viewport
    assert len(fabric.sends) == 1


async def test_a_deadline_that_runs_out_in_the_client_gives_the_send_up(
    gateway, client, fabric, monkeypatch
):
    shell = await client.open()
    terminal = fabric.sessions[shell.id].terminal
    real = client.calls.link.unary

    async def impatient(method, request, headers, timeout_s, *, repeat):
        limit = 0.5 if method.name == "Send" else timeout_s
        return await real(method, request, headers, limit, repeat=repeat)

    monkeypatch.setattr(client.calls.link, "unary", impatient)
    # The gateway would answer a little earlier; one that hangs does not.
    monkeypatch.setattr("fabric.gateway.calls.Call.wait_s", lambda *_: 600.0)
    with pytest.raises(DeadlineError):
        await shell.send("sleep 1000")
    await eventually(lambda: terminal.cleaned == 1, within=2)


async def test_leaving_the_client_tells_the_server_first(gateway, fabric):
    async with FabricClient.connect(gateway.address, agent="me", keep=True) as client:
        shell = await client.open()
        terminal = fabric.sessions[shell.id].terminal
        send = asyncio.create_task(shell.send("sleep 1000"))
        await eventually(lambda: terminal.busy)
        send.cancel()
        await asyncio.wait({send})
    await eventually(lambda: terminal.cleaned == 1, within=2)
