"""What authentication and the owner check add to a send.

    python -m tests.load.auth [--rounds 20] [--calls 100]

Two gateways of one process before a fabric that answers at once: one that asks for a
signed bearer token and an owner token, and one whose guard lets every call in unseen.
Sends alternate between them in short rounds, so that the machine's moods hit both.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from fabric.client import FabricClient
from fabric.core.ids import Principal
from fabric.core.model import Caller
from fabric.core.settings import GatewaySettings
from fabric.gateway import guard, server
from fabric.gateway.bearer import Identity, new_signing_key, sign_token
from fabric.gateway.calls import Access, Call
from fabric.gateway.server import Gateway
from tests.load.measure import Report, ms, p50, timed
from tests.support.fake_fabric import HOST, FakeFabric


class Unseeing(guard.Guard):
    """Lets every call in as the owner it was told of."""

    caller: Caller | None = None

    async def _admit(self, method, route, context, task):  # type: ignore[no-untyped-def]
        if self.caller is None or route.access is Access.PRINCIPAL:
            return await super()._admit(method, route, context, task)
        identity = Identity(Principal("anybody"))
        call = Call(method, identity, self.caller, task, context.time_remaining(), self._settings)
        call.bound(self._settings.default_deadline_s)
        return call


def _signed(folder: str) -> tuple[Path, str]:
    keys = Path(folder, "keys")
    keys.write_text(new_signing_key() + "\n")
    return keys, sign_token(keys, Principal("ci"), None, 3600, time.time())[0]


async def measure(report: Report, rounds: int, calls: int) -> None:
    """Alternate between the two gateways."""
    fabric = FakeFabric()
    with tempfile.TemporaryDirectory() as folder:
        keys, token = _signed(folder)
        closed = Gateway(
            GatewaySettings("127.0.0.1:0", signing_key_file=str(keys)), fabric, fabric, host=HOST
        )
        await closed.start()
        original, guards = guard.Guard, []

        class Kept(Unseeing):
            def __init__(self, *arguments: object) -> None:
                super().__init__(*arguments)  # type: ignore[arg-type]
                guards.append(self)

        server.Guard = Kept  # type: ignore[misc]
        opened = Gateway(GatewaySettings("127.0.0.1:0"), fabric, fabric, host=HOST)
        await opened.start()
        server.Guard = original  # type: ignore[misc]
        async with (
            FabricClient.connect(closed.address, token=token, agent="a") as one,
            FabricClient.connect(opened.address, agent="b") as two,
        ):
            guards[0].caller = Caller(two.owner.owner_id, two.owner.epoch)
            checked, unchecked = await one.open(), await two.open()
            with_check: list[float] = []
            without: list[float] = []
            for number in range(rounds + 1):
                for shell, times in ((checked, with_check), (unchecked, without)):
                    fresh = await timed(calls, lambda shell=shell: shell.send("echo hi"))
                    fabric.sessions[shell.id].terminal.log.clear()
                    times += fresh if number else []
        await asyncio.gather(closed.stop(0), opened.stop(0))
    added = p50(with_check) - p50(without)
    report.row(
        "authentication and owner check of a send",
        "<= 0.3 ms p50",
        added <= 0.0003,
        added_ms=ms(added),
        p50_ms=ms(p50(with_check)),
        p50_without_ms=ms(p50(without)),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--calls", type=int, default=100)
    options = parser.parse_args()
    report = Report()
    uvloop.run(measure(report, options.rounds, options.calls))
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
