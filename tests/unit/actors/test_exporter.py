import asyncio
from types import SimpleNamespace

import pytest

from fabric.actors import exporter as module
from fabric.actors.exporter import RayExporter, WorkerExport, export_for_ever
from fabric.core import metrics as m
from fabric.core.census import Census
from fabric.core.errors import RegistryUnavailableError
from fabric.core.figures import census_rows, node_rows
from fabric.core.ids import HostName
from fabric.core.model import Evidence, NodeState, SendResult, SessionStatus, WaitReason
from tests.support.eventually import eventually
from workers.counts import Counts


class Api:
    """What is used of `ray.util.metrics`, writing down what it gets."""

    def __init__(self):
        self.made, self.got = {}, []
        self.Gauge = lambda *given: self._made("gauge", *given)
        self.Counter = lambda *given: self._made("counter", *given)

    def _made(self, kind, name, text, labels):
        assert name not in self.made, "Ray warns of a metric that is made twice"
        self.made[name] = (kind, labels)

        def take(value, tags):
            assert tuple(tags) == labels
            self.got.append((name, value, tuple(tags.values())))

        return SimpleNamespace(**{"set" if kind == "gauge" else "inc": take})


def test_gauges_are_set_and_counters_told_what_is_new():
    api = Api()
    exporter = RayExporter(api)
    counter = (m.WORKER_OUTPUT_BYTES, "h")
    for value in (5.0, 5.0, 12.0):
        exporter.push({m.WORKER_OUTPUT_BYTES: {("h",): value}, m.NODE_WARM: {("h",): value}})
    assert api.made == {
        m.WORKER_OUTPUT_BYTES.name: ("counter", ("host",)), m.NODE_WARM.name: ("gauge", ("host",)),
    }  # fmt: skip
    told = [value for name, value, _ in api.got if name == counter[0].name]
    assert told == [5.0, 7.0]
    assert [value for name, value, _ in api.got if name == m.NODE_WARM.name] == [5.0, 5.0, 12.0]


def test_nodes_and_counts_as_rows():
    rows = node_rows(
        [NodeState(HostName("a"), True, sessions=3, warm=1), NodeState(HostName("b"), False)]
    )
    assert rows[m.NODE_UP] == {("a",): 1, ("b",): 0}
    assert rows[m.NODE_SESSIONS] == {("a",): 3}
    rows = census_rows(Census(2, (("published", 3),), (("running", 0),)))
    assert rows[m.REGISTRY_OWNERS] == {(): 2}
    assert rows[m.REGISTRY_TASKS] == {("running",): 0}


def result():
    return SendResult("", WaitReason.STDIN_READ, SessionStatus(), evidence=Evidence.MARKER)


def test_counts_tell_of_a_change_once_until_they_are_taken():
    counts, told = Counts(), []
    counts.sent(result())
    counts.changed = lambda: told.append(1)
    for _ in range(3):
        counts.sent(result())
    assert told == [1]
    assert counts.take() == {(WaitReason.STDIN_READ, Evidence.MARKER): 4}
    counts.sent(result())
    assert told == [1, 1]


async def test_a_worker_hands_over_only_after_a_change():
    api = Api()
    export = WorkerExport(RayExporter(api), "h", every_s=0.0)
    counts = Counts()
    session = SimpleNamespace(counts=counts, log=SimpleNamespace(next_offset=40))
    counts.changed = lambda: export.changed(session)
    counts.sent(result())
    counts.sent(result())
    await eventually(lambda: api.got)
    assert sorted(api.got) == [
        (m.WORKER_OUTPUT_BYTES.name, 40.0, ("h",)),
        (m.WORKER_SENDS.name, 2.0, ("h", "stdin_read", "marker")),
    ]


async def test_a_question_that_fails_is_asked_again(monkeypatch):
    monkeypatch.setattr(module, "EXPORT_S", 0.0)
    api, asked = Api(), []

    async def ask():
        asked.append(1)
        if len(asked) == 1:
            raise RegistryUnavailableError("not yet")
        return {m.REGISTRY_OWNERS: {(): 7.0}}

    task = asyncio.create_task(export_for_ever(RayExporter(api), ask))
    await eventually(lambda: api.got)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert api.got[0] == (m.REGISTRY_OWNERS.name, 7.0, ())
