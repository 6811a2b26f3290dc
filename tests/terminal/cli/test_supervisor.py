"""The supervisor with a cluster that is none and a gateway that only announces itself."""

import argparse
import asyncio
import contextlib
import io
import os
import signal
import sys

import pytest

from fabric.cli.announce import Announcer
from fabric.cli.context import Context
from fabric.cli.output import Output
from fabric.cli.supervisor import Supervisor
from fabric.core.errors import InvalidRequestError, StartupTimeoutError
from tests.support.eventually import eventually
from tests.support.paths import TESTS

SERVE = (sys.executable, str(TESTS / "support" / "fake_gateway.py"))


class FakeCluster:
    """Counts starts and stops."""

    def __init__(self, *, embedded=True, start=None):
        self.embedded = embedded
        self.address = "127.0.0.1:6379"
        self.events = []
        self.died = asyncio.Event()
        self._start = start

    async def start(self, progress):
        self.events.append("start")
        progress("starting the fake")
        if self._start:
            await self._start()

    async def lost(self):
        await self.died.wait()
        self.died.clear()

    async def stop(self, progress):
        self.events.append("stop")

    def kill(self):
        self.events.append("kill")


class Fabric:
    def __init__(self, tmp_path, cluster, *flags):
        self.cluster = cluster
        arguments = argparse.Namespace(state_dir=str(tmp_path / "state"), set=list(flags))
        self.out, self.err = io.StringIO(), io.StringIO()
        output = Output(stdout=self.out, stderr=self.err, environ={})
        context = Context(arguments, output, {})
        self.state = context.state.prepare()
        self.supervisor = Supervisor(context, cluster, Announcer(), SERVE)
        self.task = None

    @property
    def record(self):
        return self.state.record()

    async def ready(self):
        self.task = asyncio.ensure_future(self.supervisor.run())
        await eventually(lambda: self.task.done() or "ready on" in self.out.getvalue())
        if self.task.done():
            self.task.result()

    async def stop(self):
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(self.task, 10)


@pytest.fixture
def fabric(tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_GATEWAY", str(tmp_path / "plan"))
    return lambda cluster=None, *flags: Fabric(tmp_path, cluster or FakeCluster(), *flags)


async def test_starts_records_tells_and_stops_in_the_reverse_order(fabric):
    it = fabric()
    await it.ready()
    assert it.record.gateway == "127.0.0.1:45678"
    assert it.record.pid == os.getpid()
    assert it.state.token_file.exists()
    assert f"export FABRIC_TOKEN_FILE={it.state.token_file}" in it.err.getvalue()
    assert "export FABRIC_GATEWAY=127.0.0.1:45678" in it.err.getvalue()
    gateway = it.record.gateway_pid
    await it.stop()
    assert it.cluster.events == ["start", "stop"]
    assert it.record is None
    assert not it.state.token_file.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(gateway, 0)
    assert "waiting for running calls" in it.err.getvalue()


async def test_a_dead_gateway_is_started_again_on_the_same_port(fabric, tmp_path):
    it = fabric()
    await it.ready()
    (tmp_path / "plan").write_text("die")
    first = it.record.gateway_pid
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: "the gateway is back on 127.0.0.1:45678" in it.err.getvalue())
    assert it.record.gateway_pid not in (0, first)
    assert "it does not start" in it.err.getvalue(), "one try failed on the way and was told"
    await it.stop()


async def test_a_dead_cluster_is_started_again_with_its_gateway(fabric):
    it = fabric()
    await it.ready()
    first = it.record.gateway_pid
    it.cluster.died.set()
    await eventually(lambda: "the gateway is back on 127.0.0.1:45678" in it.err.getvalue())
    assert it.cluster.events == ["start", "start"]
    assert it.record.gateway_pid != first
    await it.stop()


async def test_an_error_of_the_first_start_is_the_error_of_up(fabric, tmp_path):
    (tmp_path / "plan").write_text("refuse")
    it = fabric()
    with pytest.raises(InvalidRequestError, match="no such port"):
        await it.ready()
    assert it.cluster.events == ["start", "stop"]
    assert it.record is None


async def test_a_gateway_that_dies_without_a_word_names_its_log(fabric, tmp_path):
    (tmp_path / "plan").write_text("die")
    it = fabric()
    with pytest.raises(Exception, match="ended while starting") as caught:
        await it.ready()
    assert "gateway.log" in caught.value.metadata["hint"]


async def test_a_cluster_that_does_not_start_leaves_nothing(fabric):
    async def fail():
        raise StartupTimeoutError("Ray did not answer")

    it = fabric(FakeCluster(start=fail))
    with pytest.raises(StartupTimeoutError):
        await it.ready()
    assert it.cluster.events == ["start", "stop"]
    assert it.record is None


async def test_an_interrupt_while_starting_ends_the_start(fabric):
    begun = asyncio.Event()

    async def hang():
        begun.set()
        await asyncio.Event().wait()

    it = fabric(FakeCluster(start=hang))
    it.task = asyncio.ensure_future(it.supervisor.run())
    await begun.wait()
    assert it.record.gateway == "", "down can find a fabric that is still starting"
    await it.stop()
    assert it.cluster.events == ["start", "stop"]


async def test_a_joined_cluster_keeps_its_default_port_and_has_no_token(fabric):
    it = fabric(FakeCluster(embedded=False))
    await it.ready()
    assert it.record.gateway == "127.0.0.1:7443"
    assert not it.state.token_file.exists()
    await it.stop()


async def test_a_port_of_ones_own_choice_is_kept(fabric):
    it = fabric(None, "gateway.listen=127.0.0.1:5999")
    await it.ready()
    assert it.record.gateway == "127.0.0.1:5999"
    await it.stop()


async def test_announcements_reach_the_one_that_started_it(fabric):
    from fabric.cli.announce import announcements

    reading, writing = os.pipe()
    it = fabric()
    it.supervisor._announcer = Announcer(writing)
    it.task = asyncio.ensure_future(it.supervisor.run())
    async with contextlib.aclosing(announcements(reading)) as source:
        rows = [row async for row in source]
    assert {"progress": "starting the fake"} in rows
    assert rows[-1]["ready"]["gateway"] == "127.0.0.1:45678"
    await it.stop()
