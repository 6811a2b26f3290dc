"""What a terminal can do inside bubblewrap: everything a terminal does."""

import contextlib
import fcntl
import os
import re
import shutil
import signal
import socket
import struct
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabric.core.model import Network, SandboxMode
from tests.support.eventually import eventually_sync
from tests.terminal.sandbox.world import OnTerminal, Way, command_for, node_for, plan_for

WRITE, READ = SandboxMode.WORKSPACE_WRITE, SandboxMode.READ_ONLY
ENV = {
    "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/", "LANG": "C.UTF-8", "PS1": "<ready>",
    "TERM": "dumb", "SHELL": "/bin/sh",
}  # fmt: skip
PROMPT = b"<ready>"


class Shell(OnTerminal):
    """An interactive bash inside; ``run`` returns what a command printed."""

    def run(self, line: str, within: float = 10.0) -> str:
        self.output = b""
        self.type(f"{line}\r")
        text = self.read_until(lambda seen: seen.rstrip().endswith(PROMPT), within)
        return text.partition("\r\n")[2].rpartition("<ready>")[0].replace("\r\n", "\n")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    for parent in (folder, *folder.parents[:3]):
        with contextlib.suppress(PermissionError):
            parent.chmod(0o755)
    return folder


@contextlib.contextmanager
def shell(way: Way, workspace: Path, **facts) -> Iterator[Shell]:
    if way.switched:
        os.chown(workspace, 65534, -1)
    argv = ("/bin/bash", "--noprofile", "--norc", "-i")
    launch = plan_for(way, str(workspace), argv, env=ENV, **facts)
    owner = 65534 if way.switched else os.geteuid()
    with Shell(command_for(way, launch), launch.env, owner, str(workspace)) as started:
        started.read_until(lambda seen: seen.endswith(PROMPT))
        yield started


@pytest.fixture(params=[False, True], ids=["self", "nobody"])
def inside(request, workspace) -> Iterator[Shell]:
    with shell(Way("bubblewrap", WRITE, request.param), workspace) as started:
        yield started


def test_the_shell_sees_its_own_processes_and_the_terminal(inside):
    assert inside.run("tty") == "/dev/console\n"
    assert inside.run("test -t 0 && test -t 1 && test -t 2 && echo x > /dev/tty") == "x\n"
    assert inside.run("echo y > $(tty)") == "y\n"
    rows = inside.run("ps -o pid=,comm= | sort -n").split("\n")
    assert any(row.split()[1:] == ["bash"] for row in rows if row)
    assert "bwrap" in inside.run("cat /proc/1/comm")
    assert int(inside.run("echo $$")) < 10


def test_job_control_works(inside):
    assert "no job control" not in inside.output.decode()
    inside.output = b""
    foreground = os.tcgetpgrp(inside.master)
    inside.type("sleep 600\r")
    eventually_sync(lambda: os.tcgetpgrp(inside.master) != foreground)
    inside.type("\x1a")
    assert "Stopped" in inside.read_until(lambda seen: seen.endswith(PROMPT))
    assert "sleep 600 &" in inside.run("bg")
    assert "Running" in inside.run("jobs")
    inside.output = b""
    inside.type("fg\r")
    eventually_sync(lambda: os.tcgetpgrp(inside.master) != foreground)
    inside.type("\x03")
    inside.read_until(lambda seen: seen.endswith(PROMPT))
    assert inside.run("echo $?") == "130\n"
    assert inside.run("jobs") == ""


