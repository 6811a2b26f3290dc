"""Choosing a node for an open.

Theory. Filters first, each with an error of its own that names what would have helped:
the host asked for, the operating system, the ability to confine, taking new work, room.
Room is judged by the registry's own count per host, pending opens included, since what a
node last said of itself is seconds old; a node that knows better refuses, and the next
candidate is tried. A negative ``ptys_free`` means that the node cannot tell.

Among the rest the order is: less loaded by quarters, then one with a warm slot left, then
the lower share in use, then the fewer sessions, then the name. So a warm slot (hundreds
of milliseconds) is preferred between nodes that are loaded alike, but never piles
sessions onto a full node beside an empty one. Same input, same choice.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from fabric.core.errors import (
    CapacityReachedError,
    DrainingError,
    NodeNotFoundError,
    SandboxUnavailableError,
)
from fabric.core.ids import HostName
from fabric.core.model import Network, NodeState, SandboxMode

_BANDS = 4
_SANDBOXES = frozenset(("bubblewrap", "landlock", "seatbelt"))
NETWORK_NONE, RUN_AS = "network-none", "run-as"


@dataclass(frozen=True, slots=True)
class Wish:
    """What an open demands of its node; ``switches`` means an account of its own."""

    mode: SandboxMode
    os: str | None = None
    host: HostName | None = None
    network: Network = Network.SHARED
    switches: bool = False


def candidates(
    wish: Wish,
    nodes: Sequence[NodeState],
    load: Mapping[HostName, int],
    warm_taken: Mapping[HostName, int],
) -> list[HostName]:
    """Return the nodes that can take the open, the best first.

    Raises: NodeNotFoundError, SandboxUnavailableError, DrainingError, CapacityReachedError.
    """
    fitting = _confining(wish, _asked_for(wish, nodes))
    working = [node for node in fitting if not node.draining]
    if not working:
        raise DrainingError(f"no new session now: {_names(fitting)} is draining")
    free = [node for node in working if _room(node, load) > 0]
    if not free:
        raise full(working, load)
    free.sort(key=lambda node: _order(node, load, warm_taken))
    return [node.host for node in free]


def full(nodes: Iterable[NodeState], load: Mapping[HostName, int]) -> CapacityReachedError:
    """Say that no node has room, with the numbers."""
    rows = list(nodes)
    used = sum(load.get(node.host, 0) for node in rows)
    most = sum(node.max_sessions for node in rows)
    each = ", ".join(
        f"{node.host} {load.get(node.host, 0)}/{node.max_sessions}"
        + (" (no pseudo-terminal free)" if node.ptys_free == 0 else "")
        for node in rows
    )
    return CapacityReachedError(
        f"no node has room for another session: {used} of {most} in use ({each});"
        " close a session or try later",
        sessions=used,
        limit=most,
    )


def _asked_for(wish: Wish, nodes: Sequence[NodeState]) -> list[NodeState]:
    alive = [node for node in nodes if node.alive]
    if not alive:
        raise CapacityReachedError("no node of the cluster answers", sessions=0, limit=0)
    rows = alive
    if wish.host is not None:
        rows = [node for node in rows if node.host == wish.host]
        if not rows:
            raise NodeNotFoundError(
                f"no live node is named {wish.host!r}; there are {_names(alive)}", host=wish.host
            )
    if wish.os is not None:
        rows = [node for node in rows if node.os == wish.os]
        if not rows:
            there = ", ".join(sorted({node.os for node in alive}))
            raise NodeNotFoundError(
                f"no live node {'named ' + wish.host + ' ' if wish.host else ''}runs"
                f" {wish.os!r}; there is {there}",
                os=wish.os,
            )
    return rows


def _confining(wish: Wish, nodes: list[NodeState]) -> list[NodeState]:
    full = SandboxMode.DANGER_FULL_ACCESS.value
    if wish.switches:
        nodes = _able(
            wish, nodes, {RUN_AS}, "the owner's policy names an account for its sessions",
            "run the node's service as root, or take run_as out of the policy",
        )  # fmt: skip
    if wish.mode is not SandboxMode.DANGER_FULL_ACCESS:
        nodes = _able(
            wish, nodes, _SANDBOXES, f"mode {wish.mode.value} needs a node that can confine",
            "make bubblewrap or Landlock work there (Linux) or sandbox-exec (macOS), or set the"
            f" owner's mode to {full}",
        )  # fmt: skip
    if wish.network is Network.NONE:
        unconfined = wish.mode is SandboxMode.DANGER_FULL_ACCESS
        nodes = _able(
            wish, [] if unconfined else nodes, {NETWORK_NONE},
            f"network none cannot be met in mode {full}" if unconfined
            else "the owner's policy says network none",
            "choose a confined mode, or network shared" if unconfined
            else "make network namespaces or system call filters work there",
        )  # fmt: skip
    return nodes


def _able(
    wish: Wish, nodes: list[NodeState], kinds: Collection[str], why: str, way_out: str
) -> list[NodeState]:
    able = [node for node in nodes if not set(kinds).isdisjoint(node.sandbox_kinds)]
    if not able:
        where = f", and {_names(nodes)} cannot" if nodes else ""
        raise SandboxUnavailableError(
            f"{why}{where}; {way_out}", mode=wish.mode.value, nodes=_names(nodes)
        )
    return able


def _room(node: NodeState, load: Mapping[HostName, int]) -> int:
    room = node.max_sessions - load.get(node.host, 0)
    return room if node.ptys_free < 0 else min(room, node.ptys_free)


def _order(
    node: NodeState, load: Mapping[HostName, int], warm_taken: Mapping[HostName, int]
) -> tuple[int, bool, float, int, str]:
    used = load.get(node.host, 0)
    share = used / node.max_sessions
    warm = node.warm - warm_taken.get(node.host, 0)
    return int(share * _BANDS), warm <= 0, share, used, node.host


def _names(nodes: Iterable[NodeState]) -> str:
    return ", ".join(sorted(node.host for node in nodes))
