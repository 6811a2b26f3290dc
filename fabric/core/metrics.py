"""What is counted: every metric by name, and a store of one process's numbers.

Theory. A metric is declared once, with its labels, in ``METRICS``; names are
``fabric_<room>_<noun>_<unit>``. Label values come from closed sets (methods, codes, reasons,
hosts), never ids: a value that an outsider could choose would fill the memory of whoever
stores the series. ``MAX_ROWS`` bounds each metric all the same; what is beyond it is counted
under ``other``.

Two ways in. What happens often is counted through a row taken once (``counter``,
``histogram``), which costs an addition. What *is* (gauges) is not kept up to date at every
change but asked for when somebody looks (``observe_with``), which costs nothing until then.
"""

import bisect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

OTHER = "other"
MAX_ROWS = 512
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
Values = tuple[str, ...]
Gauges = Callable[[], Mapping[Values, float]]


class Kind(StrEnum):
    """How a metric behaves."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its name, kind, what it says, and its labels in order."""

    name: str
    kind: Kind
    text: str
    labels: tuple[str, ...] = ()


_C, _G, _H = Kind.COUNTER, Kind.GAUGE, Kind.HISTOGRAM

GATEWAY_RPC_SECONDS = Metric(
    "fabric_gateway_rpc_seconds", _H, "Time of calls by how they ended.", ("method", "code")
)
GATEWAY_ERRORS = Metric(
    "fabric_gateway_errors_total", _C, "Calls that ended with an error.", ("reason",)
)
GATEWAY_REQUEST_BYTES = Metric(
    "fabric_gateway_request_bytes_total", _C, "Bytes of requests.", ("method",)
)
GATEWAY_RESPONSE_BYTES = Metric(
    "fabric_gateway_response_bytes_total", _C, "Bytes of answers and streams.", ("method",)
)
GATEWAY_CALLS_ACTIVE = Metric(
    "fabric_gateway_calls_active", _G, "Calls and streams that run.", ("method",)
)
GATEWAY_SENDS = Metric(
    "fabric_gateway_sends_total",
    _C,
    "Sends by verdict and by what it rests on.",
    ("wait_reason", "evidence"),
)
GATEWAY_TURN_WAIT_SECONDS = Metric(
    "fabric_gateway_turn_wait_seconds", _H, "Waits of calls for their owner's turn."
)
GATEWAY_LINE_CALLS = Metric(
    "fabric_gateway_line_calls", _G, "Calls that wait for their owner's turn."
)
GATEWAY_DRAINING = Metric("fabric_gateway_draining", _G, "1 while the gateway shuts down.")
GATEWAY_REGISTRY_UP = Metric(
    "fabric_gateway_registry_up", _G, "1 if the registry answered when it was last asked."
)
GATEWAY_CPU_SECONDS = Metric("fabric_gateway_cpu_seconds_total", _C, "CPU of the process.")
GATEWAY_RESIDENT_BYTES = Metric("fabric_gateway_resident_bytes", _G, "Memory of the process.")
GATEWAY_DESCRIPTORS = Metric("fabric_gateway_descriptors", _G, "Open descriptors of the process.")
REGISTRY_OWNERS = Metric("fabric_registry_owners", _G, "Live owners.")
REGISTRY_SESSIONS = Metric("fabric_registry_sessions", _G, "Sessions by state.", ("state",))
REGISTRY_TASKS = Metric("fabric_registry_tasks", _G, "Background sends kept, by state.", ("state",))
NODE_UP = Metric("fabric_node_up", _G, "1 if the node answers.", ("host",))
NODE_DRAINING = Metric("fabric_node_draining", _G, "1 if it takes no new sessions.", ("host",))
NODE_SESSIONS = Metric("fabric_node_sessions", _G, "Sessions of the node.", ("host",))
NODE_SESSIONS_MAX = Metric("fabric_node_sessions_max", _G, "Sessions it may have.", ("host",))
NODE_WARM = Metric("fabric_node_warm_slots", _G, "Workers that wait for a session.", ("host",))
NODE_PTYS_FREE = Metric("fabric_node_ptys_free", _G, "Terminals left.", ("host",))
NODE_MEMORY_FREE = Metric("fabric_node_memory_free_bytes", _G, "Memory left.", ("host",))
NODE_DESCRIPTORS_FREE = Metric("fabric_node_descriptors_free", _G, "Descriptors left.", ("host",))
WORKER_SENDS = Metric(
    "fabric_worker_sends_total",
    _C,
    "Sends by verdict and by what it rests on.",
    ("host", "wait_reason", "evidence"),
)
WORKER_OUTPUT_BYTES = Metric(
    "fabric_worker_output_bytes_total", _C, "Bytes that terminals printed.", ("host",)
)

