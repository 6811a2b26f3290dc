"""``fabric top`` in a terminal of its own, and for scripts."""

import asyncio
import json
import os
import signal
import sys
import termios
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.bare import base_env, spawn_on_pty
from tests.support.eventually import eventually
from tests.support.local_fabric import local_fabric
from tests.support.person import Person

ROWS, COLS = 30, 100


@pytest.fixture
async def place():
    async with local_fabric(metrics__refresh_s="0.05") as fabric, fabric.client() as client:
        shell = await client.open("shell")
        yield fabric, shell


def argv_of(fabric, *options):
    address = fabric.gateway.metrics_address
    return (sys.executable, "-m", "fabric.cli", "top", "--metrics", address, *options)


@asynccontextmanager
async def watching(fabric):
    env = base_env() | {"TERM": "xterm-256color"}
    process, master = spawn_on_pty(
        argv_of(fabric, "--interval", "0.2"), env, rows=ROWS, cols=COLS, cwd=str(Path.cwd())
    )
    person = Person(process, master, ROWS, COLS)
    try:
        yield person
    finally:
        person.close()


async def test_it_draws_the_fabric_as_it_is_now_and_q_gives_the_terminal_back(place):
    fabric, shell = place
    async with watching(fabric) as person:
        await person.sees("sessions 1 (published 1)")
        await eventually(lambda: person.is_raw)
        for _ in range(3):
            await shell.send("echo hi")
        await person.sees("TerminalService.Send")
        await person.sees("local")
        termios.tcsetwinsize(person.master, (4, 40))
        person.screen.resize(4, 40)
        mark = len(person.raw)
        await eventually(lambda: b"\x1b[H" in person.raw[mark:], 5)
        person.type(b"q")
        assert await person.ended() == 0
        assert termios.tcgetattr(person.master) == person.before
        for undone in (b"\x1b[?1049l", b"\x1b[?25h"):
            assert person.raw.rfind(undone) > person.raw.rfind(b"\x1b[?1049h")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
async def test_signals_give_the_terminal_back(place, number):
    async with watching(place[0]) as person:
        await person.sees("NODE")
        person.process.send_signal(number)
        assert await person.ended() == 128 + number
        assert termios.tcgetattr(person.master) == person.before
        assert person.raw.rfind(b"\x1b[?1049l") > person.raw.rfind(b"\x1b[?1049h")


async def test_ctrl_c_and_a_stop_give_it_back(place):
    async with watching(place[0]) as person:
        await person.sees("NODE")
        person.process.send_signal(signal.SIGTSTP)
        await eventually(lambda: not person.is_raw)
        assert termios.tcgetattr(person.master) == person.before
        person.process.send_signal(signal.SIGCONT)
        await eventually(lambda: person.is_raw)
        person.type(b"\x03")
        assert await person.ended() == 0
        assert termios.tcgetattr(person.master) == person.before


async def test_a_gateway_that_goes_away_is_shown_and_top_goes_on(place):
    fabric, _ = place
    async with watching(fabric) as person:
        await person.sees("NODE")
        await fabric.gateway._exposition.stop()
        await person.sees("does not answer")
        person.type(b"q")
        assert await person.ended() == 0


async def test_once_for_scripts(place):
    fabric, shell = place
    running = asyncio.create_task(run(fabric, "--once", "--json", "--interval", "1"))
    while not running.done():
        await shell.send("echo hi")
    code, out, errors = running.result()
    assert code == 0, errors
    found = json.loads(out)
    assert found["owners"] == 1
    assert found["nodes"][0]["host"] == "local"
    assert found["nodes"][0]["sessions"] == 1
    assert found["rates"]["sends"] > 1
    assert found["send"]["p50_ms"] > 0
    code, out, _ = await run(fabric, "--once", "--interval", "0.1")
    assert code == 0
    assert "NODE" in out
    assert "\x1b" not in out


async def test_no_metrics_is_an_error_with_a_hint(place):
    code, out, errors = await run(place[0], "--metrics", "127.0.0.1:1", "--once", only=True)
    assert (code, out) == (7, "")
    assert "no metrics at 127.0.0.1:1" in errors


async def run(fabric, *options, only=False):
    argv = argv_of(fabric, *options)
    if only:
        argv = (*argv[:4], *options)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("FABRIC_")}
    process = await asyncio.create_subprocess_exec(
        *argv, env=environ, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, errors = await process.communicate()
    return process.returncode, out.decode(), errors.decode()
