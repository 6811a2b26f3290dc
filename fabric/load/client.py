"""One client process of a load run: ``python -m fabric.load.client``, started by ``runner``.

Lines of JSON both ways. On standard input: the orders, then ``{"go": t}`` with a time of the
machine's monotonic clock, then perhaps ``{"stop": true}``; its end means the same, so a
parent that was killed leaves no owner behind. On standard output: progress, a window a
second, and at last ``{"done": ...}``. The token comes this way so that it is in no argument.
"""

import asyncio
import json
import resource
import signal
import sys
import time
from typing import Any

import uvloop

from fabric.client.link import Tls
from fabric.load.plan import plan_of
from fabric.load.users import Share, Target, Users

WINDOW_S = 1.0
LINE_BYTES = 1 << 24


def main() -> int:
    """Run one share and report."""
    # The terminal's Ctrl-C is for the parent, which then says how to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    uvloop.run(_main())
    return 0


def _say(row: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(row, separators=(",", ":")) + "\n")
    sys.stdout.flush()


async def _orders() -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=LINE_BYTES)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def _main() -> None:
    reader = await _orders()
    orders = json.loads(await reader.readline())
    tls = orders["target"].pop("tls")
    target = Target(
        gateways=tuple(orders["target"].pop("gateways")),
        tls=None if tls is None else Tls(**tls),
        **orders["target"],
    )
    share = Share(scenarios=tuple(orders["share"].pop("scenarios")), **orders["share"])
    users = Users(plan_of(orders["plan"]), share, target, orders["run"])
    go: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    listening = asyncio.ensure_future(_listen(reader, users, go))
    try:
        await _run(users, go)
    finally:
        listening.cancel()


async def _listen(reader: asyncio.StreamReader, users: Users, go: "asyncio.Future[float]") -> None:
    while line := await reader.readline():
        row = json.loads(line)
        if "go" in row and not go.done():
            go.set_result(float(row["go"]))
        if "stop" in row:
            break
    users.stop()
    if not go.done():
        go.cancel()


async def _run(users: Users, go: "asyncio.Future[float]") -> None:
    failed = ""
    cpu_s = wall_s = 0.0
    reporting = None
    try:
        made = await users.prepare(lambda text: _say({"progress": text}))
        _say({"setup": users.cut().to_plain()})
        _say({"ready": made})
        began = await go
        reporting = asyncio.ensure_future(_report(users, began))
        cpu_s, wall_s = -_cpu(), -time.monotonic()
        await users.run(began)
        cpu_s, wall_s = cpu_s + _cpu(), wall_s + time.monotonic()
    except asyncio.CancelledError:
        pass  # stopped before the start
    except Exception as error:  # noqa: BLE001  (the boundary: the parent is told, owners end)
        failed = f"{type(error).__name__}: {error}"
    finally:
        if reporting is not None:
            reporting.cancel()
            await asyncio.wait({reporting})
            _say({"window": users.cut().to_plain()})
        sessions, owners = await users.end()
        _say({"setup": users.cut().to_plain()})
    done = {"sessions_left": sessions, "owners_left": owners, "failed": failed}
    _say({"done": {**done, "busy": cpu_s / wall_s if wall_s > 0 else 0.0}})


async def _report(users: Users, began: float) -> None:
    number = 0
    while True:
        number += 1
        await asyncio.sleep(max(0.0, began + number * WINDOW_S - time.monotonic()))
        _say({"window": users.cut().to_plain()})


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
