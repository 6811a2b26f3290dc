"""The node as a plain class that Ray can wrap.

It is made from settings alone, so that a process which Ray starts again comes back by
itself, with the same folder and the sessions in it.
"""

import asyncio

from fabric.actors.checkup import Build, build_here
from fabric.actors.hosting import Hosted
from fabric.actors.labels import LABEL_ARCH, LABEL_OS
from fabric.actors.names import claim_node_dir, make_state_dir
from fabric.actors.plan import Plan
from fabric.actors.rayenv import labels_here
from fabric.actors.remote import RemoteRegistry
from fabric.actors.reporting import Reporter
from fabric.core import log
from fabric.core.figures import Rows, node_rows
from fabric.core.ids import HostName
from fabric.core.model import NodeState
from workers.node import Node
from workers.sandbox.probe import NodeConfinement, probe


class NodeHost(Hosted):
    """The node actor of one host."""

    methods = frozenset(
        (
            "open",
            "close",
            "fence",
            "keep",
            "sessions",
            "locate",
            "state",
            "drain",
            "resume",
            "end_all",
        )
    )

    def __init__(self, plan: Plan, host: HostName) -> None:
        self._plan = plan
        self._host = host
        super().__init__()

    async def build(self) -> Build:
        """Say what this actor is made of."""
        return build_here()

    async def make(self) -> Node:
        """Start the node with workers made by Ray."""
        from fabric.actors.launch import RaySlots

        settings = self._plan.settings
        log.configure(settings.log.level)
        log.always(node=self._host)
        confinement = await probe(self._plan.worker.sandbox, self._host)
        reporter = Reporter(self._host, RemoteRegistry(settings))
        node = Node(
            self._host,
            claim_node_dir(make_state_dir(self._plan.state_dir), self._host),
            settings.node,
            self._plan.worker,
            RaySlots(self._plan, self._host),
            facts=await self._facts(confinement),
            on_event=reporter.report,
            confinement=confinement,
        )
        await node.start()
        if settings.metrics.ray:
            self._exporting = _export(node)
        return node

    _exporting: "asyncio.Task[None] | None" = None  # kept, or it could be collected

    async def _facts(self, confinement: NodeConfinement) -> NodeState:
        """Say what this machine is, by the labels it has in the cluster."""
        labels = await asyncio.to_thread(labels_here)
        return NodeState(
            host=self._host,
            alive=True,
            os=labels[LABEL_OS],
            arch=labels[LABEL_ARCH],
            sandbox_kinds=confinement.kinds,
        )


def _export(node: Node) -> "asyncio.Task[None]":
    from fabric.actors.exporter import RayExporter, export_for_ever

    async def ask() -> Rows:
        return node_rows([await node.state()])

    return asyncio.create_task(export_for_ever(RayExporter(), ask))
