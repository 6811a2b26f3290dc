"""One trace from the caller through gateway and worker; nothing of it while it is off."""

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fabric.api.v1 import terminal_service_pb2 as pb
from fabric.client import FabricClient
from fabric.core.errors import SendActiveError, SettingsError
from fabric.core.ids import new_request_id
from fabric.core.settings import TraceSettings
from fabric.core.tracing import HEADER
from fabric.tracing.otel import OtelTracer, tracer_of
from fabric.wire.methods import METHODS
from tests.support import local_fabric as local
from tests.support.paths import ROOT

PARENT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


@pytest.fixture
def spans():
    exporter = InMemorySpanExporter()
    tracer = OtelTracer(exporter, 1.0, {"fabric.host": "local"})
    yield exporter, tracer
    tracer.close()


@pytest.fixture
async def traced(spans, monkeypatch):
    _, tracer = spans
    gateway, worker = local.Gateway, local.SessionWorker
    monkeypatch.setattr(local, "Gateway", lambda *a, **k: gateway(*a, **k, tracer=tracer))
    monkeypatch.setattr(local, "SessionWorker", lambda *a: worker(*a, tracer=tracer))
    async with local.local_fabric() as traced:
        yield traced


async def send(client, session_id, text, headers=()):
    request = pb.SendRequest(request_id=new_request_id(), session_id=session_id, data=text)
    calls = client.calls
    return await calls.link.unary(
        METHODS["TerminalService.Send"], request, (*calls.headers, *headers), 20.0, repeat=False
    )


def finished(spans, name):
    exporter, tracer = spans
    tracer._provider.force_flush()
    return [span for span in exporter.get_finished_spans() if span.name == name]


async def test_a_send_is_one_trace_of_caller_gateway_and_worker(traced, spans):
    async with traced.client() as client:
        shell = await client.open("shell")
        await send(client, shell.id, b"echo secret-text", [(HEADER, PARENT)])
    (at_gateway,) = finished(spans, "TerminalService.Send")
    (at_worker,) = finished(spans, "SessionWorker.send")
    assert f"{at_gateway.context.trace_id:032x}" == "a" * 32
    assert f"{at_gateway.parent.span_id:016x}" == "b" * 16
    assert at_worker.context.trace_id == at_gateway.context.trace_id
    assert at_worker.parent.span_id == at_gateway.context.span_id
    assert at_gateway.start_time <= at_worker.start_time <= at_worker.end_time
    assert at_worker.attributes["fabric.session"] == shell.id
    assert at_worker.attributes["fabric.owner"] == client.owner.owner_id
    assert at_worker.attributes["fabric.code"] == "OK"
    assert at_worker.resource.attributes["service.name"] == "pty-fabric"
    shown = "".join(span.to_json() for span in (at_gateway, at_worker))
    for secret in ("secret-text", client.owner_token):
        assert secret not in shown


async def test_an_error_ends_its_span_as_one(traced, spans):
    async with traced.client() as client:
        shell = await client.open("shell")
        await shell.send_background("sleep 30")
        with pytest.raises(SendActiveError):
            await send(client, shell.id, b"x", [(HEADER, PARENT)])
    (at_gateway,) = finished(spans, "TerminalService.Send")
    (at_worker,) = finished(spans, "SessionWorker.send")
    assert (at_gateway.attributes["fabric.code"], at_gateway.status.is_ok) == (
        "FAILED_PRECONDITION", False,
    )  # fmt: skip
    assert at_worker.status.description == "SEND_ACTIVE"


async def test_a_parent_that_is_none_begins_a_trace_of_its_own(traced, spans):
    async with traced.client() as client:
        shell = await client.open("shell")
        await send(client, shell.id, b"echo 1", [(HEADER, "nonsense")])
        await send(client, shell.id, b"echo 2")
    first, second = finished(spans, "TerminalService.Send")
    assert first.parent is second.parent is None
    assert first.context.trace_id != second.context.trace_id


async def test_a_caller_decides_whether_its_trace_is_kept(traced, spans):
    async with traced.client() as client:
        shell = await client.open("shell")
        await send(client, shell.id, b"echo 1", [(HEADER, PARENT[:-2] + "00")])
    assert not finished(spans, "TerminalService.Send")
    assert not finished(spans, "SessionWorker.send")


async def test_off_means_that_no_span_is_asked_for(gateway, monkeypatch):
    async with FabricClient.connect(gateway.address, agent="me") as client:
        monkeypatch.setattr(gateway._guard, "_begin_span", None)  # would fail if it were called
        await (await client.open("shell")).send("echo hi")


def test_off_means_that_nothing_is_imported():
    code = (
        "import sys, fabric.cli.serving, fabric.actors.session_host;"
        "print(sorted(name for name in sys.modules if name.startswith('opentelemetry')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    assert tracer_of(TraceSettings(), {}) is None


def test_spans_go_out_to_the_collector():
    got = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        tracer = tracer_of(TraceSettings(endpoint=f"http://127.0.0.1:{server.server_port}/"), {})
        tracer.begin("a-call", PARENT, {"fabric.session": "ses_x"}).end("OK")
        tracer.close()
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
    ((path, body),) = got
    assert path == "/v1/traces"
    assert b"a-call" in body


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(SettingsError, match=r"pty-fabric\[otel\]"):
        tracer_of(TraceSettings(endpoint="http://127.0.0.1:1"), {})