METRICS: dict[str, Metric] = {
    item.name: item for item in list(globals().values()) if isinstance(item, Metric)
}


class Counter:
    """One row of a counter."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class Histogram:
    """One row of a histogram of seconds."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect.bisect_left(BUCKETS_S, seconds)] += 1
        self.total += seconds


class Metrics:
    """The numbers of one process."""

    def __init__(self) -> None:
        self._counters: dict[Metric, dict[Values, Counter]] = {}
        self._histograms: dict[Metric, dict[Values, Histogram]] = {}
        self._gauges: list[tuple[Metric, Gauges]] = []

    def counter(self, metric: Metric, *values: str) -> Counter:
        """Return the row of these label values, to be kept and added to."""
        rows = self._counters.setdefault(metric, {})
        return rows.setdefault(_bounded(metric, values, rows), Counter())

    def histogram(self, metric: Metric, *values: str) -> Histogram:
        """Return the row of these label values, to be kept and observed with."""
        rows = self._histograms.setdefault(metric, {})
        return rows.setdefault(_bounded(metric, values, rows), Histogram())

    def observe_with(self, metric: Metric, ask: Gauges) -> None:
        """Have ``ask`` called for the rows of a gauge (or counter) whenever somebody looks."""
        self._gauges.append((metric, ask))

    def rows(self) -> Iterator[tuple[Metric, Values, float]]:
        """Yield counters and gauges with their values."""
        for metric, counters in self._counters.items():
            for values, counter in counters.items():
                yield metric, values, counter.value
        for metric, ask in self._gauges:
            for values, value in ask().items():
                yield metric, values, value

    def render(self) -> Iterator[str]:
        """Yield the lines of the Prometheus text format."""
        plain: dict[Metric, list[str]] = {}
        for metric, values, value in self.rows():
            plain.setdefault(metric, []).append(
                f"{metric.name}{_labels(metric, values)} {_number(value)}"
            )
        for metric, lines in sorted(plain.items(), key=lambda item: item[0].name):
            yield from _head(metric)
            yield from sorted(lines)
        for metric, rows in sorted(self._histograms.items(), key=lambda item: item[0].name):
            yield from _head(metric)
            for values, row in sorted(rows.items()):
                yield from _histogram(metric, values, row)


def _bounded(metric: Metric, values: Values, rows: Mapping[Values, object]) -> Values:
    if len(values) != len(metric.labels):
        raise ValueError(f"{metric.name} has the labels {metric.labels}, not {len(values)}")
    if values not in rows and len(rows) >= MAX_ROWS:
        return (OTHER,) * len(values)
    return values


def _head(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.text}"
    yield f"# TYPE {metric.name} {metric.kind}"


def _histogram(metric: Metric, values: Values, row: Histogram) -> Iterator[str]:
    seen = 0
    for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), row.counts, strict=True):
        seen += count
        yield f"{metric.name}_bucket{_labels(metric, values, bound)} {seen}"
    yield f"{metric.name}_sum{_labels(metric, values)} {_number(row.total)}"
    yield f"{metric.name}_count{_labels(metric, values)} {seen}"


def _number(value: float) -> str:
    """Write a number with every digit: a counter of bytes grows by less than it is long."""
    return str(int(value)) if value == int(value) else repr(value)


def _labels(metric: Metric, values: Values, bound: str = "") -> str:
    pairs = list(zip(metric.labels, values, strict=True))
    if bound:
        pairs.append(("le", bound))
    if not pairs:
        return ""
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
