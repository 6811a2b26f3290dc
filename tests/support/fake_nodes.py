"""Nodes that run nothing: every answer is a value, every delay a gate that a test opens."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace

from fabric.core.errors import (
    CapacityReachedError,
    NodeNotFoundError,
    SessionNotFoundError,
)
from fabric.core.ids import HostName, SessionId
from fabric.core.model import (
    CloseReceipt,
    Confinement,
    ExitStatus,
    Location,
    NodeState,
    OpenResult,
    OpenSpec,
    SessionInfo,
    SessionStatus,
    WaitReason,
)


class Gate:
    """A place where a call waits until the test lets it go on; open at first."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self._arrived = 0
        self._arrival = asyncio.Event()

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        self._arrived += 1
        self._arrival.set()
        await self._open.wait()

    async def reached(self, times: int = 1) -> None:
        """Wait until ``times`` calls have come here since the beginning."""
        while self._arrived < times:
            self._arrival.clear()
            await self._arrival.wait()


@dataclass
class Running:
    """One session as its node holds it."""

    spec: OpenSpec
    info: SessionInfo
    epoch: int


@dataclass
class FakeNode:
    """One node. ``opens`` and ``closes`` hold errors to raise, one a call, before success."""

    state: NodeState
    running: dict[SessionId, Running] = field(default_factory=dict)
    opening: Gate = field(default_factory=Gate)
    closing: Gate = field(default_factory=Gate)
    fencing: Gate = field(default_factory=Gate)
    asked: Gate = field(default_factory=Gate)
    open_errors: list[BaseException] = field(default_factory=list)
    close_errors: list[BaseException] = field(default_factory=list)
    close_receipts: list[CloseReceipt] = field(default_factory=list)
    fence_errors: list[BaseException] = field(default_factory=list)
    ignores_cancel: bool = False
    reasons: list[tuple[SessionId, str]] = field(default_factory=list)
    words: list[tuple[dict[SessionId, int], float, float | None]] = field(default_factory=list)


def node_state(host: str, **changes: object) -> NodeState:
    base = NodeState(
        HostName(host),
        True,
        sandbox_kinds=("bubblewrap",),
        max_sessions=64,
        warm=4,
        ptys_free=1000,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


class FakeNodes:
    """The cluster as the registry sees it."""

    def __init__(self, *states: NodeState) -> None:
        rows = states or (node_state("n1"),)
        self.nodes: dict[HostName, FakeNode] = {row.host: FakeNode(row) for row in rows}
        self.calls: Counter[str] = Counter()
        self.away: set[HostName] = set()
        self.down = False
        self._tasks: set[asyncio.Task[OpenResult]] = set()

    def __getitem__(self, host: str) -> FakeNode:
        return self.nodes[HostName(host)]

    @property
    def running(self) -> set[SessionId]:
        return {key for node in self.nodes.values() for key in node.running}

    def exit(self, session_id: SessionId, status: ExitStatus) -> None:
        """Let a session's program end, for the next report."""
        for node in self.nodes.values():
            if session_id in node.running:
                held = node.running[session_id]
                held.info = replace(held.info, status=SessionStatus(status))

    async def states(self) -> tuple[NodeState, ...]:
        self.calls["states"] += 1
        if self.down:
            raise OSError("no cluster")
        return tuple(node.state for host, node in self.nodes.items() if host not in self.away)

    async def open(self, host: HostName, spec: OpenSpec) -> OpenResult:
        self.calls["open"] += 1
        node = self._node(host)
        if node.open_errors:
            await node.opening.passed()
            raise node.open_errors.pop(0)
        if len(node.running) >= node.state.max_sessions:
            raise CapacityReachedError(f"node {host} is full")
        if node.ignores_cancel:
            return await self._stubborn(node, spec)
        await node.opening.passed()
        return self._start(node, spec)

    async def close(self, host: HostName, session_id: SessionId, reason: str) -> CloseReceipt:
        self.calls["close"] += 1
        node = self._node(host)
        node.reasons.append((session_id, reason))
        await node.closing.passed()
        if node.close_errors:
            raise node.close_errors.pop(0)
        if session_id not in node.running:
            raise SessionNotFoundError(f"node {host} has no {session_id}")
        if node.close_receipts:
            return node.close_receipts.pop(0)
        del node.running[session_id]
        return CloseReceipt(ExitStatus(signal="SIGTERM"))

    async def fence(self, host: HostName, session_id: SessionId, epoch: int) -> None:
        self.calls["fence"] += 1
        node = self._node(host)
        await node.fencing.passed()
        if node.fence_errors:
            raise node.fence_errors.pop(0)
        if session_id not in node.running:
            raise SessionNotFoundError(f"node {host} has no {session_id}")
        node.running[session_id].epoch = epoch

    async def keep(
        self,
        host: HostName,
        epochs: dict[SessionId, int],
        asked_at: float,
        word_s: float | None,
    ) -> None:
        self.calls["keep"] += 1
        self._node(host).words.append((epochs, asked_at, word_s))

    async def sessions(self, host: HostName) -> tuple[tuple[Location, SessionInfo, OpenSpec], ...]:
        self.calls["sessions"] += 1
        node = self._node(host)
        rows = tuple(
            (self._location(host, held.spec), held.info, held.spec)
            for held in node.running.values()
        )
        await node.asked.passed()
        return rows

    async def locate(self, host: HostName, session_id: SessionId) -> Location:
        self.calls["locate"] += 1
        node = self._node(host)
        if session_id not in node.running:
            raise SessionNotFoundError(f"node {host} has no {session_id}")
        return self._location(host, node.running[session_id].spec)

    def _node(self, host: HostName) -> FakeNode:
        if host not in self.nodes or host in self.away:
            raise NodeNotFoundError(f"no node {host}")
        return self.nodes[host]

    async def _stubborn(self, node: FakeNode, spec: OpenSpec) -> OpenResult:
        """Open although the caller cancels: the session comes up late."""
        cancelled = False
        while True:
            try:
                await node.opening.passed()
            except asyncio.CancelledError:
                cancelled = True
                continue
            return self._start(node, spec, late=cancelled)

    def _start(self, node: FakeNode, spec: OpenSpec, *, late: bool = False) -> OpenResult:
        info = SessionInfo(
            spec.session_id,
            spec.owner_id,
            spec.type,
            SessionStatus(),
            name=spec.name,
            pid=4711,
            host=node.state.host,
            confinement=Confinement(spec.mode),
            created_at=spec.created_at,
        )
        node.running[spec.session_id] = Running(spec, info, spec.epoch)
        return OpenResult(info, "late" if late else "$ ", WaitReason.STDIN_READ)

    @staticmethod
    def _location(host: HostName, spec: OpenSpec) -> Location:
        return Location(spec.session_id, spec.owner_id, host, f"/run/{spec.session_id}.s", "key")
