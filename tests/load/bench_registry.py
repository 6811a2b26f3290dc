"""What the registry's work costs, apart from Ray and from the nodes: CPU per call, by size.

``python -m tests.load.bench_registry --nodes 1000 --sessions 100000``: nodes are values that
answer at once, the journal is real. The figures are inputs of ``cluster/scale.py``.
"""

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from fabric.core.clock import ManualClock
from fabric.core.ids import AgentId, Principal, new_request_id
from fabric.core.model import Caller, OpenRequest, SandboxMode
from fabric.core.settings import RegistrySettings, TaskSettings
from fabric.registry.journal import Journal
from fabric.registry.registry import Registry
from tests.load.measure import Report
from tests.support.fake_nodes import FakeNodes, node_state

OWNERS_A_PRINCIPAL = 1000
SESSIONS_AN_OWNER = 10


async def measured(report: Report, what: str, count: int, work: Callable[[int], Awaitable[object]],
                   **facts: object) -> None:  # fmt: skip
    """Time ``count`` calls one after the other: CPU and wall, in milliseconds each."""
    cpu, wall = time.process_time(), time.perf_counter()
    for index in range(count):
        await work(index)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    report.row(what, cpu_ms=round(1e3 * cpu / count, 3), wall_ms=round(1e3 * wall / count, 3),
               calls=count, **facts)  # fmt: skip


async def run(nodes: int, sessions: int, folder: Path) -> None:
    """Fill a registry, then measure single calls at that size."""
    report, each = Report(), -(-sessions // nodes)
    cluster = FakeNodes(
        *(node_state(f"n{index}", max_sessions=each + 64) for index in range(nodes))
    )
    clock = ManualClock()
    registry = Registry(
        settings=RegistrySettings(max_owners_per_principal=OWNERS_A_PRINCIPAL, lease_s=3600.0),
        tasks=TaskSettings(),
        nodes=cluster,
        journal=Journal(folder / "registry.db"),
        clock=clock,
    )
    await registry.start(watch=False)
    callers: list[Caller] = []

    async def acquire(index: int) -> None:
        principal = Principal(f"p{len(callers) // OWNERS_A_PRINCIPAL}")
        grant = await registry.acquire(
            principal, AgentId(f"a{len(callers)}"), SandboxMode.READ_ONLY, None, new_request_id()
        )
        callers.append(Caller(grant.owner_id, grant.epoch))

    async def open_one(index: int) -> None:
        caller = callers[index % len(callers)]
        opened.append((caller, (await registry.open(
            caller, OpenRequest(new_request_id(), "shell"))).info.session_id))  # fmt: skip

    opened: list[tuple[Caller, str]] = []
    owners = -(-sessions // SESSIONS_AN_OWNER)
    await measured(report, "acquire, filling", owners, acquire, owners=owners)
    await measured(report, "open, filling", sessions, open_one, nodes=nodes, sessions=sessions)
    few = min(500, sessions)
    await measured(report, "acquire", few, acquire)
    await measured(report, "renew", few, lambda i: registry.renew(callers[i], None))
    await measured(report, "open", few, open_one)
    await measured(report, "locate", few, lambda i: registry.locate(opened[i][1]))  # type: ignore[arg-type]
    await measured(report, "list", few, lambda i: registry.list(callers[i]))
    await measured(report, "close", few, lambda i: registry.close(
        opened[-1 - i][0], opened[-1 - i][1], new_request_id()))  # type: ignore[arg-type]  # fmt: skip
    await measured(report, "poll of all nodes", 3, lambda i: registry.poll())
    await measured(report, "tick", 3, lambda i: registry.tick())
    await measured(report, "census", 3, lambda i: registry.census())
    size = _bytes_in(folder)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report.row("size", journal_mb=round(size / 1e6, 1), peak_rss_mb=round(peak / 1024))
    await registry.stop()


def _bytes_in(folder: Path) -> int:
    return sum(item.stat().st_size for item in folder.iterdir())


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--sessions", type=int, default=1000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-registry-") as folder:
        asyncio.run(run(given.nodes, given.sessions, Path(folder)))


if __name__ == "__main__":
    main()
