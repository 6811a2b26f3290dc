"""Metrics of actors through Ray's exporter, off unless ``metrics.ray`` says so.

Ray's agent on each node serves them to Prometheus (names begin with ``ray_``), so it is of
use with a Ray of your own that runs the dashboard's agent; ``fabric up`` starts none. Nothing
of it is on the way of a call: an actor's numbers are handed over every ``EXPORT_S``, a
worker's only after something was counted, so an idle worker wakes up for nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from fabric.core import metrics as m
from fabric.core.errors import FabricError
from fabric.core.figures import Rows
from fabric.core.metrics import Kind, Metric, Values
from workers.session import Session

EXPORT_S = 10.0
_log = logging.getLogger(__name__)


class RayExporter:
    """Rows of gauges and counters, given to Ray; ``api`` is ``ray.util.metrics``."""

    def __init__(self, api: Any = None) -> None:
        if api is None:
            import ray.util.metrics as api
        self._api = api
        self._metrics: dict[Metric, Any] = {}
        self._told: dict[tuple[Metric, Values], float] = {}

    def push(self, rows: Rows) -> None:
        """Hand rows over: gauges as they are, of counters what has come since."""
        for metric, values in rows.items():
            ours = self._of(metric)
            for labels, value in values.items():
                tags = dict(zip(metric.labels, labels, strict=True))
                if metric.kind is Kind.GAUGE:
                    ours.set(value, tags)
                    continue
                more = value - self._told.get((metric, labels), 0.0)
                if more > 0:
                    ours.inc(more, tags)
                    self._told[metric, labels] = value

    def _of(self, metric: Metric) -> Any:
        if metric not in self._metrics:
            kind = self._api.Gauge if metric.kind is Kind.GAUGE else self._api.Counter
            self._metrics[metric] = kind(metric.name, metric.text, metric.labels)
        return self._metrics[metric]


async def export_for_ever(exporter: RayExporter, ask: Callable[[], Awaitable[Rows]]) -> None:
    """Hand over what ``ask`` returns, again and again; a question that fails is asked again."""
    while True:
        try:
            exporter.push(await ask())
        except FabricError as error:
            _log.warning("nothing to export", extra={"reason": error.reason})
        await asyncio.sleep(EXPORT_S)


class WorkerExport:
    """A worker's numbers, handed over some time after they have changed."""

    def __init__(self, exporter: RayExporter, host: str, every_s: float = EXPORT_S) -> None:
        self._exporter = exporter
        self._host = host
        self._every_s = every_s

    def changed(self, session: Session) -> None:
        """Take note, inside the worker's loop."""
        asyncio.get_running_loop().call_later(self._every_s, self._push, session)

    def _push(self, session: Session) -> None:
        sends: dict[Values, float] = {
            (self._host, reason, evidence): float(count)
            for (reason, evidence), count in session.counts.take().items()
        }
        output: dict[Values, float] = {(self._host,): float(session.log.next_offset)}
        self._exporter.push({m.WORKER_SENDS: sends, m.WORKER_OUTPUT_BYTES: output})
