"""Random process trees below a real shell, and whether closing it leaves anything.

    python -m tests.load.trees --count 500

Every tree comes from a seed. What is left is counted without the shim: each process of a
tree carries the run's mark in its environment, and ``/proc`` is searched for it.
"""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from fabric.core.model import CloseReceipt
from tests.support.eventually import eventually
from workers.shim.client import ShimClient, Spawned, SpawnRequest

GRACE_S = 0.3
SHELL_GRACE_S = 0.3
PATH = "/usr/local/bin:/usr/bin:/bin"

DEAF = 'trap "" TERM HUP INT QUIT'
ON_TERM = "while :; do sleep 0.02; done"
LEAVES = {
    "plain": "sleep 611",
    "nohup": "nohup sleep 612",
    "setsid": "setsid sleep 613",
    "setsid-fork": "setsid -f sleep 614",
    "double-fork": "sh -c 'sh -c \"setsid sleep 615 &\" &'",
    "stopped": "sh -c 'kill -STOP $$; exec sleep 616'",
    "stopped-and-deaf": f"sh -c '{DEAF}; kill -STOP $$; sleep 617; sleep 617'",
    "deaf": f"sh -c '{DEAF}; while :; do sleep 0.05; done'",
    "deaf-sleep": f"sh -c '{DEAF}; sleep 618; sleep 618'",
    "forks-on-term": f"sh -c 'trap \"setsid sleep 619 & sleep 619 &\" TERM; {ON_TERM}'",
    "forks-deaf-on-term": f"sh -c 'trap \"(trap : TERM; sleep 620; sleep 620) &\" TERM; {ON_TERM}'",
    "respawner": "sh -c 'while :; do sleep 621; done'",
    "restless": "sh -c 'while :; do sleep 0.01 & sleep 0.005; done'",
    "tty-holder": "sleep 622 <>/dev/tty >&0 2>&1",
    "zombies": "sh -c 'sleep 0.001 & sleep 0.001 & exec sleep 623'",
    "pipeline": "sh -c 'yes | sleep 624 | cat'",
    "daemon-pair": "sh -c 'setsid sh -c \"sleep 625 & setsid sleep 626 & wait\" &'",
}
TRAPS = {
    "spawning": "trap 'setsid sleep 631 & nohup sleep 632 >/dev/null 2>&1 &' EXIT",
    "slow": "trap 'sleep 633' EXIT",
    "deaf-spawning": f"trap '({DEAF}; sleep 634; sleep 634) & disown' EXIT HUP",
}
BOMB = (
    "sh -c 'b() { n=$1; while [ $n -gt 0 ]; do n=$((n-1));"
    ' (trap "" TERM; sleep 0.01; b $n) & done; sleep 0.5; }; b 6\' &'
)
"""Doubles itself while it is being killed; 2^6 processes at most."""


@dataclass(frozen=True)
class Tree:
    """What one seed types into the shell, and how it may end."""

    lines: tuple[str, ...]
    foreground: str | None
    delay_s: float
    exits_by_itself: bool


def tree_of(seed: int) -> Tree:
    """Make a tree of one to six kinds of processes; everything is decided by the seed."""
    chance = random.Random(seed)
    lines = [f"{LEAVES[name]} &" for name in chance.choices(list(LEAVES), k=chance.randint(1, 6))]
    lines = [f"({line} )" if chance.random() < 0.2 else line for line in lines]
    if chance.random() < 0.3:
        lines.append(TRAPS[chance.choice(list(TRAPS))])
    if chance.random() < 0.1:
        lines.append(BOMB)
    if chance.random() < 0.2:
        lines.append("disown -a")
    foreground = LEAVES[chance.choice(list(LEAVES))] if chance.random() < 0.3 else None
    exits = foreground is None and chance.random() < 0.15
    return Tree(tuple(lines), foreground, chance.random() * 0.05, exits)


def marked(mark: str) -> list[str]:
    """Name the living processes whose environment carries a mark."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if mark.encode() not in (folder / "environ").read_bytes():
                continue
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, IndexError):
            continue
        if state not in "ZX":
            found.append(f"{folder.name} {state} {line}")
    return found


async def started(client: ShimClient, mark: str) -> Spawned:
    """Start an interactive bash that carries the mark."""
    return await client.spawn(
        SpawnRequest(
            argv=("bash", "--norc", "--noprofile", "-i"),
            env={"PATH": PATH, "TERM": "dumb", "TREE_MARK": mark, "PS1": "$ "},
            cwd="/",
            rows=24,
            cols=80,
            log_bytes=65536,
            labels=b"",
            grace_s=GRACE_S,
            shell_grace_s=SHELL_GRACE_S,
        )
    )


class Screen:
    """Drains a master, as a worker would; keeps what it saw."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.text = b""
        os.set_blocking(fd, False)
        asyncio.get_running_loop().add_reader(fd, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._fd, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.text += data
        if not data:
            asyncio.get_running_loop().remove_reader(self._fd)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)


@dataclass(frozen=True)
class Outcome:
    """How one tree ended; ``survivors`` come from the search, not from the receipt."""

    seed: int
    seconds: float
    survivors: tuple[str, ...]
    receipt: CloseReceipt


async def run(seed: int, folder: Path) -> Outcome:
    """Grow the tree of a seed, close it, and search for what is left."""
    tree = tree_of(seed)
    mark = uuid.uuid4().hex
    client = await ShimClient.launch(
        node_dir=folder, slot_id=f"t{seed}", key="key", orphan_grace_s=20
    )
    spawned = await started(client, mark)
    screen = Screen(spawned.master_fd)
    try:
        script = "\n".join(tree.lines) + "\necho rea''dy\n"
        os.write(spawned.master_fd, script.encode())
        await eventually(lambda: b"\nready" in screen.text, within=10, what=f"tree {seed} grown")
        if tree.foreground is not None:
            os.write(spawned.master_fd, f"{tree.foreground}\n".encode())
        if tree.exits_by_itself:
            os.write(spawned.master_fd, b"exit 3\nexit 3\n")
        await asyncio.sleep(tree.delay_s)  # the seed's own: how far the tree has come
        before = time.perf_counter()
        receipt = await client.teardown(grace_s=GRACE_S, shell_grace_s=SHELL_GRACE_S)
        seconds = time.perf_counter() - before
        survivors = tuple(marked(mark)) + tuple(entry.name for entry in receipt.survivors)
        await client.quit()
    finally:
        screen.close()
        os.close(spawned.log_fd)
        client.close()
    return Outcome(seed, seconds, survivors, receipt)


def say(line: str) -> None:
    """Print a result."""
    sys.stdout.write(line + "\n")


async def _main(count: int, first: int) -> int:
    left = 0
    times: list[float] = []
    processes = 0
    with tempfile.TemporaryDirectory(prefix="trees-") as folder:
        for seed in range(first, first + count):
            outcome = await run(seed, Path(folder))
            times.append(outcome.seconds)
            processes += len(outcome.receipt.ended)
            left += len(outcome.survivors)
            for survivor in outcome.survivors:
                say(f"tree {seed}: left {survivor}: {tree_of(seed)}")
    times.sort()
    say(
        f"{count} trees, {processes} processes ended, {left} survivors; close with a grace of "
        f"{GRACE_S:g} s: p50 {times[len(times) // 2] * 1e3:.1f} ms, "
        f"p99 {times[int(len(times) * 0.99)] * 1e3:.1f} ms, max {times[-1] * 1e3:.1f} ms"
    )
    return 1 if left else 0


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    return asyncio.run(_main(arguments.count, arguments.first))


if __name__ == "__main__":
    sys.exit(main())
