"""What is refused before the upgrade, and what a page may not send after it."""

import asyncio
import logging
import ssl

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from fabric.client.link import Tls
from fabric.core.errors import (
    LimitReachedError,
    SessionNotFoundError,
    SettingsError,
    UnsupportedError,
)
from fabric.core.settings import GatewaySettings
from fabric.core.settings_web import WebSettings
from fabric.web.app import check_listener
from fabric.web.frames import PROTOCOL
from tests.support.certificates import Authority
from tests.support.eventually import pause
from tests.support.local_fabric import local_fabric
from tests.support.page import page, socket_url


async def _refused(url, **options):
    with pytest.raises(InvalidStatus) as caught:
        async with connect(url, **{"subprotocols": [PROTOCOL], **options}):
            pass
    return caught.value.response.status_code


async def test_foreign_and_missing_origins_are_refused(fabric):
    url, own = socket_url(fabric.url), fabric.url
    for origin in (
        "http://evil.example",
        None,
        "null",
        own + ".evil",
        own.upper() + "/",
        "https" + own[4:],
    ):
        assert await _refused(url, origin=origin) == 403
    for name in ("localhost", "[::1]"):
        origin = own.replace("127.0.0.1", name)
        async with connect(url, origin=origin, subprotocols=[PROTOCOL]) as made:
            assert made.subprotocol == PROTOCOL


async def test_a_query_another_path_and_other_protocols_are_refused(fabric):
    url, own = socket_url(fabric.url), fabric.url
    assert await _refused(url + "?t=1", origin=own) == 404
    assert await _refused(url + "/", origin=own) == 404
    assert await _refused(own.replace("http", "ws"), origin=own) == 404
    assert await _refused(url, origin=own, subprotocols=None) == 400
    for names in (["pty-fabric.v2"], [PROTOCOL, "token.abc"]):
        assert await _refused(url, origin=own, subprotocols=names) == 400


async def test_a_ticket_counts_once_and_only_for_its_time():
    async with local_fabric(web__ticket_s="0.2") as fabric, fabric.client() as client:
        link = (await client.view_ticket(overview=True)).url
        async with page(link) as first, page(link) as second:
            await first.until("sessions")
            assert await second.closed() == 4003
        late = (await client.view_ticket(overview=True)).url
        await pause(0.25, "a ticket counts for its time")
        async with page(late) as view:
            assert await view.closed() == 4003


async def test_the_number_of_tickets_is_bounded():
    async with local_fabric(web__max_tickets_per_owner="2") as fabric, fabric.client() as client:
        for _ in range(2):
            await client.view_ticket(overview=True)
        with pytest.raises(LimitReachedError):
            await client.view_ticket(overview=True)


async def test_a_link_is_only_to_what_the_owner_has(fabric, client):
    async with fabric.client("another") as other:
        session = await other.open("shell")
        with pytest.raises(SessionNotFoundError):
            await client.view_ticket(session.id)
        link = (await other.view_ticket(session.id)).url
        await other.release()
    async with page(link) as view:
        assert await view.closed() == 4002


async def test_without_a_web_server_there_are_no_links():
    async with local_fabric(web__listen="") as fabric, fabric.client() as client:
        with pytest.raises(UnsupportedError, match="no web server"):
            await client.view_ticket()


async def test_the_number_of_pages_is_bounded_hello_or_not():
    async with local_fabric(web__max_views="2") as fabric:
        url, own = socket_url(fabric.url), fabric.url
        async with page(own, hello=False), page(own, hello=False):
            assert await _refused(url, origin=own) == 503


async def test_no_hello_in_time_is_closed():
    async with local_fabric(web__hello_s="0.2") as fabric, page(fabric.url, hello=False) as view:
        assert await view.closed() == 1008


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("nonsense", 1008),
        (b"binary", 1008),
        ('{"v":1,"generation":1,"type":"hello","ticket":"x"}', 1008),
        ('{"v":1,"generation":1,"type":"nothing"}', 1008),
        ('{"v":1,"generation":1,"type":"human.input","data":"x"}', 1008),
        ('{"v":1,"generation":1,"type":"ack","sequence":1}', 1008),
        ("x" * 500_000, 1009),
    ],
)
async def test_a_frame_that_breaks_the_protocol_ends_the_view(client, raw, code):
    async with page((await client.view_ticket(overview=True)).url) as view:
        await view.until("sessions")
        await view.raw(raw)
        assert await view.closed() == code


async def test_invalid_utf8_is_closed_with_its_code(client):
    async with page((await client.view_ticket(overview=True)).url) as view:
        await view.until("sessions")
        await view.socket.send(b'{"v":1,"generation":1,"type":"\xff"}', text=True)
        assert await view.closed() == 1007


async def test_the_heartbeat_goes_both_ways():
    async with (
        local_fabric(web__heartbeat_s="0.2", web__overview_s="60") as fabric,
        fabric.client() as client,
        page((await client.view_ticket(overview=True)).url) as view,
    ):
        await view.until("heartbeat", 2)
        seen = len(view.all("heartbeat"))
        await view.send("heartbeat")
        await view.until("heartbeat", seen + 1)


async def test_nothing_secret_is_logged(fabric, client, caplog):
    caplog.set_level(logging.DEBUG)
    ticket = await client.view_ticket()
    async with page(ticket.url) as view:
        await view.until("attached")
        await view.send("human.begin", data="echo hunter2\r")
        await view.shows("hunter2")
        resume = view.attached["resume"]
    async with page(fabric.url, resume=resume) as view:
        await view.until("attached")
        await view.raw('{"v":1,"generation":1,"type":"human.input","data":"hunter3","x":1}')
        assert await view.closed() == 1008
    ours = [record for record in caplog.records if not record.name.startswith("websockets.client")]
    text = "\n".join(f"{record.getMessage()} {vars(record)}" for record in ours)
    for secret in (ticket.ticket, resume, "hunter2", "hunter3"):
        assert secret not in text
    assert "view opened" in text


async def test_the_page_over_http(fabric):
    host, port = fabric.url.removeprefix("http://").split(":")

    async def get(target, method="GET"):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        head, _, body = answer.partition(b"\r\n\r\n")
        return head.decode(), body

    head, body = await get("/healthz")
    assert head.startswith("HTTP/1.1 200 ")
    assert body == b"ok\n"
    head, body = await get("/")
    assert head.split()[1] in ("200", "503")
    assert "Content-Security-Policy: default-src 'none'" in head
    assert b"pty-fabric" in body
    assert (await get("/v1/socket"))[0].split()[1] == "426"
    assert (await get("/etc/passwd"))[0].split()[1] == "404"
    assert (await get("/../../etc/passwd"))[0].split()[1] == "404"


def test_beyond_loopback_it_needs_tls():
    beyond = WebSettings(listen="0.0.0.0:0")
    with pytest.raises(SettingsError, match="refusing to serve browsers"):
        check_listener(beyond, GatewaySettings())
    check_listener(beyond, GatewaySettings(insecure=True))
    check_listener(WebSettings(), GatewaySettings())


async def test_over_tls(tmp_path):
    authority = Authority(tmp_path)
    cert, key = authority.issue("server")
    files = {"gateway__tls_cert_file": cert, "gateway__tls_key_file": key}
    trust = ssl.create_default_context(cafile=str(authority.ca))
    async with local_fabric(**files) as fabric:
        assert fabric.url.startswith("https://")
        async with fabric.client(tls=Tls(str(authority.ca))) as client:
            link = (await client.view_ticket(overview=True)).url
        async with page(link, ssl=trust) as view:
            await view.until("attached")
