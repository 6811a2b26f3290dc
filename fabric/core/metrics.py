"""Metric names and a process-local store of counters and histograms.

Names are ``fabric_<room>_<noun>_<unit>``; label values come from closed sets, never ids.
The gateway renders the store for Prometheus.
"""

import bisect
from collections.abc import Iterator

GATEWAY_RPC_SECONDS = "fabric_gateway_rpc_seconds"
GATEWAY_CALLS_ACTIVE = "fabric_gateway_calls_active"
WORKER_SEND_SETTLED_TOTAL = "fabric_worker_send_settled_total"
WORKER_TEARDOWN_SURVIVORS_TOTAL = "fabric_worker_teardown_survivors_total"
REGISTRY_SESSIONS = "fabric_registry_sessions"

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_Key = tuple[str, tuple[tuple[str, str], ...]]


class Metrics:
    """Counters, gauges and histograms of one process."""

    def __init__(self) -> None:
        self._values: dict[_Key, float] = {}
        self._histograms: dict[_Key, list[float]] = {}

    def add(self, name: str, value: float = 1.0, **labels: str) -> None:
        """Add to a counter or gauge."""
        key = (name, tuple(sorted(labels.items())))
        self._values[key] = self._values.get(key, 0.0) + value

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        self._values[(name, tuple(sorted(labels.items())))] = value

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Put a duration in seconds into a histogram."""
        key = (name, tuple(sorted(labels.items())))
        row = self._histograms.setdefault(key, [0.0] * (len(BUCKETS_S) + 2))
        row[bisect.bisect_left(BUCKETS_S, value)] += 1
        row[-1] += value

    def render(self) -> Iterator[str]:
        """Yield the lines of the Prometheus text format."""
        for (name, labels), value in sorted(self._values.items()):
            yield f"{name}{_labels(labels)} {value:g}"
        for (name, labels), row in sorted(self._histograms.items()):
            seen = 0.0
            for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), row[:-1], strict=True):
                seen += count
                yield f"{name}_bucket{_labels((*labels, ('le', bound)))} {seen:g}"
            yield f"{name}_sum{_labels(labels)} {row[-1]:g}"
            yield f"{name}_count{_labels(labels)} {seen:g}"


def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{value}"' for key, value in labels) + "}"
