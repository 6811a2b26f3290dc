"""Callers that go away and deadlines that run out."""

import asyncio

import pytest
from google.protobuf.duration_pb2 import Duration

from fabric.api.v1 import fabric_service_pb2, pty_service_pb2, terminal_service_pb2, types_pb2
from fabric.client.calls import GIVE_UP_S
from fabric.core.errors import DeadlineError, SendActiveError
from fabric.core.ids import new_request_id
from fabric.core.settings import GatewaySettings
from fabric.gateway.server import Gateway
from tests.support.eventually import eventually, scaled
from tests.support.fake_fabric import HOST
from tests.support.local_fabric import local_fabric
from tests.support.raw_calls import RawCaller


@pytest.fixture
async def raw(gateway):
    async with RawCaller(gateway.address) as raw:
        await raw.acquire()
        yield raw


def _send(session_id: str, line: str, timeout_s: int | None = None):
    return terminal_service_pb2.SendRequest(
        request_id=new_request_id(),
        session_id=session_id,
        data=line.encode(),
        timeout=None if timeout_s is None else Duration(seconds=timeout_s),
    )


async def test_cancelling_a_send_reaches_the_session_and_its_clean_up_is_awaited(
    client, fabric, gateway
):
    fabric.clean_up_held = asyncio.Event()
    shell = await client.open()
    terminal = fabric.sessions[shell.id].terminal
    send = asyncio.create_task(shell.send("sleep 1000"))
    await eventually(lambda: terminal.busy)
    send.cancel()
    with pytest.raises(asyncio.CancelledError):
        await send
    await eventually(lambda: terminal.cancelled == 1)
    assert gateway.active_calls == 1, "the call lasts until its clean-up has ended"
    fabric.clean_up_held.set()
    await eventually(lambda: terminal.cleaned == 1 and gateway.active_calls == 0)
    assert "back" in (await shell.send("echo back")).viewport


async def test_a_caller_that_vanishes_cancels_its_send(gateway, client, fabric):
    async with RawCaller(gateway.address) as raw:
        await raw.acquire()
        session_id = await raw.open()
        terminal = fabric.sessions[session_id].terminal
        call = raw.start("TerminalService.Send", _send(session_id, "sleep 1000"), timeout=600)
        await eventually(lambda: terminal.busy)
    await eventually(lambda: terminal.cleaned == 1 and not terminal.busy)
    assert call.done()


async def test_a_wait_ends_below_the_deadline_of_its_call(raw):
    session_id = await raw.open()
    response = await raw.call(
        "TerminalService.Send", _send(session_id, "sleep 1000", 60), timeout=0.8
    )
    assert response.wait_reason == types_pb2.WAIT_REASON_TIMEOUT
    assert response.elapsed.seconds + 0.8 > 0.3  # it answered at all, in time


async def test_a_deadline_without_room_is_refused_before_anything_is_written(raw, fabric):
    session_id = await raw.open()
    with pytest.raises(DeadlineError, match="leaves no time"):
        await raw.call("TerminalService.Send", _send(session_id, "echo no"), timeout=0.2)
    assert fabric.sends == []
    assert fabric.sessions[session_id].terminal.text() == "$ "


async def test_a_timeout_below_the_deadline_is_left_alone(raw, fabric):
    session_id = await raw.open()
    await raw.call("TerminalService.Send", _send(session_id, "echo", 2), timeout=10)
    await raw.call("TerminalService.Send", _send(session_id, "echo"), timeout=100)
    await raw.call("TerminalService.Send", _send(session_id, "echo"), timeout=10)
    timeouts = [send.timeout_s for send in fabric.sends]
    assert timeouts[0] == 2.0
    assert timeouts[1] is None, "the server's own default fits"
    assert 9 < timeouts[2] < 9.75


async def test_a_call_without_a_deadline_is_bounded_by_the_server(gateway, fabric, monkeypatch):
    settings = GatewaySettings("127.0.0.1:0", default_deadline_s=0.3)
    short = Gateway(settings, fabric, fabric, host=HOST)

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(fabric, "nodes", never)
    await short.start()
    async with RawCaller(short.address) as raw:
        with pytest.raises(DeadlineError, match="longer than"):
            await raw.call(
                "FabricService.ListNodes", fabric_service_pb2.ListNodesRequest(), timeout=None
            )
    await short.stop()


