"""Which trace a call belongs to, without knowing what records traces.

``current`` is the ``traceparent`` (W3C) of the span in which this call runs, None while
nobody traces: then looking at it is all that tracing costs. Whoever makes spans implements
``Tracer``; ``fabric.tracing`` does, with OpenTelemetry.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Protocol

HEADER = "traceparent"
KEY = "trace"  # among the arguments of a call of the session channel
current: ContextVar[str | None] = ContextVar("trace", default=None)


class Span(Protocol):
    """Something that lasts; ``end`` says how it ended, once."""

    @property
    def traceparent(self) -> str:
        """Name the span, for whatever happens inside it."""
        ...

    def end(self, code: str) -> None:
        """End it; a code other than ``OK`` is an error."""
        ...


class Tracer(Protocol):
    """Makes spans."""

    def begin(self, name: str, parent: str | None, facts: Mapping[str, str]) -> Span:
        """Begin a span inside ``parent``, or a trace of its own without one."""
        ...

    def close(self) -> None:
        """Hand over what is still held. May be repeated."""
        ...
