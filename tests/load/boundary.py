"""What the process boundary costs: opens in a sandbox beside opens without, and closes.

    python -m tests.load.boundary
    python -m tests.load.boundary --only opens closes --rounds 40

Opens and closes go through the gateway of an embedded fabric. Confined and unconfined opens
take turns, so that whatever else the machine does meets both. ``trees`` closes randomised
trees of processes (``tests.load.trees``) and searches for survivors without the shim's help.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from fabric.client import FabricClient
from fabric.core.model import SandboxMode
from tests.load import floor, trees
from tests.load.embedded import Embedded, embedded
from tests.load.measure import Report, machine, ms, p50, p99
from tests.support.eventually import eventually
from workers.sandbox import bubblewrap

FULL, READ = SandboxMode.DANGER_FULL_ACCESS, SandboxMode.READ_ONLY
WRITE = SandboxMode.WORKSPACE_WRITE
GRACE_S = 1.0
CHILDREN = 50


def client(fabric: Embedded, mode: SandboxMode) -> FabricClient:
    return FabricClient.connect(
        fabric.address, token=fabric.token, agent=f"bench-{mode.value}", mode=mode
    )


def lives(pid: int | None) -> bool:
    return Path(f"/proc/{pid}").exists()


async def idle(fabric: FabricClient) -> None:
    """Wait until the warm slots are back and nothing of the pool is under way."""

    async def warm() -> bool:
        return all(node.warm >= 2 for node in await fabric.nodes())

    await eventually(warm, within=60, what="warm slots")


async def opens(report: Report, fabric: Embedded, rounds: int) -> None:
    """Warm opens in each mode, taking turns."""
    modes = (FULL, READ, WRITE)
    times: dict[SandboxMode, list[float]] = {mode: [] for mode in modes}
    kinds = {}
    async with (
        client(fabric, FULL) as one,
        client(fabric, READ) as two,
        client(fabric, WRITE) as three,
    ):
        by_mode = dict(zip(modes, (one, two, three), strict=True))
        for turn in range(rounds + 1):
            for mode in modes:
                await idle(one)
                start = time.perf_counter()
                shell = await by_mode[mode].open("shell")
                took = time.perf_counter() - start
                if turn:  # the first of each mode pays for connections
                    times[mode].append(took)
                assert shell.opened is not None
                kinds[mode] = shell.opened.info.confinement.kind
                await shell.close()
    base = p50(times[FULL])
    _floor(report, rounds)
    report.row("open, warm, no sandbox", p50_ms=ms(base), p99_ms=ms(p99(times[FULL])))
    for mode in (READ, WRITE):
        ratio = p50(times[mode]) / base
        report.row(
            f"open, warm, {mode.value} by {kinds[mode]}",
            "p50 <= 1.5x without",
            ratio <= 1.5,
            p50_ms=ms(p50(times[mode])),
            p99_ms=ms(p99(times[mode])),
            ratio=round(ratio, 2),
        )


def _floor(report: Report, rounds: int) -> None:
    """A bare bash beside one in a bare bubblewrap: what no fabric could save."""
    inside = (*bubblewrap.binaries()[:1], "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
              "--unshare-pid", "--die-with-parent", "--")  # fmt: skip
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for before, taken in zip(((), inside), times, strict=True):
            start = time.perf_counter()
            bare = floor.Bare(*before)
            taken.append(time.perf_counter() - start)
            bare.close()
    plain, confined = map(p50, times)
    report.row(
        "floor: open a bash, and one in bubblewrap",
        p50_ms=ms(plain),
        confined_ms=ms(confined),
        ratio=round(confined / plain, 2),
    )


async def closes(report: Report, fabric: Embedded, rounds: int) -> None:
    """Closes of idle shells, of shells with children that obey, and with some that do not."""
    obey = f"for i in $(seq {CHILDREN}); do sleep 7321 & done"
    deaf = "for i in 1 2 3; do (trap '' TERM HUP INT; while :; do sleep 0.05; done) & done"
    for mode in (FULL, READ):
        async with client(fabric, mode) as one:
            for what, typed, limit_s, count in (
                ("idle", "", 0.05, rounds),
                (f"{CHILDREN} children", obey, 0.3, max(3, rounds // 4)),
                ("3 ignore TERM", deaf, GRACE_S + 0.3, max(2, rounds // 10)),
            ):
                took: list[float] = []
                left = 0
                for _ in range(count):
                    await idle(one)
                    shell = await one.open("shell")
                    assert shell.opened is not None
                    root = shell.opened.info.pid
                    if typed:
                        await shell.send(typed)
                        await shell.send("echo grown")
                    start = time.perf_counter()
                    closed = await shell.close()
                    took.append(time.perf_counter() - start)
                    assert closed.receipt is not None
                    left += len(closed.receipt.survivors) + lives(root)
                report.row(
                    f"close, {mode.value}, {what}",
                    f"p50 <= {limit_s * 1e3:g} ms, 0 left",
                    p50(took) <= limit_s and not left,
                    p50_ms=ms(p50(took)),
                    max_ms=ms(max(took)),
                    left=left,
                )


SECTIONS: dict[str, Callable[[Report, Embedded, int], Awaitable[None]]] = {
    "opens": opens,
    "closes": closes,
}


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=[*SECTIONS, "trees"])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--trees", type=int, default=500)
    arguments = parser.parse_args()
    wanted = arguments.only or [*SECTIONS, "trees"]
    report = Report()
    print("  ".join(f"{key} {value}" for key, value in machine().items()))
    if set(wanted) & set(SECTIONS):
        with (
            tempfile.TemporaryDirectory(prefix="fabric-ws-", dir="/var/tmp") as root,
            embedded(
                FABRIC_WORKER_TEARDOWN__GRACE_S=str(GRACE_S),
                FABRIC_NODE__WARM_SESSIONS="2",
                FABRIC_WORKER_SANDBOX__WORKSPACE_ROOT=root,
            ) as fabric,
        ):
            for name, section in SECTIONS.items():
                if name in wanted:
                    uvloop.run(section(report, fabric, arguments.rounds))
    left = 0
    if "trees" in wanted:
        left = asyncio.run(trees._main(arguments.trees, 0))
    return 1 if report.missed or left else 0


if __name__ == "__main__":
    sys.exit(main())
