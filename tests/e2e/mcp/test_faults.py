"""What goes wrong is said in a sentence, and the server goes on."""

import asyncio
import json
import signal
import socket
import sys

import pytest

from tests.support.command import Command
from tests.support.eventually import eventually, scaled
from tests.support.local_fabric import local_fabric

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def called(name, number=2, **arguments):
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


async def said(process, *messages):
    """Write messages and return the answer to the last one."""
    for message in messages:
        process.stdin.write(json.dumps(message).encode() + b"\n")
    await process.stdin.drain()
    async with asyncio.timeout(scaled(60)):
        while True:
            answer = json.loads(await process.stdout.readline())
            if answer.get("id") == messages[-1]["id"]:
                return answer["result"]


@pytest.fixture
async def piped(extra):
    """A server over standard input and output, spoken to line by line."""
    started = []

    async def start(*options, **environ):
        process = await extra.start("-m", "fabric.cli", "mcp", *options, **environ)
        started.append(process)
        await said(process, HELLO)
        process.stdin.write(json.dumps(READY).encode() + b"\n")
        return process

    yield start
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def test_without_the_extra_the_command_says_how_to_install_it(tmp_path):
    done = Command(tmp_path)("mcp", "--json")
    assert done.code != 0
    assert done.error["reason"] == "UNSUPPORTED"
    assert "pip install 'pty-fabric[mcp]'" in done.error["hint"]
    assert "pydantic" not in sys.modules


async def test_a_gateway_that_is_away_is_an_answer_and_may_come_back(extra, piped):
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    address = f"127.0.0.1:{port}"
    for era in ("legacy", "auto"):
        facts = await extra.scenario("away", "stdio", era, FABRIC_GATEWAY=address)
        assert facts["called"]["error"]
        assert facts["called"]["value"]["error"]["reason"] == "GATEWAY_UNAVAILABLE"
        assert facts["listed"]
    process = await piped(FABRIC_GATEWAY=address)
    assert (await said(process, called("terminal_list")))["isError"]
    async with local_fabric(gateway__listen=address, node__warm_sessions="0"):
        answer = await said(process, called("terminal_list", 3))
        assert answer["content"][0]["text"] == "(no terminal sessions)"
        process.stdin.close()
        assert await process.wait() == 0


async def test_an_owner_that_is_no_more_is_acquired_anew(piped, local):
    process = await piped("--agent", "bob")
    await said(process, called("terminal_list"))
    async with local.client("bob"):
        pass  # takes the name over and releases it
    answer = await said(process, called("terminal_list", 3))
    assert answer["structuredContent"]["error"]["reason"] in ("OWNER_NOT_LIVE", "UNAUTHENTICATED")
    assert "the next call starts anew" in answer["content"][0]["text"]
    answer = await said(process, called("terminal_list", 4))
    assert answer["content"][0]["text"] == "(no terminal sessions)"


async def test_a_named_agent_finds_its_terminals_again(piped):
    first = await piped("--mode", "danger-full-access", FABRIC_AGENT="carol")
    opened = await said(first, called("terminal_open", type="shell"))
    session = opened["structuredContent"]["sessionId"]
    first.stdin.close()
    assert await first.wait() == 0
    second = await piped(FABRIC_AGENT="carol")
    listed = await said(second, called("terminal_list"))
    assert session in listed["content"][0]["text"]


async def test_a_signal_ends_the_server_while_the_client_holds_the_line(piped, local):
    process = await piped("--mode", "danger-full-access")
    await said(process, called("terminal_open", type="shell"))
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(scaled(20)):
        assert await process.wait() == 130
    await eventually(lambda: not local.node._sessions, within=10)


async def test_what_is_no_message_harms_nobody(piped):
    process = await piped()
    process.stdin.write(b"\n{ this is no json\n\xff\xfe\n" + b"x" * 200_000 + b"\n")
    answer = await said(process, called("terminal_list"))
    assert answer["content"][0]["text"] == "(no terminal sessions)"


async def test_beyond_loopback_only_when_told(extra):
    process = await extra.start("-m", "fabric.cli", "mcp", "--http", "0.0.0.0:0")
    out, err = await process.communicate()
    assert process.returncode == 2
    assert out == b""
    assert b"in clear" in err


async def _post(url, message, *headers):
    """One POST by hand: the status line and the body."""
    host, _, path = url.removeprefix("http://").partition("/")
    name, _, port = host.partition(":")
    body = json.dumps(message).encode()
    head = [
        f"POST /{path} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *headers,
    ]
    reader, writer = await asyncio.open_connection(name, int(port))
    try:
        writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        async with asyncio.timeout(scaled(20)):
            raw = await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
    head, _, rest = raw.decode().partition("\r\n\r\n")
    fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
    return int(head.split()[1]), fields, rest


async def test_http_wants_the_callers_own_token_and_a_session_keeps_to_it(extra):
    async with extra.serving(FABRIC_TOKEN="the servers own") as url:
        status, fields, body = await _post(url, HELLO)
        assert status == 401
        assert fields["www-authenticate"] == "bearer"
        assert "Authorization: Bearer" in body
        status, fields, _ = await _post(url, HELLO, "Authorization: Bearer one")
        assert status == 200
        session = f"Mcp-Session-Id: {fields['mcp-session-id']}"
        call = called("terminal_list")
        for token, expected in (("two", 404), ("one", 200)):
            given = (session, f"Authorization: Bearer {token}", "MCP-Protocol-Version: 2025-06-18")
            status, _, body = await _post(url, call, *given)
            assert status == expected, body
        assert "(no terminal sessions)" in body


async def test_another_sites_page_cannot_speak_to_the_server(extra):
    async with extra.serving() as url:
        status, _, _ = await _post(url, HELLO, "Origin: http://evil.example")
        assert status == 403
