"""A shim as its worker sees it: start, spawn, typed refusals, adoption, the ends of it."""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import socket
import stat
import struct
import sys
import termios
from pathlib import Path

import pytest

from fabric.core.errors import (
    DeadlineError,
    InternalError,
    InvalidRequestError,
    SessionLostError,
    SessionStateError,
    SpawnFailedError,
    StaleGenerationError,
    UnauthenticatedError,
    UnsupportedError,
)
from fabric.core.model import ExitStatus
from tests.load.trees import marked
from tests.support.eventually import eventually, pause
from tests.terminal.shim.conftest import KEY, request_for, typed
from workers.shim import protocol
from workers.shim.client import ShimClient

pytestmark = pytest.mark.usefixtures("slots")


def proc(pid, name):
    """The bytes of a file of ``/proc/<pid>``."""
    return Path(f"/proc/{pid}/{name}").read_bytes()


def fds_of(pid):
    """What each open descriptor of a process points at."""
    links = {}
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            links[fd.name] = str(fd.readlink())
    return links


def is_running(pid):
    try:
        return proc(pid, "stat").rsplit(b")", 1)[1].split()[0] != b"Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def field_of(pid, name):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split()[1:]
    raise AssertionError(name)


async def test_shim_stands_alone(slots):
    client = await slots.launch()
    pid = client.shim_pid
    assert int(field_of(pid, "PPid")[0]) == os.getpid(), "here the subreaper of orphans"
    assert os.getsid(pid) not in (os.getsid(0), pid)
    assert os.getpgid(pid) != os.getpgid(0)
    assert proc(pid, "environ") == b""
    assert KEY.encode() not in proc(pid, "cmdline")
    assert field_of(pid, "Umask") == ["0077"]
    assert proc(pid, "comm") == b"fabric-shim\n"
    links = fds_of(pid)
    assert {links[name] for name in "012"} == {"/dev/null"}
    assert not [link for link in links.values() if link.startswith("/dev/pt")]


async def test_socket_is_private_and_gone_after_quit(slots):
    client = await slots.launch()
    path = slots.socket()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await client.quit()
    assert list(path.parent.iterdir()) == []
    assert client.lost.result() == "gone"
    await eventually(lambda: not is_running(client.shim_pid))


async def test_program_starts_with_nothing_inherited_by_accident(slots):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGUSR1})
    old = {s: signal.signal(s, signal.SIG_IGN) for s in (signal.SIGHUP, signal.SIGXFSZ)}
    try:
        client = await slots.launch()
        spawned, _ = await slots.spawn(client, "sleep", "600", umask=0o027)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGUSR1})
        for signo, handler in old.items():
            signal.signal(signo, handler)
    pid = spawned.pid
    for name in ("SigBlk", "SigIgn", "SigCgt"):
        assert int(field_of(pid, name)[0], 16) == 0, name
    assert field_of(pid, "Umask") == ["0027"]
    assert sorted(fds_of(pid)) == ["0", "1", "2"]
    assert os.getsid(pid) == pid
    assert proc(pid, "oom_score_adj") == b"0\n"
    environ = proc(pid, "environ").split(b"\0")
    names = {entry.split(b"=")[0] for entry in environ if entry}
    assert names == {b"PATH", b"TERM", b"PS1", b"TREE_MARK"}


async def test_interrupt_works_although_the_worker_blocks_it(slots):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        client = await slots.launch()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    spawned, screen = await slots.spawn(client, "sleep", "600")
    os.write(spawned.master_fd, b"\x03")
    status = await asyncio.wait_for(client.exited, 5)
    assert status == ExitStatus(signal="SIGINT")
    assert b"^C" in screen.text


async def test_window_size_is_there_before_the_program(slots):
    client = await slots.launch()
    _, screen = await slots.spawn(client, "stty", "size", rows=33, cols=111)
    await asyncio.wait_for(client.exited, 5)
    await eventually(lambda: b"33 111" in screen.text)


async def test_resize_reaches_the_terminal(slots):
    client = await slots.launch()
    spawned, _ = await slots.spawn(client, "sleep", "600")
    await client.resize(50, 200)
    size = fcntl.ioctl(spawned.master_fd, termios.TIOCGWINSZ, b"\0" * 8)
    assert struct.unpack("HHHH", size)[:2] == (50, 200)
    with pytest.raises(InvalidRequestError, match="rows must be a whole number"):
        await client.resize(0, 200)


