"""A page at the shared terminal, through the whole product in one process."""

import asyncio

from fabric.core.model import WaitReason
from tests.support.page import page


async def test_a_person_at_the_idle_prompt(client):
    link = await client.view_ticket()
    async with page(link.url) as view:
        attached = await view.until("attached")
        assert attached["role"] == "controller"
        assert attached["kind"] == "shared"
        assert attached["session"]["node"] == "local"
        assert attached["settings"]["cols"] == 160
        await view.until("status", queue="ready")
        await view.shows("$")
        await view.send("human.begin", data="e")
        await view.until("human.granted")
        await view.send("human.input", data="cho hi-$((40+2))\r")
        await view.shows("hi-42")
        assert (await view.until("human.revoked"))["reason"] == "prompt"
        await view.until("status", queue="ready")


async def test_a_take_over_and_the_models_answer(client):
    async with page((await client.view_ticket()).url) as view:
        await view.until("attached")
        text = "python3 -c 'import time; time.sleep(.5); print(input(), input())'"
        sending = asyncio.create_task(client.shared.send(text))
        target = await view.until("status", holder="model-send", queue="busy")
        while target["takeover"] is None:
            target = await view.until("status", len(view.all("status")) + 1, holder="model-send")
        await view.send("human.takeover", target=target["takeover"])
        await view.until("human.granted")
        assert (await sending).wait_reason is WaitReason.HUMAN_HANDOFF
        await view.send("human.input", data="grüße 😀\r")
        await view.send("human.input", data="漢字\r")
        await view.shows("grüße 😀 漢字")
        await view.until("human.revoked", reason="prompt")
