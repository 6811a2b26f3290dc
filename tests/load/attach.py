"""The byte surface's figures: echo, throughput, a stalled reader, disconnects.

    python -m tests.load.attach [--only echo,floods,stream,readers,resumes] [--json FILE]

Everything goes through the gateway of an embedded fabric, from a client in this process;
what is compared with a bare terminal is measured beside it in the same run. Bounded in
count; nothing here is a test. Exits with 1 when a limit was missed.
"""

import argparse
import asyncio
import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from fabric.client import FabricClient
from fabric.client.attach import Attachment
from fabric.client.session import Session
from fabric.core.attach import AttachKind
from fabric.core.model import SandboxMode
from tests.load.embedded import Embedded, embedded
from tests.load.measure import Report, machine, ms, p50, p99, processes
from tests.support.bare import base_env, spawn_on_pty

KEYS = 500
FLOODS = 32
STREAM_MB = 48
ROUNDS = 3
RESUMES = 2000
MB = 1_000_000
FULL = SandboxMode.DANGER_FULL_ACCESS


def client(fabric: Embedded, agent: str = "attach") -> FabricClient:
    return FabricClient.connect(fabric.address, token=fabric.token, agent=agent, mode=FULL)


# -- keystrokes --------------------------------------------------------------------------


async def until(attached: Attachment, wanted: bytes) -> None:
    """Read until ``wanted`` was printed."""
    seen = b""
    async for event in attached:
        if event.kind is AttachKind.CHUNK:
            seen = seen[-64:] + event.data
            if wanted in seen:
                return


async def echoes(shell: Session, count: int, dice: random.Random) -> list[float]:
    """Type single keys at a person's pace; return how long each echo took."""
    times = []
    await shell.send("stty raw -echo; exec cat", timeout_s=1.0)
    async with shell.attach(snapshot=False) as attached:
        for number in range(count):
            await asyncio.sleep(dice.uniform(0.005, 0.03))
            key = bytes([97 + number % 26])
            start = time.perf_counter()
            await attached.write(key)
            await until(attached, key)
            times.append(time.perf_counter() - start)
    return times


def bare_echoes(count: int) -> list[float]:
    """The same on a terminal of our own: what the kernel and cat take."""
    process, master = spawn_on_pty(
        ("/bin/sh", "-c", "stty raw -echo; printf '!'; exec cat"), base_env()
    )
    times = []
    try:
        while b"!" not in os.read(master, 4096):
            pass
        for number in range(count):
            key = bytes([97 + number % 26])
            start = time.perf_counter()
            os.write(master, key)
            while key not in os.read(master, 4096):
                pass
            times.append(time.perf_counter() - start)
    finally:
        os.close(master)
        process.wait()
    return times


unloaded: list[float] = []


async def echo(report: Report, fabric: Embedded) -> None:
    """One person at an otherwise quiet fabric."""
    floor = bare_echoes(KEYS)
    async with client(fabric) as one:
        shell = await one.open("shell")
        unloaded[:] = await echoes(shell, KEYS, random.Random(1))
    report.row("floor: echo of a bare terminal", p50_ms=ms(p50(floor)), p99_ms=ms(p99(floor)))
    report.row(
        "keystroke echo through attach",
        "p50 <= 5 ms, p99 <= 25 ms",
        p50(unloaded) <= 0.005 and p99(unloaded) <= 0.025,
        p50_ms=ms(p50(unloaded)),
        p99_ms=ms(p99(unloaded)),
        max_ms=ms(max(unloaded)),
    )


async def floods(report: Report, fabric: Embedded) -> None:
    """The same while other sessions print as fast as they can."""
    async with client(fabric) as one:
        shell = await one.open("shell")
        if not unloaded:
            unloaded[:] = await echoes(await one.open("shell"), KEYS, random.Random(1))
        others = []
        for _ in range(FLOODS):
            others.append(await one.open("shell"))
        for other in others:
            await other.send("while :; do seq 100000; done", timeout_s=0.1)
        times = await echoes(shell, KEYS, random.Random(2))
        printed = [await newest(other) for other in others]
        for other in others:
            with contextlib.suppress(Exception):
                await other.signal("SIGINT")
    report.row(
        f"keystroke echo, {FLOODS} others flooding",
        "p99 <= 4x unloaded",
        p99(times) <= 4 * p99(unloaded),
        p50_ms=ms(p50(times)),
        p99_ms=ms(p99(times)),
        x_unloaded=round(p99(times) / p99(unloaded), 2),
        least_printed_mb=round(min(printed) / MB, 1),
    )


