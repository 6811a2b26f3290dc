"""A confined session started by a real shim: confinement, secrets, and teardown together."""

import contextlib
import os
from pathlib import Path

import pytest

from fabric.core.errors import SpawnFailedError
from fabric.core.model import SandboxMode
from tests.support.eventually import eventually
from tests.terminal.sandbox.world import NOBODY, Way, plan_for
from tests.terminal.shim.conftest import request_for, slots  # noqa: F401  (a fixture)

LOOK = (
    "(tr '\\0' '\\n' < /proc/$$/environ; tr '\\0' '\\n' < /proc/1/environ) | grep -c canary;"
    " ls {slot} 2>&1; touch /usr/fabric-x 2>&1; id -u; echo en''d\n"
)


def _swap_for_a_link(folder: Path) -> None:
    """The link is likely to get the inode number of the folder."""
    folder.rmdir()
    folder.symlink_to("/etc")


def _swap_a_parent_for_a_link(folder: Path) -> None:
    elsewhere = folder.parent.with_name("elsewhere")
    folder.parent.rename(elsewhere)
    folder.parent.symlink_to(elsewhere)


def _swap_for_another(folder: Path) -> None:
    folder.rename(folder.with_name("aside"))
    folder.mkdir()


WAYS = [
    Way(kind, SandboxMode.READ_ONLY, switched)
    for kind in ("bubblewrap", "landlock")
    for switched in (False, True)
]


@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_a_confined_session_by_a_real_shim(way, slots, monkeypatch):  # noqa: F811
    monkeypatch.setenv("SOME_API_KEY", "canary")
    client = await slots.launch()
    # The folder holds the shim's own socket: the session must not get at it.
    slots.folder.chmod(0o711)
    env = {"PATH": "/usr/bin:/bin", "PS1": "$ ", "TERM": "dumb"}
    argv = ("/bin/bash", "--norc", "--noprofile", "-i")
    launch = plan_for(way, "/usr", argv, (str(slots.folder),), env)
    spawned = await client.spawn(
        request_for(
            *launch.argv, env=launch.env, landlock=launch.landlock, cwd="/usr",
            run_as=str(NOBODY) if way.switched else None,
            wrappers=("bwrap",) if way.kind == "bubblewrap" else (),
        )
    )  # fmt: skip
    screen = slots.watch(spawned)
    await eventually(lambda: screen.text.endswith(b"$ "), what="first prompt")
    os.write(spawned.master_fd, LOOK.format(slot=slots.folder / "s" / "a.s").encode())
    await eventually(lambda: b"\nend\r\n" in screen.text, what="the end")
    lines = screen.text.decode().replace("\r\n", "\n").split("\n")
    assert "0" in lines[1:], lines
    assert "fabric-x" in screen.text.decode()
    assert "fabric-x" not in os.listdir("/usr")  # noqa: PTH208
    assert str(NOBODY if way.switched else os.geteuid()) in lines
    if way.kind == "bubblewrap":
        assert "No such file" in screen.text.decode()
    for environment in _environments_of("bwrap"):
        assert b"canary" not in environment
    receipt = await client.teardown(grace_s=1.0, shell_grace_s=1.0)
    assert receipt.survivors == ()
    assert receipt.elapsed_s < 1.0


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("swap", [_swap_for_a_link, _swap_a_parent_for_a_link, _swap_for_another])
async def test_a_swapped_workspace_is_a_typed_failure(kind, swap, slots, tmp_path):  # noqa: F811
    folder = tmp_path / "parent" / "ws"
    folder.mkdir(parents=True)
    way = Way(kind, SandboxMode.WORKSPACE_WRITE)
    launch = plan_for(way, str(folder), ("/bin/sh",))
    swap(folder)
    client = await slots.launch()
    with pytest.raises(SpawnFailedError, match="confine"):
        await client.spawn(
            request_for(*launch.argv, env=launch.env, landlock=launch.landlock, cwd="/")
        )


def _environments_of(name: str) -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text().strip() == name:
                found.append(path.with_name("environ").read_bytes())
    return found
