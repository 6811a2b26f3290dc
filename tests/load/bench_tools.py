"""What the tool surface costs: rendering a large answer, and a call beside the typed RPC.

    python -m tests.load.bench_tools [--calls 2000]

The port behind the calls answers at once and both kinds of call alternate, so the
difference is the tool surface alone: JSON arguments, their check, the text and the value.
Server and client share one process and one event loop.
"""

import argparse
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial

import uvloop

from fabric.client import FabricClient
from fabric.core.model import (
    SendResult,
    SessionStatus,
    TaskOutput,
    TaskRecord,
    TaskState,
    WaitReason,
)
from fabric.core.settings import GatewaySettings
from fabric.gateway.server import Gateway
from fabric.tools import render
from tests.load.measure import Report, machine, ms, p50, p99
from tests.support.fake_fabric import HOST, FakeFabric

MEGABYTE = 1 << 20
CAPS = (64, 4096, 262_144)
CONTENTS = {
    "plain lines": "a line of output 0123456789 abc\n",
    "wide": "漢字 output ±\n",
    "emoji": "😀",
}
WARM_CALLS = 200


def rendering(report: Report) -> None:
    """Render one megabyte in every shape."""
    for name, unit in CONTENTS.items():
        text = unit * (MEGABYTE // len(unit.encode()))
        sent = SendResult(text, WaitReason.STDIN_READ, SessionStatus())
        record = TaskRecord("tsk_x", "own_x", "ses_x", "label", TaskState.COMPLETED)  # type: ignore[arg-type]
        output = TaskOutput(text, record, 0)
        worst = 0.0
        for cap in CAPS:
            worst = max(worst, _median(partial(render.sent, sent, cap)))
            worst = max(worst, _median(partial(render.task_output, output, cap)))
        report.row(f"render 1 MB, {name}", "<= 5 ms", worst <= 0.005, worst_p50_ms=ms(worst))


def _median(work: Callable[[], object], rounds: int = 30) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return p50(times)


async def calling(report: Report, calls: int) -> None:
    """Alternate tool calls with the RPCs they stand for."""
    fabric = FakeFabric()
    gateway = Gateway(GatewaySettings(listen="127.0.0.1:0"), fabric, fabric, host=HOST)
    await gateway.start()
    try:
        async with FabricClient.connect(gateway.address) as client:
            shell = await client.open()
            args = {"sessionId": shell.id}
            send = args | {"text": "echo hi"}
            await _pair(
                report,
                "send",
                lambda: shell.send("echo hi"),
                lambda: client.call_tool("terminal_send", send),
                calls,
            )
            await _pair(
                report,
                "list",
                client.list,
                lambda: client.call_tool("terminal_list"),
                calls,
            )
    finally:
        await gateway.stop(0)


async def _pair(
    report: Report,
    name: str,
    typed: Callable[[], Awaitable[object]],
    tool: Callable[[], Awaitable[object]],
    calls: int,
) -> None:
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(calls + WARM_CALLS):
        for kept, call in zip(times, (typed, tool), strict=True):
            start = time.perf_counter()
            await call()
            if number >= WARM_CALLS:
                kept.append(time.perf_counter() - start)
    added = p50(times[1]) - p50(times[0])
    report.row(
        f"CallTool beside {name}",
        "adds <= 0.5 ms p50",
        added <= 0.0005,
        typed_p50_ms=ms(p50(times[0])),
        tool_p50_ms=ms(p50(times[1])),
        added_ms=ms(added),
        tool_p99_ms=ms(p99(times[1])),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    options = parser.parse_args()
    print(machine())
    report = Report()
    rendering(report)
    uvloop.run(calling(report, options.calls))
    return int(report.missed > 0)


if __name__ == "__main__":
    sys.exit(main())
