"""Who holds a shim: adoption, superseding, orphans, strangers, garbage."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from fabric.core.errors import (
    DeadlineError,
    InternalError,
    InvalidRequestError,
    SessionLostError,
    StaleGenerationError,
    UnauthenticatedError,
    UnsupportedError,
)
from fabric.core.model import ExitStatus
from tests.load.trees import marked
from tests.support.eventually import eventually, pause, scaled
from tests.terminal.shim.conftest import KEY, fds_of, is_running, request_for, typed
from workers.shim import protocol
from workers.shim.client import ShimClient


async def test_labels_are_kept_for_the_next_holder(slots):
    client = await slots.launch()
    await slots.spawn(client, "sleep", "600", labels=b"first")
    await client.set_labels(bytes(range(256)))
    found = await (await slots.connect()).adopt()
    assert found.labels == bytes(range(256))
    os.close(found.log_fd)
    os.close(found.master_fd)


async def test_newer_holder_wins_and_the_older_one_is_told(slots):
    first = await slots.launch()
    await slots.spawn(first, "sleep", "600")
    second = await slots.connect()
    assert (first.adoption, second.adoption) == (1, 2)
    assert await asyncio.wait_for(first.lost, 5) == "superseded"
    with pytest.raises(StaleGenerationError):
        await first.set_labels(b"x")
    assert not second.lost.done()
    await second.set_labels(b"y")


async def test_call_under_way_when_superseded_ends_with_the_reason(slots):
    first = await slots.launch()
    script = "trap '' TERM HUP; echo deaf; while :; do sleep 0.05; done"
    _, screen = await slots.spawn(first, "sh", "-c", script)
    await eventually(lambda: b"deaf" in screen.text)
    closing = asyncio.create_task(first.teardown(grace_s=5, shell_grace_s=0.5))
    await first.set_labels(b"the teardown was asked for before this")
    second = await slots.connect()
    with pytest.raises(StaleGenerationError):
        await closing
    receipt = await second.teardown(grace_s=0.2, shell_grace_s=0.2)
    assert receipt.root_exit == ExitStatus(signal="SIGKILL")


HOLDER = """
import asyncio, json, os, pathlib, sys
sys.path.append(os.getcwd())
from tests.terminal.shim.conftest import KEY, request_for
from workers.shim.client import ShimClient
async def main():
    folder = pathlib.Path(sys.argv[1])
    client = await ShimClient.launch(node_dir=folder, slot_id="a", key=KEY, orphan_grace_s=%s)
    request = request_for("bash", "--norc", "-i", env={"TREE_MARK": sys.argv[2]}, labels=b"L")
    spawned = await client.spawn(request)
    os.pwrite(spawned.log_fd, b"logged", 4096)
    os.write(spawned.master_fd, b"cd /usr; X=kept; echo rea''dy\\n")
    seen = b""
    while b"ready" not in seen:
        seen += os.read(spawned.master_fd, 4096)
    print(json.dumps([client.shim_pid, spawned.pid, spawned.start_time]), flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def worker_process(slots, orphan_grace_s):
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER % orphan_grace_s, str(slots.folder), slots.mark,
        stdout=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    slots.workers.append(child)
    line = await asyncio.wait_for(child.stdout.readline(), 20)
    return child, *json.loads(line)


async def test_shell_survives_kill_9_of_the_whole_group_of_its_worker(slots):
    child, shim_pid, pid, start_time = await worker_process(slots, 20)
    os.killpg(child.pid, signal.SIGKILL)
    await child.communicate()
    client = await slots.connect()
    assert (client.shim_pid, client.adoption) == (shim_pid, 2)
    found = await client.adopt()
    screen = slots.watch(found)
    assert (found.pid, found.start_time, found.labels) == (pid, start_time, b"L")
    assert os.pread(found.log_fd, 6, 4096) == b"logged"
    assert "in /usr with kept" in await typed(found, screen, 'echo "in $PWD with $X"')


async def test_orphaned_shim_ends_everything_and_leaves(slots):
    child, shim_pid, pid, _ = await worker_process(slots, 0.5)
    child.kill()
    await child.communicate()
    await eventually(lambda: not is_running(shim_pid), within=5)
    assert not is_running(pid)
    assert marked(slots.mark) == []
    assert not slots.socket().exists()


async def test_orphan_grace_is_kept_and_ends_when_somebody_comes(slots):
    first = await slots.launch(orphan_grace_s=scaled(0.8))
    spawned, _ = await slots.spawn(first, "sleep", "600")
    first.close()
    assert first.lost.result() == "gone"
    await pause(0.2, because="a part of the grace")
    second = await slots.connect()
    await pause(0.8, because="the grace of the first must not end the second")
    assert is_running(spawned.pid)
    await second.set_labels(b"still served")


async def test_shim_that_nobody_ever_holds_leaves(slots):
    client = await slots.launch(orphan_grace_s=0.3)
    client.close()
    await eventually(lambda: not is_running(client.shim_pid), within=5)
    assert not slots.socket().exists()


async def test_term_to_the_shim_is_an_orderly_end(slots):
    client = await slots.launch()
    spawned, _ = await slots.spawn(client, "sh", "-c", "setsid sleep 600 & wait")
    os.kill(client.shim_pid, signal.SIGTERM)
    assert await asyncio.wait_for(client.lost, 5) == "gone"
    assert not is_running(spawned.pid)
    assert marked(slots.mark) == []
    with pytest.raises(SessionLostError):
        await client.adopt()


async def test_shell_is_hung_up_when_its_shim_is_killed(slots):
    client = await slots.launch()
    spawned, _ = await slots.bash(client)
    os.kill(client.shim_pid, signal.SIGKILL)
    assert await asyncio.wait_for(client.lost, 5) == "gone"
    await eventually(lambda: not is_running(spawned.pid), within=5)
    slots.socket().unlink()


async def test_dead_shims_socket_is_replaced_and_a_live_ones_is_not(slots):
    first = await slots.launch()
    with pytest.raises(InternalError, match="in use"):
        await ShimClient.launch(node_dir=slots.folder, slot_id="a", key="other", orphan_grace_s=5)
    assert await first.adopt() is None, "untouched"
    os.kill(first.shim_pid, signal.SIGKILL)
    await asyncio.wait_for(first.lost, 5)
    assert slots.socket().exists()
    second = await slots.launch()
    assert second.shim_pid != first.shim_pid


async def test_open_folder_is_refused(slots):
    (slots.folder / "s").mkdir(mode=0o755)
    with pytest.raises(InternalError, match="mode 0700"):
        await slots.launch()


async def test_too_long_path_is_refused_before_anything_starts(slots):
    with pytest.raises(InvalidRequestError, match="too long for a socket"):
        await slots.launch("x" * 100)


async def test_wrong_key_is_refused(slots):
    client = await slots.launch()
    with pytest.raises(UnauthenticatedError, match="not this slot's"):
        await slots.connect(key="guess")
    with pytest.raises(UnauthenticatedError):
        await slots.connect(key="")
    assert await client.adopt() is None, "the holder is undisturbed"


async def test_no_shim_there_is_an_error_at_once(slots):
    with pytest.raises(SessionLostError):
        await slots.connect()


async def test_other_version_is_refused_with_both_named(slots, monkeypatch):
    await slots.launch()
    monkeypatch.setattr(protocol, "VERSION", 99)
    with pytest.raises(UnsupportedError, match="speaks protocol version 1, the peer asked for 99"):
        await slots.connect()


async def test_frame_above_the_limit_is_not_sent(slots):
    client = await slots.launch()
    with pytest.raises(InvalidRequestError, match="above the limit"):
        await client.spawn(request_for("sh", "-c", "x" * protocol.MAX_FRAME_BYTES))
    assert await client.adopt() is None


async def raw(path: Path, data: bytes) -> dict:
    """Send bytes as a stranger and read the refusal up to the end of the stream."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    writer.write(data)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return json.loads(answer[4:])["error"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "FRAME_TOO_LARGE"),
        (b"\xff" * 64, "FRAME_TOO_LARGE"),
        (b"\x00\x00\x20\x00" + b"x" * 8192, "FRAME_TOO_LARGE"),
        (b"\x00\x00\x00\x04oops", "GARBAGE"),
        (protocol.encode({"op": "spawn", "id": 1}), "NO_HELLO"),
        (protocol.encode({"op": "hello", "v": 2, "key": KEY}), "UNKNOWN_VERSION"),
        (protocol.encode({"op": "hello", "v": 1, "key": [KEY]}), "INVALID"),
        (protocol.encode({"op": "hello", "v": 1, "key": "\ud800"}), "BAD_KEY"),
    ],
)
async def test_stranger_is_refused_in_words_and_disturbs_nobody(slots, data, code):
    client = await slots.launch()
    assert (await raw(slots.socket(), data))["code"] == code
    assert await client.adopt() is None


async def test_many_silent_strangers_do_not_keep_a_holder_out(slots):
    client = await slots.launch()
    strangers = []
    try:
        for _ in range(40):
            stranger = socket.socket(socket.AF_UNIX)
            stranger.connect(str(slots.socket()))
            strangers.append(stranger)
            assert await client.adopt() is None
        second = await slots.connect()
        assert second.adoption == 2
        assert len(fds_of(client.shim_pid)) < 30
    finally:
        for stranger in strangers:
            stranger.close()


async def test_holder_that_sends_garbage_is_dropped_and_the_session_stays(slots):
    first = await slots.launch()
    spawned, _ = await slots.spawn(first, "sleep", "600")
    await first._write(b"\xff" * 100)
    assert await asyncio.wait_for(first.lost, 5) == "gone"
    second = await slots.connect()
    assert is_running(spawned.pid)
    await second.set_labels(b"fine")


async def test_malformed_requests_of_a_holder_are_answered(slots):
    client = await slots.launch()
    with pytest.raises(InvalidRequestError, match="unknown request 'dance'"):
        await client._call("dance")
    with pytest.raises(InvalidRequestError, match="grace_s must be"):
        await client._call("teardown", grace_s="soon", shell_grace_s=1)
    assert await client.adopt() is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
async def test_other_user_is_refused_whatever_the_file_modes(slots):
    client = await slots.launch()
    slots.folder.chmod(0o755)
    slots.socket().parent.chmod(0o755)
    slots.socket().chmod(0o666)
    script = (
        "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX)\n"
        "s.connect(sys.argv[1]); print(s.recv(4096).decode('latin-1'), s.recv(4096))\n"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", script, str(slots.socket()),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await child.communicate()
    assert b"PEER_REFUSED" in out
    assert out.strip().endswith(b"b''")
    assert await client.adopt() is None


async def test_cancelled_calls_leave_no_descriptor(slots):
    client = await slots.launch()
    await slots.spawn(client, "sleep", "600")
    before = len(fds_of("self"))
    for number in range(35):
        call = asyncio.create_task(client.adopt())
        for _ in range(number % 7):
            await asyncio.sleep(0)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            found = await call  # it may have been answered in time
            os.close(found.master_fd)
            os.close(found.log_fd)
    await client.set_labels(b"after all of them")
    await eventually(lambda: len(fds_of("self")) == before)


async def test_answer_in_the_turn_of_its_cancellation_leaves_no_descriptor(slots):
    client = await slots.launch()
    await slots.spawn(client, "sleep", "600")
    before = len(fds_of("self"))
    call = asyncio.create_task(client.adopt())
    client._loop.remove_reader(client._sock.fileno())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(call), 0.1)
    client._readable()  # the answer is there, and its caller has not run yet
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    client._loop.add_reader(client._sock.fileno(), client._readable)
    assert len(fds_of("self")) == before


async def test_silent_shim_is_a_deadline_and_not_a_hang(slots, monkeypatch):
    client = await slots.launch()
    monkeypatch.setattr("workers.shim.client.CALL_S", 0.2)
    os.kill(client.shim_pid, signal.SIGSTOP)
    try:
        with pytest.raises(DeadlineError):
            await client._call("adopt", limit_s=0.2)
    finally:
        os.kill(client.shim_pid, signal.SIGCONT)
