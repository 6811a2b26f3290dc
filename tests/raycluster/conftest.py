"""One real Ray cluster per run: two nodes of one machine, the second one says it is a Mac."""

import asyncio
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from fabric.actors import cluster, rayenv
from fabric.actors.handles import ActorHandle
from fabric.actors.launch import ensure_fabric
from fabric.actors.names import REGISTRY, node_name
from fabric.actors.plan import Plan
from fabric.actors.remote import RemoteRegistry
from fabric.actors.sessions import Sessions
from fabric.core.errors import RegistryUnavailableError
from fabric.core.ids import AgentId, HostName, Principal, new_request_id
from fabric.core.model import Caller, OpenRequest, SandboxMode, SendRequest
from fabric.core.settings import (
    ClusterSettings,
    NodeSettings,
    RegistrySettings,
    Settings,
    ShellSettings,
    TeardownSettings,
    WorkerSettings,
)
from tests.support.eventually import eventually

H1, H2 = HostName("h1"), HostName("h2")
SESSIONS = 6


@dataclass
class Running:
    """The fabric of this run, as a gateway on ``h1`` sees it."""

    embedded: cluster.Embedded
    state_dir: Path
    plan: Plan
    membership: rayenv.Membership

    @property
    def registry(self) -> RemoteRegistry:
        return RemoteRegistry(self.plan.settings)

    def actor(self, name: str) -> ActorHandle:
        return ActorHandle(name, self.plan.namespace, RegistryUnavailableError)

    async def node_state(self, host=H1):
        return await self.actor(node_name(host)).call("state", timeout_s=10)

    async def warm(self, host=H1, count=1):
        async def is_warm():
            return (await self.node_state(host)).warm >= count

        await eventually(is_warm, within=30, what=f"{count} warm slots on {host}")

    async def caller(self) -> Caller:
        grant = await self.registry.acquire(
            Principal("me"), AgentId(new_request_id()), None, None, new_request_id()
        )
        return Caller(grant.owner_id, grant.epoch)

    async def pid_of(self, name: str) -> int:
        """The process of the registry or of a node."""
        return await self.actor(name).pid(timeout_s=10)


@pytest.fixture(scope="session")
def fabric():
    folder = Path(tempfile.mkdtemp(prefix="pfr-"))
    settings = Settings(
        cluster=ClusterSettings(host=H1, start_timeout_s=90),
        node=NodeSettings(warm_sessions=1, max_sessions=SESSIONS, max_starting=2),
        registry=RegistrySettings(
            default_mode=SandboxMode.DANGER_FULL_ACCESS, node_poll_interval_s=0.5
        ),
        worker=WorkerSettings(
            teardown=TeardownSettings(grace_s=1.0, shell_grace_s=0.5),
            shell=ShellSettings(programs=("sleeper=/bin/sleep 31337",)),
        ),
    )
    embedded = cluster.start(settings.cluster, folder, sessions=SESSIONS)
    try:
        embedded = cluster.add_node(
            embedded,
            settings.cluster,
            folder,
            H2,
            sessions=SESSIONS,
            labels={"ptyfabric.os": "darwin"},
        )
        membership = rayenv.join(settings.cluster, embedded.address, token_file=embedded.token_file)
        plan = Plan(settings, str(folder))
        asyncio.run(ensure_fabric(plan))
        yield Running(embedded, folder, plan, membership)
    finally:
        rayenv.leave()
        cluster.stop(folder, settings.worker.teardown)
        left = list(cluster.marked(embedded.mark))
        shutil.rmtree(folder)
        assert not left, "processes of the cluster are left"


@dataclass
class Owner:
    """An owner with sessions; what it opened is closed at the end of the test."""

    caller: Caller
    registry: RemoteRegistry
    sessions: Sessions

    async def open(self, kind="shell", **facts):
        result = await self.registry.open(self.caller, OpenRequest(new_request_id(), kind, **facts))
        return result.info

    async def send(self, session_id, text, **facts):
        request = SendRequest(facts.pop("request_id", None) or new_request_id(), text.encode())
        return await self.sessions.send(self.caller, session_id, request)

    async def close(self, session_id):
        return await self.registry.close(self.caller, session_id, new_request_id())


@pytest.fixture
async def owner(fabric):
    registry = fabric.registry
    sessions = Sessions(H1, registry)
    owner = Owner(await fabric.caller(), registry, sessions)
    yield owner

    await eventually(lambda: released(owner), within=60)
    await sessions.close()


async def released(owner):
    """Release the owner; the registry may be on its way back from a test that killed it."""
    try:
        return await owner.registry.release(owner.caller, new_request_id())
    except RegistryUnavailableError:
        return None


__all__ = ["H1", "H2", "REGISTRY", "SESSIONS", "Owner", "Running"]
