"""What the gateway says of itself and of the fabric when somebody looks.

The registry is asked at most once in ``refresh_s``, however many look, and never waited for
longer than ``ASK_S``: a fabric in trouble is when people look. Then the figures of nodes and
owners are missing, rather than old, and ``fabric_gateway_registry_up`` says why.
"""

import asyncio
import os
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from fabric.core import metrics as m
from fabric.core.census import Census
from fabric.core.errors import FabricError
from fabric.core.figures import NODE_METRICS, node_rows
from fabric.core.metrics import Metrics, Values
from fabric.gateway.ports import RegistryPort

ASK_S = 3.0
Rows = Mapping[Values, float]


class Observing:
    """Gauges of one gateway, asked for by whoever renders them."""

    def __init__(
        self,
        store: Metrics,
        registry: RegistryPort,
        *,
        refresh_s: float,
        running: Callable[[], Iterable[str]],
        in_line: Callable[[], int],
        draining: Callable[[], bool],
    ) -> None:
        self._store = store
        self._registry = registry
        self._refresh_s = refresh_s
        self._asked_at = 0.0
        self._asking: asyncio.Task[None] | None = None
        self._census: Census | None = None
        self._nodes: dict[m.Metric, dict[Values, float]] = {}
        watch = store.observe_with
        watch(m.GATEWAY_CALLS_ACTIVE, lambda: _counted(running()))
        watch(m.GATEWAY_LINE_CALLS, lambda: {(): float(in_line())})
        watch(m.GATEWAY_DRAINING, lambda: {(): float(draining())})
        watch(m.GATEWAY_REGISTRY_UP, lambda: {(): float(self._census is not None)})
        watch(m.GATEWAY_CPU_SECONDS, lambda: {(): _cpu_s()})
        watch(m.GATEWAY_RESIDENT_BYTES, _resident)
        watch(m.GATEWAY_DESCRIPTORS, _descriptors)
        watch(m.REGISTRY_OWNERS, self._owners)
        watch(m.REGISTRY_SESSIONS, lambda: self._states("sessions"))
        watch(m.REGISTRY_TASKS, lambda: self._states("tasks"))
        for metric in NODE_METRICS:
            watch(metric, lambda metric=metric: self._nodes.get(metric, {}))  # type: ignore[misc]

    async def text(self) -> str:
        """Return everything in the Prometheus text format."""
        if time.monotonic() - self._asked_at >= self._refresh_s:
            if self._asking is None or self._asking.done():
                self._asking = asyncio.create_task(self._ask())
            await asyncio.shield(self._asking)
        return "\n".join(self._store.render()) + "\n"

    async def close(self) -> None:
        """End a question that is under way."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(ASK_S):
                census, nodes = await asyncio.gather(
                    self._registry.census(), self._registry.nodes()
                )
            self._census, self._nodes = census, node_rows(nodes)
        except (FabricError, TimeoutError):
            self._census, self._nodes = None, {}
        finally:
            self._asked_at = time.monotonic()

    def _owners(self) -> Rows:
        return {} if self._census is None else {(): float(self._census.owners)}

    def _states(self, name: str) -> Rows:
        if self._census is None:
            return {}
        return {(state,): float(count) for state, count in getattr(self._census, name)}


def _counted(labels: Iterable[str]) -> Rows:
    return {(label,): float(count) for label, count in Counter(labels).items()}


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _resident() -> Rows:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return {}  # not Linux
    return {(): float(pages * os.sysconf("SC_PAGE_SIZE"))}


def _descriptors() -> Rows:
    folder = Path("/proc/self/fd")
    return {(): float(sum(1 for _ in folder.iterdir()))} if folder.is_dir() else {}
