import asyncio

import pytest

from fabric.actors import reporting
from fabric.actors.reporting import Reporter
from fabric.core.errors import InvalidRequestError, RegistryUnavailableError
from fabric.core.model import TaskRecord, TaskState
from fabric.core.plain import to_plain

SESSION = "ses_aaaaaaaaaaaaaaaa"


class Registry:
    def __init__(self):
        self.got = []
        self.faults = []
        self.seen = asyncio.Event()

    def _take(self, *row):
        if self.faults:
            raise self.faults.pop(0)
        self.got.append(row)
        self.seen.set()

    async def settle_task(self, record, text, start=0, consumed=0, cut=0):
        self._take("settled", record, text)

    async def session_exited(self, session_id, status):
        self._take("exited", session_id, status.exit_code, status.signal)

    async def human_handback(self, session_id, detail):
        self._take("handback", session_id, detail)

    async def session_readopted(self, session_id, adoption):
        self._take("readopted", session_id, adoption)

    async def session_lost(self, host, session_id, why):
        self._take("lost", host, session_id)


@pytest.fixture
async def world(monkeypatch):
    monkeypatch.setattr(reporting, "FIRST_RETRY_S", 0.0)
    registry = Registry()
    reporter = Reporter("h1", registry)
    yield reporter, registry
    await reporter.stop()


async def got(registry, count):
    async with asyncio.timeout(2):
        while len(registry.got) < count:
            registry.seen.clear()
            await registry.seen.wait()
    return registry.got


async def test_each_kind_reaches_its_use_case_in_order(world):
    reporter, registry = world
    record = TaskRecord("tsk_a", "own_a", SESSION, "x", TaskState.COMPLETED)
    reporter.report(SESSION, {"kind": "session_readopted", "adoption": 2, "seq": 1, "at": 1.0})
    facts = {"task": to_plain(record), "text": "hi", "start": 0, "consumed": 0, "cut": 0}
    reporter.report(SESSION, {"kind": "task_settled", **facts})
    reporter.report(SESSION, {"kind": "session_exited", "exit_code": 7, "signal": None})
    reporter.report(SESSION, {"kind": "session_lost"})
    assert await got(registry, 4) == [
        ("readopted", SESSION, 2),
        ("settled", record, "hi"),
        ("exited", SESSION, 7, None),
        ("lost", "h1", SESSION),
    ]


async def test_reports_wait_while_the_registry_is_away(world):
    reporter, registry = world
    registry.faults = [RegistryUnavailableError("away")] * 3
    reporter.report(SESSION, {"kind": "session_lost"})
    assert await got(registry, 1) == [("lost", "h1", SESSION)]


async def test_a_report_that_is_refused_or_malformed_does_not_stop_the_others(world):
    reporter, registry = world
    registry.faults = [InvalidRequestError("no")]
    reporter.report(SESSION, {"kind": "session_lost"})
    reporter.report(SESSION, {"kind": "session_readopted"})
    reporter.report(SESSION, {"kind": "something_newer"})
    reporter.report(SESSION, {"kind": "session_readopted", "adoption": 3})
    assert await got(registry, 1) == [("readopted", SESSION, 3)]


async def test_a_handback_is_told_without_the_terminals_text(world):
    reporter, registry = world
    facts = {"generation": 2, "sequence": 9, "wait_reason": "prompt", "running": True, "lease": 1}
    reporter.report(SESSION, {"kind": "human_handback", **facts})
    await registry.seen.wait()
    told = '{"generation": 2, "sequence": 9, "waitReason": "prompt", "status": "running"}'
    assert registry.got == [("handback", SESSION, told)]