def test_the_window_size_passes(inside):
    fcntl.ioctl(inside.master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    inside.type("stty size\r")
    assert "33 99" in inside.read_until(lambda seen: b"33 99" in seen)


def test_programs_can_make_terminals_of_their_own(inside):
    text = inside.run("script -qc 'tty; test -t 1 && echo yes' /dev/null")
    assert text == "/dev/pts/0\nyes\n"


@pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux here")
def test_tmux_works(inside):
    assert (
        inside.run("tmux -S /tmp/mux -f /dev/null new-session -d 'sleep 600' && echo up") == "up\n"
    )
    assert "1 windows" in inside.run("tmux -S /tmp/mux ls")
    assert inside.run("tmux -S /tmp/mux kill-server; echo $?") == "0\n"


def test_programs_that_reopen_their_terminal_find_it(inside):
    code = "import os; n = os.ttyname(0); f = os.open(n, os.O_RDWR); print(n, os.isatty(f))"
    assert inside.run(f"/usr/bin/python3 -c '{code}'") == "/dev/console True\n"


def test_what_is_written_stays_in_the_workspace_and_tmp_is_private(inside, workspace):
    assert inside.run(
        "echo kept > a && echo gone > /tmp/fabric-private && cat /tmp/fabric-private"
    ) == ("gone\n")
    assert (workspace / "a").read_text() == "kept\n"
    assert not Path("/tmp/fabric-private").exists()
    assert "Read-only file system" in inside.run("touch /usr/x")


def test_setuid_programs_gain_nothing(inside):
    assert inside.run(
        "grep -h -e NoNewPrivs -e CapEff /proc/self/status | tr -d '\\t\\n'"
    ).strip() == ("CapEff:0000000000000000NoNewPrivs:1")


def test_the_exit_status_passes_through(inside):
    inside.type("exit 7\r")
    inside.read_all()
    assert inside.process.wait(timeout=10) == 7


def _below(pid: int) -> set[int]:
    """Every process below this one, as seen from outside."""
    found, todo = set(), [pid]
    while todo:
        for path in Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                children = [int(word) for word in path.read_text().split()]
                found.update(children)
                todo.extend(children)
    return found


def _alive(pids: set[int]) -> set[int]:
    def lives(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
        except OSError:
            return False

    return {pid for pid in pids if lives(pid)}


def test_all_dies_with_the_sandbox_daemons_too(inside):
    assert inside.run("(setsid sleep 601 &) ; (trap '' TERM HUP; sleep 602 &) ; echo up") == "up\n"
    pids = _below(inside.process.pid)
    assert len(pids) >= 4
    os.kill(inside.process.pid, signal.SIGKILL)
    eventually_sync(lambda: not _alive(pids))


def test_all_dies_with_the_parent_of_the_sandbox(workspace):
    """The shim is that parent; here a process in between stands for it."""
    way = Way("bubblewrap", WRITE)
    launch = plan_for(way, str(workspace), ("/bin/sh", "-c", "echo up; exec sleep 603"), env=ENV)
    command = command_for(way, launch)
    between = (
        "import os, sys, signal\n"
        "pid = os.fork()\n"
        "if pid == 0: os.execv(sys.argv[1], sys.argv[1:])\n"
        "signal.pause()\n"
    )
    argv = ("/usr/bin/env", "python3", "-c", between, *command)
    with OnTerminal(argv, launch.env, os.geteuid(), str(workspace)) as parent:
        parent.read_until(lambda seen: b"up" in seen)
        pids = _below(parent.process.pid)
        assert len(pids) >= 3
        os.kill(parent.process.pid, signal.SIGKILL)
        eventually_sync(lambda: not _alive(pids))


def test_the_service_can_look_at_a_confined_process(inside):
    """Readiness needs the wait of the shell, also across the user namespace."""
    shell_pid = os.tcgetpgrp(inside.master)
    assert Path(f"/proc/{shell_pid}/comm").read_text() == "bash\n"
    eventually_sync(lambda: Path(f"/proc/{shell_pid}/syscall").read_text().split()[0].isdigit())
    assert os.stat(f"/proc/{shell_pid}/fd/0").st_rdev == os.stat(inside.slave_name).st_rdev  # noqa: PTH116


@pytest.mark.parametrize("switched", [False, True], ids=["self", "nobody"])
@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_no_network_means_none(kind, switched, workspace):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = (
            "import socket as s\n"
            "def t(f):\n"
            "  try: f(); print('open')\n"
            "  except OSError as e: print('closed')\n"
            f"t(lambda: s.create_connection(('127.0.0.1', {port}), 2))\n"
            f"t(lambda: s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9)))\n"
            "t(lambda: s.socket(s.AF_INET6, s.SOCK_STREAM).connect(('::1', 9)))\n"
        )
        expected = {Network.NONE: ["closed"] * 3, Network.SHARED: ["open"]}
        for network, words in expected.items():
            way = Way(kind, READ, switched, network)
            launch = plan_for(way, str(workspace), ("/usr/bin/python3", "-c", code), env=ENV)
            owner = 65534 if switched else os.geteuid()
            with OnTerminal(command_for(way, launch), launch.env, owner, "/") as child:
                assert child.read_all().split()[: len(words)] == words


def test_a_workspace_swapped_after_the_check_is_refused(workspace):
    way = Way("bubblewrap", WRITE)
    for kind in ("bubblewrap", "landlock"):
        way = Way(kind, WRITE)
        launch = plan_for(way, str(workspace), ("/bin/sh", "-c", "echo started"), env=ENV)
        aside = workspace.with_name("aside")
        workspace.rename(aside)
        workspace.symlink_to("/etc")
        try:
            with OnTerminal(command_for(way, launch), launch.env, os.geteuid(), "/") as child:
                text = child.read_all()
        finally:
            workspace.unlink()
            aside.rename(workspace)
        assert "started" not in text
        assert re.search("not the folder it was|Not a directory", text)


def test_a_socket_that_goes_before_the_start_does_no_harm(workspace):
    """Between the plan and the start anything may happen to other programs."""
    for switched in (False, True):
        way = Way("bubblewrap", READ, switched)
        node_for(way)
        path = workspace / "going.s"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            launch = plan_for(way, str(workspace), ("/bin/echo", "started"), env=ENV)
        assert launch.landlock is not None
        assert str(path) in launch.landlock.decode()
        path.unlink()
        with OnTerminal(command_for(way, launch), launch.env, os.geteuid(), "/") as child:
            assert child.read_all().strip() == "started"
