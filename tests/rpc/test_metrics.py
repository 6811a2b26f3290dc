"""``/metrics`` of a gateway: what it counts, what it asks for, and who may not hurt it."""

import asyncio
import contextlib
import time

import pytest

from fabric.client import FabricClient
from fabric.core.errors import SessionNotFoundError
from fabric.core.metrics import METRICS
from fabric.core.settings import MetricsSettings, SettingsError
from fabric.gateway.exposition import MAX_CONNECTIONS, MAX_REQUEST_BYTES, Exposition
from fabric.gateway.server import Gateway
from tests.support.eventually import eventually
from tests.support.fake_fabric import HOST
from tests.support.local_fabric import local_fabric


async def http(address, request="GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"):
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request.encode())
        raw = (await reader.read()).decode()
    finally:
        writer.close()
    head, _, body = raw.partition("\r\n\r\n")
    return head, body


async def scrape(address):
    head, body = await http(address)
    assert head.startswith("HTTP/1.1 200 OK")
    rows = {}
    for line in body.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            rows[name] = float(value)
    return rows


@pytest.fixture
async def gateway(fabric, settings):
    metrics = MetricsSettings(refresh_s=0.001)
    gateway = Gateway(settings, fabric, fabric, host=HOST, metrics=metrics)
    await gateway.start()
    yield gateway
    await gateway.stop(drain_s=0.5)


async def test_calls_bytes_errors_and_sends_are_counted(gateway, client):
    before = await scrape(gateway.metrics_address)
    shell = await client.open("shell")
    for _ in range(3):
        await shell.send("echo hi")
    with pytest.raises(SessionNotFoundError):
        await client.session("ses_2222222222222222").send("x")
    rows = await scrape(gateway.metrics_address)
    send = 'method="TerminalService.Send"'
    assert rows[f'fabric_gateway_rpc_seconds_count{{{send},code="OK"}}'] == 3
    assert rows[f'fabric_gateway_rpc_seconds_count{{{send},code="NOT_FOUND"}}'] == 1
    assert rows['fabric_gateway_errors_total{reason="SESSION_NOT_FOUND"}'] == 1
    assert rows['fabric_gateway_sends_total{wait_reason="stdin_read",evidence="marker"}'] == 3
    for name in ("request", "response"):
        key = f"fabric_gateway_{name}_bytes_total{{{send}}}"
        assert rows[key] > before[key] + 60
    assert rows["fabric_gateway_registry_up"] == 1
    assert rows["fabric_registry_owners"] == 1
    assert rows['fabric_registry_sessions{state="published"}'] == 1
    assert rows[f'fabric_node_sessions{{host="{HOST}"}}'] == 1
    assert rows["fabric_gateway_resident_bytes"] > 1e6
    await client.call_tool("terminal_send", {"sessionId": shell.id, "text": "echo hi"})
    rows = await scrape(gateway.metrics_address)
    assert rows['fabric_gateway_sends_total{wait_reason="stdin_read",evidence="marker"}'] == 4


async def test_streams_that_run_are_a_gauge(gateway, client):
    shell = await client.open("shell")
    key = 'fabric_gateway_calls_active{method="PtyService.Attach"}'
    async with shell.attach() as attached:
        await anext(attached)
        assert (await scrape(gateway.metrics_address))[key] == 1
    await eventually(lambda: not gateway.active_calls)
    assert key not in await scrape(gateway.metrics_address)


async def test_every_row_is_of_a_declared_metric_with_its_labels(gateway, client):
    await (await client.open("shell")).send("echo hi")
    _, body = await http(gateway.metrics_address)
    for line in body.splitlines():
        name = line.split()[2] if line.startswith("#") else line.partition("{")[0].split()[0]
        for ending in ("_bucket", "_sum", "_count"):
            name = name if name in METRICS else name.removesuffix(ending)
        assert name in METRICS
        for secret in ("own_", "ses_", client.owner_token):
            assert secret not in line


