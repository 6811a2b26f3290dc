"""Confined sessions by the very path an open takes: worker, plan, shim, program."""

import tempfile
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from fabric.core.model import OpenResult, SandboxMode
from fabric.core.plain import from_plain, to_plain
from fabric.core.settings import TeardownSettings, WorkerSettings
from tests.support import intruder
from tests.support.local_worker import config_in, spec_for, worker_in
from tests.terminal.sandbox.world import NOBODY, node_for

READ, WRITE = SandboxMode.READ_ONLY, SandboxMode.WORKSPACE_WRITE
FULL = SandboxMode.DANGER_FULL_ACCESS
TEARDOWN = TeardownSettings(grace_s=1.0, shell_grace_s=0.5)
QUICK = WorkerSettings(teardown=TEARDOWN)


@contextmanager
def somewhere() -> Iterator[Path]:
    """A folder outside /tmp that every account may pass through, with a workspace in it."""
    with tempfile.TemporaryDirectory(prefix="pfb", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "state").mkdir(mode=0o700)
        (folder / "ws").mkdir(mode=0o777)
        (folder / "ws").chmod(0o777)
        (folder / "look.py").write_text(Path(intruder.__file__).read_text())
        yield folder


@asynccontextmanager
async def session(way, place, settings=QUICK, *, node=None, config=None, **facts):
    """A shell confined in this way, by the very path an open takes."""
    verdict = None if way.kind == "none" else replace(node_for(way), **(node or {}))
    async with worker_in(
        place / "state", settings, config or config_in(place / "state")
    ) as terminal:
        wanted = {
            "mode": way.mode,
            "network": way.network,
            "workspace_root": str(place / "ws"),
            "run_as": str(NOBODY) if way.switched else None,
        }
        terminal.spec = spec_for(**(wanted | facts))
        args = {"spec": to_plain(terminal.spec), "confinement": to_plain(verdict)}
        raw = await terminal.client.call("open", args)
        terminal.opened = from_plain(OpenResult, raw)
        yield terminal


async def printed(shell, command, within=20):
    """What a command prints, without its echo and the prompt."""
    result = await shell.send(command, timeout_s=within)
    assert result.exit_code == 0, result.viewport
    return result.viewport.split("\n")[1:-1]


def environment_of(pid):
    """The environment a process was started with, raw."""
    return Path(f"/proc/{pid}/environ").read_bytes()
