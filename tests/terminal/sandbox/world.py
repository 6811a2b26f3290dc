"""A world around a sandbox: things worth reaching, and a way to see whether they were reached.

Everything belongs to the very uid that the sandboxed program runs under, so that nothing but
the sandbox protects it.
"""

# ruff: noqa: PTH101, PTH110, PTH116, PTH208

import atexit
import contextlib
import ctypes
import json
import os
import pty
import secrets
import select
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from fabric.core.model import Confinement, Network, SandboxMode
from fabric.core.settings import SandboxSettings
from tests.support.eventually import scaled
from tests.support.paths import ROOT
from workers.sandbox import confine, probe, seccomp
from workers.sandbox.policy import ResolvedPolicy, folder_at
from workers.shim import confine as applier

PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
ATTEMPTS = Path(__file__).with_name("attempts")


def _attempts_root() -> str:
    """Where the attempts can be imported from inside: a private /tmp hides a checkout there."""
    if not str(ROOT).startswith(("/tmp/", "/dev/shm/")):
        return str(ROOT)
    copy = Path(tempfile.mkdtemp(prefix="fabric-attempts-", dir="/var/tmp"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    here = Path("tests/terminal/sandbox")
    shutil.copytree(ROOT / here / "attempts", copy / here / "attempts")
    for package in (here, here.parent, here.parent.parent):
        (copy / package / "__init__.py").touch()
    return str(copy)


START = (
    f"import sys; sys.path.insert(0, {_attempts_root()!r}); "
    "from tests.terminal.sandbox.attempts.__main__ import main; main()"
)
NOBODY = 65534
INTACT = "intact"
RUN_LIMIT_S = 60.0
_LIBC = ctypes.CDLL(None, use_errno=True)
_IPC_CREAT, _IPC_RMID = 0o1000, 0


@dataclass(frozen=True)
class Way:
    """One way to be confined: by what, in which mode, under which uid, with which network."""

    kind: str
    mode: SandboxMode
    switched: bool = False
    network: Network = Network.SHARED

    def __str__(self) -> str:
        account = "nobody" if self.switched else "self"
        return f"{self.kind}-{self.mode.value}-{account}"

    @property
    def writes(self) -> bool:
        return self.mode is SandboxMode.WORKSPACE_WRITE


def node_for(way: Way) -> probe.NodeConfinement:
    """The verdict on this machine, cut down to one kind; skips what it cannot do."""
    node = probe.probe_now(SandboxSettings())
    if way.switched and os.geteuid() != 0:
        pytest.skip("only root can run as somebody else")
    if way.kind == "landlock":
        node = replace(node, bubblewrap=None, bubblewrap_switched=None)
        if not node.landlock_abi:
            pytest.skip("this kernel has no Landlock")
    elif not (node.bubblewrap_switched if way.switched else node.bubblewrap):
        pytest.skip(f"no bubblewrap for this account here: {node.failure}")
    return node


def plan_for(
    way: Way, workspace: str, argv: tuple[str, ...], masked: tuple[str, ...] = (),
    env: dict[str, str] | None = None, cwd: str | None = None,
) -> confine.Launch:  # fmt: skip
    folder = folder_at(workspace)
    assert folder is not None
    run_as = str(NOBODY) if way.switched else None
    policy = ResolvedPolicy(way.mode, way.network, folder, cwd or folder.path, run_as)
    clean = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/", "LANG": "C.UTF-8"}
    return confine.plan(policy, argv, clean if env is None else env, node_for(way), masked)


def command_for(way: Way, launch: confine.Launch) -> tuple[str, ...]:
    """The command that becomes the session's program, as the shim's child would."""
    if launch.landlock is None:
        return launch.argv
    return applier.command(launch.landlock, launch.argv, (NOBODY, NOBODY) if way.switched else None)


class OnTerminal:
    """A program on a terminal of its own."""

    def __init__(self, command: tuple[str, ...], env: dict[str, str], owner: int, cwd: str) -> None:
        self.master, slave = pty.openpty()
        self.slave_name = os.ttyname(slave)
        os.fchown(slave, owner, -1)
        self.process = subprocess.Popen(
            command, env=env, cwd=cwd, stdin=slave, stdout=slave, stderr=slave,
            preexec_fn=lambda: os.login_tty(0), close_fds=True,
        )  # fmt: skip
        os.close(slave)
        self.output = b""

    def __enter__(self) -> "OnTerminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=scaled(10))
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def read_until(self, done: Callable[[bytes], bool], within: float = 10.0) -> str:
        """Read until the output satisfies ``done`` or the program ends."""
        deadline = time.monotonic() + scaled(within)
        while not done(self.output):
            ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise AssertionError(f"nothing more came; so far: {self.output[-2000:]!r}")
            try:
                data = os.read(self.master, 65536)
            except OSError:
                data = b""
            if not data:
                break
            self.output += data
        return self.output.decode(errors="replace")

    def read_all(self, within: float = RUN_LIMIT_S) -> str:
        return self.read_until(lambda _: False, within)


class World:
    """Things worth reaching from inside, owned by the uid that runs inside."""

    def __init__(self, way: Way, stack: contextlib.ExitStack) -> None:
        self.way = way
        self.uid = NOBODY if way.switched else os.geteuid()
        self.name = f"fabric-{secrets.token_hex(6)}"
        # Not in /tmp: that is hidden in one mode and granted in another.
        self.base = Path(tempfile.mkdtemp(prefix="fabric-world-", dir="/var/tmp"))
        stack.callback(shutil.rmtree, self.base, ignore_errors=True)
        self._stack = stack
        stack.callback(self._clear_temporary)
        self.outside, self.workspace = self._folder("outside"), self._folder("ws")
        self.state = self._folder("state")
        self.victim = self._file("outside/victim", INTACT)
        self.secret = self._file("state/token", "canary-secret")
        self.key = self._file("key", "canary-key")
        for link, target in (
            ("link", self.victim), ("folder", self.outside), ("secret-link", self.secret),
        ):  # fmt: skip
            (self.workspace / link).symlink_to(target)
        self.shim = self._listener(str(self.state / "shim.s"))
        self.other = self._listener(str(self.base / "other.s"))
        self.abstract = self._listener("\0" + self.name)
        self.master, slave = pty.openpty()
        stack.callback(os.close, self.master)
        stack.callback(os.close, slave)
        os.fchown(slave, self.uid, -1)
        self.terminal = os.ttyname(slave)
        self.process = self._victim()
        self.memory_key = secrets.randbelow(1 << 30) + 1
        self.memory = self._shared_memory()
        self._keys()
        os.chown(self.base, self.uid, -1)
        self.base.chmod(0o777)
        self._modes = {path: self._mode(path) for path in self._kernel_files()}

    def facts(self) -> str:
        maps = Path(f"/proc/{self.process.pid}/maps").read_text()
        return json.dumps(
            {
                "name": self.name, "outside": str(self.outside), "workspace": str(self.workspace),
                "state": str(self.state), "secret": str(self.secret), "key": str(self.key),
                "shim_socket": str(self.state / "shim.s"),
                "other_socket": str(self.base / "other.s"),
                "pid": self.process.pid, "terminal": self.terminal, "memory": self.memory_key,
                "address": int(maps.split("-", 1)[0], 16),
                "disk": next((path.stat().st_rdev for path in Path("/dev").glob("[sv]d?")), 0),
            }
        )  # fmt: skip

    def masked(self) -> tuple[str, ...]:
        return str(self.state), str(self.key)

    def attempt_all(self, *names: str) -> tuple[dict[str, dict[str, str | None]], Confinement]:
        """Run every attempt (or these) in one sandbox; returns what came of each."""
        argv = (PYTHON, "-I", "-B", "-c", START, self.facts(), *names)
        launch = plan_for(self.way, str(self.workspace), argv, self.masked())
        with OnTerminal(command_for(self.way, launch), launch.env, self.uid, "/") as child:
            text = child.read_all()
        rows = [json.loads(row[1:]) for row in text.splitlines() if row.startswith("@")]
        assert rows, text
        return {row.pop("name"): row for row in rows}, launch.confinement

    def damage(self) -> list[str]:
        """Say what has changed outside."""
        found = []
        if not self.victim.is_file() or self.victim.read_text() != INTACT:
            found.append("the victim file changed")
        elif self._mode(self.victim) != 0o644:
            found.append("the victim file's mode changed")
        if os.listdir(self.outside) != ["victim"]:
            found.append(f"the outside folder holds {sorted(os.listdir(self.outside))}")
        if sorted(os.listdir(self.state)) != ["shim.s", "token"]:
            found.append("the state folder changed")
        if self.process.poll() is not None:
            found.append("the victim process ended")
        if self.memory is not None and self.memory.raw[:6] != INTACT.encode():
            found.append("shared memory changed")
        for noun, listener in (
            ("shim", self.shim),
            ("other", self.other),
            ("abstract", self.abstract),
        ):
            if select.select([listener], [], [], 0)[0]:
                found.append(f"the {noun} socket was reached")
        if select.select([self.master], [], [], 0)[0]:
            found.append("another terminal was written to")
        for folder in ("/dev/shm", "/tmp", "/etc", "/usr", "/var/tmp", "/root", "/home", "/"):
            if os.path.lexists(f"{folder}/{self.name}"):
                found.append(f"{folder} was written to")
        found += [
            f"the mode of {p} changed" for p, mode in self._modes.items() if self._mode(p) != mode
        ]
        return found

    def _clear_temporary(self) -> None:
        (Path("/tmp") / self.name).unlink(missing_ok=True)  # granted in one of the modes

    def _folder(self, name: str) -> Path:
        folder = self.base / name
        folder.mkdir(mode=0o755)
        os.chown(folder, self.uid, -1)
        return folder

    def _file(self, name: str, text: str) -> Path:
        path = self.base / name
        path.write_text(text)
        path.chmod(0o644)
        os.chown(path, self.uid, -1)
        return path

    def _listener(self, address: str) -> socket.socket:
        listener = self._stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(address)
        listener.listen(64)
        if address.startswith("/"):
            os.chmod(address, 0o777)
        return listener

    def _victim(self) -> subprocess.Popen[bytes]:
        switch = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if self.way.switched else {}
        process = subprocess.Popen(
            ["/bin/cat"], env={"CANARY": "canary-environment"}, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, start_new_session=True, **switch,
        )  # fmt: skip
        assert process.stdin is not None

        def end() -> None:
            process.stdin.close()
            process.kill()
            process.wait()

        self._stack.callback(end)
        return process

    def _shared_memory(self) -> "ctypes.Array[ctypes.c_char] | None":
        number = _LIBC.shmget(self.memory_key, 4096, _IPC_CREAT | 0o666)
        if number < 0:
            return None
        self._stack.callback(_LIBC.shmctl, number, _IPC_RMID, None)
        _LIBC.shmat.restype = ctypes.c_void_p
        address = _LIBC.shmat(number, None, 0)
        self._stack.callback(_LIBC.shmdt, ctypes.c_void_p(address))
        memory = (ctypes.c_char * 4096).from_address(address)
        memory[: len(INTACT)] = INTACT.encode()
        return memory

    def _keys(self) -> None:
        """Put a key in the session keyring, which children inherit, and in the user's."""
        number = seccomp.keyctl_number(os.uname().machine)
        if number is None:
            return
        add_key = {250: 248, 219: 217}[number]
        for keyring in (-3, -4):
            _LIBC.syscall(add_key, b"user", self.name.encode(), b"canary", 6, keyring)

    def _kernel_files(self) -> Iterator[str]:
        for path in ("/dev/null", "/dev/zero", "/dev/tty", "/dev/urandom", "/proc/uptime"):
            if os.path.exists(path):
                yield path

    @staticmethod
    def _mode(path: str | Path) -> int:
        return stat.S_IMODE(os.stat(path).st_mode)