async def newest(shell: Session) -> int:
    """The offset of the next byte."""
    async with shell.attach() as attached:
        return (await anext(attached)).next_offset


# -- streams -----------------------------------------------------------------------------


def text_file(folder: Path, size: int) -> Path:
    """A file of numbered lines."""
    path = folder / "lines"
    line = b"%09d the quick brown fox jumps over the lazy dog, again and again\n"
    with path.open("wb") as file:
        number = 0
        while file.tell() < size:
            file.write(b"".join(line % n for n in range(number, number + 1000)))
            number += 1000
    return path


def bare_rate(path: Path) -> float:
    """Bytes a second that a plain reader gets of ``cat`` on a terminal of our own."""
    process, master = spawn_on_pty(("cat", str(path)), base_env())
    total, start, end = 0, time.perf_counter(), 0.0
    with contextlib.suppress(OSError):
        while data := os.read(master, 65_536):
            total += len(data)
            end = time.perf_counter()
    os.close(master)
    process.wait()
    return total / (end - start)


class Reading:
    """One reader of a session: how much it got, and when the last of it came."""

    def __init__(self) -> None:
        self.total = 0
        self.gaps = 0
        self.rate = 0.0

    async def run(self, shell: Session, offset: int, marker: bytes) -> None:
        start, tail = 0.0, b""
        async with shell.attach(snapshot=False, offset=offset) as attached:
            async for event in attached:
                start = start or time.perf_counter()
                if event.kind is AttachKind.GAP:
                    self.gaps += event.next_offset - event.offset
                self.total += len(event.data)
                tail = tail[-100:] + event.data[-100:]
                if marker in tail:
                    break
        self.rate = self.total / (time.perf_counter() - start)


async def one_stream(shell: Session, path: Path, readers: int, stalled: int) -> list[Reading]:
    """Let the session print the file to some readers, others attached and not reading."""
    marker = b"end-%d" % random.randrange(10**9)
    at = await newest(shell)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(stalled):
            await stack.enter_async_context(shell.attach(snapshot=False, offset=at))
        readings = [Reading() for _ in range(readers)]
        tasks = [asyncio.create_task(item.run(shell, at, marker)) for item in readings]
        word = marker.decode().replace("-", "'-'")
        await shell.write(f"cat {path}; echo {word}\r")
        async with asyncio.timeout(120):
            await asyncio.gather(*tasks)
    return readings


async def stream(report: Report, fabric: Embedded) -> None:
    """One reader against a bare one."""
    with tempfile.TemporaryDirectory() as folder:
        path = text_file(Path(folder), STREAM_MB * MB)
        bare, ours = [], []
        async with client(fabric) as one:
            shell = await one.open("shell")
            for _ in range(ROUNDS):
                bare.append(await asyncio.to_thread(bare_rate, path))
                (reading,) = await one_stream(shell, path, 1, 0)
                ours.append(reading.rate)
    share = p50(ours) / p50(bare)
    report.row(
        "one byte stream to one reader",
        ">= 0.8x bare",
        share >= 0.8,
        mb_s=round(p50(ours) / MB, 1),
        bare_mb_s=round(p50(bare) / MB, 1),
        share=round(share, 2),
    )


def memory_mb(pid: int) -> float:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