async def test_a_registry_that_is_away_is_said_and_its_figures_are_missing(gateway, client, fabric):
    fabric.away = 2
    rows = await scrape(gateway.metrics_address)
    assert rows["fabric_gateway_registry_up"] == 0
    assert not [name for name in rows if name.startswith(("fabric_registry", "fabric_node"))]
    fabric.away = 0

    async def is_back():
        return (await scrape(gateway.metrics_address))["fabric_gateway_registry_up"]

    await eventually(is_back)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET / HTTP/1.1\r\n\r\n", "404"), ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"), ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200"),
    ],
)  # fmt: skip
async def test_other_requests(gateway, request_, status):
    head, _ = await http(gateway.metrics_address, request_)
    assert head.split()[1] == status


async def test_head_has_no_body(gateway):
    head, body = await http(gateway.metrics_address, "HEAD /metrics HTTP/1.1\r\n\r\n")
    assert "200" in head
    assert not body


async def test_a_request_without_an_end_and_too_many_callers_are_dropped(gateway):
    _, body = await http(gateway.metrics_address, "GET /" + "x" * MAX_REQUEST_BYTES * 2)
    assert not body
    host, _, port = gateway.metrics_address.rpartition(":")
    idle = [await asyncio.open_connection(host, int(port)) for _ in range(MAX_CONNECTIONS)]
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
    finally:
        for _, writer in idle:
            writer.close()
    await eventually(lambda: not gateway._exposition._open)
    assert (await scrape(gateway.metrics_address))["fabric_gateway_draining"] == 0


async def test_an_address_in_use_is_an_error_of_the_settings(gateway):
    other = Exposition(gateway.metrics_address, None)
    with pytest.raises(SettingsError, match="cannot listen"):
        await other.start()


async def test_off_means_no_listener(fabric, settings):
    gateway = Gateway(settings, fabric, fabric, host=HOST, metrics=MetricsSettings(listen=""))
    await gateway.start()
    assert gateway.metrics_address == ""
    await gateway.stop(drain_s=0.1)


async def test_a_whole_fabric_counts_its_owners_sessions_tasks_and_slots():
    async with local_fabric(metrics__refresh_s="0.001") as fabric, fabric.client() as client:
        shell = await client.open("shell")
        await shell.send_background("sleep 30")
        rows = await scrape(fabric.gateway.metrics_address)
        assert rows["fabric_registry_owners"] == 1
        assert rows['fabric_registry_sessions{state="published"}'] == 1
        assert rows['fabric_registry_tasks{state="running"}'] == 1
        assert rows['fabric_node_up{host="local"}'] == 1
        assert rows['fabric_node_sessions_max{host="local"}'] == 64


async def test_waits_for_a_turn_are_measured(fabric, settings):
    gateway = Gateway(settings, fabric, fabric, host=HOST, metrics=MetricsSettings())
    await gateway.start()
    try:
        async with (
            FabricClient.connect(gateway.address, agent="one") as one,
            FabricClient.connect(gateway.address, agent="two") as two,
        ):
            shells = [await one.open("shell") for _ in range(40)]
            other = await two.open("shell")
            sends = [shell.send("sleep 0.01") for shell in shells]
            await asyncio.gather(other.send("echo hi"), *sends)
        rows = await scrape(gateway.metrics_address)
        assert rows["fabric_gateway_turn_wait_seconds_count"] > 0
        assert rows["fabric_gateway_line_calls"] == 0
    finally:
        await gateway.stop(drain_s=0.1)


def test_counting_a_send_costs_a_few_microseconds():
    """The bound is ten times what it takes: what it must never become is a lookup of strings."""
    from fabric.api.v1 import terminal_service_pb2 as pb
    from fabric.core.metrics import Metrics
    from fabric.gateway.meters import Meters
    from fabric.wire.methods import METHODS

    meters = Meters(Metrics())
    meter = meters.of(METHODS["TerminalService.Send"])
    response = pb.SendResponse(wait_reason=1, evidence=2)
    best = 1.0
    for _ in range(20):
        began = time.perf_counter()
        for _ in range(1000):
            meter.answered(response)
            meter.ended("OK", 0.002, 80, 120)
        best = min(best, (time.perf_counter() - began) / 1000)
    assert best < 20e-6