async def test_byte_log_has_the_size_asked_for_and_keeps_it(slots):
    client = await slots.launch()
    spawned, _ = await slots.spawn(client, "sleep", "600", log_bytes=123 * 4096)
    assert os.fstat(spawned.log_fd).st_size == 124 * 4096
    with pytest.raises(PermissionError):
        os.ftruncate(spawned.log_fd, 4096)
    os.pwrite(spawned.log_fd, b"kept", 4096)
    again = await client.adopt()
    assert os.pread(again.log_fd, 4, 4096) == b"kept"
    os.close(again.log_fd)
    os.close(again.master_fd)


@pytest.mark.parametrize(
    ("argv", "fields", "step", "words"),
    [
        (["no-such-program"], {}, "exec", "not found in the session's PATH"),
        (["/no/such/program"], {}, "exec", "was not found"),
        (["/etc/passwd"], {}, "exec", "not executable"),
        (["/tmp"], {}, "exec", "was not found"),
        (["sleep", "1"], {"cwd": "/no/such/folder"}, "cwd", "No such file"),
        (["sleep", "1"], {"cwd": "/etc/passwd"}, "cwd", "Not a directory"),
        (["sleep", "1"], {"run_as": "nobody-of-this-name"}, "run_as", "no user"),
        (["sleep", "x" * 3_000_000], {}, "exec", "Argument list too long"),
        (["sleep", "1"], {"landlock": b"not a plan"}, "confine", "."),
    ],
)
async def test_program_that_cannot_start_is_a_typed_error_and_leaves_nothing(
    slots, argv, fields, step, words
):
    client = await slots.launch()
    with pytest.raises(SpawnFailedError, match=words) as failed:
        await slots.spawn(client, *argv, **fields)
    assert failed.value.metadata["step"] == step
    assert marked(slots.mark) == []
    links = fds_of(client.shim_pid).values()
    assert not [link for link in links if "pt" in link or "memfd" in link]
    assert await client.adopt() is None
    spawned, _ = await slots.spawn(client, "sleep", "600")
    assert is_running(spawned.pid), "the slot can still be used"


async def test_errors_say_the_number_too(slots):
    client = await slots.launch()
    with pytest.raises(SpawnFailedError) as failed:
        await slots.spawn(client, "/no/such/program")
    assert failed.value.metadata["errno"] == "2"


async def test_script_without_interpreter_is_a_typed_error(slots):
    script = slots.folder / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    client = await slots.launch()
    with pytest.raises(SpawnFailedError, match="No such file"):
        await slots.spawn(client, str(script))


@pytest.mark.parametrize(
    "fields",
    [
        {"rows": 0}, {"cols": 70_000}, {"log_bytes": 10}, {"cwd": "relative"}, {"umask": 0o1000},
        {"rlimits": (("no-such-limit", 1),)}, {"labels": b"x" * 300_000},
        {"env": {"A=B": "c"}}, {"env": {"A": "b\0c"}}, {"grace_s": -1.0},
    ],
)  # fmt: skip
async def test_malformed_request_is_refused_by_name(slots, fields):
    client = await slots.launch()
    with pytest.raises(InvalidRequestError):
        await slots.spawn(client, "sleep", "1", **fields)
    with pytest.raises(InvalidRequestError, match="argv must name a program"):
        await client.spawn(request_for())


async def test_program_is_found_as_the_session_would_find_it(slots):
    script = slots.folder / "mine"
    script.write_text("#!/bin/sh\necho here-$0\n")
    script.chmod(0o755)
    client = await slots.launch()
    _, screen = await slots.spawn(client, "./mine", cwd=str(slots.folder))
    await eventually(lambda: b"here-" in screen.text)


async def test_limits_are_in_force_and_never_above_the_hard_one(slots):
    client = await slots.launch()
    rlimits = (("nofile", 77), ("RLIMIT_CORE", 0), ("stack", -1))
    spawned, _ = await slots.spawn(client, "sleep", "600", rlimits=rlimits)
    limits = proc(spawned.pid, "limits").decode()
    assert "Max open files            77                   77" in limits
    assert "Max core file size        0                    0" in limits


@pytest.mark.skipif(os.geteuid() != 0, reason="run_as needs root")
async def test_program_runs_as_another_user_on_a_terminal_of_its_own(slots):
    client = await slots.launch()
    script = "id -un; id -Gn; : </dev/tty && exec 9<>$(tty) && echo o''pened; sleep 600"
    spawned, screen = await slots.spawn(client, "sh", "-c", script, run_as="nobody")
    await eventually(lambda: b"opened" in screen.text)
    assert b"nobody\r\nnogroup" in screen.text
    assert field_of(spawned.pid, "Uid") == ["65534"] * 4
    assert field_of(spawned.pid, "Gid") == ["65534"] * 4
    receipt = await client.teardown(grace_s=1, shell_grace_s=1)
    assert receipt.survivors == ()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody who is not")
