"""Programs that paint the whole screen: bare, in a snapshot, and for somebody attached.

The same keys go to the same program on a terminal of our own, shown by plain pyte, and to
one in a session. The snapshot and the screen of somebody who attached in the middle must
show what the bare terminal shows.
"""

import asyncio
import os
import re
import shutil
from contextlib import aclosing, asynccontextmanager

import pyte
import pytest

from fabric.core.attach import AttachEvent, AttachKind, AttachStart, WriteRequest
from fabric.core.ids import new_request_id
from fabric.core.model import ScreenSnapshot
from fabric.core.plain import from_plain, to_plain
from tests.support.bare import base_env, spawn_on_pty
from tests.support.eventually import eventually
from tests.support.local_worker import worker_in

ROWS, COLS = 24, 80
ENV = {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
TEXT = "\n".join(f"line {n} of the text, wörd 日本 {'x' * (n % 60)}" for n in range(1, 400))
_PRIVATE = re.compile(rb"\x1b\[[>=][0-9;]*[a-zA-Z]|\x1bP.*?\x1b\\", re.DOTALL)  # unknown to pyte


class Shown:
    """A pyte screen fed with bytes."""

    def __init__(self, rows=ROWS, cols=COLS):
        self.screen = pyte.Screen(cols, rows)
        self._stream = pyte.ByteStream(self.screen)

    def feed(self, data):
        self._stream.feed(_PRIVATE.sub(b"", data))

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    @property
    def cursor(self):
        return self.screen.cursor.y, min(self.screen.cursor.x, self.screen.columns - 1)


class Bare:
    """The program on a terminal of our own."""

    def __init__(self, argv, folder):
        self.shown = Shown()
        env = base_env() | ENV | {"TERM": "xterm-256color", "HOME": str(folder)}
        self.process, self.master = spawn_on_pty(argv, env, rows=ROWS, cols=COLS, cwd=str(folder))
        os.set_blocking(self.master, False)
        asyncio.get_running_loop().add_reader(self.master, self._read)

    def _read(self):
        try:
            data = os.read(self.master, 65_536)
        except OSError:
            data = b""
        if data:
            self.shown.feed(data)
        else:
            asyncio.get_running_loop().remove_reader(self.master)

    async def type(self, data):
        os.write(self.master, data)

    def close(self):
        asyncio.get_running_loop().remove_reader(self.master)
        self.process.kill()
        self.process.wait()
        os.close(self.master)


class Here:
    """The program in a session, and somebody attached to it."""

    def __init__(self, shell):
        self.shell = shell
        self.shown = Shown()
        self.kinds = []

    async def type(self, data):
        request = WriteRequest(new_request_id(), data)
        await self.shell.client.call("write", self.shell.args(request=to_plain(request)))

    async def snapshot(self):
        raw = await self.shell.client.call("snapshot", self.shell.args())
        return from_plain(ScreenSnapshot, raw)

    async def watch(self):
        args = self.shell.args(start=to_plain(AttachStart()))
        async with aclosing(self.shell.client.stream("attach", args)) as items:
            async for raw in items:
                event = from_plain(AttachEvent, raw)
                self.kinds.append(event.kind)
                self.shown.feed(event.data)


@asynccontextmanager
async def both(argv, folder):
    bare = Bare(argv, folder)
    try:
        async with worker_in(folder / "n") as shell:
            env = (*ENV.items(), ("HOME", str(folder)))
            await shell.open(
                "program", argv=argv, env=env, term="xterm-256color", rows=ROWS, cols=COLS,
                cwd=str(folder),
            )  # fmt: skip
            yield bare, Here(shell)
    finally:
        bare.close()


@pytest.fixture
def text(tmp_path):
    (tmp_path / "n").mkdir()
    (tmp_path / "text").write_text(TEXT)
    return tmp_path


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"needs {program}")


async def same(bare, here):
    """Wait until bare and session show the same, and so does whoever attached."""

    async def agree():
        now = await here.snapshot()
        wanted = bare.shown.lines
        return list(now.lines) == wanted and (now.cursor_row, now.cursor_col) == bare.shown.cursor

    try:
        await eventually(agree, 10)
    except AssertionError:
        now = await here.snapshot()
        assert list(now.lines) == bare.shown.lines
        assert (now.cursor_row, now.cursor_col) == bare.shown.cursor
    if here.kinds:
        try:
            await eventually(lambda: here.shown.lines == bare.shown.lines, 10)
        except AssertionError:
            assert here.shown.lines == bare.shown.lines
        assert here.shown.cursor == bare.shown.cursor


