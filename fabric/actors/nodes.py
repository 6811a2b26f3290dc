"""The registry's way to the nodes: ``NodesPort`` over the node actors."""

import asyncio
import logging

from fabric.actors.handles import ActorHandle
from fabric.actors.labels import LABEL_ARCH, LABEL_HOST, LABEL_OS
from fabric.actors.launch import start_node
from fabric.actors.names import node_name
from fabric.actors.plan import Plan
from fabric.actors.rayenv import ray_nodes
from fabric.core.errors import FabricError, NodeNotFoundError, RegistryUnavailableError
from fabric.core.ids import HostName, SessionId
from fabric.core.model import CloseReceipt, Location, NodeState, OpenResult, OpenSpec
from workers.node import Running

WELL_AGAIN_S = 0.1
_log = logging.getLogger(__name__)


class RemoteNodes:
    """The nodes of the cluster. The registry bounds each call; cancelling reaches the node."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._quick_s = plan.settings.registry.node_call_timeout_s
        self._open_s = plan.settings.registry.open_timeout_s
        self._close_s = plan.settings.registry.close_timeout_s
        self._handles: dict[HostName, ActorHandle] = {}
        self._starting: dict[HostName, asyncio.Task[None]] = {}
        self._asking: dict[HostName, asyncio.Task[NodeState | None]] = {}
        self._silent: set[HostName] = set()

    async def states(self) -> tuple[NodeState, ...]:
        """List the nodes, each by itself; one that does not answer is not alive.

        Ray calls a node alive for half a minute after its link was cut. So a silent node is
        waited for once; from then on it is asked behind the callers' backs until it answers,
        and a caller waits only as long as a node that is well again takes.
        Raises: RegistryUnavailableError.
        """
        try:
            async with asyncio.timeout(self._quick_s):
                rows = await asyncio.to_thread(ray_nodes)
        except TimeoutError as error:
            raise RegistryUnavailableError("Ray does not list its nodes") from error
        known: dict[HostName, NodeState] = {}
        for row in sorted(rows, key=lambda item: bool(item["Alive"])):
            labels = row["Labels"]
            if labels.get(LABEL_HOST):
                host = HostName(labels[LABEL_HOST])
                known[host] = NodeState(
                    host=host,
                    alive=bool(row["Alive"]),
                    os=labels.get(LABEL_OS, ""),
                    arch=labels.get(LABEL_ARCH, ""),
                )
        return tuple(await asyncio.gather(*(self._state(node) for node in known.values())))

    async def _state(self, node: NodeState) -> NodeState:
        host = node.host
        if not node.alive:
            return node
        asking = self._asking.get(host)
        if asking is None:
            asking = asyncio.get_running_loop().create_task(self._asked(host))
            self._asking[host] = asking
        # Not cancelled with its asker: the question is the next asker's.
        await asyncio.wait({asking}, timeout=WELL_AGAIN_S if host in self._silent else None)
        if asking.done():
            self._asking.pop(host, None)
            state = asking.result()
            if state is not None:
                self._silent.discard(host)
                return state
            self._silent.add(host)
            self._start(host)
        return NodeState(host=host, alive=False, os=node.os, arch=node.arch)

    async def _asked(self, host: HostName) -> NodeState | None:
        try:
            state: NodeState = await self._node(host).ask("state", timeout_s=self._quick_s)
        except FabricError as error:
            _log.warning("node does not answer", extra={"host": host, "why": error.message})
            return None
        return state

    def _start(self, host: HostName) -> None:
        """Start the node actor of a node that joined later; harmless where there is one."""
        if host not in self._starting:
            work = asyncio.get_running_loop().create_task(
                asyncio.to_thread(start_node, self._plan, host)
            )
            self._starting[host] = work
            work.add_done_callback(lambda done: self._started(host, done))

    def _started(self, host: HostName, work: "asyncio.Task[None]") -> None:
        del self._starting[host]
        if not work.cancelled() and work.exception() is not None:
            _log.error("node actor not started", extra={"host": host}, exc_info=work.exception())

    async def open(self, host: HostName, spec: OpenSpec) -> OpenResult:
        """Start a session on a node; cancelling removes it before this returns."""

        async def undo(result: OpenResult) -> None:
            await self.close(host, result.info.session_id, "the open was cancelled")

        try:
            result: OpenResult = await self._node(host).call(
                "open", spec, timeout_s=self._open_s, undo=undo
            )
        except RegistryUnavailableError as error:
            raise NodeNotFoundError(error.message, host=host) from error
        return result

    async def close(self, host: HostName, session_id: SessionId, reason: str) -> CloseReceipt:
        """Tear a session down."""
        receipt: CloseReceipt = await self._node(host).call(
            "close", session_id, reason, timeout_s=self._close_s
        )
        return receipt

    async def fence(self, host: HostName, session_id: SessionId, epoch: int) -> None:
        """Refuse callers of older epochs."""
        await self._node(host).call("fence", session_id, epoch, timeout_s=self._quick_s)

    async def keep(
        self,
        host: HostName,
        epochs: dict[SessionId, int],
        asked_at: float,
        word_s: float | None,
    ) -> None:
        """Let a node go on serving."""
        await self._node(host).call("keep", epochs, asked_at, word_s, timeout_s=self._quick_s)

    async def sessions(self, host: HostName) -> tuple[Running, ...]:
        """List what runs on a node."""
        rows: tuple[Running, ...] = await self._node(host).ask("sessions", timeout_s=self._quick_s)
        return rows

    async def locate(self, host: HostName, session_id: SessionId) -> Location:
        """Say how a gateway reaches a session."""
        location: Location = await self._node(host).ask(
            "locate", session_id, timeout_s=self._quick_s
        )
        return location

    def _node(self, host: HostName) -> ActorHandle:
        handle = self._handles.get(host)
        if handle is None:

            def away(why: str) -> FabricError:
                return RegistryUnavailableError(f"node {host} cannot be asked: {why}", host=host)

            handle = self._handles[host] = ActorHandle(node_name(host), self._plan.namespace, away)
        return handle
