"""A node beyond a cut link answers nothing, not even that a call was aborted."""

import asyncio
import time
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from fabric.actors import nodes as nodes_module
from fabric.actors.handles import ActorHandle
from fabric.actors.labels import LABEL_HOST
from fabric.actors.nodes import RemoteNodes
from fabric.actors.plan import Plan
from fabric.core.errors import RegistryUnavailableError
from fabric.core.settings import RegistrySettings, Settings
from fabric.registry.view import View
from tests.support.fake_nodes import node_state

QUICK_S = 0.05


def method(answer=None):
    """A method of a Ray actor: answered at once, or never."""

    def remote(*_):
        future = Future()
        if answer is not None:
            future.set_result(answer)
        return SimpleNamespace(future=lambda: future)

    return SimpleNamespace(remote=remote)


def handle(monkeypatch, host, answer=None):
    made = ActorHandle(host, "ns", RegistryUnavailableError)

    async def find():
        return SimpleNamespace(invoke=method(answer), abort=method())

    monkeypatch.setattr(made, "_find", find)
    return made


async def test_a_question_is_given_up_at_its_limit_although_no_abort_is_confirmed(monkeypatch):
    began = time.monotonic()
    with pytest.raises(RegistryUnavailableError, match="did not answer state"):
        await handle(monkeypatch, "far").ask("state", timeout_s=QUICK_S)
    assert time.monotonic() - began < 2
    await drop_the_rest()


async def test_one_silent_node_does_not_hide_the_others(monkeypatch):
    """The registry learns in one call's time who is silent; Ray itself takes half a minute."""
    settings = RegistrySettings(node_call_timeout_s=QUICK_S)
    remote = RemoteNodes(Plan(Settings(registry=settings), "/nowhere"))
    states = {"near": node_state("near"), "far": None}
    handles = {host: handle(monkeypatch, host, state) for host, state in states.items()}
    rows = [{"Labels": {LABEL_HOST: host}, "Alive": True} for host in states]
    monkeypatch.setattr(nodes_module, "ray_nodes", lambda: rows)
    monkeypatch.setattr(remote, "_node", lambda host: handles[host])
    monkeypatch.setattr(remote, "_start", lambda host: None)
    table = SimpleNamespace(sessions={})
    books = SimpleNamespace(table=table, clock=SimpleNamespace(monotonic=time.monotonic))
    view = View(books, remote, settings)
    await view.refresh()
    assert {node.host: node.alive for node in view.states()} == {"near": True, "far": False}
    await drop_the_rest()


async def test_a_node_that_answers_again_is_alive_for_the_very_next_caller(monkeypatch):
    remote = RemoteNodes(
        Plan(Settings(registry=RegistrySettings(node_call_timeout_s=QUICK_S)), "/nowhere")
    )
    silent, well = (handle(monkeypatch, "far", state) for state in (None, node_state("far")))
    rows = [{"Labels": {LABEL_HOST: "far"}, "Alive": True}]
    monkeypatch.setattr(nodes_module, "ray_nodes", lambda: rows)
    monkeypatch.setattr(remote, "_start", lambda host: None)
    monkeypatch.setattr(remote, "_node", lambda host: silent)
    assert [node.alive for node in await remote.states()] == [False]
    monkeypatch.setattr(remote, "_node", lambda host: well)
    assert [node.alive for node in await remote.states()] == [True]
    await drop_the_rest()


async def drop_the_rest():
    """Aborts nobody confirms go on for a while behind their callers' backs."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
