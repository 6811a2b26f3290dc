"""Who controls, who only reads, who comes back."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from fabric.core.model import WaitReason
from tests.support.eventually import eventually
from tests.support.local_fabric import local_fabric
from tests.support.page import page

LATER = "print(chr(35) * 3, flush=True); time.sleep(30)"
# What a person takes over: it goes on when the file is there, so not before they have.
PROGRAM = """python3 -c "import os,time
while not os.path.exists('{go}'): time.sleep(.01)
{then}"
"""


@pytest.fixture
def go(tmp_path):
    return tmp_path / "go"


async def _link(client, **options):
    return (await client.view_ticket(**options)).url


async def _started(client, view, go, then):
    text = PROGRAM.format(go=go, then=then)
    sending = asyncio.create_task(client.shared.send(text, submit=False))
    await view.until("status", holder="model-send")
    await eventually(lambda: view.status["takeover"] is not None)
    return sending, view.status["takeover"]


async def _take_over(client, view, go, then="print(input())"):
    sending, target = await _started(client, view, go, then)
    await view.send("human.takeover", target=target)
    lease = (await view.until("human.granted"))["lease"]
    assert (await sending).wait_reason is WaitReason.HUMAN_HANDOFF
    go.touch()
    return lease


async def test_the_second_view_reads_and_may_not_act(client):
    async with page(await _link(client)) as first, page(await _link(client)) as second:
        await first.until("attached", role="controller")
        told = await second.until("attached", role="readonly")
        assert told["reason"] == "occupied"
        await second.send("human.begin", data="x")
        assert await second.closed() == 1008
        await first.send("human.begin", data="echo ok\r")
        await first.shows("ok\r\n")


@pytest.mark.parametrize(
    "frame",
    [
        {"kind": "human.input", "data": "x"},
        {"kind": "human.takeover", "target": 1},
        {"kind": "human.cancel"},
        {"kind": "terminal.reset", "confirmed": True},
        {"kind": "watch", "session": "ses_x"},
    ],
)
async def test_a_reader_that_acts_is_closed(client, frame):
    async with page(await _link(client, readonly=True)) as view:
        told = await view.until("attached")
        assert (told["role"], told["reason"]) == ("readonly", "readonly")
        await view.send(**frame)
        assert await view.closed() == 1008


async def test_both_views_see_the_model_and_only_one_takes_over(client, go):
    async with page(await _link(client)) as first, page(await _link(client)) as second:
        await first.until("attached", role="controller")
        await second.until("attached", role="readonly")
        sending, target = await _started(client, first, go, "print(input())")
        await second.until("status", holder="model-send")
        await first.send("human.takeover", target=target + 1)
        assert (await first.until("error"))["reason"] == "SESSION_STATE"
        assert (await first.until("human.revoked"))["reason"] == "refused"
        await first.send("human.takeover", target=target)
        await first.until("human.granted")
        await second.until("status", holder="human")
        assert (await sending).wait_reason is WaitReason.HUMAN_HANDOFF
        go.touch()
        await first.send("human.input", data="there\r")
        await second.shows("there\r\nthere")
        await second.until("status", queue="ready")


async def test_what_is_typed_while_the_model_works_is_never_run(client, go):
    async with page(await _link(client)) as view:
        await view.until("attached")
        sending, _ = await _started(client, view, go, "print(1)")
        await view.send("human.begin", data="echo refused\r")
        assert (await view.until("error"))["reason"] == "SESSION_STATE"
        await view.until("human.revoked", reason="refused")
        go.touch()
        assert (await sending).wait_reason is WaitReason.PROMPT
        assert "refused" not in (await client.shared.send("true")).state.viewport


async def test_input_after_the_lease_is_an_error_and_before_any_a_violation(client):
    async with page(await _link(client)) as view:
        await view.until("attached")
        await view.send("human.begin", data="echo one\r")
        await view.until("human.revoked", reason="prompt")
        await view.send("human.input", data="echo two\r")
        assert (await view.until("error"))["reason"] == "NOT_CONTROLLER"
        assert b"two" not in view.painted
    async with page(await _link(client, readonly=True)) as reader:
        await reader.until("attached")
    other = local_fabric(node__warm_sessions="1")
    async with other as fabric, fabric.client() as mine, page(await _link(mine)) as view:
        await view.until("attached", role="controller")
        await view.send("human.input", data="x")
        assert await view.closed() == 1008


async def test_an_interrupt_ends_the_program_and_the_lease(client, go):
    async with page(await _link(client)) as view:
        await view.until("attached")
        await _take_over(client, view, go, LATER)
        await view.shows("###")
        await view.send("human.cancel")
        assert (await view.until("human.revoked"))["reason"] == "cancelled"
        await view.until("status", queue="ready")
        await view.shows("KeyboardInterrupt")
        await view.send("human.cancel")
        assert (await view.until("error"))["reason"] == "NOT_CONTROLLER"


async def test_within_the_grace_the_same_lease_goes_on(fabric, client, go):
    async with page(await _link(client)) as view:
        await view.until("attached")
        lease = await _take_over(client, view, go)
        await view.send("human.input", data="half ")
        resume = view.attached["resume"]
        await view.socket.close()
    async with page(fabric.url, resume=resume) as view:
        told = await view.until("attached", role="controller")
        assert told["resume"] != resume
        assert (await view.until("human.granted"))["lease"] == lease
        await view.send("human.input", data="and half\r")
        await view.shows("and half\r\nhalf and half")
        await view.until("human.revoked", reason="prompt")
    async with page(fabric.url, resume=resume) as view:
        assert await view.closed() == 4003


async def test_a_page_that_comes_back_early_replaces_its_old_connection(fabric, client):
    async with page(await _link(client)) as old:
        await old.until("attached")
        async with page(fabric.url, resume=old.attached["resume"]) as new:
            await new.until("attached", role="controller")
            assert await old.closed() == 4004
            await new.send("human.begin", data="echo ok\r")
            await new.shows("ok\r\n")


async def test_beyond_the_grace_the_program_is_interrupted_and_the_place_is_free(go):
    short = local_fabric(node__warm_sessions="1", worker__shared__disconnect_grace_s="0.4")
    async with AsyncExitStack() as stack:
        fabric = await stack.enter_async_context(short)
        client = await stack.enter_async_context(fabric.client())
        controller = await stack.enter_async_context(page(await _link(client)))
        other = await stack.enter_async_context(page(await _link(client)))
        await controller.until("attached", role="controller")
        await other.until("attached", role="readonly")
        await _take_over(client, controller, go, LATER)
        await controller.shows("###")
        resume = controller.attached["resume"]
        await controller.socket.close()
        await other.until("status", holder="disconnect-recovery")
        await eventually(lambda: other.status["queue"] == "ready")
        await other.shows("KeyboardInterrupt")
        async with page(fabric.url, resume=other.attached["resume"]) as again:
            await again.until("attached", role="controller")
            async with page(fabric.url, resume=resume) as late:
                told = await late.until("attached", role="readonly")
                assert told["reason"] == "invalid-resume"


async def test_a_reset_closes_every_view_and_whoever_did_it_comes_back(fabric, client):
    async with page(await _link(client)) as view, page(await _link(client)) as reader:
        await view.until("attached", role="controller")
        await reader.until("attached", role="readonly")
        await view.send("terminal.reset", confirmed=True)
        assert await view.closed() == 4001
        assert await reader.closed() == 4001
        async with page(fabric.url, resume=view.attached["resume"]) as again:
            told = await again.until("attached", role="controller")
            assert told["generation"] == 2
            await again.send("heartbeat", generation=1)
            assert await again.closed() == 1008


async def test_a_closed_terminal_and_a_released_owner_end_their_views(fabric, client):
    async with page(await _link(client)) as view:
        await view.until("attached")
        info = (await client.list())[0]
        await client.session(info.session_id).close()
        assert await view.closed() == 4002
    async with page(fabric.url, resume=view.attached["resume"]) as again:
        assert await again.closed() == 4003


async def test_the_shells_end_keeps_the_screen_and_a_reset_brings_it_back(client):
    async with page(await _link(client)) as view:
        await view.until("attached")
        await view.send("human.begin", data="echo last; exit 3\r")
        assert (await view.until("human.revoked"))["reason"] == "session_exit"
        told = await view.until("status", queue="exited")
        assert told["process"] == "exited"
        await view.shows("last\r\n")
        await view.send("human.begin", data="x")
        assert (await view.until("error"))["reason"] == "SESSION_EXITED"
        await view.send("terminal.reset", confirmed=True)
        assert await view.closed() == 4001


async def test_each_interaction_is_told_once_even_over_two_connections(fabric, client, go):
    events = []

    async def collect():
        async for event in client.events(0):
            if event.kind.value == "human_handback":
                events.append(event)

    collecting = asyncio.create_task(collect())
    try:
        async with page(await _link(client)) as view:
            await view.until("attached")
            await _take_over(client, view, go, "input(); print(input())")
            await view.send("human.input", data="one\r")
            resume = view.attached["resume"]
        async with page(fabric.url, resume=resume) as view:
            await view.until("human.granted")
            await view.send("human.input", data="two\r")
            await view.until("human.revoked", reason="prompt")
            await eventually(lambda: events)
            await view.send("human.begin", data="true\r")
            await eventually(lambda: len(events) == 2)
    finally:
        collecting.cancel()
        await asyncio.gather(collecting, return_exceptions=True)
    assert "two" not in repr(events)
