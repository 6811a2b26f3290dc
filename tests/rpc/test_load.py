"""``fabric load`` against a whole fabric in this process, and its clock against a slow one."""

import asyncio
import json
import os
import signal
import sys
import time

import pytest

from fabric.cli.context import INTERRUPTED
from fabric.core.errors import SessionLostError
from fabric.load import scenarios, users
from fabric.load.histogram import edge_of
from fabric.load.plan import Plan
from fabric.load.runner import Runner, shares
from fabric.load.users import Target, Users
from tests.support.eventually import eventually
from tests.support.leaks import descendants
from tests.support.local_fabric import local_fabric

FULL = "danger-full-access"


@pytest.fixture
async def place():
    async with local_fabric() as place:
        yield place


async def test_every_scenario_does_its_turns_and_leaves_nothing(place):
    names = dict.fromkeys(scenarios.MADE, 1)
    plan = Plan(
        owners=2, sessions=3, scenarios=names, duration_s=25.0, warmup_s=0.0, turns=12,
        mode=FULL, processes=2, task_s=0.2, build_lines=500, think_s=0.05,
    )  # fmt: skip
    outcome = await Runner(plan, Target((place.address,))).run()
    total = outcome.tally.total
    assert not outcome.failures
    assert not total.errors
    assert (total.turns.count, outcome.sessions) == (12, 6)
    assert {"send", "open", "close", "task_start", "task_poll", "seen"} <= set(total.calls)
    assert set(total.owners) == {0, 1}
    assert (outcome.sessions_left, outcome.owners_left) == (0, 0)
    assert not await place.node.sessions()
    assert outcome.elapsed_s < 25


async def test_the_command_writes_a_result_a_page_and_a_verdict(place, tmp_path):
    plan = tmp_path / "p.toml"
    plan.write_text(
        '[load]\nowners = 2\nduration_s = 3\nwarmup_s = 0.5\nthink_s = 0.1\nmode = "' + FULL + '"\n'
        "[marks]\nerrors_max = 0\nturns_min = 1\nrate_min = 100000\n"
    )
    out, page = tmp_path / "r.json", tmp_path / "r.html"
    code, text, errors = await command(
        place, "--json", "--plan", plan, "--out", out, "--html", page, "--title", "tried"
    )
    assert code == 10, errors  # no machine does 100,000 turns a second
    found = json.loads(text)
    assert [row["passed"] for row in found["marks"]] == [True, True, False]
    assert found == json.loads(out.read_text())
    assert found["title"] == "tried"
    assert found["figures"]["errors"] == 0
    assert "<svg" in page.read_text()
    code, text, _ = await command(place, "compare", out, out)
    assert code == 0
    assert "rate" in text
    code, text, _ = await command(place, "report", out)
    assert (code, text.count("<svg")) == (0, 5)  # no process of a fabric to watch


async def test_ctrl_c_ends_gracefully_with_a_result_and_no_owner(place, tmp_path):
    out = tmp_path / "r.json"
    process = await start(
        place, "--owners", "2", "--duration", "60", "--mode", FULL, "--think", "0.05",
        "--out", out,
    )  # fmt: skip
    await eventually(lambda: any(item.busy for item in _sessions(place)), within=20)
    process.send_signal(signal.SIGINT)
    _, errors = await process.communicate()
    assert process.returncode == INTERRUPTED, errors
    assert b"stopping" in errors
    found = json.loads(out.read_text())
    assert found["interrupted"]
    assert found["figures"]["left_behind"] == 0
    assert found["elapsed_s"] < 59
    assert not await place.node.sessions()


async def test_a_client_without_its_parent_leaves_no_owner(place):
    process = await start(place, "--owners", "1", "--duration", "60", "--mode", FULL)
    await eventually(lambda: _sessions(place), within=20)
    process.kill()
    await process.communicate()
    await eventually(lambda: not _sessions(place), within=20)
    await eventually(lambda: not _clients(), within=20)


async def test_a_client_that_dies_is_told_and_the_others_go_on(place):
    plan = Plan(owners=2, processes=2, duration_s=4.0, warmup_s=0.0, think_s=0.05, mode=FULL)
    runner = Runner(plan, Target((place.address,)))
    running = asyncio.create_task(runner.run())
    await eventually(lambda: runner._outcome.tally.total.turns.count > 0, within=20)
    runner._clients[0].kill()
    outcome = await running
    assert len(outcome.failures) == 1
    assert "ended early" in outcome.failures[0]
    assert outcome.owners_left == 1
    assert outcome.tally.total.turns.count > 10


