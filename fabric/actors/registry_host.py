"""The registry as a plain class that Ray can wrap.

It is made from settings alone, so that a process which Ray starts again comes back by
itself, with the same journal.
"""

import asyncio
import inspect

from fabric.actors.hosting import Hosted
from fabric.actors.labels import LABEL_HOST
from fabric.actors.names import make_state_dir
from fabric.actors.plan import Plan
from fabric.actors.rayenv import labels_here
from fabric.core import log
from fabric.core.figures import Rows, census_rows
from fabric.core.ids import HostName
from fabric.registry.journal import Journal
from fabric.registry.registry import Registry


class RegistryHost(Hosted):
    """The registry actor, with its journal in the state folder of its node."""

    methods = frozenset(
        name
        for name in dir(Registry)
        if not name.startswith("_") and inspect.iscoroutinefunction(getattr(Registry, name))
    ) - {"start", "stop", "tick", "poll"}

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        super().__init__()

    async def make(self) -> Registry:
        """Open the journal and compare it with the nodes."""
        from fabric.actors.nodes import RemoteNodes

        settings = self._plan.settings
        log.configure(settings.log.level)
        here = (await asyncio.to_thread(labels_here)).get(LABEL_HOST, "")
        log.always(node=here)
        state_dir = make_state_dir(self._plan.state_dir)
        registry = Registry(
            settings=settings.registry,
            tasks=settings.tasks,
            nodes=RemoteNodes(self._plan),
            journal=Journal(state_dir / "registry.db"),
            shell=settings.worker.shell,
            shared=settings.worker.shared,
            here=HostName(here),
        )
        await registry.start()
        if settings.metrics.ray:
            self._exporting = _export(registry)
        return registry

    _exporting: "asyncio.Task[None] | None" = None  # kept, or it could be collected


def _export(registry: Registry) -> "asyncio.Task[None]":
    from fabric.actors.exporter import RayExporter, export_for_ever

    async def ask() -> Rows:
        return census_rows(await registry.census())

    return asyncio.create_task(export_for_ever(RayExporter(), ask))
