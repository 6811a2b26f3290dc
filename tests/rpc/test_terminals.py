"""The everyday calls, through real gRPC."""

import itertools

import pytest

from fabric.client import FabricClient
from fabric.core.errors import (
    NameTakenError,
    OwnerNotLiveError,
    SendActiveError,
    SessionExitedError,
)
from fabric.core.model import CloseOutcome, SandboxMode, TaskState, WaitReason
from tests.support.eventually import eventually


async def test_open_send_read_close_list(client):
    shell = await client.open("shell", name="main")
    assert shell.opened.motd.endswith("$ ")
    result = await shell.send("echo hi")
    assert "hi\n" in result.viewport
    assert result.wait_reason is WaitReason.STDIN_READ
    assert result.exit_code == 0
    assert result.next_offset > result.first_offset
    page = await shell.read(count=2)
    assert page.line_end == page.total_lines
    assert [item.name for item in await client.list()] == ["main"]
    closed = await shell.close()
    assert closed.outcome is CloseOutcome.CLOSED
    assert await client.list() == ()


async def test_a_name_is_unique_while_its_session_lives(client):
    await client.open(name="main")
    with pytest.raises(NameTakenError):
        await client.open(name="main")


async def test_a_command_that_fails_is_a_result_and_no_error(client):
    shell = await client.open()
    assert (await shell.send("false")).exit_code == 1
    result = await shell.send("exit 7")
    assert result.wait_reason is WaitReason.SESSION_EXIT
    assert result.status.exit.exit_code == 7
    with pytest.raises(SessionExitedError):
        await shell.send("echo more")


async def test_a_send_that_runs_out_of_time_is_a_result(client):
    shell = await client.open()
    result = await shell.send("sleep 1000", timeout_s=0.2)
    assert result.wait_reason is WaitReason.TIMEOUT
    assert result.status.is_running
    await shell.signal("SIGINT")
    assert (await shell.wait_for(ready=True, timeout_s=5)).matched == "ready"
    assert "again" in (await shell.send("echo again")).viewport


async def test_a_second_send_is_refused_while_one_is_active(client):
    shell = await client.open()
    task = await shell.send_background("sleep 1000")
    with pytest.raises(SendActiveError):
        await shell.send("echo no")
    await task.kill()
    output = await task.output(wait_s=5)
    assert output.record.state is TaskState.KILLED


async def test_screen_size_bytes_and_lines(client):
    shell = await client.open(rows=10, cols=50)
    info = await shell.resize(20, 60)
    assert (info.rows, info.cols) == (20, 60)
    await shell.send("echo one")
    assert (await shell.snapshot()).rows == 20
    first = await shell.tail()
    assert "one\n" in first.text
    assert (await shell.tail()).lines == 0
    assert "one" in (await shell.tail(consumer="other")).text
    page = await shell.read_bytes(0)
    assert b"one" in page.data
    assert page.next_offset == len(page.data)
    assert (await shell.status()).busy is False


async def test_follow_ends_when_the_session_does(client):
    shell = await client.open()
    pages = []
    stream = shell.follow(0)
    pages.append(await anext(stream))
    await shell.send("echo live")
    await shell.send("exit 0")
    pages += [page async for page in stream]
    assert b"live" in b"".join(page.data for page in pages)
    assert pages[-1].ended
    for before, after in itertools.pairwise(pages):
        assert after.offset == before.next_offset


async def test_background_output_comes_once(client):
    shell = await client.open()
    task = await shell.send_background("echo done")
    first = await task.output(wait_s=5)
    assert "done" in first.text
    assert first.record.state is TaskState.COMPLETED
    assert (await task.output()).text == ""
    assert [record.task_id for record in await client.tasks()] == [task.id]
    again = client.task(first.record)
    assert "done" in (await again.output()).text


async def test_the_owner_and_the_server_introduce_themselves(client):
    assert client.server.api_major == 1
    assert "shell" in client.server.types
    assert client.owner.agent == "me"
    assert client.owner.epoch == 1
    assert (await client.set_mode("workspace-write")).mode is SandboxMode.WORKSPACE_WRITE
    assert [node.alive for node in await client.nodes()] == [True]


async def test_leaving_the_block_releases_the_owner_and_keep_does_not(gateway, fabric):
    async with FabricClient.connect(gateway.address) as passing:
        await passing.open()
        assert len(fabric.sessions) == 1
    assert not fabric.sessions
    async with FabricClient.connect(gateway.address, agent="kept", keep=True) as first:
        shell = await first.open(name="main")
        await shell.send("echo kept")
        token = first.owner_token
    async with FabricClient.connect(gateway.address, owner_token=token) as second:
        assert "kept" in (await second.session(shell.id).read()).text
        await second.release()
    async with FabricClient.connect(gateway.address, agent="kept") as third:
        assert await third.list() == ()


async def test_taking_an_owner_over_finds_its_sessions_and_voids_the_old_token(gateway):
    async with FabricClient.connect(gateway.address, agent="me", keep=True) as old:
        shell = await old.open()
        async with FabricClient.connect(gateway.address, agent="me") as new:
            assert new.owner.epoch == old.owner.epoch + 1
            assert [item.session_id for item in await new.list()] == [shell.id]
            with pytest.raises(OwnerNotLiveError):
                await shell.send("echo stale")


async def test_the_lease_is_kept_while_the_client_is_there(gateway, fabric):
    async with FabricClient.connect(gateway.address, lease_s=0.3) as client:
        before = client.owner.expires_at
        await eventually(lambda: client.owner.expires_at > before, within=5)