async def test_a_fabric_that_is_away_is_an_error_of_the_run_and_ends_it(tmp_path):
    code, _, errors = await command(
        None, "--gateway", "127.0.0.1:1", "--duration", "3", "--out", tmp_path / "r.json"
    )
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["setup_errors"] == {"acquire: GATEWAY_UNAVAILABLE": 4}, errors
    assert found["figures"]["errors"] == 4
    assert code == 10


# -- the clock ------------------------------------------------------------------------------


class Stalling(scenarios.Scenario):
    """A service that answers at once, but stands still for a while."""

    stall = (0.5, 1.5)
    began = 0.0

    async def begin(self):
        self._session = object()

    async def turn(self):
        now = time.monotonic() - Stalling.began
        if self.stall[0] <= now < self.stall[1]:
            await asyncio.sleep(0)
            loop = asyncio.get_running_loop()
            future = loop.create_future()
            loop.call_later(self.stall[1] - now, future.set_result, None)
            await future


async def drive(gateway, monkeypatch, **changes):
    monkeypatch.setitem(users.MADE, "echo", Stalling)
    plan = Plan(duration_s=2.0, warmup_s=0.0, **changes)
    driven = Users(plan, shares(plan)[0], Target((gateway.address,)), "r")
    await driven.prepare(lambda text: None)
    began = Stalling.began = time.monotonic()
    await driven.run(began)
    window = driven.cut()
    assert await driven.end() == (0, 0)
    return window


async def test_a_stall_is_seen_by_every_turn_that_fell_into_it(gateway, monkeypatch):
    window = await drive(gateway, monkeypatch, owners=1, rate=50.0, spacing="even")
    # 50 turns were due in the second of the stall; they waited 0.5 s on the average.
    slow = sum(count for number, count in _latencies(window.turns) if number > 0.1)
    assert 40 <= slow <= 60
    assert window.turns.percentile(0.75) > 0.3
    # What a client that waits for answers would have reported: one slow call.
    assert window.service.percentile(0.95) < 0.1


async def test_a_closed_loop_asks_less_of_a_slow_service_and_a_pace_does_not(gateway, monkeypatch):
    closed = await drive(gateway, monkeypatch, owners=1, think_s=0.02)
    paced = await drive(gateway, monkeypatch, owners=1, pace_s=0.02)
    assert sum(count for at, count in _latencies(closed.turns) if at > 0.1) == 1
    assert 35 <= sum(count for at, count in _latencies(paced.turns) if at > 0.1) <= 60


async def test_more_than_the_backlog_is_an_error_and_not_memory(gateway, monkeypatch):
    window = await drive(gateway, monkeypatch, owners=1, rate=200.0, backlog=20)
    assert window.errors["turn: BACKLOG_FULL"] > 100
    assert window.turns.count > 100


async def test_a_turn_that_never_ends_is_counted_when_the_run_does(gateway, monkeypatch):
    monkeypatch.setattr(Stalling, "stall", (0.2, 60.0))
    window = await drive(gateway, monkeypatch, owners=1, rate=20.0, spacing="even", grace_s=0.2)
    assert window.errors["turn: UNFINISHED"] == 1
    assert window.errors["turn: NEVER_BEGUN"] > 20


async def test_a_lost_session_is_an_error_and_another_one_is_opened(gateway, monkeypatch):
    opened = []

    class Losing(Stalling):
        async def begin(self):
            await super().begin()
            opened.append(self.number)

        async def turn(self):
            if self._next() % 5 == 0:
                raise SessionLostError("gone")

    monkeypatch.setattr(sys.modules[__name__], "Stalling", Losing)
    window = await drive(gateway, monkeypatch, owners=1, rate=50.0)
    assert window.errors == {"turn: SESSION_LOST": len(opened) - 1}
    assert len(opened) > 5


def _latencies(histogram):
    return [(edge_of(number) / 1e6, count) for number, count in histogram.to_plain()["buckets"]]


def _sessions(place):
    return [
        worker.session.info()
        for worker in place.slots.workers.values()
        if worker.session is not None and not worker.session.is_over
    ]


def _clients():
    return [item for item in descendants() if "fabric.load.client" in item.name]


async def start(place, *arguments):
    environ = {key: value for key, value in os.environ.items() if not key.startswith("FABRIC_")}
    if place is not None:
        environ["FABRIC_GATEWAY"] = place.address
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fabric.cli", "load", *map(str, arguments), env=environ,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def command(place, *arguments):
    process = await start(place, *arguments)
    out, errors = await process.communicate()
    return process.returncode, out.decode(), errors.decode()
