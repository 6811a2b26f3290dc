"""What the registry and the nodes say of themselves, as rows of gauges."""

from collections.abc import Iterable

from fabric.core import metrics as m
from fabric.core.census import Census
from fabric.core.metrics import Metric, Values
from fabric.core.model import NodeState

Rows = dict[Metric, dict[Values, float]]
NODE_METRICS = tuple(item for name, item in m.METRICS.items() if name.startswith("fabric_node_"))


def node_rows(nodes: Iterable[NodeState]) -> Rows:
    """Return the gauges of nodes; one that does not answer only says that."""
    found: Rows = {}
    for node in nodes:
        values: tuple[tuple[Metric, float], ...] = (
            (m.NODE_UP, node.alive),
            (m.NODE_DRAINING, node.draining),
            (m.NODE_SESSIONS, node.sessions),
            (m.NODE_SESSIONS_MAX, node.max_sessions),
            (m.NODE_WARM, node.warm),
            (m.NODE_PTYS_FREE, node.ptys_free),
            (m.NODE_MEMORY_FREE, node.memory_free_bytes),
            (m.NODE_DESCRIPTORS_FREE, node.fds_free),
        )
        for metric, value in values:
            if node.alive or metric is m.NODE_UP:
                found.setdefault(metric, {})[(node.host,)] = float(value)
    return found


def census_rows(census: Census) -> Rows:
    """Return the gauges of owners, sessions and tasks."""
    return {
        m.REGISTRY_OWNERS: {(): float(census.owners)},
        m.REGISTRY_SESSIONS: {(state,): float(count) for state, count in census.sessions},
        m.REGISTRY_TASKS: {(state,): float(count) for state, count in census.tasks},
    }
