"""Thousands of callers that wait on one gateway: memory, what they do to a send, what they leave.

    python -m tests.load.waiting [--waits 5000] [--cancelled 10000] [--sends 400] [--rounds 3]

A whole embedded fabric; half of the waits are long polls on sessions, half event streams.
Sends are timed before, beside and after them by the same client in the same run. Memory
and descriptors are those of the gateway's process.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import uvloop
from google.protobuf.duration_pb2 import Duration

from fabric.api.v1 import event_service_pb2, pty_service_pb2, terminal_service_pb2
from fabric.client import FabricClient
from fabric.core.model import SandboxMode
from tests.load.embedded import Embedded, embedded
from tests.load.measure import Report, ms, p50, p99, timed
from tests.support.raw_calls import RawCaller

PER_OWNER = 250
BATCH = 250
NEVER = "this is never printed"
WAIT_S = 590


def gateway_pid(fabric: Embedded) -> int:
    """The gateway's process."""
    for file in Path(fabric.state_dir).glob("*.json"):
        record = json.loads(file.read_text(encoding="utf-8"))
        if record.get("gateway_pid"):
            return int(record["gateway_pid"])
    raise RuntimeError(f"no gateway is recorded in {fabric.state_dir}")


def rss_mb(pid: int) -> float:
    """Resident memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def descriptors(pid: int) -> int:
    """How many descriptors a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


class Crowd:
    """Owners with a session each, and calls that wait for them."""

    def __init__(self, fabric: Embedded) -> None:
        self._fabric = fabric
        self._stack = AsyncExitStack()
        self.callers: list[tuple[RawCaller, str]] = []
        self._calls: list[object] = []

    async def gather(self, owners: int) -> None:
        """Make the owners."""
        for number in range(owners):
            client = await self._stack.enter_async_context(
                FabricClient.connect(
                    self._fabric.address,
                    token=self._fabric.token,
                    agent=f"crowd-{number}",
                    mode=SandboxMode.DANGER_FULL_ACCESS,
                    lease_s=3600,
                )
            )
            shell = await client.open("shell", timeout_s=200)
            raw = RawCaller(self._fabric.address, self._fabric.token)
            await self._stack.enter_async_context(raw)
            raw.owner_token = client.owner_token
            self.callers.append((raw, shell.id))

    async def wait(self, waits: int) -> None:
        """Begin to wait, half on sessions and half for events; return once all are received."""
        for number in range(waits):
            raw, session_id = self.callers[(number // 2) % len(self.callers)]
            if number % 2:
                call = raw.start(
                    "EventService.FollowEvents",
                    event_service_pb2.FollowEventsRequest(),
                    timeout=None,
                )
            else:
                request = terminal_service_pb2.WaitForRequest(
                    session_id=session_id, pattern=NEVER, timeout=Duration(seconds=WAIT_S)
                )
                call = raw.start("TerminalService.WaitFor", request, timeout=WAIT_S + 10)
            self._calls.append(call)
            if number % BATCH == BATCH - 1:
                await self._answered(raw, session_id)
        for raw, session_id in self.callers:
            await self._answered(raw, session_id)
        running = [call for call in self._calls if not call.done()]  # type: ignore[attr-defined]
        if len(running) != waits:
            failed = next(call for call in self._calls if call.done())  # type: ignore[attr-defined]
            why = f"{await failed.code()}: {await failed.details()}"  # type: ignore[attr-defined]
            raise RuntimeError(f"{waits - len(running)} waits ended; the first with {why}")

    async def _answered(self, raw: RawCaller, session_id: str) -> None:
        """Let the gateway catch up with what was begun on this connection."""
        status = terminal_service_pb2.StatusRequest(session_id=session_id)
        await raw.call("TerminalService.Status", status, timeout=120)

    async def leave(self) -> None:
        """Cancel every wait."""
        for call in self._calls:
            call.cancel()  # type: ignore[attr-defined]
        self._calls.clear()

    async def cancelled(self, streams: int) -> None:
        """Begin and cancel streams, batch by batch."""
        for start in range(0, streams, BATCH):
            raw, session_id = self.callers[(start // BATCH) % len(self.callers)]
            calls = []
            for number in range(BATCH // 2):
                follow = pty_service_pb2.FollowRequest(session_id=session_id, offset=0)
                calls.append(raw.start("PtyService.Follow", follow, timeout=None))
                events = event_service_pb2.FollowEventsRequest(cursor=0)
                calls.append(raw.start("EventService.FollowEvents", events, timeout=None))
                if number == BATCH // 2 - 1:
                    await calls[-2].read()
            for call in calls:
                call.cancel()
            del calls
            # Answered only after the cancels that came before it on this connection.
            await self._answered(raw, session_id)

    async def disperse(self) -> None:
        """Release the owners."""
        await self._stack.aclose()


async def measure(report: Report, fabric: Embedded, options: argparse.Namespace) -> None:
    """Everything, on one fabric."""
    pid = gateway_pid(fabric)
    crowd = Crowd(fabric)
    await crowd.gather(max(2, -(-options.waits // PER_OWNER)))
    async with FabricClient.connect(
        fabric.address, token=fabric.token, agent="sender", mode=SandboxMode.DANGER_FULL_ACCESS
    ) as client:
        shell = await client.open("shell", timeout_s=200)

        async def sends() -> list[float]:
            return await timed(options.sends, lambda: shell.send("echo hi"))

        await sends()
        alone: list[float] = []
        beside: list[float] = []
        grown = took = 0.0
        for _ in range(options.rounds):
            alone += await sends()
            before, began = rss_mb(pid), time.perf_counter()
            await crowd.wait(options.waits)
            took = max(took, time.perf_counter() - began)
            grown = max(grown, rss_mb(pid) - before)
            beside += await sends()
            await crowd.leave()
            await asyncio.sleep(2)
        report.row(
            f"{options.waits} long polls and event streams wait",
            "RSS <= +200 MB",
            grown <= 200,
            rss_growth_mb=round(grown, 1),
            begun_in_s=round(took, 1),
        )
        report.row(
            "a send beside them",
            "p99 <= 2x without",
            p99(beside) <= 2 * p99(alone),
            p50_ms=ms(p50(beside)),
            p99_ms=ms(p99(beside)),
            p50_without_ms=ms(p50(alone)),
            p99_without_ms=ms(p99(alone)),
        )
        await crowd.cancelled(options.cancelled // 5)
        await asyncio.sleep(2)
        memory, files = rss_mb(pid), descriptors(pid)
        await crowd.cancelled(options.cancelled)
        await asyncio.sleep(2)
        grown, opened = rss_mb(pid) - memory, descriptors(pid) - files
        report.row(
            f"{options.cancelled} cancelled streams",
            "RSS and descriptors +-0 (<= 5 MB, <= 2)",
            grown <= 5 and opened <= 2,
            rss_growth_mb=round(grown, 1),
            descriptors=opened,
        )
    await crowd.disperse()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--waits", type=int, default=5000)
    parser.add_argument("--cancelled", type=int, default=10_000)
    parser.add_argument("--sends", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    report = Report()
    with embedded(
        FABRIC_NODE__START_TIMEOUT_S="300",
        FABRIC_REGISTRY__OPEN_TIMEOUT_S="300",
        FABRIC_GATEWAY__MAX_WAITS_PER_OWNER="1000",
        FABRIC_LOG__LEVEL="WARNING",
    ) as fabric:
        uvloop.run(measure(report, fabric, options))
    if options.json:
        report.dump(options.json)
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
