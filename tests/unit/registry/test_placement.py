"""Choosing a node, with literals."""

import pytest

from fabric.core.errors import (
    CapacityReachedError,
    DrainingError,
    NodeNotFoundError,
    SandboxUnavailableError,
)
from fabric.core.ids import HostName
from fabric.core.model import Network, NodeState, SandboxMode
from fabric.registry.placement import Wish, candidates
from tests.support.fake_nodes import node_state

FULL = SandboxMode.DANGER_FULL_ACCESS
READ = SandboxMode.READ_ONLY


def choose(
    *nodes: NodeState,
    wish: Wish | None = None,
    load: dict[str, int] | None = None,
    warm_taken: dict[str, int] | None = None,
) -> list[str]:
    return list(
        candidates(
            wish or Wish(FULL),
            nodes,
            {HostName(k): v for k, v in (load or {}).items()},
            {HostName(k): v for k, v in (warm_taken or {}).items()},
        )
    )


def test_nodes_loaded_alike_go_by_warmth_and_then_by_load():
    one, two = node_state("a", warm=0), node_state("b", warm=1)
    assert choose(one, two) == ["b", "a"]
    assert choose(one, two, load={"b": 15}) == ["b", "a"]
    assert choose(one, two, warm_taken={"b": 1}) == ["a", "b"]
    assert choose(node_state("a"), node_state("b"), load={"a": 2, "b": 1}) == ["b", "a"]
    assert choose(node_state("b"), node_state("a")) == ["a", "b"]


def test_a_warm_slot_does_not_pile_sessions_up():
    one, two = node_state("a", warm=0), node_state("b", warm=9)
    assert choose(one, two, load={"b": 16}) == ["a", "b"]


def test_shares_count_rather_than_numbers():
    small, big = node_state("a", max_sessions=10), node_state("b", max_sessions=100)
    assert choose(small, big, load={"a": 2, "b": 10}) == ["b", "a"]


def test_wishes_narrow_the_choice():
    nodes = (node_state("a"), node_state("m", os="darwin"), node_state("b"))
    assert choose(*nodes, wish=Wish(FULL, os="darwin")) == ["m"]
    assert choose(*nodes, wish=Wish(FULL, host=HostName("b"))) == ["b"]
    with pytest.raises(NodeNotFoundError, match=r"'c'; there are a, b, m"):
        choose(*nodes, wish=Wish(FULL, host=HostName("c")))
    with pytest.raises(NodeNotFoundError, match=r"runs 'plan9'; there is darwin, linux"):
        choose(*nodes, wish=Wish(FULL, os="plan9"))
    with pytest.raises(NodeNotFoundError, match=r"named a runs 'darwin'"):
        choose(*nodes, wish=Wish(FULL, os="darwin", host=HostName("a")))


def test_a_confined_mode_needs_a_node_that_confines():
    able, unable = node_state("a"), node_state("b", sandbox_kinds=("none",))
    assert choose(able, unable, wish=Wish(READ)) == ["a"]
    assert choose(able, unable) == ["a", "b"]
    with pytest.raises(SandboxUnavailableError) as failure:
        choose(able, unable, wish=Wish(READ, host=HostName("b")))
    assert failure.value.metadata == {"mode": "read-only", "nodes": "b"}
    assert "danger-full-access" in failure.value.message


def test_no_network_needs_a_node_that_can_take_it_away():
    able = node_state("a", sandbox_kinds=("bubblewrap", "network-none"))
    unable = node_state("b", sandbox_kinds=("landlock", "cgroup"))
    assert choose(able, unable, wish=Wish(READ, network=Network.NONE)) == ["a"]
    with pytest.raises(SandboxUnavailableError, match="network none, and b cannot"):
        choose(unable, wish=Wish(READ, network=Network.NONE))
    with pytest.raises(SandboxUnavailableError, match="cannot be met in mode danger-full-access"):
        choose(able, wish=Wish(FULL, network=Network.NONE))


def test_another_account_needs_a_node_that_may_switch():
    able = node_state("a", sandbox_kinds=("landlock", "run-as"))
    unable = node_state("b", sandbox_kinds=("bubblewrap",))
    assert choose(able, unable, wish=Wish(READ, switches=True)) == ["a"]
    assert choose(able, unable, wish=Wish(FULL, switches=True)) == ["a"]
    with pytest.raises(SandboxUnavailableError, match="names an account"):
        choose(unable, wish=Wish(FULL, switches=True))


def test_what_else_a_node_can_do_is_no_sandbox():
    with pytest.raises(SandboxUnavailableError):
        choose(node_state("a", sandbox_kinds=("run-as", "cgroup")), wish=Wish(READ))


def test_only_nodes_that_live_and_work_are_chosen():
    dead, draining = node_state("a", alive=False), node_state("b", draining=True)
    assert choose(dead, draining, node_state("c")) == ["c"]
    with pytest.raises(DrainingError, match="b is draining"):
        choose(dead, draining)
    with pytest.raises(CapacityReachedError, match="no node of the cluster answers"):
        choose(dead)
    with pytest.raises(NodeNotFoundError):
        choose(dead, draining, wish=Wish(FULL, host=HostName("a")))


def test_room_is_what_is_left_of_sessions_and_terminals():
    one, two = node_state("a", max_sessions=2), node_state("b", ptys_free=0)
    assert choose(one, two, load={"a": 1}) == ["a"]
    assert choose(node_state("a", ptys_free=-1)) == ["a"]
    with pytest.raises(CapacityReachedError) as failure:
        choose(one, two, load={"a": 2, "b": 3})
    assert "5 of 66 in use (a 2/2, b 3/64 (no pseudo-terminal free))" in failure.value.message
    assert failure.value.metadata == {"sessions": "5", "limit": "66"}