async def test_a_thousand_cancelled_calls_leave_nothing(raw, gateway, fabric):
    session_id = await raw.open()
    terminal = fabric.sessions[session_id].terminal
    before = len(asyncio.all_tasks())
    for _ in range(10):
        calls = [
            raw.start(
                "TerminalService.WaitFor",
                terminal_service_pb2.WaitForRequest(session_id=session_id, exit=True),
                timeout=60,
            )
            for _ in range(60)
        ]
        calls += [
            raw.start("PtyService.Follow", pty_service_pb2.FollowRequest(session_id=session_id))
            for _ in range(30)
        ]
        calls += [
            raw.start("TerminalService.Send", _send(session_id, "sleep 1000"), timeout=60)
            for _ in range(10)
        ]
        await eventually(lambda: gateway.active_calls >= 91)
        for call in calls:
            call.cancel()
        await eventually(lambda: gateway.active_calls == 0, within=10)
    await eventually(lambda: len(asyncio.all_tasks()) <= before)
    assert not terminal.busy
    assert terminal.cancelled == terminal.cleaned == 10
    assert (
        "alive"
        in (await raw.call("TerminalService.Send", _send(session_id, "echo alive"))).viewport
    )


async def test_a_stream_that_is_left_ends_at_the_server(client, gateway):
    shell = await client.open()
    stream = shell.follow(0)
    await anext(stream)
    assert gateway.active_calls == 1
    await stream.aclose()
    await eventually(lambda: gateway.active_calls == 0)


async def test_a_stream_says_what_is_missing(client, fabric):
    shell = await client.open()
    terminal = fabric.sessions[shell.id].terminal
    stream = shell.follow(0)
    first = await anext(stream)
    terminal.print("x" * 100)
    terminal.drop(50)
    second = await anext(stream)
    assert second.offset == 50 > first.next_offset
    assert second.oldest_offset == 50
    await stream.aclose()


@pytest.mark.parametrize(
    "line",
    [
        "sleep 1000",
        "python3 -c 'import time; time.sleep(99)'",
        "trap 'echo caught' INT; sleep 1000",
    ],
)
async def test_after_a_cancel_the_terminal_is_free_for_its_caller(line):
    """The next send of the same caller is never refused as one too many; real shells."""
    async with local_fabric() as fabric, fabric.client() as client:
        shell = await client.open("shell")
        for number in range(8):
            send = asyncio.create_task(shell.send(line, timeout_s=60))
            await eventually(_busy(shell))
            send.cancel()
            with pytest.raises(asyncio.CancelledError):
                await send
            assert f"next-{number}" in (await shell.send(f"echo next-$(({number}))")).viewport


async def test_a_cancel_of_a_program_that_does_not_stop_is_bounded_and_a_second_one_is_immediate():
    async with local_fabric() as fabric, fabric.client() as client:
        shell = await client.open("shell")
        line = "trap '' INT; while :; do echo on; sleep 0.05; done"
        loop = asyncio.get_running_loop()
        first = asyncio.create_task(shell.send(line, timeout_s=60))
        await eventually(_busy(shell))
        began = loop.time()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert loop.time() - began < scaled(GIVE_UP_S + 1)
        with pytest.raises(SendActiveError):
            await shell.send("echo no")
        again = asyncio.create_task(_cancelled_open(client))
        await asyncio.wait({again})
        assert again.result() < scaled(1), "cancelling twice waits for nothing"


async def _cancelled_open(client):
    """Cancel an open twice; return how long that took in seconds."""
    loop = asyncio.get_running_loop()
    opening = asyncio.create_task(client.open("shell", command="sleep 1000"))
    await eventually(lambda: len(client.calls.link._calls) > 0)
    began = loop.time()
    opening.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    return loop.time() - began


def _busy(shell):
    async def busy():
        return (await shell.status()).busy

    return busy
