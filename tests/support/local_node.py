"""A node in this process: real slots, shims and terminals; workers are objects of this loop."""

import asyncio
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

from fabric.core.errors import SpawnFailedError
from fabric.core.ids import HostName, SlotId
from fabric.core.settings import NodeSettings, TeardownSettings, WorkerSettings
from workers.actor import SessionWorker
from workers.capacity import Capacity
from workers.node import Node
from workers.slot import SlotConfig
from workers.slots import SlotState

HOST = HostName("h1")
WORKER = WorkerSettings(teardown=TeardownSettings(grace_s=1.0, shell_grace_s=0.5))


class LocalSlots:
    """Starts session workers in this loop; ``failing`` holds the errors of the next starts."""

    def __init__(self, settings: WorkerSettings = WORKER) -> None:
        self._settings = settings
        self.workers: dict[SlotId, SessionWorker] = {}
        self.failing: list[Exception] = []
        self.created: list[SlotId] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def create(self, config: SlotConfig) -> None:
        await self.gate.wait()
        if self.failing:
            raise self.failing.pop(0)
        if config.slot_id in self.workers:
            return
        self.created.append(config.slot_id)
        worker = SessionWorker(config, self._settings)
        await worker.start()
        self.workers[config.slot_id] = worker

    async def destroy(self, slot_id: SlotId) -> None:
        worker = self.workers.pop(slot_id, None)
        if worker is not None:
            await worker.stop()

    async def crash(self, slot_id: SlotId) -> None:
        """Let a worker vanish as if it had been killed; the shim stays."""
        await self.destroy(slot_id)

    async def crash_all(self) -> None:
        for slot_id in list(self.workers):
            await self.crash(slot_id)


def broken(message: str = "no such program") -> SpawnFailedError:
    return SpawnFailedError(message)


class LocalNode:
    """A node, its folder and its factory, as long as a test lasts."""

    def __init__(self, folder: Path, settings: NodeSettings) -> None:
        self.folder = folder
        self.settings = settings
        self.slots = LocalSlots()
        self.capacity = Capacity()
        self.events: list[tuple[str, dict]] = []
        self.node = self.make()

    def make(self) -> Node:
        return Node(
            HOST,
            self.folder,
            self.settings,
            WORKER,
            self.slots,
            capacity=lambda: self.capacity,
            on_event=lambda session_id, event: self.events.append((session_id, event)),
        )

    def warm(self) -> int:
        return self.node._pool.slots.count(SlotState.WARM)

    def files(self) -> list[str]:
        found = (path.name for path in self.folder.rglob("*") if not path.is_dir())
        return sorted(name for name in found if name != "draining")

    def slot_of(self, session_id: str) -> SlotId:
        return self.node._sessions[session_id].config.slot_id


@asynccontextmanager
async def local_node(**settings):
    """Run a node; afterwards nothing of it may be left."""
    folder = Path(tempfile.mkdtemp(prefix="pfn-"))
    facts = {"warm_sessions": 1, "max_starting": 2, "start_timeout_s": 20.0} | settings
    local = LocalNode(folder, NodeSettings(**facts))
    await local.node.start()
    try:
        yield local
    finally:
        local.slots.gate.set()
        await local.node.end_all("the test is over")
        await local.node.stop()
        left = local.files()
        shutil.rmtree(folder)
        assert not left, left
