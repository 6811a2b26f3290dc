"""Nodes get the registry's word for the sessions that live, and only from a registry that asked."""

from dataclasses import replace

import pytest

from fabric.core.errors import SettingsError
from fabric.core.ids import HostName
from fabric.core.settings import RegistrySettings
from tests.support.fake_nodes import FakeNodes, node_state
from tests.unit.registry.desk import desk

WORD_S, LOST_S = 30.0, 45.0


async def test_a_node_elsewhere_gets_a_span_and_the_registry_s_own_gets_it_for_ever(tmp_path):
    nodes = FakeNodes(node_state("n1", asked_at=11.0), node_state("n2", asked_at=22.0))
    async with desk(tmp_path, nodes) as d:
        d.here = HostName("n1")
        await d.restart()
        caller = await d.acquire()
        sessions = {host: await d.opened(caller, host=host) for host in ("n1", "n2")}
        await d.registry.poll()
        assert nodes["n1"].words[-1] == ({sessions["n1"]: caller.epoch}, 11.0, None)
        assert nodes["n2"].words[-1] == ({sessions["n2"]: caller.epoch}, 22.0, WORD_S)


async def test_word_carries_the_epoch_of_a_take_over_and_leaves_out_what_was_closed(tmp_path):
    nodes = FakeNodes(node_state("n1"))
    async with desk(tmp_path, nodes) as d:
        first = await d.acquire()
        kept, closed = await d.opened(first), await d.opened(first)
        second = await d.acquire()
        await d.close(second, closed)
        await d.registry.poll()
        assert nodes["n1"].words[-1][0] == {kept: second.epoch}
        assert second.epoch > first.epoch


async def test_a_node_that_does_not_say_what_it_runs_gets_no_word(tmp_path):
    nodes = FakeNodes(node_state("n1"))
    async with desk(tmp_path, nodes) as d:
        caller = await d.acquire()
        await d.opened(caller)
        await d.registry.poll()
        before = len(nodes["n1"].words)
        nodes.away.add(HostName("n1"))
        nodes["n1"].state = replace(nodes["n1"].state, asked_at=99.0)
        await d.registry.poll()
        assert len(nodes["n1"].words) == before


async def test_what_a_silent_node_ran_is_given_up_only_after_its_word_has_ended(tmp_path):
    nodes = FakeNodes(node_state("n1"), node_state("n2"))
    settings = RegistrySettings(word_s=WORD_S, lost_timeout_s=LOST_S, lease_s=1000)
    async with desk(tmp_path, nodes, settings) as d:
        caller = await d.acquire()
        await d.opened(caller, "far", host="n2")
        await d.opened(caller, "near", host="n1")
        await d.registry.poll()
        nodes.away.add(HostName("n2"))
        await d.registry.poll()
        d.clock.advance(WORD_S)
        await d.registry.tick()
        assert await d.names(caller) == ["far", "near"]
        d.clock.advance(LOST_S - WORD_S)
        await d.registry.tick()
        assert await d.names(caller) == ["near"]
        await d.opened(caller, "far", host="n1")
        page = await d.registry.read_events(caller)
        assert [event.kind for event in page.events].count("session_lost") == 1


@pytest.mark.parametrize("changes", [{"word_s": 45.0}, {"word_s": 3.0}])
def test_a_span_must_lie_between_the_polls_and_the_giving_up(changes):
    with pytest.raises(SettingsError, match="word_s"):
        RegistrySettings(**changes)
