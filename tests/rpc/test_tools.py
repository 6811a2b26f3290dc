"""A model's calls over real gRPC, before the whole product in one process."""

import asyncio
import json

import pytest

from fabric.client import tooling
from fabric.core.errors import InvalidRequestError
from fabric.core.ids import new_request_id
from tests.support.local_fabric import local_fabric


@pytest.fixture
async def client():
    async with local_fabric() as fabric, fabric.client() as client:
        yield client


async def test_the_tools_come_with_closed_schemas_and_guidance(client):
    tools, guidance = await client.list_tools()
    names = [tool.name for tool in tools]
    assert names[:2] == ["terminal_open", "terminal_send"]
    assert all(tool.parameters["additionalProperties"] is False for tool in tools)
    assert "inferred_idle" in guidance
    only, _ = await client.list_tools("task")
    assert [tool.name for tool in only] == ["task_output", "task_list", "task_kill"]
    with pytest.raises(InvalidRequestError):
        await client.list_tools("nonsense")


async def test_a_model_drives_a_shell_by_calls_alone(client):
    opened = await client.call_tool("terminal_open", {"type": "shell", "name": "main"})
    assert opened.text.startswith("started terminal session ses_")
    session_id = opened.value["sessionId"]
    sent = await client.call_tool(
        "terminal_send", {"sessionId": session_id, "text": "echo $((6*7))"}
    )
    assert "\n42\n" in sent.text
    assert sent.text.endswith("\n[wait: stdin_read]\n[session: running]")
    assert (sent.card, sent.title) == ("terminal", "echo $((6*7))")
    page = await client.call_tool("terminal_read", {"sessionId": session_id, "count": 2})
    assert page.text.endswith("]")
    listed = await client.call_tool("terminal_list")
    assert session_id in listed.text
    closed = await client.call_tool("terminal_close", {"sessionId": session_id})
    assert closed.text == f"closed terminal session {session_id}"
    again = await client.call_tool("terminal_close", {"sessionId": session_id})
    assert again.is_error
    assert again.value["error"]["reason"] == "SESSION_NOT_FOUND"


async def test_a_background_send_is_collected_by_calls_alone(client):
    opened = await client.call_tool("terminal_open", {"type": "shell"})
    session_id = opened.value["sessionId"]
    args = {"sessionId": session_id, "text": "echo part-$((3*3))", "run_in_background": True}
    started = await client.call_tool("terminal_send", args)
    task_id = started.value["taskId"]
    assert started.text == f"started background task {task_id}"
    output = await client.call_tool("task_output", {"task_id": task_id, "wait": True})
    assert "part-9" in output.text
    assert output.text.endswith("[status: completed, wait: stdin_read]")
    empty = await client.call_tool("task_output", {"task_id": task_id})
    assert empty.text.startswith("(no new output)\n[status: completed")


async def test_faults_are_answers_with_a_reason(client):
    bad = await client.call_tool("terminal_send", {"sessionId": 1, "bogus": 2})
    assert bad.is_error
    assert bad.value["error"]["reason"] == "INVALID_ARGS"
    assert 'unknown property "bogus"; missing required property "text"' not in bad.text
    for fault in ('unknown property "bogus"', '"sessionId" must be a string', '"text"'):
        assert fault in bad.text
    assert (await client.call_tool("nonsense")).value["error"]["reason"] == "UNKNOWN_TOOL"


async def test_a_repeated_call_has_one_effect(client):
    opened = await client.call_tool("terminal_open", {"type": "shell"})
    session_id = opened.value["sessionId"]
    args = {"sessionId": session_id, "text": "N=$((N+1)); echo n=$N"}
    request_id = new_request_id()
    first = await client.call_tool("terminal_send", args, request_id=request_id)
    again = await client.call_tool("terminal_send", args, request_id=request_id)
    assert first == again
    assert json.dumps(first.value)


async def test_a_long_call_reports_progress_and_then_its_answer(client):
    opened = await client.call_tool("terminal_open", {"type": "shell"})
    args = {"sessionId": opened.value["sessionId"], "text": "sleep 1.5; echo end-$((4*4))"}
    events = [
        event
        async for event in tooling.stream_tool(
            client.calls, "terminal_send", args, new_request_id()
        )
    ]
    assert isinstance(events[0], float)
    assert "end-16" in events[-1].text


async def test_leaving_a_call_interrupts_the_program(client):
    opened = await client.call_tool("terminal_open", {"type": "shell"})
    session_id = opened.value["sessionId"]
    stream = tooling.stream_tool(
        client.calls,
        "terminal_send",
        {"sessionId": session_id, "text": "sleep 1000"},
        new_request_id(),
    )
    assert isinstance(await anext(stream), float)
    await stream.aclose()
    async with asyncio.timeout(10):
        while (
            await client.call_tool("terminal_send", {"sessionId": session_id, "text": ""})
        ).is_error:
            pass
    status = await client.call_tool("terminal_send", {"sessionId": session_id, "text": "echo s=$?"})
    assert "s=130" in status.text or "s=0" in status.text
