"""One owner floods; what does another owner's send feel of it?

    python -m tests.load.fairness [--only output] [--sends 300] [--rounds 4]

A whole embedded fabric. The flood runs in a process of its own under an owner of its own
(output read by streams, sends from many sessions, opens and closes, polls in great
number); the other owner's sends are timed in this process, in rounds with and without the
flood that alternate, so that the machine's moods hit both. What is shared is one machine: on
few cores a flood of sends is as many shells and workers as it has sessions, and the kernel
shares cores among processes, not owners (``cpu_weight`` in a policy does, with cgroups).
"""

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import uvloop

from fabric.client import FabricClient
from fabric.client.session import Session
from fabric.core.errors import FabricError
from fabric.core.model import SandboxMode
from tests.load.embedded import Embedded, embedded
from tests.load.measure import Report, ms, p50, p99, timed

OUTPUTS, SENDERS, OPENERS, POLLERS = 2, 8, 16, 128
POLLED = 2
TOKEN = "FLOOD_TOKEN"
Flood = Callable[[FabricClient], Awaitable[None]]


def connect(address: str, token: str, agent: str) -> FabricClient:
    """A client in full access."""
    return FabricClient.connect(
        address, token=token, agent=agent, mode=SandboxMode.DANGER_FULL_ACCESS
    )


async def _for_ever(work: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await work()
        except FabricError:
            await asyncio.sleep(0)  # refused: the flood goes on


async def _said() -> None:
    print("flooding", flush=True)


async def output(client: FabricClient) -> None:
    """Programs that print as fast as they can, each read by a stream."""
    shells = [await client.open("shell", timeout_s=200) for _ in range(OUTPUTS)]
    for shell in shells:
        await shell.send_background("while :; do seq 20000; done")

    async def read(shell: Session) -> None:
        async for _ in shell.follow():
            pass

    await _said()
    await asyncio.gather(*(read(shell) for shell in shells))


async def sends(client: FabricClient) -> None:
    """Sends, as fast as they are answered, on many sessions."""
    shells = [await client.open("shell", timeout_s=200) for _ in range(SENDERS)]
    await _said()
    await asyncio.gather(
        *(_for_ever(lambda shell=shell: shell.send("echo hi")) for shell in shells)
    )


async def opens(client: FabricClient) -> None:
    """Opens and closes, as fast as they are answered."""

    async def one() -> None:
        await (await client.open("shell", timeout_s=200)).close()

    await _said()
    await asyncio.gather(*(_for_ever(one) for _ in range(OPENERS)))


async def polls(client: FabricClient) -> None:
    """Questions after state, in great number at once."""
    shells = [await client.open("shell", timeout_s=200) for _ in range(POLLED)]
    await _said()
    await asyncio.gather(*(_for_ever(shells[number % POLLED].status) for number in range(POLLERS)))


FLOODS: dict[str, Flood] = {"output": output, "sends": sends, "opens": opens, "polls": polls}


async def _flood(address: str, token: str, name: str) -> None:
    async with connect(address, token, f"flood-{name}") as client:
        await FLOODS[name](client)


@contextlib.asynccontextmanager
async def flooding(fabric: Embedded, name: str) -> AsyncIterator[None]:
    """Flood from another process while the block runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.load.fairness", "--flood", name, fabric.address,
        stdout=subprocess.PIPE, env=os.environ | {TOKEN: fabric.token},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        if await process.stdout.readline() != b"flooding\n":
            raise RuntimeError(f"the flood of {name} did not start")
        await asyncio.sleep(1)  # until it has taken effect
        yield
    finally:
        process.terminate()
        await process.wait()


async def ended(fabric: Embedded, name: str) -> None:
    """Take the flood's owner over and release it, so that nothing of it runs on."""
    async with connect(fabric.address, fabric.token, f"flood-{name}"):
        pass
    await asyncio.sleep(1)


async def measure(report: Report, fabric: Embedded, options: argparse.Namespace) -> None:
    """Every flood in turn."""
    async with connect(fabric.address, fabric.token, "other") as client:
        shell = await client.open("shell", timeout_s=200)

        async def some() -> list[float]:
            return await timed(options.sends, lambda: shell.send("echo hi"))

        await some()
        for name in options.only or FLOODS:
            alone: list[float] = []
            beside: list[float] = []
            for _ in range(options.rounds):
                alone += await some()
                async with flooding(fabric, name):
                    beside += await some()
                await ended(fabric, name)
            report.row(
                f"a send while another owner floods with {name}",
                "p99 <= 2x alone",
                p99(beside) <= 2 * p99(alone),
                p50_ms=ms(p50(beside)),
                p99_ms=ms(p99(beside)),
                p50_alone_ms=ms(p50(alone)),
                p99_alone_ms=ms(p99(alone)),
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(FLOODS))
    parser.add_argument("--sends", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--flood", nargs=2, metavar=("NAME", "ADDRESS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.flood:
        name, address = options.flood
        os.nice(10)  # this client would run on its own machine and not take our cores
        uvloop.run(_flood(address, os.environ[TOKEN], name))
        return 0
    report, began = Report(), time.perf_counter()
    with embedded(
        FABRIC_NODE__START_TIMEOUT_S="300",
        FABRIC_REGISTRY__OPEN_TIMEOUT_S="300",
        FABRIC_LOG__LEVEL="WARNING",
    ) as fabric:
        uvloop.run(measure(report, fabric, options))
    print(f"took {time.perf_counter() - began:.0f} s")
    if options.json:
        report.dump(options.json)
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
