"""The byte surface through tools and through ``client.pty``: one core, the same cursors."""

import asyncio
import json
from pathlib import Path

import pytest

from fabric.client.ptys import PtyFacade
from fabric.core.errors import (
    CursorExpiredError,
    ForeignSessionError,
    InvalidRequestError,
    SendActiveError,
    SessionNotFoundError,
)
from tests.support.eventually import eventually
from tests.support.local_fabric import local_fabric


@pytest.fixture
async def fabric():
    async with local_fabric() as fabric:
        yield fabric


@pytest.fixture
async def client(fabric):
    async with fabric.client() as client:
        yield client


def lives(pid):
    return Path(f"/proc/{pid}").exists()


async def test_a_model_drives_a_program_by_the_four_tools(client):
    tools, _ = await client.list_tools("pty")
    assert [tool.name for tool in tools] == ["pty_open", "pty_send", "pty_tail", "pty_close"]
    opened = await client.call_tool("pty_open", {"command": "python3 -q"})
    assert json.loads(opened.text) == opened.value
    assert opened.value["initialOutput"].endswith(">>> ")
    assert opened.value["status"] == {"kind": "running"}
    session = {"id": opened.value["sessionId"]}
    sent = await client.call_tool("pty_send", {**session, "data": "print(1+1)"})
    assert "2" in sent.value["delta"].split("\n")
    tailed = await client.call_tool("pty_tail", session)
    assert tailed.text == ">>> print(1+1)\n2"
    again = await client.call_tool("pty_tail", session)
    assert (again.text, again.value) == (
        "(no new output)", {"text": "", "lines": 0, "truncated": False}
    )  # fmt: skip
    for closed in (True, False):
        answer = await client.call_tool("pty_close", session)
        assert answer.value == {"closed": closed}
    for name, args in (("pty_send", {**session, "data": ""}), ("pty_tail", session)):
        gone = await client.call_tool(name, args)
        assert gone.value["error"]["reason"] == "SESSION_NOT_FOUND"


async def test_variables_are_exported_before_the_command(client):
    opened = await client.call_tool(
        "pty_open",
        {
            "command": 'printf "%s|%s\\n" "$FOO" "$WEIRD"',
            "env": {"FOO": "bar baz", "WEIRD": "it's\tx"},
        },
    )
    assert "bar baz|it's\tx\n" in opened.value["initialOutput"]
    blank = await client.call_tool("pty_open", {"command": "  "})
    assert "command must be a non-empty string" in blank.text
    with pytest.raises(InvalidRequestError, match="command must be a non-empty string"):
        await client.pty.open(client, " ")
    assert len(await client.list()) == 1


async def test_variables_are_refused_where_no_shell_exports_them():
    settings = {"pty__backend_type": "python", "pty__tail_lines": "2"}
    async with local_fabric(**settings) as fabric, fabric.client() as client:
        with pytest.raises(InvalidRequestError, match="'python'"):
            await client.pty.open(client, "1", env={"A": "b"})
        opened = await client.pty.open(client, "for i in range(5): print(i)\n")
        assert "4" in opened.initial_output
        await client.pty.send(client, opened.session_id, "print('a\\nb\\nc')")
        page = await client.pty.tail(client, opened.session_id)
        assert (page.text, page.lines, page.truncated) == ("b\nc", 2, True)


async def test_facade_and_tools_move_one_cursor_and_nobody_else_may(fabric, client):
    opened = await client.pty.open(client, "cat")
    sent = await client.pty.send(client, opened.session_id, "ping-payload")
    assert sent.delta == "ping-payload\nping-payload\n"
    page = await client.call_tool("pty_tail", {"id": opened.session_id})
    assert page.value["lines"] == 2
    assert (await client.pty.tail(client, opened.session_id)).lines == 0
    await client.pty.send(client, opened.session_id, "x\ny", submit=False)
    async with fabric.client("other") as other:
        for call in (
            other.pty.send(other, opened.session_id, "x"),
            other.pty.tail(other, opened.session_id),
            other.pty.close(other, opened.session_id),
        ):
            with pytest.raises(ForeignSessionError):
                await call
        # The owner is whoever is named, not whose connection it is.
        assert (await other.pty.tail(client, opened.session_id)).text == "x\nyx"
        theirs = await client.pty.open(other, "cat")
        with pytest.raises(ForeignSessionError):
            await client.pty.tail(client, theirs.session_id)
    assert await client.pty.close(client, opened.session_id) is True
    assert await client.pty.close(client, opened.session_id) is False
    with pytest.raises(SessionNotFoundError):
        await client.pty.send(client, opened.session_id, "x")


