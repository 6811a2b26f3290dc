"""``fabric attach`` in a terminal of its own: what a person sees, and what is left behind."""

import asyncio
import signal
import sys
import termios
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fabric.cli.attach import detach_key_of
from fabric.core.errors import InvalidRequestError
from tests.support.bare import base_env, spawn_on_pty
from tests.support.eventually import eventually
from tests.support.local_fabric import local_fabric
from tests.support.person import Person

AGENT = "person"
ROWS, COLS = 20, 70


@pytest.fixture
async def place(tmp_path):
    """A fabric with a session of the person's, and a way to attach."""
    async with local_fabric() as fabric:
        async with fabric.client(AGENT, keep=True) as client:
            session = await client.open(term="xterm-256color")

            @asynccontextmanager
            async def attached(*options, session_id=session.id):
                argv = (sys.executable, "-m", "fabric.cli", "attach", session_id, *options)
                env = base_env() | {
                    "FABRIC_GATEWAY": fabric.address,
                    "FABRIC_STATE_DIR": str(tmp_path),
                    "FABRIC_AGENT": AGENT,
                    "TERM": "xterm-256color",
                }
                process, master = spawn_on_pty(argv, env, rows=ROWS, cols=COLS, cwd=str(Path.cwd()))
                person = Person(process, master, ROWS, COLS)
                try:
                    yield person
                finally:
                    person.close()

            yield attached, session, fabric
            client.keep = True
        async with fabric.client(AGENT):
            pass  # takes the person over and releases them


async def test_a_person_types_sees_and_detaches(place):
    attached, _, _ = place
    async with attached() as person:
        await person.prints(b"Ctrl-] detaches")
        await eventually(lambda: person.is_raw)
        person.type(b"stty size; echo seen-$((6*7))\r")
        await person.sees("seen-42")
        await person.sees(f"{ROWS} {COLS}")
        person.type(b"sleep 1000\r")
        await person.sees("sleep 1000")
        person.type(b"\x03")
        person.type(b"echo s=$?\r")
        await person.sees("s=130")
        person.type(b"echo la")
        person.type(b"st\r\x1d")
        assert await person.ended() == 0
        assert termios.tcgetattr(person.master) == person.before
        await person.prints(b"detached; fabric attach ses_")
    async with attached() as person:
        await person.sees("last")  # typed right before the detach key
        person.type(b"exit 5\r")
        assert await person.ended() == 5
        assert termios.tcgetattr(person.master) == person.before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
async def test_signals_give_the_terminal_back(place, number):
    attached, _, _ = place
    async with attached() as person:
        await eventually(lambda: person.is_raw, 15)
        person.type(b"printf '\\033[?1049h\\033[?1000h\\033[?25l'; cat\r")
        await person.prints(b"\x1b[?1000h")
        person.process.send_signal(number)
        assert await person.ended() == 128 + number
        assert termios.tcgetattr(person.master) == person.before
        for undone in (b"\x1b[?1049l", b"\x1b[?1000l", b"\x1b[?25h"):
            assert person.raw.rfind(undone) > person.raw.rfind(b"\x1b[?1000h")


async def test_an_error_under_way_gives_the_terminal_back(place):
    attached, _, fabric = place
    async with attached() as person:
        await eventually(lambda: person.is_raw, 15)
        async with fabric.client(AGENT, keep=True) as other:  # takes the person over
            for info in await other.list():
                await other.session(info.session_id).close()
        assert await person.ended() in (0, 129, 3, 4)
        assert termios.tcgetattr(person.master) == person.before


async def test_a_stopped_command_gives_the_terminal_back_meanwhile(place):
    attached, _, _ = place
    async with attached() as person:
        await eventually(lambda: person.is_raw, 15)
        person.process.send_signal(signal.SIGTSTP)
        await eventually(lambda: not person.is_raw)
        assert termios.tcgetattr(person.master) == person.before
        person.process.send_signal(signal.SIGCONT)
        await eventually(lambda: person.is_raw)
        person.type(b"echo again-$((6*7))\r")
        await person.sees("again-42")
        person.type(b"\x1d")
        assert await person.ended() == 0


async def test_the_window_is_followed_and_a_watcher_changes_nothing(place):
    attached, _, _ = place
    async with attached() as person, attached("--read-only", "--detach-key", "^A") as watcher:
        await eventually(lambda: person.is_raw and watcher.is_raw, 15)
        person.type(
            b"stty size; until [ \"$(stty size)\" = '9 33' ]; do sleep 0.02; done; echo ok$?\r"
        )
        await person.sees(f"{ROWS} {COLS}")
        termios.tcsetwinsize(person.master, (9, 33))
        await person.prints(b"ok0")
        watcher.type(b"echo never\r")
        person.type(b"echo both\r")
        await watcher.prints(b"both")
        watcher.type(b"\x01")
        assert await watcher.ended() == 0
        assert b"never" not in person.raw


async def test_without_a_terminal_nothing_is_touched(place):
    _, session, fabric = place
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "fabric.cli", "attach", session.id,
        env=base_env() | {"FABRIC_GATEWAY": fabric.address},
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, errors = await process.communicate()
    assert process.returncode == 2
    assert b"needs a terminal" in errors


def test_detach_keys_are_control_characters():
    assert detach_key_of("Ctrl-]") == b"\x1d"
    assert detach_key_of("ctrl-a") == b"\x01"
    assert detach_key_of("^B") == b"\x02"
    for wrong in ("", "a", "Ctrl-", "Ctrl-1", "F1"):
        with pytest.raises(InvalidRequestError):
            detach_key_of(wrong)
