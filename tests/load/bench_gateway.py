"""How much the gateway adds to a send: the same port called directly and through gRPC.

    python tests/load/bench_gateway.py [--calls 3000] [--at-once 32]

The port answers at once, so what is measured is the way there and back: client, gRPC,
guard, conversion. Server and client share one process and one event loop, so on a machine
with free cores the real figure is lower.
"""

import argparse
import asyncio
import logging
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

import grpc
import grpc.aio
import uvloop

from fabric.client import FabricClient
from fabric.core.ids import new_request_id
from fabric.core.model import SendRequest
from fabric.core.settings import GatewaySettings
from fabric.gateway.server import Gateway
from tests.support.fake_fabric import HOST, FakeFabric


async def _measure(call: Callable[[], Awaitable[object]], calls: int) -> list[float]:
    times = []
    for _ in range(calls):
        started = time.perf_counter()
        await call()
        times.append((time.perf_counter() - started) * 1000)
    return times


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


def _row(name: str, times: list[float]) -> None:
    ordered = sorted(times)
    p50, p99 = statistics.median(ordered), ordered[int(len(ordered) * 0.99) - 1]
    mean = statistics.fmean(times)
    _say(f"{name:28} p50 {p50:7.3f} ms   p99 {p99:7.3f} ms   mean {mean:7.3f} ms")


async def _bare(calls: int) -> list[float]:
    """The floor: a handler that answers at once, called over a channel, no code of ours."""

    async def answer(raw: bytes, context: object) -> bytes:
        return raw

    server = grpc.aio.server()
    handlers = {"Echo": grpc.unary_unary_rpc_method_handler(answer)}
    server.add_registered_method_handlers("bare", handlers)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        echo = channel.unary_unary("/bare/Echo")
        await _measure(lambda: echo(b"x" * 80, timeout=30), 200)
        times = await _measure(lambda: echo(b"x" * 80, timeout=30), calls)
    await server.stop(None)
    return times


async def _bench(calls: int, at_once: int, logged: bool) -> None:
    fabric = FakeFabric()
    settings = GatewaySettings(listen="127.0.0.1:0")
    gateway = Gateway(settings, fabric, fabric, host=HOST)
    if logged:
        logging.getLogger("fabric").setLevel("INFO")
        logging.getLogger("fabric").addHandler(logging.NullHandler())
    await gateway.start()
    async with FabricClient.connect(gateway.address) as client:
        shell = await client.open()
        terminal = fabric.sessions[shell.id].terminal
        caller = next(iter(fabric.owners))
        who = type("Caller", (), {"owner_id": caller, "epoch": 1})()

        async def direct() -> object:
            request = SendRequest(new_request_id(), b"echo hi")
            return await fabric.send(who, shell.id, request)  # type: ignore[arg-type]

        async def through() -> object:
            return await shell.send("echo hi")

        await _measure(through, 200)
        terminal.log.clear()
        _row("port called directly", await _measure(direct, calls))
        _row("bare gRPC, same sizes", await _bare(calls))
        _row("send through gRPC", await _measure(through, calls))
        _row("status through gRPC", await _measure(shell.status, calls))
        shells = [await client.open() for _ in range(at_once)]
        each = calls // at_once
        started = time.perf_counter()
        await asyncio.gather(*(_measure(lambda s=s: s.send("echo hi"), each) for s in shells))
        rate = each * at_once / (time.perf_counter() - started)
        _say(f"{at_once} sessions at once: {rate:,.0f} sends/s")
    await gateway.stop(0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--log", action="store_true", help="with the INFO line of every call")
    options = parser.parse_args()
    uvloop.run(_bench(options.calls, options.at_once, options.log))
    return 0


if __name__ == "__main__":
    sys.exit(main())
