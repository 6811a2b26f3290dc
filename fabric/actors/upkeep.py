"""What an operator does to a fabric that runs: drain a node, restart actors with new code.

A restarted actor imports the code that is installed now; its settings stay those it was
made from. One thing is restarted at a time and waited for: the registry, each node with
its warm slots, then each session's worker while no call of its session is under way, so
that no send ends ``unknown``. Shells notice nothing: they belong to their shims.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from fabric.actors.handles import ActorHandle
from fabric.actors.launch import alive_hosts
from fabric.actors.names import REGISTRY, node_name
from fabric.core.errors import (
    FabricError,
    NodeNotFoundError,
    RegistryUnavailableError,
    StartupTimeoutError,
)
from fabric.core.ids import HostName, SessionId
from fabric.core.settings import Settings
from workers.node import Running

T = TypeVar("T")
LOOK_EVERY_S = 0.25
Progress = Callable[[str], None]


@dataclass(slots=True)
class Upgraded:
    """What was restarted, and which sessions' workers were left as they are because busy."""

    restarted: list[str] = field(default_factory=list)
    sessions: list[SessionId] = field(default_factory=list)
    busy: list[SessionId] = field(default_factory=list)


class Upkeep:
    """Acts on the fabric of the cluster that this process has joined."""

    def __init__(self, settings: Settings, progress: Progress = lambda sentence: None) -> None:
        self._namespace = settings.cluster.namespace
        self._start_s = settings.cluster.start_timeout_s
        self._call_s = settings.registry.node_call_timeout_s
        self._close_s = settings.registry.close_timeout_s
        self._say = progress

    async def drain(self, host: HostName, limit_s: float, *, close: bool) -> tuple[SessionId, ...]:
        """Let a node take no new session; return those it still has when the wait is over.

        Raises: NodeNotFoundError, RegistryUnavailableError.
        """
        node = await self._node(host)
        await node.call("drain", timeout_s=self._call_s)
        deadline = time.monotonic() + limit_s
        told = -1
        while rows := await self._sessions(node):
            if time.monotonic() > deadline:
                break
            if len(rows) != told:
                told = len(rows)
                self._say(f"{host} takes no new sessions; waiting for {told} to end")
            await asyncio.sleep(LOOK_EVERY_S)
        if rows and close:
            self._say(f"closing {len(rows)} sessions")
            await node.call("end_all", "the node is drained", timeout_s=2 * self._close_s)
            rows = await self._sessions(node)
        return tuple(spec.session_id for _, _, spec in rows)

    async def resume(self, host: HostName) -> None:
        """Let a node take sessions again. Raises: NodeNotFoundError, RegistryUnavailableError."""
        await (await self._node(host)).call("resume", timeout_s=self._start_s)

    async def upgrade(self, busy_limit_s: float) -> Upgraded:
        """Restart registry, nodes and workers one after the other. Raises: FabricError."""
        done = Upgraded()
        hosts = sorted(await asyncio.to_thread(alive_hosts))
        for name in (REGISTRY, *(node_name(host) for host in hosts)):
            self._say(f"restarting {name}")
            await self._restart(name)
            done.restarted.append(name)
        for host in hosts:
            node = await self._node(host)
            state = await node.call("state", timeout_s=self._call_s)
            if not state.draining:
                # A drain gives the warm slots up; what comes after it is new.
                await node.call("drain", timeout_s=self._call_s)
                await node.call("resume", timeout_s=self._start_s)
            for row in await self._sessions(node):
                await self._renew_worker(node, row, busy_limit_s, done)
        return done

    async def _renew_worker(
        self, node: ActorHandle, row: Running, limit_s: float, done: Upgraded
    ) -> None:
        location, info, _ = row
        session_id = info.session_id
        deadline = time.monotonic() + limit_s
        while (now := await self._find(node, session_id)) is not None and now[1].busy:
            if time.monotonic() > deadline:
                done.busy.append(session_id)
                return
            await asyncio.sleep(LOOK_EVERY_S)
        if now is None:
            return  # it was closed meanwhile
        self._say(f"restarting the worker of {session_id}")
        await asyncio.to_thread(self._kill, Path(location.socket).stem)
        old = now[1].adoption

        async def adopted() -> bool:
            found = await self._find(node, session_id)
            return found is None or found[1].adoption > old

        await self._until(adopted, f"the worker of {session_id}")
        done.sessions.append(session_id)

    async def _restart(self, name: str) -> None:
        handle = self._handle(name)
        old = await handle.pid(self._start_s)
        await asyncio.to_thread(self._kill, name)

        async def is_new() -> bool:
            try:
                pid = await handle.pid(self._call_s)
                await handle.ready(self._start_s)
            except FabricError:
                return False
            return pid != old

        await self._until(is_new, name)

    async def _until(self, condition: Callable[[], Awaitable[bool]], what: str) -> None:
        deadline = time.monotonic() + self._start_s
        while not await condition():
            if time.monotonic() > deadline:
                raise StartupTimeoutError(f"{what} did not come back within {self._start_s:g} s")
            await asyncio.sleep(LOOK_EVERY_S)

    async def _node(self, host: HostName) -> ActorHandle:
        hosts = await asyncio.to_thread(alive_hosts)
        if host not in hosts:
            raise NodeNotFoundError(
                f"no live node is named {host!r}; there are {', '.join(sorted(hosts))}", host=host
            )
        return self._handle(node_name(host))

    async def _sessions(self, node: ActorHandle) -> tuple[Running, ...]:
        rows: tuple[Running, ...] = await node.call("sessions", timeout_s=self._call_s)
        return rows

    async def _find(self, node: ActorHandle, session_id: SessionId) -> Running | None:
        rows = await self._sessions(node)
        return next((row for row in rows if row[1].session_id == session_id), None)

    def _handle(self, name: str) -> ActorHandle:
        return ActorHandle(
            name, self._namespace, lambda why: RegistryUnavailableError(f"{name}: {why}")
        )

    def _kill(self, name: str) -> None:
        import ray

        ray.kill(ray.get_actor(name, self._namespace), no_restart=False)
