"""Arithmetic, not a measurement: which part of a large fabric is full first.

``python cluster/scale.py [--nodes N] [--sessions M] [--opens-per-hour X] [--turns-per-minute Y]``
multiplies measured costs (``COSTS``, with where each comes from) by what a fabric of that size
does in a second. One core is one second of CPU a second; registry and GCS are single threads
for most of what they do, so more than one core there is more than they have.
"""

import argparse
import sys
from dataclasses import dataclass

CALL = "a Ray call, at the actor that answers it"


@dataclass(frozen=True)
class Cost:
    """A cost in milliseconds of CPU, and where it comes from."""

    ms: float
    source: str


COSTS = {
    "turn, gateway": Cost(0.9, "fabric load, echo"),
    "turn, worker": Cost(1.8, "fabric load, echo"),
    "open, node": Cost(500.0, "fabric load, churn: most of it is the start of a Ray worker"),
    "open, registry": Cost(0.52, "tests.load.bench_registry"),
    "open, registry, each node": Cost(0.0046, "the same, 10 to 100 nodes"),
    "close, registry": Cost(0.6, "the same"),
    "renew, registry": Cost(0.004, "the same"),
    "poll, each session": Cost(0.0127, "the same"),
    "tick, each session": Cost(0.0008, "the same"),
    CALL: Cost(0.5, "an assumption"),
}
IDLE_CORE = 0.0075  # of a worker: Ray's timer of 10 ms
SESSION_MB = 57.0
POLL_S = 2.0  # registry.node_poll_interval_s
LEASE_S = 120.0  # registry.lease_s; clients renew three times in it


@dataclass(frozen=True)
class Size:
    """How large a fabric is and what its sessions do; one owner a session."""

    nodes: int = 1000
    sessions: int = 100_000
    opens_per_hour: float = 2.0
    turns_per_minute: float = 2.0


def loads(size: Size) -> list[tuple[str, float, str]]:
    """Return parts with the cores each needs and what that means."""
    ms = {name: cost.ms for name, cost in COSTS.items()}
    turns = size.sessions * size.turns_per_minute / 60
    opens = size.sessions * size.opens_per_hour / 3600
    renews = size.sessions / (LEASE_S / 3)
    open_ms = ms["open, registry"] + ms["open, registry, each node"] * size.nodes
    per_open = open_ms + ms["close, registry"] + 2 * ms[CALL]
    rows = [
        ("each node: idle workers", size.sessions / size.nodes * IDLE_CORE),
        ("each node: turns", turns / size.nodes * (ms["turn, gateway"] + ms["turn, worker"]) / 1e3),
        ("each node: opens", opens / size.nodes * ms["open, node"] / 1e3),
        ("registry: opens and closes", opens * per_open / 1e3),

        ("registry: renewals", renews * (ms["renew, registry"] + ms[CALL]) / 1e3),
        ("registry: polls of nodes",
         (size.sessions * ms["poll, each session"] + size.nodes * ms[CALL]) / POLL_S / 1e3),
        ("registry: tick", size.sessions * ms["tick, each session"] / 1e3),
    ]  # fmt: skip
    whole = sum(cores for name, cores in rows if name.startswith("registry"))
    node = sum(cores for name, cores in rows if name.startswith("each node"))
    memory = size.sessions / size.nodes * SESSION_MB / 1024
    return [
        *((name, cores, "") for name, cores in rows),
        ("each node, in all", node, f"and {memory:.1f} GB for sessions"),
        ("registry, in all", whole, _verdict(whole)),
    ]


def _verdict(cores: float) -> str:
    return "fits" if cores < 0.7 else f"is full: {-(-cores // 0.7):.0f} shards of owners"


def table(size: Size) -> str:
    """Write the loads as a table."""
    lines = [
        f"{size.nodes:,} nodes, {size.sessions:,} sessions, {size.opens_per_hour:g} opens an hour"
        f" and {size.turns_per_minute:g} turns a minute each (arithmetic)",
        "",
        "| part | cores | |",
        "| --- | ---: | --- |",
    ]
    lines += [f"| {name} | {cores:.2f} | {what} |" for name, cores, what in loads(size)]
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Size()
    parser.add_argument("--nodes", type=int, default=default.nodes)
    parser.add_argument("--sessions", type=int, default=default.sessions)
    parser.add_argument("--opens-per-hour", type=float, default=default.opens_per_hour)
    parser.add_argument("--turns-per-minute", type=float, default=default.turns_per_minute)
    given = parser.parse_args()
    size = Size(given.nodes, given.sessions, given.opens_per_hour, given.turns_per_minute)
    sys.stdout.write(table(size) + "\n")


if __name__ == "__main__":
    main()
