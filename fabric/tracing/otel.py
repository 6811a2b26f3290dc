"""The only door to OpenTelemetry.

A provider of its own, never the process's global one: what else runs in the process keeps
its own. Spans go out in batches from a thread of the SDK's, so no call waits for a collector,
and one that is away costs the spans and nothing else.
"""

from collections.abc import Mapping
from typing import Any

from fabric.core.errors import SettingsError
from fabric.core.settings import TraceSettings
from fabric.core.tracing import HEADER, Span, Tracer

SERVICE = "pty-fabric"
FLUSH_MS = 2000


class _Span:
    """One span of ours over one of the SDK's."""

    def __init__(self, span: Any, api: Any) -> None:
        self._span = span
        self._api = api

    @property
    def traceparent(self) -> str:
        """Name the span as W3C does."""
        context = self._span.get_span_context()
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"

    def end(self, code: str) -> None:
        """End it; a code other than ``OK`` is an error."""
        if code != "OK":
            self._span.set_status(self._api.Status(self._api.StatusCode.ERROR, code))
        self._span.set_attribute("fabric.code", code)
        self._span.end()


class OtelTracer:
    """Spans of one process, given to ``exporter``. Raises: SettingsError without the extra."""

    def __init__(self, exporter: Any, share: float, facts: Mapping[str, str]) -> None:
        api, sdk = _libraries()
        self._api = api
        self._provider = sdk.TracerProvider(
            resource=sdk.Resource.create({"service.name": SERVICE, **facts}),
            sampler=sdk.ParentBased(sdk.TraceIdRatioBased(share)),
        )
        self._provider.add_span_processor(sdk.BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(SERVICE)

    def begin(self, name: str, parent: str | None, facts: Mapping[str, str]) -> Span:
        """Begin a span inside ``parent``; one that is no traceparent is none."""
        context = self._api.extract({HEADER: parent}) if parent else self._api.Context()
        return _Span(
            self._tracer.start_span(name, context=context, attributes=dict(facts)), self._api
        )

    def close(self) -> None:
        """Hand over what is still held, for at most two seconds. May be repeated."""
        self._provider.force_flush(FLUSH_MS)
        self._provider.shutdown()


class _Api:
    """What is used of the API."""

    def __init__(self) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self.Context = Context
        self.Status = Status
        self.StatusCode = StatusCode
        self.extract = TraceContextTextMapPropagator().extract


class _Sdk:
    """What is used of the SDK."""

    def __init__(self) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

        self.Resource = Resource
        self.TracerProvider = TracerProvider
        self.BatchSpanProcessor = BatchSpanProcessor
        self.ParentBased = ParentBased
        self.TraceIdRatioBased = TraceIdRatioBased


def _libraries() -> tuple[_Api, _Sdk]:
    try:
        return _Api(), _Sdk()
    except ImportError as error:
        raise SettingsError(
            "trace.endpoint is set, but OpenTelemetry is not installed here;"
            " pip install 'pty-fabric[otel]'"
        ) from error


def tracer_of(settings: TraceSettings, facts: Mapping[str, str]) -> Tracer | None:
    """Make this process's tracer, None while tracing is off. Raises: SettingsError."""
    if not settings.endpoint:
        return None
    _libraries()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise SettingsError(
            "trace.endpoint is set, but its exporter is not installed here;"
            " pip install 'pty-fabric[otel]'"
        ) from error
    address = settings.endpoint.rstrip("/") + "/v1/traces"
    return OtelTracer(OTLPSpanExporter(endpoint=address), settings.share, facts)
