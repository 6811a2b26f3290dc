"""What a shim does when the machine has nothing left to give, and what it costs itself."""

import asyncio
import os
import re
import shutil
import sys
import time
from pathlib import Path

import pytest

from fabric.core.errors import SpawnFailedError
from tests.support.eventually import eventually, scaled
from tests.support.paths import ROOT
from tests.terminal.shim.conftest import typed

PTY_MAX = "/proc/sys/kernel/pty/max"
FEW_TERMINALS = """
mount -t devpts -o newinstance,ptmxmode=0666,max=3 devpts /dev/pts || exit 77
mount --bind /dev/pts/ptmx /dev/ptmx || exit 77
exec "$@"
"""
EXHAUST = """
import asyncio, os, pathlib, sys
sys.path.append(sys.argv[2])
from tests.terminal.shim.conftest import KEY, request_for
from workers.shim.client import ShimClient
async def main():
    folder = pathlib.Path(sys.argv[1])
    clients = [await ShimClient.launch(node_dir=folder, slot_id=s, key=KEY, orphan_grace_s=5)
               for s in "abcd"]
    open_ones = [await client.spawn(request_for("sleep", "600")) for client in clients[:3]]
    for _ in range(2):
        try:
            await clients[3].spawn(request_for("sleep", "600"))
        except Exception as error:
            print(type(error).__name__, error.metadata["step"], error, flush=True)
    await clients[0].quit()
    os.close(open_ones[0].master_fd)
    spawned = await clients[3].spawn(request_for("sleep", "600"))
    print("again", spawned.pid > 0, flush=True)
    for client in clients[1:]:
        await client.quit()
asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a mount namespace of its own")
async def test_no_terminal_left_is_an_error_of_its_own_and_passes(slots):
    child = await asyncio.create_subprocess_exec(
        "unshare", "-m", "sh", "-c", FEW_TERMINALS, "sh",
        sys.executable, "-c", EXHAUST, str(slots.folder), str(ROOT),
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await child.communicate()
    if child.returncode == 77:
        pytest.skip("no own devpts here")
    *refused, again = out.decode().splitlines()
    assert again == "again True"
    told = (
        r"PtyExhaustedError pty no pseudo-terminal is left on this node"
        r" \(the machine has (\d+) of at most (\d+)\)"
    )
    counts = [re.fullmatch(told, line) for line in refused]
    assert len(counts) == 2
    for count in counts:
        assert count
        assert 3 <= int(count[1]) <= int(count[2]) == int(Path(PTY_MAX).read_text())  # noqa: ASYNC240


async def test_start_takes_well_under_a_tenth_of_a_second(slots):
    times = []
    for number in range(7):
        before = time.perf_counter()
        await slots.launch(f"s{number}")
        times.append(time.perf_counter() - before)
    assert sorted(times)[3] < scaled(0.1)


async def test_shim_with_a_shell_is_small(slots):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    await typed(spawned, screen, "true")
    rollup = Path(f"/proc/{client.shim_pid}/smaps_rollup").read_text()  # noqa: ASYNC240
    dirty = int(re.search(r"Private_Dirty:\s+(\d+)", rollup)[1])
    assert dirty < 6_500, "kB of its own; what it shares with other interpreters is not counted"


async def test_idle_shim_sleeps(slots):
    client = await slots.launch()
    await slots.bash(client)

    def switches():
        status = Path(f"/proc/{client.shim_pid}/status").read_text()
        return int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", status)[1])

    await client.set_labels(b"the last thing it is asked")
    steady = []

    def is_steady():
        steady.append(switches())
        return len(steady) > 30 and steady[-1] == steady[-30]

    await eventually(is_steady, within=5)


async def test_a_confined_spawn_finds_its_module_loaded(slots, monkeypatch):
    """The shim has imported it while it was idle; its file is gone when it is asked for."""
    code = slots.folder / "code" / "workers"
    shutil.copytree(ROOT / "workers" / "shim", code / "shim")
    (code / "__init__.py").touch()
    monkeypatch.setattr("workers.shim.launch.__file__", str(code / "shim" / "launch.py"))
    client = await slots.launch()
    shutil.rmtree(code)
    with pytest.raises(SpawnFailedError) as failed:
        await slots.spawn(client, "sleep", "1", landlock=b"not a plan")
    assert failed.value.metadata["step"] == "confine"
    assert "not available" not in failed.value.message
