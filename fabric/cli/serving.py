"""``fabric serve``: one gateway of a running cluster, in a process of its own.

It joins the cluster as a driver, starts what the fabric lacks (registry, node actors),
serves, and on SIGTERM drains and leaves; sessions go on. SIGUSR1 means that the whole
fabric goes down: its callers are told at once, and while the last calls end the registry
ends every owner with its sessions, so that no call waits for a program that does not stop.
"""

import asyncio
import signal
from importlib import metadata
from typing import Any, cast

import uvloop

from fabric.actors import rayenv
from fabric.actors.launch import ensure_fabric
from fabric.actors.peers import Peers
from fabric.actors.plan import Plan
from fabric.actors.remote import RemoteRegistry
from fabric.actors.sessions import Sessions
from fabric.cli.announce import Announcer
from fabric.cli.context import Context
from fabric.client.peer import PeerSessions, peer_tls
from fabric.core import log
from fabric.core.errors import FabricError, InvalidRequestError
from fabric.core.ids import HostName
from fabric.core.model import GatewayKeys
from fabric.core.neighbours import refuse_the_ssh_library
from fabric.core.settings import Settings
from fabric.core.tracing import Tracer
from fabric.gateway.limits import limits_of
from fabric.gateway.server import Gateway
from fabric.web.app import WebServer, check_listener
from fabric.web.desk import Desk
from fabric.web.sources import Sources

DISPOSE = signal.SIGUSR1


class Registry(RemoteRegistry):
    """The registry, remembering the key by which gateways know each other."""

    peer_key = ""

    async def join(self, host: HostName, address: str) -> GatewayKeys:
        """Announce this gateway and get the fabric's keys."""
        keys = await super().join(host, address)
        self.peer_key = keys.peer_key
        return keys


def serve(context: Context) -> int:
    """Serve until told to end."""
    refuse_the_ssh_library()
    announcer = Announcer(context.arguments.announce_fd)
    try:
        settings = context.loaded.settings
        if not settings.cluster.address:
            raise InvalidRequestError(
                "serve needs a cluster to join",
                hint="fabric serve --address host:port, or fabric up for a cluster of its own",
            )
        log.configure(settings.log.level)
        uvloop.run(_serve(context, settings, announcer))
    except FabricError as error:
        announcer.failed(error)
        raise
    finally:
        announcer.close()
    return 0


async def _serve(context: Context, settings: Settings, announcer: Announcer) -> None:
    ended: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
    _listen_to_signals(ended, context)
    state = context.state.prepare()
    token = state.folder / "ray.token"
    announcer.progress("joining the cluster")
    member = await asyncio.to_thread(
        rayenv.join,
        settings.cluster,
        settings.cluster.address,
        token_file=str(token) if token.exists() else "",
    )
    log.always(node=member.host)
    tracer = _tracer(settings, member.host)
    try:
        plan = Plan(settings, str(state.folder))
        await ensure_fabric(plan, progress=announcer.progress)
        registry = Registry(settings)
        tls = peer_tls(settings.gateway)
        peers = Peers(
            registry,
            # Verbs are what a session can be asked; peers have them by name.
            lambda address: cast(
                Any,
                PeerSessions(address, registry.peer_key, tls),
            ),
        )
        sessions = Sessions(member.host, registry, peers)
        desk = Desk(settings.web, settings.worker.shared)
        gateway = Gateway(
            settings.gateway,
            registry,
            sessions,
            host=member.host,
            limits=limits_of(settings),
            metrics=settings.metrics,
            views=desk,
            tracer=tracer,
        )
        sources = Sources(registry, sessions, gateway.shared, settings.web.overview_s)
        web = WebServer(settings.gateway, desk, sources)
        check_listener(settings.web, settings.gateway)
        address = await gateway.start()
        try:
            url = await web.start()
            announcer.ready({"address": address, "metrics": gateway.metrics_address})
            version = metadata.version("pty-fabric")
            also = f", browsers on {url}" if url else ""
            context.output.note(f"pty-fabric {version} serves on {address} as {member.host}{also}")
            if await ended == DISPOSE:
                await gateway.evict()
                await registry.dispose_all("the fabric goes down")
        finally:
            await web.stop()
            await gateway.stop()
            await peers.close()
            await sessions.close()
    finally:
        if tracer is not None:
            await asyncio.to_thread(tracer.close)
        await asyncio.to_thread(rayenv.leave)


def _tracer(settings: Settings, host: str) -> Tracer | None:
    if not settings.trace.endpoint:
        return None  # and nothing of it is imported
    from fabric.tracing.otel import tracer_of

    return tracer_of(settings.trace, {"fabric.host": host, "fabric.process": "gateway"})


def _listen_to_signals(ended: "asyncio.Future[signal.Signals]", context: Context) -> None:
    loop = asyncio.get_running_loop()

    def end(number: signal.Signals) -> None:
        if not ended.done():
            context.output.note("stopping: waiting for the running calls to end")
            ended.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM, DISPOSE):
        loop.add_signal_handler(number, end, number)