async def readers(report: Report, fabric: Embedded) -> None:
    """Four readers, one of which takes nothing."""
    watched = processes("fabric.cli serve") + processes("ray::SessionHost")
    with tempfile.TemporaryDirectory() as folder:
        path = text_file(Path(folder), STREAM_MB * MB)
        async with client(fabric) as one:
            shell = await one.open("shell")
            await one_stream(shell, path, 3, 0)
            before = {pid: memory_mb(pid) for pid in watched}
            alone, beside, gaps = [], [], 0
            for _ in range(ROUNDS):
                free = await one_stream(shell, path, 3, 0)
                stuck = await one_stream(shell, path, 3, 1)
                alone.append(p50(item.rate for item in free))
                beside.append(p50(item.rate for item in stuck))
                gaps += sum(item.gaps for item in free + stuck)
            growth = max(memory_mb(pid) - size for pid, size in before.items())
    loss = 1 - p50(beside) / p50(alone)
    report.row(
        "three readers beside a stalled one",
        "lose < 10 %",
        loss < 0.10,
        mb_s=round(p50(beside) / MB, 1),
        without_mb_s=round(p50(alone) / MB, 1),
        loss_percent=round(loss * 100, 1),
        gap_bytes=gaps,
    )
    report.row(
        "RSS growth of gateway and workers", "<= 64 MB", growth <= 64, growth_mb=round(growth, 1)
    )


# -- disconnects -------------------------------------------------------------------------


async def resumes(report: Report, fabric: Embedded) -> None:
    """Random disconnects and resumes; every byte once, in order."""
    dice = random.Random(3)
    lines, at, count, gaps = b"", 0, 0, 0
    async with client(fabric) as one:
        shell = await one.open("shell")
        program = "import time\nfor n in range(60000):\n print('line',n)\n n%40 or time.sleep(.004)"
        await shell.send("cat > /tmp/attach-lines.py <<'END'\n" + program + "\nEND")
        start = await newest(shell)
        at = start
        await shell.write("python3 /tmp/attach-lines.py\r")
        began = time.perf_counter()
        while count < RESUMES:
            async with shell.attach(snapshot=False, offset=at) as attached:
                for _ in range(dice.randrange(1, 4)):
                    event = await asyncio.wait_for(anext(attached), 30)
                    if event.kind is AttachKind.GAP:
                        gaps += event.next_offset - event.offset
                    assert event.offset == at, (event.offset, at)
                    at = event.next_offset
                    lines += event.data
                    if b"line 59999\r\n" in event.data:
                        break
            count += 1
            if b"line 59999\r\n" in lines[-4096:]:
                break
        while b"line 59999\r\n" not in lines[-4096:]:
            page = await shell.read_bytes(at, 1 << 20, 5.0)
            assert page.offset == at
            at, lines = page.next_offset, lines + page.data
        while count < RESUMES:  # the rest over bytes that are still kept
            offset = max(start, at - dice.randrange(1, 200_000))
            async with shell.attach(snapshot=False, offset=offset) as attached:
                event = await asyncio.wait_for(anext(attached), 30)
            kept = lines[offset - start :]  # what follows them is the prompt
            assert kept[: len(event.data)] == event.data[: len(kept)]
            count += 1
        seconds = time.perf_counter() - began
    found = lines[lines.index(b"line 0\r\n") :].split(b"\r\n")[:60_000]
    exact = found == [b"line %d" % n for n in range(60_000)]
    report.row(
        f"{RESUMES} random disconnects and resumes",
        "byte-exact",
        exact and count == RESUMES,
        resumes=count,
        bytes=len(lines),
        gap_bytes=gaps,
        seconds=round(seconds, 1),
    )


SECTIONS: dict[str, Callable[[Report, Embedded], Awaitable[None]]] = {
    "echo": echo,
    "stream": stream,
    "readers": readers,
    "resumes": resumes,
    "floods": floods,
}


async def run(report: Report, fabric: Embedded, names: list[str]) -> None:
    for name in names:
        await SECTIONS[name](report, fabric)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default=",".join(SECTIONS))
    parser.add_argument("--json")
    options = parser.parse_args()
    report = Report()
    print(machine())
    with embedded() as fabric:
        uvloop.run(run(report, fabric, options.only.split(",")))
    if options.json:
        report.dump(options.json)
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
