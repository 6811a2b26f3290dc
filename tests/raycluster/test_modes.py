"""An owner's sandbox mode, raced by opens from two gateways on a real cluster.

Whoever wins, no session may ever run in another mode than its owner's: a change that was
granted lies between sessions, never inside one.
"""

import asyncio
import json
import sys
import time

from fabric.core.errors import SandboxModeLockedError
from fabric.core.ids import new_request_id
from fabric.core.model import SandboxMode
from tests.raycluster.conftest import H1
from tests.support import second_gateway
from tests.support.eventually import pause
from tests.support.paths import ROOT

ROUNDS = 5
MODES = (SandboxMode.READ_ONLY, SandboxMode.DANGER_FULL_ACCESS)


async def test_a_change_of_mode_never_falls_into_the_life_of_a_session(fabric, owner):
    facts = {
        "address": fabric.embedded.address, "token_file": fabric.embedded.token_file, "host": H1,
        "owner_id": owner.caller.owner_id, "epoch": owner.caller.epoch, "rounds": ROUNDS,
    }  # fmt: skip
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.second_gateway", json.dumps(facts),
        cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        while (await other.stdout.readline()) not in (b"joined\n", b""):
            pass
        rows: list[dict] = []
        changes: list[dict] = []
        over = asyncio.Event()
        switching = asyncio.create_task(switch(owner, changes, over))
        other.stdin.write(b"go\n")
        await second_gateway.race(owner.registry, owner.caller, H1, ROUNDS, rows.append)
        out, _ = await other.communicate()
        over.set()
        await switching
    finally:
        if other.returncode is None:
            other.kill()
        await other.wait()
    rows += [json.loads(line) for line in out.decode().splitlines() if line.startswith("{")]
    lives = [row for row in rows if "opened" in row]
    granted = [row for row in changes if row["granted"]]
    assert len(rows) == 2 * ROUNDS
    assert len(lives) >= ROUNDS
    assert granted, "no change was ever granted, so nothing was raced"
    assert any(not row["granted"] for row in changes)
    for life in lives:
        for change in granted:
            inside = change["asked"] > life["opened"] and change["answered"] < life["asked_close"]
            assert not (inside and change["mode"] != life["mode"]), (life, change)
        assert life["mode"] in possible(granted, life["asked"], life["opened"])


async def switch(owner, changes, over):
    """Ask for each mode in turn for as long as the race lasts."""
    turn = 0
    while not over.is_set():
        row = {"asked": time.monotonic(), "mode": MODES[turn % 2].value}
        try:
            await owner.registry.set_mode(owner.caller, MODES[turn % 2], new_request_id())
            row["granted"] = True
            turn += 1
        except SandboxModeLockedError:
            row["granted"] = False
        changes.append(row | {"answered": time.monotonic()})
        await pause(0.005, "the machine is for those who open")


def possible(granted, start, end):
    """The modes that may have been the owner's at some moment between two times."""
    before = [row for row in granted if row["answered"] <= start]
    first = before[-1]["mode"] if before else SandboxMode.DANGER_FULL_ACCESS.value
    during = [row["mode"] for row in granted if row["answered"] > start and row["asked"] < end]
    return {first, *during}
