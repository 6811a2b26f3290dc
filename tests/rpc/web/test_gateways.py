"""Views and more than one gateway; the end of a gateway; the synchronous client."""

import asyncio
from contextlib import asynccontextmanager

from fabric.client import FabricClientSync
from fabric.client.peer import PeerSessions
from fabric.core.model import Caller, SandboxMode, WaitReason
from fabric.core.settings import GatewaySettings
from fabric.core.settings_web import WebSettings
from fabric.gateway.shared import SharedTerminals
from fabric.web.app import WebServer
from fabric.web.desk import Desk
from fabric.web.sources import Sources
from tests.support.local_fabric import HOST
from tests.support.page import page


@asynccontextmanager
async def another_door(fabric):
    """The web server of a gateway on another machine: it reaches sessions by the first one."""
    keys = await fabric.registry.join(HOST, fabric.address)
    peer = PeerSessions(fabric.address, keys.peer_key)
    desk = Desk(WebSettings(), fabric.settings.worker.shared)
    terminals = SharedTerminals(fabric.registry, peer)
    web = WebServer(GatewaySettings(), desk, Sources(fabric.registry, peer, terminals, 1.0))
    await web.start()
    try:
        yield desk
    finally:
        await web.stop()
        await peer.close()


async def test_a_view_by_another_gateway_controls_types_and_comes_back(fabric, client):
    await client.shared.send("seq 1 100")
    caller = Caller(client.owner.owner_id, client.owner.epoch)
    async with another_door(fabric) as desk:
        link = desk.mint(caller, None, readonly=False)
        async with page(link.url) as view:
            told = await view.until("attached", role="controller")
            await view.until("status", queue="ready")
            assert b"\r\n57\r\n" in view.painted  # the lines above the screen come too
            await view.send("human.begin", data="echo far-$((6*7))\r")
            await view.shows("far-42\r\n")
            await view.until("human.revoked", reason="prompt")
        async with page(desk.url, resume=told["resume"]) as view:
            again = await view.until("attached")
            assert again["role"] == "controller" or again["reason"] == "invalid-resume"
            await view.send("heartbeat")
            await view.until("heartbeat")


async def test_a_ticket_of_one_gateway_is_nothing_at_another(fabric, client):
    async with another_door(fabric) as desk:
        _, _, ticket = (await client.view_ticket()).url.partition("#")
        async with page(f"{desk.url}/#{ticket}") as view:
            assert await view.closed() == 4003


async def test_the_gateways_end_says_so(fabric, client):
    async with page((await client.view_ticket()).url) as view:
        await view.until("attached")
        await fabric.web.stop()
        assert await view.closed() == 1001


async def test_the_synchronous_client_has_the_terminal_and_the_link(fabric):
    def work():
        options = {"agent": "sync", "mode": SandboxMode.DANGER_FULL_ACCESS}
        with FabricClientSync.connect(fabric.address, **options) as client:
            assert "hi-42" in client.shared.send("echo hi-$((6*7))").output
            assert client.shared.read().state.queue_status == "ready"
            assert client.shared.signal("SIGINT").wait_reason is WaitReason.PROMPT
            assert client.shared.reset().state.generation == 2
            return client.view_ticket().url

    assert "/#t=" in await asyncio.to_thread(work)


async def test_a_terminal_that_cannot_be_reached_closes_the_view_with_its_code(fabric, client):
    async with page((await client.view_ticket()).url) as view:
        await view.until("status", queue="ready")
        worker = next(w for w in fabric.slots.workers.values() if w.sharing is not None)
        await worker._server.close()
        assert await view.closed() == 1011
