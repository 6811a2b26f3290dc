"""``make bench``: the figures that matter, beside the raw floor of the same run.

Everything goes through the gateway of an embedded fabric, from a client in this process.
Bounded in count; nothing here is a test. ``--only`` runs some sections, ``--json FILE``
keeps the figures.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from fabric.client import FabricClient
from fabric.core.model import Evidence, SandboxMode
from fabric.core.settings import NodeSettings
from tests.load import floor
from tests.load.embedded import Embedded, embedded
from tests.load.measure import Report, machine, ms, p50, p99, processes, pss_mb, timed

FULL = SandboxMode.DANGER_FULL_ACCESS
MANY = 64
WARM = NodeSettings().warm_sessions
Section = Callable[[Report, Embedded], Awaitable[None]]


def client(fabric: Embedded, agent: str = "bench") -> FabricClient:
    return FabricClient.connect(fabric.address, token=fabric.token, agent=agent, mode=FULL)


def lives(pid: int | None) -> bool:
    return Path(f"/proc/{pid}").exists()


async def warmed(fabric: FabricClient, slots: int) -> None:
    """Wait until the node has warm slots again."""
    while True:
        nodes = await fabric.nodes()
        if sum(node.warm for node in nodes) >= slots:
            return
        await asyncio.sleep(0.1)


async def opens(report: Report, fabric: Embedded) -> None:
    """Opens from warm slots and beyond, and closes of idle shells."""
    floor_open = p50(floor.open_seconds(20))
    warm: list[float] = []
    closes: list[float] = []
    left = 0
    async with client(fabric) as one:
        for _ in range(24):
            await warmed(one, WARM)  # else the next slot's start is what is measured
            start = time.perf_counter()
            shell = await one.open("shell")
            warm.append(time.perf_counter() - start)
            assert shell.opened is not None
            pid = shell.opened.info.pid
            start = time.perf_counter()
            await shell.close()
            closes.append(time.perf_counter() - start)
            left += lives(pid)
        await warmed(one, WARM)
        cold = [await _cold(one) for _ in range(3)]
    report.row("floor: open a bash", p50_ms=ms(floor_open))
    report.row(
        "open, warm slot, to first prompt",
        "p50 <= 25 ms",
        p50(warm) <= 0.025,
        p50_ms=ms(p50(warm)),
        p99_ms=ms(p99(warm)),
        x_floor=round(p50(warm) / floor_open, 1),
    )
    report.row("open, no warm slot left", p50_ms=ms(p50(cold)), max_ms=ms(max(cold)))
    report.row(
        "close of an idle shell",
        "p50 <= 50 ms, max <= 100 ms, 0 left",
        p50(closes) <= 0.05 and max(closes) <= 0.1 and left == 0,
        p50_ms=ms(p50(closes)),
        max_ms=ms(max(closes)),
        left=left,
    )


async def _cold(one: FabricClient) -> float:
    held = []
    nodes = await one.nodes()
    for _ in range(sum(node.warm for node in nodes)):
        held.append(await one.open("shell"))
    start = time.perf_counter()
    held.append(await one.open("shell"))
    took = time.perf_counter() - start
    for shell in held:
        await shell.close()
    await warmed(one, WARM)
    return took


async def echo(report: Report, fabric: Embedded) -> None:
    """One session's round trips."""
    async with client(fabric) as one:
        shell = await one.open("shell")
        await timed(200, lambda: shell.send("echo hi"))
        base, ours = [], []
        for _ in range(5):
            base += floor.echo_seconds(200)
            ours += await timed(400, lambda: shell.send("echo hi"))
        await shell.close()
    ratio = p50(ours) / p50(base)
    report.row("floor: echo hi", p50_ms=ms(p50(base)), p99_ms=ms(p99(base)))
    report.row(
        "echo hi, send to verdict through gRPC",
        "p50 <= 2.5 ms and <= 10x floor, p99 <= 5x p50",
        p50(ours) <= 0.0025 and ratio <= 10 and p99(ours) <= 5 * p50(ours),
        p50_ms=ms(p50(ours)),
        p99_ms=ms(p99(ours)),
        x_floor=round(ratio, 1),
    )


REPLS = (
    ("python3 -q", "1+1", 4.0),
    ("gdb -q -nx", "print 1+1", 4.0),
    ("bc -q", "1+1", 4.0),
    ("while read -p '? ' X; do echo $X; done", "hi", 4.0),
    ("cat", "hi", 4.0),
    ("node", "1+1", 12.0),
)


