"""A shim as its worker sees it: start, spawn, typed refusals, exits."""

import asyncio
import fcntl
import os
import signal
import stat
import struct
import sys
import termios

import pytest

from fabric.core.errors import (
    InvalidRequestError,
    SessionStateError,
    SpawnFailedError,
)
from fabric.core.model import ExitStatus
from tests.load.trees import marked
from tests.support.eventually import eventually
from tests.support.signals import signals_of
from tests.terminal.shim.conftest import (
    KEY,
    fds_of,
    field_of,
    is_running,
    proc,
    request_for,
    typed,
)


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
        assert signals_of(field_of(pid, name)[0]) == set(), name
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
        "from workers.shim.child import SpawnError, Who\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "Who.of('nobody').become()\n"
        "try:\n"
        "    Who.of('root')\n"
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
