"""No command runs twice and none is lost silently, over a network that breaks.

    python -m tests.load.faults [--calls 2000] [--sessions 8] [--seed 1]

A whole fabric in one process (gateway, registry, node, real shells) behind a proxy that
breaks and delays connections. Every command appends its own word to a file, so what ran is
counted in the file and not believed. A call must end with a result or a typed error; a
result that says completed must stand in the file exactly once, anything else at most once.
Some calls are made twice at once or again afterwards under the same request id.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from fabric.client import FabricClient
from fabric.client.session import Session
from fabric.core.errors import FabricError
from fabric.core.ids import new_request_id
from fabric.core.model import Outcome, SandboxMode, SendResult, TaskState
from tests.support.faults import FaultProxy, Rates
from tests.support.local_fabric import local_fabric

CALL_LIMIT_S = 60.0
TASK_WAIT_S = 20.0


@dataclass
class Ledger:
    """What callers were told, by the word of each command."""

    completed: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    connection_faults: Counter[str] = field(default_factory=Counter)
    twice: int = 0

    def check(self, ran: Counter[str]) -> None:
        """Compare what was told with what ran."""
        for word, times in ran.items():
            if times > 1:
                self.faults.append(f"{word} ran {times} times")
            if word not in self.completed and word not in self.unsure:
                self.faults.append(f"{word} ran and nobody was told")
        lost = sorted(word for word in self.completed if ran[word] == 0)
        self.faults += [f"{word} was said to be completed and never ran" for word in lost]


class Caller:
    """One session's user: call after call, each with a word of its own."""

    def __init__(self, number: int, seed: int, file: Path, ledger: Ledger) -> None:
        self.number = number
        self._random = random.Random(seed * 1000 + number)
        self._file = file
        self._ledger = ledger

    async def run(self, session: Session, calls: int) -> None:
        """Make ``calls`` calls."""
        for index in range(calls):
            word = f"w{self.number}x{index}"
            pause = "sleep 0.03; " if self._random.random() < 0.2 else ""
            line = f"{pause}echo {word} >> {self._file}"
            try:
                async with asyncio.timeout(CALL_LIMIT_S):
                    if self._random.random() < 0.1:
                        await self._task(session, word, line)
                    else:
                        await self._send(session, word, line)
            except TimeoutError:
                self._ledger.unsure.add(word)
                self._ledger.faults.append(f"{word} hung")
            except FabricError as error:
                self._ledger.unsure.add(word)
                self._ledger.answers[f"error {error.reason}"] += 1

    async def _send(self, session: Session, word: str, line: str) -> None:
        name, style = new_request_id(), self._random.random()
        if style < 0.1:
            both = await asyncio.gather(
                *(session.send(line, request_id=name) for _ in range(2)), return_exceptions=True
            )
            self._ledger.twice += 1
            results = [one for one in both if isinstance(one, SendResult)]
            if not results:
                self._ledger.unsure.add(word)
                first = both[0]
                if not isinstance(first, FabricError):
                    raise AssertionError(f"neither an answer nor a typed error: {first!r}")
                raise first
            result = results[0]
        else:
            result = await session.send(line, request_id=name)
        self._told(word, result)
        if style > 0.9:
            self._ledger.twice += 1
            again = await session.send(line, request_id=name)
            if again.outcome is not result.outcome:
                self._ledger.faults.append(f"{word} was answered in two ways")

    def _told(self, word: str, result: SendResult) -> None:
        self._ledger.answers[f"send {result.outcome.value}"] += 1
        known = result.outcome is Outcome.COMPLETED
        (self._ledger.completed if known else self._ledger.unsure).add(word)

    async def _task(self, session: Session, word: str, line: str) -> None:
        task = await session.send_background(line)
        output = await task.output(TASK_WAIT_S)
        self._ledger.answers[f"task {output.record.state.value}"] += 1
        known = output.record.state is TaskState.COMPLETED
        (self._ledger.completed if known else self._ledger.unsure).add(word)


async def run(calls: int, sessions: int, seed: int, rates: Rates | None = None) -> Ledger:
    """Make ``calls`` calls over ``sessions`` sessions and compare."""
    ledger = Ledger()
    with tempfile.TemporaryDirectory(prefix="fabric-faults-") as folder:
        file = Path(folder, "ran")
        async with (
            local_fabric() as fabric,
            FaultProxy(fabric.address, seed, rates) as proxy,
        ):
            lines = Lines(proxy, sessions)
            await asyncio.gather(
                *(
                    _one(fabric.address, lines, Caller(number, seed, file, ledger),
                         calls // sessions + (number < calls % sessions))
                    for number in range(sessions)
                )
            )  # fmt: skip
            ledger.connection_faults = proxy.faults
        ledger.check(_ran(file))
    return ledger


def _ran(file: Path) -> Counter[str]:
    return Counter(file.read_text().split()) if file.exists() else Counter()


class Lines:
    """Lets the proxy break connections once every caller has its session."""

    def __init__(self, proxy: FaultProxy, callers: int) -> None:
        self.proxy = proxy
        self._barrier = asyncio.Barrier(callers)
        proxy.active = False

    async def all_connected(self) -> None:
        """Wait for the others, then break connections."""
        await self._barrier.wait()
        self.proxy.active = True


async def _one(sound: str, lines: Lines, caller: Caller, calls: int) -> None:
    # The owner is kept over a sound line, so that what is measured is the calls.
    mode = SandboxMode.DANGER_FULL_ACCESS
    async with FabricClient.connect(sound, agent=f"agent-{caller.number}", mode=mode) as owner:
        session = await owner.open("shell")
        async with FabricClient.connect(
            lines.proxy.address, owner_token=owner.owner_token
        ) as client:
            await lines.all_connected()
            await caller.run(client.session(session.id), calls)
        # A send that was given up may still run; its end is waited for before counting.
        await session.wait_for(ready=True, timeout_s=30)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    started = time.perf_counter()
    ledger = uvloop.run(run(options.calls, options.sessions, options.seed))
    took = time.perf_counter() - started
    print(f"{options.calls} calls in {took:.0f} s, seed {options.seed}")
    print(f"connections broken or delayed: {dict(ledger.connection_faults)}")
    print(f"answers: {dict(ledger.answers)}; asked twice: {ledger.twice}")
    unknown = len(ledger.unsure - ledger.completed)
    print(f"completed {len(ledger.completed)}, not known to the caller {unknown}")
    for fault in ledger.faults:
        print(f"FAULT {fault}")
    print("no command ran twice, none was lost silently" if not ledger.faults else "FAILED")
    return 1 if ledger.faults else 0


if __name__ == "__main__":
    sys.exit(main())