async def play(bare, here, steps):
    """Take the steps at both, attaching after the first half; compare after every one."""
    watching = None
    try:
        for number, (keys, sign) in enumerate(steps):
            if number == len(steps) // 2:
                watching = asyncio.create_task(here.watch())
                await eventually(lambda: here.kinds)
                assert here.kinds[0] is AttachKind.SNAPSHOT
            for place in (bare, here):
                if keys:
                    await place.type(keys)
            await eventually(lambda sign=sign: sign in "\n".join(bare.shown.lines), 10, sign)
            await same(bare, here)
    finally:
        if watching is not None:
            watching.cancel()
            await asyncio.wait({watching})


@needs("vim")
async def test_vim(text):
    argv = ("vim", "-u", "NONE", "-N", "-i", "NONE", "-n", "text")
    async with both(argv, text) as (bare, here):
        await play(
            bare, here,
            [
                (b"", "line 1 of"),
                (b":set number laststatus=2 ruler\r", "  1 line 1 of"),
                (b"50G", " 50 line 50 of"),
                (b"Onew text: ", "new text"),
                ("é日本\x1b".encode(), "é日本"),
                (b":split\rgg", "  1 line 1 of"),
                (b"\x06", " 20 line"),
                (b"/399 of\r", "399 line 398"),
            ],
        )  # fmt: skip


@needs("less")
async def test_less(text):
    async with both(("less", "text"), text) as (bare, here):
        await play(
            bare, here,
            [
                (b"", "line 1 of"),
                (b" ", "line 24 of"),
                (b"G", "(END)"),
                (b"g", "line 1 of"),
                (b"/line 77 \r", "line 77 of"),
                (b"y", "line 76 of"),
            ],
        )  # fmt: skip


@needs("tmux")
async def test_tmux_inside(text):
    (text / "conf").write_text(
        "set -g status-right ''\nset -g status-left '[in]'\nset -g default-command 'exec sh'\n"
        "set -g automatic-rename off\nset -g default-terminal screen\nset -g escape-time 0\n"
        "set-environment -g PS1 'in> '\nset-environment -g ENV ''\n"
    )
    servers = []

    def argv(name):
        servers.append(name)
        return ("tmux", "-S", str(text / name), "-f", str(text / "conf"), "new-session", "-n", "w")

    bare = Bare(argv("bare"), text)
    try:
        async with worker_in(text / "n") as shell:
            await shell.open(
                "program", argv=argv("here"), env=(*ENV.items(), ("HOME", str(text))),
                term="xterm-256color", rows=ROWS, cols=COLS, cwd=str(text),
            )  # fmt: skip
            await play(
                bare, Here(shell),
                [
                    (b"", "[in]"),
                    (b"head -5 text\r", "line 5 of"),
                    (b"\x02%", "│"),
                    (b"echo right\r", "\n"),
                    (b"\x02\"", "─"),
                    (b"echo below\r", "below"),
                ],
            )  # fmt: skip
    finally:
        for name in servers:
            process = await asyncio.create_subprocess_exec(
                "tmux", "-S", str(text / name), "kill-server",
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            await process.wait()
        bare.close()


@pytest.mark.parametrize(
    ("argv", "signs"),
    [
        pytest.param(("top", "-d", "60"), ("PID", "%CPU", "COMMAND"), marks=needs("top")),
        pytest.param(("htop", "-d", "600"), ("PID", "CPU%", "F10Quit"), marks=needs("htop")),
    ],
)
async def test_process_lists(text, argv, signs):
    """What they list differs from one moment to the next; where it stands does not."""

    def places(lines):
        found = {}
        for y, line in enumerate(lines):
            for sign in signs:
                if sign in line and sign not in found:
                    found[sign] = (y, line.index(sign))
        return found

    async with both(argv, text) as (bare, here):
        await eventually(lambda: len(places(bare.shown.lines)) == len(signs), 10)
        watching = asyncio.create_task(here.watch())

        async def agree():
            wanted = places(bare.shown.lines)
            now = places((await here.snapshot()).lines)
            return now.keys() == wanted.keys() and places(here.shown.lines) == now

        try:
            await eventually(agree, 10)
            assert [col for _, col in places((await here.snapshot()).lines).values()] == [
                col for _, col in places(bare.shown.lines).values()
            ]
            await here.type(b"q")
            await eventually(lambda: not here.shell.worker.session.status.is_running, 10)
        finally:
            watching.cancel()
            await asyncio.wait({watching})
