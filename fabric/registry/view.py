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
# Asking for the nodes is two calls, one after the other, and some time to give up both: with
# less, one silent node would leave the registry without a view of all the others.
STATES_CALLS = 2.5


class View:
    """The nodes as last seen, polled and compared with the table."""

    def __init__(
        self,
        books: Books,
        nodes: NodesPort,
        settings: RegistrySettings,
        here: HostName | None = None,
    ) -> None:
        self._books = books
        self._nodes = nodes
        self._limit_s = settings.node_call_timeout_s
        self._word_s = settings.word_s
        self._here = here
        self._answered: set[HostName] = set()
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

    def is_silent(self, host: HostName) -> bool:
        """Tell whether a node did not answer when it was asked last."""
        node = self._states.get(host)
        return node is not None and not node.alive

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

    async def give_word(self) -> None:
        """Let every node that just answered serve its sessions for another while.

        What it runs was compared with the table first, so that it is told of live sessions
        only, each with its owner's epoch. On the registry's own machine no word is needed.
        """
        nodes = [self._states[host] for host in self._answered if host in self._states]
        await asyncio.gather(*(self._give_word(node) for node in nodes))

    async def _give_word(self, node: NodeState) -> None:
        table = self._books.table
        epochs = {
            session.session_id: owner.epoch
            for session in table.sessions.values()
            if session.host == node.host and session.is_visible
            if (owner := table.owners.find(session.owner_id)) is not None and owner.is_live
        }
        word_s = None if self._here in (None, node.host) else self._word_s
        call = self._nodes.keep(node.host, epochs, node.asked_at, word_s)
        try:
            await within(self._limit_s, f"node {node.host}", call)
        except FabricError as error:
            _log.info("word not given", extra={"host": node.host, "reason": error.reason})
        except Exception:  # noqa: BLE001  (one node's fault must not silence the others)
            _log.exception("word not given", extra={"host": node.host})

    def stop(self) -> None:
        """Let go of a question in flight."""
        if self._asking is not None:
            self._asking.cancel()

    async def _refresh(self) -> None:
        try:
            states = await within(STATES_CALLS * self._limit_s, "the cluster", self._nodes.states())
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
        self._answered.discard(host)
        revision = table.revision
        try:
            rows = await within(self._limit_s, f"node {host}", self._nodes.sessions(host))
        except FabricError as error:
            _log.info("node not asked", extra={"host": host, "reason": error.reason})
            return []
        except Exception:  # noqa: BLE001  (a node that answers nonsense counts as silent)
            _log.exception("node not asked", extra={"host": host})
            return []
        self._answered.add(host)
        seen = [(info, spec) for _, info, spec in rows]
        return self._books.commit(node_reported(table, host, revision, seen, clock.monotonic()))
