"""The gateways of other nodes, by the addresses the registry has of them."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from fabric.actors.ports import Verbs
from fabric.core.clock import Clock, SystemClock
from fabric.core.errors import GatewayUnavailableError
from fabric.core.ids import HostName
from fabric.core.model import NodeState

KEEP_S = 2.0


class NodeBook(Protocol):
    """Who knows the nodes."""

    async def nodes(self) -> tuple[NodeState, ...]:
        """List the nodes with the gateways that have joined."""
        ...


class Peers:
    """Finds the verbs of another node's sessions; ``dial`` makes them from an address.

    Addresses that are older than ``KEEP_S`` are asked for again, so a gateway that came back
    elsewhere is found; nobody who knows an address waits for that, because a silent node
    makes the answer slow for the calls to all the others.
    """

    def __init__(
        self, registry: NodeBook, dial: Callable[[str], Verbs], clock: Clock | None = None
    ) -> None:
        self._registry = registry
        self._dial = dial
        self._clock = clock or SystemClock()
        self._verbs: dict[str, Verbs] = {}
        self._addresses: dict[HostName, str] = {}
        self._asked_at = float("-inf")
        self._asking: asyncio.Task[None] | None = None

    async def sessions_on(self, host: HostName) -> Verbs:
        """Return the verbs of the sessions on ``host``. Raises: GatewayUnavailableError."""
        address = await self._address_of(host)
        if address not in self._verbs:
            self._verbs[address] = self._dial(address)
        return self._verbs[address]

    async def close(self) -> None:
        """Close every connection."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait({self._asking})
        verbs = list(self._verbs.values())
        self._verbs.clear()
        await asyncio.gather(*(item.close() for item in verbs))

    async def _address_of(self, host: HostName) -> str:
        if self._clock.monotonic() - self._asked_at > KEEP_S or host not in self._addresses:
            asking = self._ask()
            if host not in self._addresses:
                await asyncio.shield(asking)
        if host not in self._addresses:
            raise GatewayUnavailableError(
                f"no gateway has joined on node {host}, where the session is", host=host
            )
        return self._addresses[host]

    def _ask(self) -> "asyncio.Task[None]":
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._refresh())
            self._asking.add_done_callback(self._answered)
        return self._asking

    async def _refresh(self) -> None:
        nodes = await self._registry.nodes()
        self._addresses = {node.host: node.gateway for node in nodes if node.gateway}
        self._asked_at = self._clock.monotonic()

    def _answered(self, asking: "asyncio.Task[None]") -> None:
        self._asking = None
        if not asking.cancelled():
            asking.exception()  # whoever waits for it is told; nobody need be
