"""What a checkup asks of this machine and of the nodes of a cluster that was joined."""

import asyncio
import platform
import time
from dataclasses import dataclass
from importlib import metadata

from fabric.actors.handles import ActorHandle
from fabric.actors.launch import alive_hosts
from fabric.actors.names import node_name
from fabric.core.errors import FabricError, RegistryUnavailableError
from fabric.core.ids import HostName
from fabric.core.settings import SandboxSettings, Settings
from workers.capacity import Capacity, read_capacity
from workers.sandbox.probe import probe_now


@dataclass(frozen=True, slots=True)
class Build:
    """What a process of ours is made of, and what its clock says (seconds since 1970)."""

    version: str
    ray: str
    python: str
    wall_s: float


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """One node's build, how far its clock is ahead of ours and how sure that is, in seconds.

    ``problem`` says why there is none.
    """

    host: HostName
    build: Build | None = None
    offset_s: float = 0.0
    doubt_s: float = 0.0
    problem: str = ""


def build_here() -> Build:
    """Describe this process."""
    return Build(
        metadata.version("pty-fabric"),
        metadata.version("ray"),
        platform.python_version(),
        time.time(),
    )


def sandbox_kinds(settings: SandboxSettings) -> tuple[tuple[str, ...], str]:
    """Try every sandbox of this machine; return the kinds that hold and why the best does not."""
    found = probe_now(settings)
    return found.kinds, found.failure


def capacity() -> Capacity:
    """Say what this machine has left."""
    return read_capacity()


async def ask_nodes(settings: Settings) -> tuple[NodeAnswer, ...]:
    """Ask every living node of the joined cluster what it is made of.

    Raises: RegistryUnavailableError when the cluster does not say which there are.
    """
    limit_s = settings.registry.node_call_timeout_s
    try:
        async with asyncio.timeout(limit_s):
            hosts = await asyncio.to_thread(alive_hosts)
    except TimeoutError as error:
        raise RegistryUnavailableError("Ray does not list its nodes") from error
    namespace = settings.cluster.namespace
    return tuple(await asyncio.gather(*(_ask(namespace, host, limit_s) for host in sorted(hosts))))


async def _ask(namespace: str, host: HostName, limit_s: float) -> NodeAnswer:
    handle = ActorHandle(node_name(host), namespace, RegistryUnavailableError)
    try:
        await handle.ready(limit_s)  # so that the round trip below is only that
        before = time.time()
        build: Build = await handle.build(limit_s)
        after = time.time()
    except FabricError as error:
        return NodeAnswer(host, problem=error.message)
    return NodeAnswer(host, build, build.wall_s - (before + after) / 2, (after - before) / 2)