async def test_disposal_closes_what_was_opened_here_and_no_more(client):
    kept = await client.open()
    facade = PtyFacade(client)
    opened = [await facade.open(client, "sleep 1000 & wait") for _ in range(2)]
    await facade.dispose()
    await facade.dispose()
    await eventually(lambda: not any(lives(item.pid) for item in opened))
    assert [info.session_id for info in await client.list()] == [kept.id]


async def test_a_cancelled_open_is_rolled_back(client):
    opening = asyncio.create_task(client.pty.open(client, "sleep 1000"))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await eventually(lambda: nothing(client))


async def nothing(client):
    return not await client.list()


async def test_a_second_send_is_refused(client):
    opened = await client.pty.open(client, "true")
    first = asyncio.create_task(client.pty.send(client, opened.session_id, "sleep 1000"))
    session = client.session(opened.session_id)
    await eventually(lambda: busy(session))
    with pytest.raises(SendActiveError):
        await client.pty.send(client, opened.session_id, "x")
    await session.signal("SIGINT")
    await first


async def busy(session):
    return (await session.status()).busy


async def test_the_session_chooses_its_terminal(client):
    opened = await client.pty.open(
        client, 'echo "$TERM $(stty size)"', term="xterm-256color", rows=7, cols=77
    )
    assert "xterm-256color 7 77" in opened.initial_output


# -- streams ----------------------------------------------------------------------------


async def test_a_stream_reads_frames_and_a_cancelled_read_loses_nothing(client):
    opened = await client.pty.open(client, "stty -echo; exec cat")
    at = opened.next_offset
    async with client.pty.stream(client, opened.session_id, offset=at) as stream:
        reading = asyncio.create_task(stream.readline())
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait({reading})
        await stream.writeline("one")
        await stream.write(b"two\nthree;four\n")
        assert await stream.readline() == b"one\r\n"
        assert await stream.readuntil(b"\n") == b"two\r\n"
        assert await stream.readuntil(b";") == b"three;"
        assert await stream.readexactly(4) == b"four"
        assert stream.offset == at + 20
        await stream.eof()
        assert await stream.readline() == b"\r\n"
        assert await stream.read() == b""
        assert stream.at_eof()


async def test_a_gap_ends_a_frame_and_is_raised_once():
    settings = {"worker__scrollback__bytelog_bytes": "65536"}
    async with local_fabric(**settings) as fabric, fabric.client() as client:
        opened = await client.pty.open(client, "seq 1 100000")
        async with client.pty.stream(client, opened.session_id) as stream:
            with pytest.raises(CursorExpiredError) as caught:
                await stream.read()
            assert caught.value.metadata["offset"] == "0"
            assert stream.offset == int(caught.value.metadata["oldest_offset"])
            while b"100000\r\n" not in await stream.readline():
                pass


async def test_a_stream_goes_on_through_the_death_of_a_worker(fabric, client):
    opened = await client.pty.open(client, "stty -echo; exec cat")
    at = opened.next_offset
    async with client.pty.stream(client, opened.session_id, offset=at) as stream:
        await stream.writeline("before")
        assert await stream.readline() == b"before\r\n"
        slot_id = next(
            slot_id for slot_id, worker in fabric.slots.workers.items() if worker.session
        )
        await fabric.slots.destroy(slot_id)  # its node starts another one for the shell
        await stream.writeline("after")
        assert await stream.readline() == b"after\r\n"
    page = await client.pty.tail(client, opened.session_id)
    assert page.text.split("\n")[-2:] == ["before", "after"]
