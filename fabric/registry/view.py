"""What the registry knows of the nodes, and how it asks them."""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from fabric.core.errors import FabricError, RegistryUnavailableError
from fabric.core.ids import HostName
from fabric.core.model import NodeState
from fabric.core.settings import RegistrySettings
from fabric.registry.books import Books, Effect
from fabric.registry.ports import NodesPort
from fabric.registry.reconcile import node_reported, nodes_alive
from fabric.registry.waiting import within

_log = logging.getLogger(__name__)


class View:
    """The nodes as last seen, polled and compared with the table."""

    def __init__(self, books: Books, nodes: NodesPort, settings: RegistrySettings) -> None:
        self._books = books
        self._nodes = nodes
        self._limit_s = settings.node_call_timeout_s
        self._states: dict[HostName, NodeState] = {}
        self._asking: asyncio.Task[None] | None = None
        self.warm_taken: Counter[HostName] = Counter()
        self.gateways: dict[HostName, str] = {}

    def states(self) -> tuple[NodeState, ...]:
        """Return the nodes as last seen, with the gateways that have joined."""
        return tuple(
            replace(node, gateway=self.gateways.get(node.host, node.gateway))
            for node in self._states.values()
        )

    def take_warm(self, host: HostName) -> None:
        """Count a warm slot as used until the node is asked again."""
        self.warm_taken[host] += 1

    async def refresh(self) -> None:
        """Ask which nodes there are; calls at one time share one question.

        Raises: RegistryUnavailableError when the cluster does not answer.
        """
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._refresh())
            self._asking.add_done_callback(self._asked)
        asking = self._asking
        await asyncio.wait({asking})
        if asking.cancelled():
            raise RegistryUnavailableError("the registry is stopping; try again in a moment")
        asking.result()

    async def ask(self, hosts: Iterable[HostName]) -> list[Effect]:
        """Compare what these nodes run with the table; return what is to be done."""
        found = await asyncio.gather(*(self._ask(host) for host in hosts))
        return [effect for effects in found for effect in effects]

    async def poll(self) -> list[Effect]:
        """Ask everything of everybody. Raises: RegistryUnavailableError."""
        await self.refresh()
        return await self.ask([node.host for node in self._states.values() if node.alive])

    def stop(self) -> None:
        """Let go of a question in flight."""
        if self._asking is not None:
            self._asking.cancel()

    async def _refresh(self) -> None:
        try:
            states = await within(self._limit_s, "the cluster", self._nodes.states())
        except FabricError as error:
            raise RegistryUnavailableError(
                f"the cluster does not say which nodes it has: {error.message}"
            ) from error
        except Exception as error:
            _log.exception("cluster not read")
            raise RegistryUnavailableError("the cluster does not say which nodes it has") from error
        self._states = {node.host: node for node in states}
        self.warm_taken.clear()
        alive = {node.host for node in states if node.alive}
        nodes_alive(self._books.table, alive, self._books.clock.monotonic())

    def _asked(self, task: "asyncio.Task[None]") -> None:
        self._asking = None
        if not task.cancelled():
            task.exception()

    async def _ask(self, host: HostName) -> list[Effect]:
        table, clock = self._books.table, self._books.clock
        revision = table.revision
        try:
            rows = await within(self._limit_s, f"node {host}", self._nodes.sessions(host))
        except FabricError as error:
            _log.info("node not asked", extra={"host": host, "reason": error.reason})
            return []
        except Exception:  # noqa: BLE001  (a node that answers nonsense counts as silent)
            _log.exception("node not asked", extra={"host": host})
            return []
        seen = [(info, spec) for _, info, spec in rows]
        return self._books.commit(node_reported(table, host, revision, seen, clock.monotonic()))
