"""The whole product in one process and one event loop, without Ray.

Real registry with its journal, real node with its warm pool, real session workers and shims,
real gateway on loopback, real client. Only two things differ from a cluster: workers are
objects in this loop instead of Ray actors, and the registry is called directly.
"""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from fabric.actors.reporting import Reporter
from fabric.actors.sessions import Sessions
from fabric.client.client import FabricClient
from fabric.core.ids import HostName, SessionId, SlotId
from fabric.core.model import (
    Location,
    NodeState,
    OpenSpec,
    SandboxMode,
)
from fabric.core.settings import Settings
from fabric.core.sources import load
from fabric.gateway.limits import limits_of
from fabric.gateway.server import Gateway
from fabric.registry.journal import Journal
from fabric.registry.registry import Registry
from fabric.web.app import WebServer
from fabric.web.desk import Desk
from fabric.web.sources import Sources
from workers.actor import SessionWorker
from workers.node import Node
from workers.slot import SlotConfig

HOST = HostName("local")


class LocalSlots:
    """Session workers as objects of this loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.workers: dict[SlotId, SessionWorker] = {}

    async def create(self, config: SlotConfig) -> None:
        if config.slot_id in self.workers:
            return
        worker = SessionWorker(config, self._settings.worker)
        await worker.start()
        self.workers[config.slot_id] = worker

    async def destroy(self, slot_id: SlotId) -> None:
        worker = self.workers.pop(slot_id, None)
        if worker is not None:
            await worker.stop()


class LocalNodes:
    """The registry's way to the one node."""

    def __init__(self, node: Node) -> None:
        self._node = node

    async def states(self) -> tuple[NodeState, ...]:
        return (await self._node.state(),)

    async def open(self, host: HostName, spec: OpenSpec) -> Any:
        return await self._node.open(spec)

    async def close(self, host: HostName, session_id: SessionId, reason: str) -> Any:
        return await self._node.close(session_id, reason)

    async def fence(self, host: HostName, session_id: SessionId, epoch: int) -> None:
        await self._node.fence(session_id, epoch)

    async def keep(self, host: HostName, epochs: Any, asked_at: float, word_s: Any) -> None:
        await self._node.keep(epochs, asked_at, word_s)

    async def sessions(self, host: HostName) -> Any:
        return await self._node.sessions()

    async def locate(self, host: HostName, session_id: SessionId) -> Location:
        return await self._node.locate(session_id)


class LocalFabric:
    """Started parts; ``client`` connects to them as a harness would."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.slots = LocalSlots(settings)
        self.node = Node(
            HOST, folder / "n", settings.node, settings.worker, self.slots, on_event=self._tell
        )
        self._folder = folder
        self._reporter: Reporter | None = None
        self.address = ""
        self.url = ""
        self._build()

    def _build(self) -> None:
        settings = self.settings
        self.registry = Registry(
            settings=settings.registry,
            tasks=settings.tasks,
            nodes=LocalNodes(self.node),
            journal=Journal(self._folder / "registry.db"),
            shell=settings.worker.shell,
            shared=settings.worker.shared,
        )
        self.sessions = Sessions(HOST, self.registry)
        self.desk = Desk(settings.web, settings.worker.shared)
        self.gateway = Gateway(
            settings.gateway,
            self.registry,
            self.sessions,
            host=HOST,
            limits=limits_of(settings),
            views=self.desk,
            metrics=settings.metrics,
        )
        sources = Sources(
            self.registry, self.sessions, self.gateway.shared, settings.web.overview_s
        )
        self.web = WebServer(settings.gateway, self.desk, sources)

    async def restart_control(self) -> None:
        """End the gateway and the registry and start others on the same journal and node."""
        assert self._reporter is not None
        await self.web.stop()
        await self.gateway.stop(1.0)
        await self.sessions.close()
        await self.registry.stop()
        await self._reporter.stop()
        self._build()
        self._reporter = Reporter(HOST, cast(Any, self.registry))
        await self.registry.start()
        await self._listen()

    async def _listen(self) -> None:
        self.address = await self.gateway.start()
        self.url = await self.web.start()

    def _tell(self, session_id: SessionId, event: dict[str, Any]) -> None:
        if self._reporter is not None:
            self._reporter.report(session_id, event)

    async def start(self) -> None:
        self._reporter = Reporter(HOST, cast(Any, self.registry))
        await self.node.start()
        await self.registry.start()
        await self._listen()

    async def stop(self) -> None:
        await self.web.stop()
        await self.gateway.stop(1.0)
        await self.sessions.close()
        await self.registry.stop()
        await self.node.end_all("the test is over")
        await self.node.stop()
        if self._reporter is not None:
            await self._reporter.stop()

    def client(self, agent: str = "tester", **options: Any) -> FabricClient:
        options.setdefault("mode", SandboxMode.DANGER_FULL_ACCESS)
        return FabricClient.connect(self.address, agent=agent, **options)


@asynccontextmanager
async def local_fabric(**flags: str) -> AsyncIterator[LocalFabric]:
    """Run a fabric in this loop; ``flags`` are settings, ``__`` for a dot."""
    defaults = {"gateway.listen": "127.0.0.1:0", "node.warm_sessions": "1"}
    given = {key.replace("__", "."): value for key, value in flags.items()}
    settings = load(flags=defaults | given).settings
    # Short: unix sockets live below it.
    folder = Path(tempfile.mkdtemp(prefix="pf", dir="/tmp"))
    fabric = LocalFabric(settings, folder)
    try:
        await fabric.start()
        yield fabric
    finally:
        try:
            await asyncio.shield(fabric.stop())
        finally:
            shutil.rmtree(folder, ignore_errors=True)
