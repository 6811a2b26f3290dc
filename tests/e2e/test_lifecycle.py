"""`fabric up`, `down` and what lies between: every test starts and ends fabrics of its own."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from fabric.cli.state import start_time_of
from tests.support import leaks
from tests.support.command import Command
from tests.support.eventually import eventually_sync, scaled

FULL = ("--mode", "danger-full-access")


def pid_of(command: Command, what: str = "pid") -> int:
    return int(command("status", "--json").json[what])


def fabric_processes() -> list[str]:
    leaks.reap_orphans()
    return [f"{item.pid} {item.name}" for item in leaks.descendants()]


def test_up_and_down_leave_no_process_even_with_sessions_open(fabric):
    before = fabric_processes()
    up = fabric("up", "-d", "--json", check=True)
    assert up.json["gateway"].startswith("127.0.0.1:")
    assert "starting a one-machine cluster" in up.err
    assert "starting the gateway" in up.err
    fabric("open", *FULL, check=True)
    session = fabric("open", "-q", *FULL, check=True).out.strip()
    fabric("send", session, "trap '' TERM HUP; sleep 977 & setsid sleep 978 &", check=True)
    assert fabric("status").code == 0
    down = fabric("down", check=True)
    assert "waiting for" in down.err
    assert fabric("status").code == 7
    eventually_sync(lambda: fabric_processes() == before, within=10)
    assert fabric("down", check=True).out.startswith("no fabric")


@pytest.mark.parametrize("line", ["", "trap '' INT TERM; "])
def test_a_send_that_is_open_while_the_fabric_goes_down_is_told_so_at_once(fabric, line):
    """Also with a program that no interrupt ends. It says something, or silence ends the send."""
    line += "while :; do echo still here; sleep 0.3; done"
    fabric("up", "-d", check=True)
    session = fabric("open", "-q", *FULL, check=True).out.strip()
    with fabric.start("send", "--json", session, line, "--timeout", "300") as send:
        eventually_sync(lambda: fabric("list", "--json").json[0]["busy"], within=30)
        with fabric.start("down") as down:
            began = time.monotonic()
            _, err = send.communicate(timeout=60)
            took = time.monotonic() - began
            assert send.returncode == 7
            assert json.loads(err.splitlines()[-1])["error"]["reason"] == "DRAINING"
            assert down.poll() is None, "the caller is told before everything has ended"
            assert took < scaled(8)
            assert down.wait(timeout=90) == 0


def test_two_fabrics_do_not_disturb_each_other(fabric, state_dir):
    other = Command(state_dir / "other")
    try:
        fabric("up", "-d", check=True)
        other("up", "-d", check=True)
        first = fabric("open", "-q", *FULL, check=True).out
        second = other("open", "-q", *FULL, check=True).out
        assert fabric("list", "-q").out == first
        assert other("list", "-q").out == second
        fabric("down", check=True)
        assert fabric("list").code == 7
        assert other("list", "-q", check=True).out == second
        assert other("send", "-q", second.strip(), "echo alive-$((6*7))").out.count("alive-42") == 1
    finally:
        other("down", check=True)


def test_a_second_up_in_the_same_folder_is_refused(fabric):
    fabric("up", "-d", check=True)
    again = fabric("up", "--json")
    assert (again.code, again.error["reason"]) == (5, "ALREADY_UP")
    assert fabric("status").code == 0, "the first is unharmed"


def test_a_start_that_fails_leaves_the_folder_free(fabric):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        failed = fabric("up", "-d", "--json", "--set", f"gateway.listen=127.0.0.1:{port}")
        assert (failed.code, failed.error["reason"]) == (2, "INVALID_SETTINGS")
        assert fabric("status").code == 7
        assert fabric("down", check=True).out.startswith("no fabric")
    assert not fabric_processes()


def test_up_in_the_foreground_stops_at_ctrl_c_and_says_what_it_waits_for(fabric):
    process = fabric.start("up")
    ready = process.stdout.readline()
    assert ready.startswith("ready on 127.0.0.1:")
    session = fabric("open", "-q", *FULL, check=True).out.strip()
    fabric("send", session, "sleep 976", "--timeout", "0.2")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=90)
    assert (process.returncode, out) == (0, "")
    assert "stopping: waiting for running calls and for the sessions to end" in err
    assert f"export FABRIC_GATEWAY={ready.split()[-1]}" in err
    eventually_sync(lambda: not fabric_processes(), within=10)


def test_ctrl_c_while_starting_leaves_nothing(fabric):
    process = fabric.start("up")
    lines = []
    while not any("starting a one-machine cluster" in line for line in lines):
        lines.append(process.stderr.readline())
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=90)
    assert (process.returncode, out) == (130, "")
    assert "interrupted" in err
    eventually_sync(lambda: not fabric_processes(), within=10)
    assert fabric("status").code == 7


def test_a_detached_start_that_is_taken_down_says_so(fabric):
    with fabric.start("up", "-d", "--json") as up:
        while "starting a one-machine cluster" not in up.stderr.readline():
            pass
        assert fabric("down").code == 0
        out, err = up.communicate(timeout=90)
    assert (up.returncode, out) == (8, "")
    assert json.loads(err.splitlines()[-1])["error"]["reason"] == "CALL_CANCELLED"


def test_settings_that_are_wrong_are_all_told_before_anything_starts(fabric):
    done = fabric("up", "--set", "log.level=x", "--set", "node.max_sessions=0")
    assert (done.code, done.out) == (2, "")
    assert "log.level" in done.err
    assert "node.max_sessions" in done.err
    assert not fabric_processes()


def test_an_address_beyond_loopback_needs_credentials(fabric):
    done = fabric("up", "-d", "--json", "--set", "gateway.listen=0.0.0.0:0")
    assert (done.code, done.out) == (2, "")
    assert "TLS" in done.error["message"]
    eventually_sync(lambda: not fabric_processes(), within=10)


def test_a_killed_gateway_comes_back_and_the_sessions_are_still_there(fabric):
    fabric("up", "-d", check=True)
    address = fabric("status", "-q").out
    session = fabric("open", "-q", *FULL, check=True).out.strip()
    fabric("send", session, "A=kept", check=True)
    old = pid_of(fabric, "gateway_pid")
    os.kill(old, signal.SIGKILL)
    eventually_sync(lambda: pid_of(fabric, "gateway_pid") != old, within=60)
    assert fabric("status", "-q").out == address
    assert "kept" in fabric("send", "-q", session, "echo $A", check=True).out.splitlines()


def test_a_killed_cluster_comes_back_and_the_sessions_are_still_there(fabric, state_dir):
    """Registry, node and workers die with Ray; the shim keeps the shell."""
    fabric("up", "-d", check=True)
    session = fabric("open", "-q", *FULL, check=True).out.strip()
    before = fabric("send", "-q", session, "A=kept; echo $$", check=True).out
    old = pid_of(fabric, "gateway_pid")
    cluster = json.loads((state_dir / "cluster.json").read_text())
    os.kill(cluster["starter"]["pid"], signal.SIGKILL)
    eventually_sync(lambda: pid_of(fabric, "gateway_pid") not in (0, old), within=90)
    after = fabric("send", "-q", session, "echo $A $$", check=True).out
    assert f"kept {before.splitlines()[1]}" in after.splitlines()


def test_down_cleans_up_after_a_killed_supervisor(fabric):
    fabric("up", "-d", check=True)
    session = fabric("open", "-q", *FULL, check=True).out.strip()
    fabric("send", session, "sleep 975 &", check=True)
    os.kill(pid_of(fabric), signal.SIGKILL)
    down = fabric("down", check=True)
    assert "its supervisor is gone" in down.err
    eventually_sync(lambda: not fabric_processes(), within=10)
    assert fabric("down", check=True).out.startswith("no fabric")


def test_up_takes_over_from_a_killed_supervisor_with_the_sessions(fabric):
    """What a unit's Restart= does."""
    fabric("up", "-d", check=True)
    session = fabric("open", "-q", *FULL, check=True).out.strip()
    before = fabric("send", "-q", session, "A=kept; echo $$", check=True).out
    old = pid_of(fabric, "gateway_pid")
    os.kill(pid_of(fabric), signal.SIGKILL)
    fabric("up", "-d", check=True)
    assert pid_of(fabric, "gateway_pid") not in (0, old)
    after = fabric("send", "-q", session, "echo $A $$", check=True).out
    assert f"kept {before.splitlines()[1]}" in after.splitlines()
    assert start_time_of(old) == 0, "the old gateway still runs"


def test_the_demo_plays_as_the_readme_says():
    root = Path(__file__).parents[2]
    command = Command(Path("/nonexistent"))
    done = subprocess.run(
        [command.argv()[0], "-m", "fabric.cli.demo"],
        cwd=root,
        env=command.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "steps as expected, no process left" in done.stdout


@pytest.mark.parametrize("argv", [("status",), ("down",), ("--help",), ("config", "show")])
def test_commands_that_need_no_fabric_load_neither_ray_nor_grpc(fabric, argv):
    program = (
        "import sys\nfrom fabric.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('ray', 'grpc', 'google.protobuf') if name in sys.modules])"
    )
    done = subprocess.run(
        [fabric.argv()[0], "-c", program, *argv],
        env=fabric.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"