async def repls(report: Report, fabric: Embedded) -> None:
    """Turns of programs that know nothing of us."""
    async with client(fabric) as one:
        for program, text, limit_ms in REPLS:
            shell = await one.open("shell")
            await shell.send(program)
            times, inexact = [], 0
            for _ in range(200):
                start = time.perf_counter()
                result = await shell.send(text)
                times.append(time.perf_counter() - start)
                inexact += result.evidence is not Evidence.SYSCALL
            await shell.close()
            report.row(
                f"REPL turn: {program[:30]}",
                f"p50 <= {limit_ms:g} ms, p99 <= 20 ms, all exact",
                p50(times) * 1e3 <= limit_ms and p99(times) <= 0.02 and not inexact,
                p50_ms=ms(p50(times)),
                p99_ms=ms(p99(times)),
                inexact=inexact,
            )


async def bulk(report: Report, fabric: Embedded) -> None:
    """50 MB of lines, and what it does to the worker's memory."""
    rates, ours = [], []
    async with client(fabric) as one:
        shell = await one.open("shell")
        await shell.send("seq 100000")
        before = {pid: pss_mb(pid) for pid in processes("ray::SessionHost")}
        for _ in range(3):
            rate, _ = floor.bulk_rate(6_000_000)
            rates.append(rate)
            start = time.perf_counter()
            result = await shell.send("seq 6000000", timeout_s=120)
            ours.append((result.next_offset - result.first_offset) / (time.perf_counter() - start))
        growth = max(pss_mb(pid) - old for pid, old in before.items() if lives(pid))
        kept = len(result.viewport.encode())
        await shell.close()
    ratio = p50(ours) / p50(rates)
    report.row("floor: 50 MB of lines", mb_s=round(p50(rates) / 1e6, 1))
    report.row(
        "50 MB of lines through the fabric",
        ">= 0.7x floor, growth <= 32 MB, result <= 256 KiB",
        ratio >= 0.7 and growth <= 32 and kept <= 262_144,
        mb_s=round(p50(ours) / 1e6, 1),
        x_floor=round(ratio, 2),
        growth_mb=round(growth, 1),
        result_bytes=kept,
    )


async def memory(report: Report, fabric: Embedded) -> None:
    """What a session costs."""
    async with client(fabric) as one:
        shell = await one.open("shell")
        await shell.send("echo hi")
        shims = [pss_mb(pid) for pid in processes("workers/shim/__main__")]
        workers = [pss_mb(pid) for pid in processes("ray::SessionHost")]
        await shell.close()
    report.row("shim", "<= 8 MB PSS", max(shims) <= 8, max_mb=round(max(shims), 1))
    report.row(
        "session worker",
        "<= 60 MB PSS",
        max(workers) <= 60,
        p50_mb=round(p50(workers), 1),
        max_mb=round(max(workers), 1),
    )


async def many(report: Report, fabric: Embedded) -> None:
    """64 sessions at once, 20 round trips each."""
    async with client(fabric) as one:
        start = time.perf_counter()
        shells = await asyncio.gather(*(one.open("shell", timeout_s=290) for _ in range(MANY)))
        opened = time.perf_counter() - start
        times: list[float] = []

        async def turns(shell) -> None:
            for _ in range(20):
                begun = time.perf_counter()
                result = await shell.send("echo hi")
                times.append(time.perf_counter() - begun)
                assert "\nhi\n" in result.viewport

        await asyncio.gather(*(turns(shell) for shell in shells))
        times.clear()
        start = time.perf_counter()
        await asyncio.gather(*(turns(shell) for shell in shells))
        took = time.perf_counter() - start
        await asyncio.gather(*(shell.close() for shell in shells))
    rate = len(times) / took
    report.row(
        f"{MANY} sessions at once, 20 echo turns each",
        ">= 600 turns/s",
        rate >= 600,
        turns_s=round(rate),
        p50_ms=ms(p50(times)),
        p99_ms=ms(p99(times)),
        open_all_s=round(opened, 1),
    )


SECTIONS: dict[str, Section] = {
    "memory": memory,
    "opens": opens,
    "echo": echo,
    "repls": repls,
    "bulk": bulk,
    "many": many,
}


async def run(report: Report, names: list[str]) -> None:
    for name in names:
        room = {
            "FABRIC_NODE__MAX_SESSIONS": str(MANY * 2),
            "FABRIC_NODE__START_TIMEOUT_S": "300",
            "FABRIC_REGISTRY__OPEN_TIMEOUT_S": "300",
        }
        with embedded(**room) as fabric:
            async with client(fabric, "warm-up") as one:
                await warmed(one, WARM)
            await SECTIONS[name](report, fabric)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=sorted(SECTIONS))
    parser.add_argument("--json", metavar="FILE")
    chosen = parser.parse_args()
    for key, value in machine().items():
        print(f"{key:<12} {value}")
    report = Report()
    uvloop.run(run(report, chosen.only or list(SECTIONS)))
    if chosen.json:
        report.dump(chosen.json)
    print(f"{report.missed} limits missed; load now {os.getloadavg()[0]:.1f}")
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