async def test_run_as_is_refused_where_the_service_is_not_root(slots):
    script = (
        "import os, pwd\n"
        "from workers.shim.spawn import SpawnError, _Who\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "_Who.of('nobody').become()\n"
        "try:\n"
        "    _Who.of('root')\n"
        "except SpawnError as error:\n"
        "    print(error.step, error.number, error)\n"
    )
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await child.communicate()
    assert out.startswith(b"run_as 1 the service is not root")


async def test_second_program_is_refused(slots):
    client = await slots.launch()
    await slots.spawn(client, "sleep", "600")
    with pytest.raises(SessionStateError, match="has its program already"):
        await slots.spawn(client, "sleep", "600")


async def test_nothing_to_adopt_label_or_resize_before_a_spawn(slots):
    client = await slots.launch()
    assert await client.adopt() is None
    with pytest.raises(SessionStateError):
        await client.resize(10, 10)
    with pytest.raises(SessionStateError):
        await client.set_labels(b"x")


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 7", ExitStatus(exit_code=7)),
        ("exit 0", ExitStatus(exit_code=0)),
        ("kill -9 $$", ExitStatus(signal="SIGKILL")),
        ("kill -SEGV $$", ExitStatus(signal="SIGSEGV")),
        ("kill -40 $$", ExitStatus(signal="SIG40")),
        ("exit 137", ExitStatus(exit_code=137)),
    ],
)
async def test_exit_is_reported_as_code_or_signal(slots, script, status):
    client = await slots.launch()
    await slots.spawn(client, "sh", "-c", f"ulimit -c 0; {script}")
    assert await asyncio.wait_for(client.exited, 5) == status


async def test_exit_is_told_to_a_holder_that_comes_later(slots):
    client = await slots.launch()
    spawned, _ = await slots.spawn(client, "sh", "-c", "echo last words; exit 5", labels=b"L")
    await asyncio.wait_for(client.exited, 5)
    later = await slots.connect()
    assert later.exited.result() == ExitStatus(exit_code=5)
    found = await later.adopt()
    assert found.exit == ExitStatus(exit_code=5)
    assert (found.pid, found.start_time, found.labels) == (spawned.pid, spawned.start_time, b"L")
    os.close(found.log_fd)
    os.close(found.master_fd)


async def test_last_words_can_be_read_after_the_exit(slots):
    client = await slots.launch()
    spawned = await client.spawn(request_for("sh", "-c", "seq 300; exit 5"))
    slots.fds.append(spawned.log_fd)
    await asyncio.wait_for(client.exited, 5)
    screen = slots.watch(spawned)
    slots.fds.remove(spawned.log_fd)
    await eventually(lambda: b"\r\n300\r\n" in screen.text)


async def test_jobs_left_by_a_shell_that_exited_are_ended_without_being_asked(slots):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    line = "sleep 9809 & setsid sleep 9810 & trap '' HUP; nohup sleep 9811 & sleep 0.1"
    await typed(spawned, screen, line)
    os.write(spawned.master_fd, b"exit 3\n")
    assert await asyncio.wait_for(client.exited, 5) == ExitStatus(exit_code=3)
    await eventually(lambda: marked(slots.mark) == [], within=3)
    receipt = await client.teardown(grace_s=1, shell_grace_s=1)
    assert receipt.root_exit == ExitStatus(exit_code=3)
    assert [entry.name for entry in receipt.ended].count("sleep") == 3
    assert receipt.survivors == ()


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
    first = await slots.launch(orphan_grace_s=0.6)
    spawned, _ = await slots.spawn(first, "sleep", "600")
    first.close()
    assert first.lost.result() == "gone"
    await pause(0.3, because="half of the grace")
    second = await slots.connect()
    await pause(0.6, because="the grace of the first must not end the second")
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
    for _ in range(20):
        call = asyncio.create_task(client.adopt())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        call.cancel()
    await client.set_labels(b"after all of them")
    await eventually(lambda: len(fds_of("self")) == before)


async def test_silent_shim_is_a_deadline_and_not_a_hang(slots, monkeypatch):
    client = await slots.launch()
    monkeypatch.setattr("workers.shim.client.CALL_S", 0.2)
    os.kill(client.shim_pid, signal.SIGSTOP)
    try:
        with pytest.raises(DeadlineError):
            await client._call("adopt", limit_s=0.2)
    finally:
        os.kill(client.shim_pid, signal.SIGCONT)
