"""Tool calls that break off wait for their repeat; those that are given up end at once."""

import asyncio
import json
import time

import pytest

from fabric.api.v1 import tool_service_pb2 as pb
from fabric.client import FabricClient, tooling
from fabric.core.ids import new_request_id
from fabric.core.settings import GatewaySettings
from tests.support.eventually import eventually
from tests.support.raw_calls import RawCaller

GRACE_S = 5.0


@pytest.fixture
def settings() -> GatewaySettings:
    return GatewaySettings(listen="127.0.0.1:0", drain_s=2.0, abandon_grace_s=GRACE_S)


async def test_a_tool_send_that_broke_off_is_joined_by_its_repeat(gateway, fabric):
    async with RawCaller(gateway.address) as raw:
        await raw.acquire()
        session_id = await raw.open()
        terminal = fabric.sessions[session_id].terminal
        call = pb.CallToolRequest(
            request_id="r1",
            name="terminal_send",
            arguments_json=json.dumps({"sessionId": session_id, "text": "sleep 1000"}),
        )
        first = raw.start("ToolService.CallTool", call, timeout=60)
        await eventually(lambda: terminal.busy)
        first.cancel()
        second = raw.start("ToolService.CallTool", call, timeout=60)
        await eventually(lambda: len(fabric.forwarded) == 2)
        assert terminal.cancelled == 0
        terminal.interrupted.set()
        assert "[wait: " in (await second).text
        assert len(fabric.sends) == 1
        await eventually(lambda: gateway.active_calls == 0)


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_tool_send_that_is_given_up_is_interrupted_at_once(gateway, fabric, streamed):
    async with FabricClient.connect(gateway.address) as client:
        shell = await client.open()
        terminal = fabric.sessions[shell.id].terminal
        args = {"sessionId": shell.id, "text": "sleep 1000"}

        async def call():
            if not streamed:
                return await client.call_tool("terminal_send", args)
            stream = tooling.stream_tool(client.calls, "terminal_send", args, new_request_id())
            return [event async for event in stream]

        task = asyncio.create_task(call())
        await eventually(lambda: terminal.busy)
        started = time.monotonic()
        task.cancel()
        await asyncio.wait({task})
        await eventually(lambda: terminal.cancelled == 1)
        assert time.monotonic() - started < GRACE_S / 2
        await eventually(lambda: gateway.active_calls == 0)
