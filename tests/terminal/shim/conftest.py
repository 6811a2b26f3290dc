"""Shims for one test each, ended with it."""

import asyncio
import contextlib
import os
import shutil
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fabric.core.errors import StaleGenerationError
from tests.load.trees import PATH, Screen
from tests.support.eventually import eventually
from workers.shim.client import ShimClient, Spawned, SpawnRequest
from workers.shim.launch import socket_path

KEY = "k" * 32


def request_for(*argv: str, **fields: object) -> SpawnRequest:
    """A spawn request with everything a test does not care about filled in."""
    env = {"PATH": PATH, "TERM": "dumb", "PS1": "$ "} | dict(fields.pop("env", {}))  # type: ignore[call-overload]
    plain = {
        "cwd": "/", "rows": 24, "cols": 80, "log_bytes": 65536, "labels": b"{}",
        "grace_s": 0.3, "shell_grace_s": 0.3,
    }  # fmt: skip
    return SpawnRequest(argv=argv, env=env, **(plain | fields))  # type: ignore[arg-type]


@dataclass
class Slots:
    """Makes shims in a folder of their own and remembers what must be closed."""

    folder: Path
    clients: list[ShimClient] = field(default_factory=list)
    screens: list[Screen] = field(default_factory=list)
    fds: list[int] = field(default_factory=list)
    workers: list[asyncio.subprocess.Process] = field(default_factory=list)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)

    def socket(self, slot: str = "a") -> Path:
        return socket_path(self.folder, slot)

    async def launch(self, slot: str = "a", orphan_grace_s: float = 20.0) -> ShimClient:
        client = await ShimClient.launch(
            node_dir=self.folder, slot_id=slot, key=KEY, orphan_grace_s=orphan_grace_s
        )
        self.clients.append(client)
        return client

    async def connect(self, slot: str = "a", key: str = KEY) -> ShimClient:
        client = await ShimClient.connect(socket=self.socket(slot), key=key)
        self.clients.append(client)
        return client

    async def spawn(
        self, client: ShimClient, *argv: str, **fields: object
    ) -> tuple[Spawned, Screen]:
        env = {"TREE_MARK": self.mark} | dict(fields.pop("env", {}))  # type: ignore[call-overload]
        spawned = await client.spawn(request_for(*argv, env=env, **fields))
        return spawned, self.watch(spawned)

    def watch(self, spawned: Spawned) -> Screen:
        screen = Screen(spawned.master_fd)
        self.screens.append(screen)
        self.fds.append(spawned.log_fd)
        return screen

    async def bash(self, client: ShimClient, **fields: object) -> tuple[Spawned, Screen]:
        """An interactive bash at its first prompt."""
        spawned, screen = await self.spawn(client, "bash", "--norc", "--noprofile", "-i", **fields)
        await eventually(lambda: screen.text.endswith(b"$ "), what="first prompt")
        return spawned, screen

    async def close(self) -> None:
        for worker in self.workers:
            if worker.returncode is None:
                worker.kill()
            await worker.communicate()
        for client in self.clients:
            if not client.lost.done():
                with contextlib.suppress(StaleGenerationError):  # it has not heard of it yet
                    await client.quit()
        for screen in self.screens:
            screen.close()
        for fd in self.fds:
            os.close(fd)


async def typed(spawned: Spawned, screen: Screen, line: str, until: str = "sett-led") -> str:
    """Type a line and return what came until it had run; ``until`` is echoed by the shell."""
    start = len(screen.text)
    word = until.replace("-", "")
    os.write(spawned.master_fd, f"{line}; echo {until.replace('-', chr(39) * 2)}\n".encode())
    await eventually(lambda: word.encode() in screen.text[start:], what=f"{line} to run")
    return screen.text[start:].decode("utf-8", "replace")


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


@pytest.fixture
async def slots():
    folder = Path(tempfile.mkdtemp(prefix="shim-"))
    made = Slots(folder)
    try:
        yield made
    finally:
        await asyncio.wait_for(made.close(), 20)
        shutil.rmtree(folder)
