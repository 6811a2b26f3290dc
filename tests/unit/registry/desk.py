"""A registry over fake nodes and a held clock, with the calls tests make most."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from fabric.core.clock import ManualClock
from fabric.core.ids import AgentId, HostName, Principal, RequestId, SessionId
from fabric.core.model import (
    Caller,
    CloseResult,
    OpenRequest,
    OpenResult,
    ReleaseReceipt,
    SandboxMode,
)
from fabric.core.settings import RegistrySettings, TaskSettings
from fabric.registry.journal import Journal
from fabric.registry.registry import Registry
from tests.support.fake_nodes import FakeNodes

T = TypeVar("T")


@dataclass
class Desk:
    path: Path
    nodes: FakeNodes
    settings: RegistrySettings
    tasks: TaskSettings
    clock: ManualClock = field(default_factory=ManualClock)
    here: HostName | None = None
    registry: Registry = field(init=False)
    _count: int = 0

    def build(self) -> Registry:
        self.registry = Registry(
            settings=self.settings,
            tasks=self.tasks,
            nodes=self.nodes,
            journal=Journal(self.path),
            clock=self.clock,
            here=self.here,
        )
        return self.registry

    async def restart(self) -> None:
        """Stop in order and start again from the journal."""
        await self.registry.stop()
        await self.build().start(watch=False)

    async def crash(self) -> None:
        """Start again from the journal as a killed registry left it."""
        self.registry._books.journal._db.close()
        old = self.registry
        await self.build().start(watch=False)
        old._is_ready = False

    def rid(self) -> RequestId:
        self._count += 1
        return RequestId(f"req-{self._count}")

    async def acquire(
        self, agent: str = "a", principal: str = "p", mode: SandboxMode | None = None
    ) -> Caller:
        grant = await self.registry.acquire(
            Principal(principal), AgentId(agent), mode, None, self.rid()
        )
        return Caller(grant.owner_id, grant.epoch)

    async def open(self, caller: Caller, name: str | None = None, **more: Any) -> OpenResult:
        request = OpenRequest(more.pop("request_id", None) or self.rid(), "shell", name, **more)
        return await self.registry.open(caller, request)

    async def opened(self, caller: Caller, name: str | None = None, **more: Any) -> SessionId:
        return (await self.open(caller, name, **more)).info.session_id

    async def close(self, caller: Caller, session_id: SessionId) -> CloseResult:
        return await self.registry.close(caller, session_id, self.rid())

    async def release(self, caller: Caller) -> ReleaseReceipt:
        return await self.registry.release(caller, self.rid())

    async def names(self, caller: Caller) -> list[str | None]:
        return [info.name for info in await self.registry.list(caller)]


@asynccontextmanager
async def desk(
    tmp_path: Path,
    nodes: FakeNodes | None = None,
    settings: RegistrySettings | None = None,
    tasks: TaskSettings | None = None,
) -> AsyncIterator[Desk]:
    made = Desk(
        tmp_path / "registry.db",
        nodes if nodes is not None else FakeNodes(),
        settings if settings is not None else RegistrySettings(),
        tasks if tasks is not None else TaskSettings(),
    )
    await made.build().start(watch=False)
    try:
        yield made
    finally:
        await made.registry.stop()


def spawn(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    return asyncio.get_running_loop().create_task(work)


async def ended(task: "asyncio.Task[Any]") -> BaseException | None:
    """Wait for a task and return its error, a cancellation included."""
    await asyncio.wait({task})
    return asyncio.CancelledError() if task.cancelled() else task.exception()
