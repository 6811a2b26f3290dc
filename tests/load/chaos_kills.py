"""Which processes of a fabric there are, and killing some of them by a seed."""

import asyncio
import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from fabric.actors import cluster
from fabric.cli.state import StateDir, start_time_of
from fabric.core.errors import FabricError

WORKER, NODE, REGISTRY, GATEWAY, RAYLET, RAY = (
    "worker", "node actor", "registry", "gateway", "raylet", "all of Ray",
)  # fmt: skip
WEIGHTS = {WORKER: 40, NODE: 15, REGISTRY: 15, GATEWAY: 20, RAYLET: 4, RAY: 4}
TITLES = {WORKER: "ray::SessionHost", NODE: "ray::NodeHost", REGISTRY: "ray::RegistryHost"}
SHORTEST_S, LONGEST_S = 1.0, 5.0
TWO_AT_ONCE = 0.2
BACK_S = 180.0
LOOK_EVERY_S = 0.02


class Prey:
    """The processes of the fabric of one state folder, found anew each time."""

    def __init__(self, state_dir: Path) -> None:
        self.state = StateDir(state_dir)

    def of(self, kind: str) -> list[psutil.Process]:
        """List the living processes of a kind."""
        if kind == GATEWAY:
            record = self.state.record()
            if record is None or start_time_of(record.gateway_pid) != record.gateway_start_time:
                return []
            return [psutil.Process(record.gateway_pid)]
        embedded = cluster.read(self.state.folder)
        if embedded is None:
            return []
        found = []
        for member in cluster.marked(embedded.mark):
            process = member.alive()
            with contextlib.suppress(psutil.Error):
                line = " ".join(process.cmdline()) if process else ""
                if process and (
                    kind == RAY
                    or (kind == RAYLET and "raylet/raylet" in line)
                    or (kind in TITLES and TITLES[kind] in line)
                ):
                    found.append(process)
        return found

    def worker_of(self, session_id: str) -> psutil.Process | None:
        """Find the process that serves a session's socket."""
        for path in (self.state.folder / "nodes").glob("*/slots/*.json"):
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                row = json.loads(path.read_text())
                if row["spec"]["session_id"] == session_id:
                    socket = str(path.parent.parent / "w" / f"{path.stem}.s")
                    return next((p for p in self.of(WORKER) if _serves(p, socket)), None)
        return None


def _serves(process: psutil.Process, socket: str) -> bool:
    with contextlib.suppress(psutil.Error):
        return any(item.laddr == socket for item in process.net_connections("unix"))
    return False


@dataclass
class Killer:
    """Kills until told to stop; ``answers`` says whether the fabric takes opens again."""

    prey: Prey
    random: random.Random
    answers: Callable[[], Awaitable[bool]]
    adoption: Callable[[str], Awaitable[int]]
    sessions: list[str]
    kills: Counter[str] = field(default_factory=Counter)
    back_s: dict[str, list[float]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    async def run(self, until: float) -> None:
        """Kill until a moment of the monotonic clock."""
        while (left := until - time.monotonic()) > 0:
            pause = self.random.uniform(SHORTEST_S, LONGEST_S)
            await asyncio.sleep(min(pause, left))
            count = 2 if self.random.random() < TWO_AT_ONCE else 1
            kinds = self.random.choices(list(WEIGHTS), list(WEIGHTS.values()), k=count)
            if kinds == [WORKER]:
                await self._kill_a_session_s_worker()
            else:
                await self._kill(kinds)

    async def _kill(self, kinds: list[str]) -> None:
        killed = []
        for kind in kinds:
            rows = await asyncio.to_thread(self.prey.of, kind)
            chosen = rows if kind == RAY else rows and [self.random.choice(rows)]
            for process in chosen or ():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            if chosen:
                self.kills[kind] += 1
                killed.append(kind)
        if killed:
            await self._until_back(" and ".join(sorted(set(killed))))

    async def _until_back(self, what: str) -> None:
        """Wait until opens work: what is dead already cannot be killed."""
        began = time.monotonic()
        while not await self.answers():
            if time.monotonic() - began > BACK_S:
                self.faults.append(f"after the death of {what} nothing worked for {BACK_S:g} s")
                return
            await asyncio.sleep(LOOK_EVERY_S)
        self.back_s.setdefault(what, []).append(time.monotonic() - began)

    async def _kill_a_session_s_worker(self) -> None:
        session_id = self.random.choice(self.sessions)
        process = await asyncio.to_thread(self.prey.worker_of, session_id)
        if process is None:
            return
        try:
            before = await self.adoption(session_id)
        except FabricError:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
        self.kills[WORKER] += 1
        began = time.monotonic()
        while time.monotonic() - began < BACK_S:
            with contextlib.suppress(FabricError):
                if await self.adoption(session_id) > before:
                    self.back_s.setdefault(WORKER, []).append(time.monotonic() - began)
                    return
            await asyncio.sleep(LOOK_EVERY_S)
        self.faults.append(f"session {session_id} was not usable for {BACK_S:g} s")
