"""Owners that use their sessions whatever happens, and note what they were told."""

import asyncio
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from fabric.client import FabricClient
from fabric.client.session import Session
from fabric.core.errors import FabricError, SendActiveError
from fabric.core.model import Outcome, SignalName, TaskState, WaitReason

CALL_LIMIT_S = 240.0
PAUSE_S = 0.05


@dataclass
class Told:
    """What all owners together were told of their commands."""

    completed: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    answers: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


class Owner:
    """One agent with one shell; every command writes a word of its own, and prints it."""

    def __init__(self, number: int, seed: int, client: FabricClient, file: Path, told: Told):
        self.number = number
        self.client = client
        self.pid = 0
        self.log = bytearray()
        self.gaps = 0
        self._random = random.Random(seed * 1009 + number)
        self._file = file
        self._told = told
        self._count = 0
        self.session: Session

    async def open(self) -> None:
        """Open the shell, before anything is killed."""
        self.session = await self.client.open("shell", name=f"chaos-{self.number}")
        self.pid = (await self.session.status()).pid or 0

    async def follow(self) -> None:
        """Read every byte from the first on, until cancelled."""
        at = 0
        while True:
            try:
                async for page in self.session.follow(at):
                    if page.offset > at:
                        self.gaps += page.offset - at
                    elif page.offset < at:
                        self._told.faults.append(f"bytes from {page.offset} came twice")
                    self.log += page.data
                    at = page.next_offset
            except FabricError as error:
                self._told.answers[f"follow {error.reason}"] += 1
                await asyncio.sleep(PAUSE_S)

    async def run(self, until: float, others: "list[Owner]") -> None:
        """Make calls until a moment of the monotonic clock."""
        while time.monotonic() < until:
            try:
                async with asyncio.timeout(CALL_LIMIT_S):
                    await self._one(others)
            except TimeoutError:
                self._told.faults.append(f"a call of owner {self.number} hung")
            except FabricError as error:
                self._told.answers[f"error {error.reason}"] += 1
            await asyncio.sleep(self._random.uniform(0, 4 * PAUSE_S))

    async def _one(self, others: "list[Owner]") -> None:
        choice = self._random.random()
        if choice < 0.6:
            await self._command(background=False)
        elif choice < 0.75:
            await self._command(background=True)
        elif choice < 0.8:
            await self.session.send("sleep 1000", timeout_s=0.3)
            await self.session.signal(SignalName.SIGINT)
        elif choice < 0.9:
            await self.session.read(0, 20)
        else:
            await self._trespass(self._random.choice(others))

    async def _command(self, *, background: bool) -> None:
        self._count += 1
        word = f"w{self.number}x{self._count}"
        nap = "sleep 0.3; " if self._random.random() < 0.2 else ""
        line = f"{nap}echo {word} >> {self._file}; printf 'out-%s.\\n' {word}"
        known = False
        try:
            if background:
                output = await (await self.session.send_background(line)).output(20.0)
                self._told.answers[f"task {output.record.state.value}"] += 1
                known = output.record.state is TaskState.COMPLETED
            else:
                result = await self.session.send(line, timeout_s=20.0)
                self._told.answers[f"send {result.outcome.value}"] += 1
                known = result.outcome is Outcome.COMPLETED and (
                    result.wait_reason is WaitReason.STDIN_READ
                )
        except SendActiveError:
            # What was broken off is still running; a person would wait for it.
            await self.session.wait_for(ready=True, timeout_s=10.0)
            raise
        finally:
            (self._told.completed if known else self._told.unsure).add(word)

    async def _trespass(self, other: "Owner") -> None:
        if other is self:
            return
        try:
            await self.client.session(other.session.id).send("echo stolen")
        except FabricError as error:
            self._told.answers[f"trespass {error.reason}"] += 1
        else:
            self._told.faults.append(f"owner {self.number} used a session of {other.number}")
