"""Tails, input and attaches of one session, through its channel: real shim, real PTY."""

import asyncio
import hashlib
from contextlib import aclosing

import pyte
import pytest

from fabric.core.attach import AttachEvent, AttachKind, AttachStart, WriteReceipt, WriteRequest
from fabric.core.errors import (
    CursorExpiredError,
    InputBlockedError,
    InvalidRequestError,
    SessionExitedError,
)
from fabric.core.ids import new_request_id
from fabric.core.model import ScreenSnapshot, TailPage
from fabric.core.plain import from_plain, to_plain
from fabric.core.settings import InputSettings, ScrollbackSettings, WorkerSettings
from tests.support.eventually import eventually
from tests.support.local_worker import config_in, worker_in
from workers.actor import SessionWorker
from workers.dial import ChannelClient


async def tail(shell, lines=200, consumer="", request_id=None):
    args = shell.args(consumer=consumer, lines=lines, request_id=request_id)
    return from_plain(TailPage, await shell.client.call("tail", args))


async def write(shell, data=b"", *, keys=(), eof=False, request_id=None):
    request = WriteRequest(request_id or new_request_id(), data, keys, eof)
    raw = await shell.client.call("write", shell.args(request=to_plain(request)))
    return from_plain(WriteReceipt, raw)


async def events(shell, **start):
    args = shell.args(start=to_plain(AttachStart(**start)))
    async with aclosing(shell.client.stream("attach", args)) as items:
        async for raw in items:
            yield from_plain(AttachEvent, raw)


async def screen(shell):
    raw = await shell.client.call("snapshot", shell.args())
    return from_plain(ScreenSnapshot, raw)


async def printed(shell, text):
    """Wait until the session has printed something."""
    condition = {"pattern": text, "since_offset": 0}
    args = shell.args(condition=condition, timeout_s=10.0)
    assert (await shell.client.call("wait_for", args))["matched"] == "pattern"


@pytest.fixture
async def shell(tmp_path):
    async with worker_in(tmp_path) as terminal:
        await terminal.open()
        yield terminal


class Restarting:
    """A worker that dies and is followed by another on the same slot."""

    def __init__(self, folder, settings=None):
        self.config = config_in(folder)
        self.settings = settings or WorkerSettings()

    async def successor(self, shell):
        """Let the worker vanish as if killed, and serve with a new one."""
        self.shell = shell
        await shell.worker.stop()
        await shell.client.closed
        shell.worker = SessionWorker(self.config, self.settings)
        await shell.worker.start()
        shell.client = await ChannelClient.connect(self.config.channel_path, self.config.key)

    async def close(self):
        await self.shell.client.call("shutdown")
        self.shell.client.close()
        await self.shell.client.closed
        await self.shell.worker.stop()


@pytest.fixture
async def restarting(tmp_path):
    made = Restarting(tmp_path)
    yield made
    await made.close()


# -- the command of an open -------------------------------------------------------------


async def test_the_command_of_an_open_runs_and_its_output_is_in_the_answer(tmp_path):
    async with worker_in(tmp_path) as shell:
        opened = await shell.open(command="printf 'a\\nb\\n'")
        assert opened.motd.split("\n")[-3:] == ["a", "b", "$ "]
        assert await tail(shell) == TailPage("", 0, False, 3)
        sent = await shell.send("echo ping-payload")
        assert "ping-payload" in sent.viewport
        page = await tail(shell)
        assert page.text.split("\n") == ["$ echo ping-payload", "ping-payload"]
        assert await tail(shell) == TailPage("", 0, False, page.next_line)


async def test_a_command_that_ends_the_session_is_an_answer(tmp_path):
    async with worker_in(tmp_path) as shell:
        opened = await shell.open(command="echo bye; exit 3")
        assert "bye" in opened.motd
        assert opened.info.status.exit.exit_code == 3


async def test_a_busy_command_leaves_the_session_running(tmp_path):
    async with worker_in(tmp_path) as shell:
        opened = await shell.open(
            command="while :; do echo tick; sleep 0.05; done", startup_timeout_s=1.0
        )
        assert opened.wait_reason == "timeout"
        assert opened.info.status.is_running


# -- tails ------------------------------------------------------------------------------


async def test_a_tail_gives_whole_lines_once_and_skips_a_backlog(shell):
    await shell.send("seq 1000 1009; printf 'half '")
    assert (await tail(shell, 3)).text.split("\n") == ["1007", "1008", "1009"]
    assert (await tail(shell)).lines == 0
    await shell.send("echo whole")
    page = await tail(shell)
    assert page.text.split("\n") == ["half $ echo whole", "whole"]
    assert not page.truncated


async def test_consumers_have_cursors_of_their_own_and_a_repeat_gives_the_same_lines(shell):
    await shell.send("echo one")
    assert (await tail(shell, consumer="a")).lines == 2
    await shell.send("echo two")
    assert (await tail(shell, consumer="b")).lines == 4
    request_id = new_request_id()
    first = await tail(shell, consumer="a", request_id=request_id)
    assert first.text.split("\n") == ["$ echo two", "two"]
    assert await tail(shell, consumer="a", request_id=request_id) == first
    assert (await tail(shell, consumer="a")).lines == 0


async def test_cursors_and_line_numbers_survive_the_worker(restarting, tmp_path):
    async with worker_in(tmp_path, config=restarting.config) as shell:
        await shell.open()
        await shell.send("echo seen")
        before = await tail(shell, consumer="c")
        await shell.send("echo unseen; printf part")
        await restarting.successor(shell)
        request_id = new_request_id()
        page = await tail(shell, consumer="c", request_id=request_id)
        assert page.text.split("\n") == ["$ echo unseen; printf part", "unseen"]
        assert page.next_line == before.next_line + 2
        await restarting.successor(shell)
        assert await tail(shell, consumer="c", request_id=request_id) == page
        assert (await tail(shell, consumer="new")).lines == 4


async def test_a_flood_past_every_bound_and_a_restart_lose_nothing_unsaid(tmp_path):
    settings = WorkerSettings(
        scrollback=ScrollbackSettings(
            lines=50, max_bytes=65_536, read_max_bytes=65_536, send_max_bytes=65_536,
            bytelog_bytes=65_536,
        )
    )  # fmt: skip
    restarting = Restarting(tmp_path, settings)
    async with worker_in(tmp_path, settings, restarting.config) as shell:
        await shell.open()
        await tail(shell)
        await shell.send("seq 100000 140000")
        end = shell.worker.session.transcript.next_line
        assert end == 40_002
        await restarting.successor(shell)
        assert shell.worker.session.transcript.next_line == end
        page = await tail(shell)
        assert page.truncated
        assert page.next_line == end
        assert page.text.split("\n")[-1] == "140000"
        assert page.lines == 50 - 1  # the prompt being written counts as a line
        assert (await tail(shell)) == TailPage("", 0, False, end)
        read = await shell.read(count=3)
        assert (read.dropped_lines, read.truncated) == (end + 1 - 50, False)
        await restarting.close()


# -- input ------------------------------------------------------------------------------


async def test_input_needs_no_slot_and_wakes_a_stuck_send(shell):
    stuck = asyncio.create_task(shell.send("sleep 1000"))
    await shell.send_started("sleep")
    await write(shell, keys=("Ctrl-C",))
    result = await stuck
    assert result.wait_reason == "stdin_read"
    assert result.other_input
    assert not (await shell.send("echo s=$?")).other_input
    assert shell.worker.session.writing.last_at is not None


async def test_keys_follow_the_modes_and_eof_is_the_terminals(shell):
    await shell.send("printf '\\033[?1h'; stty -echo -icanon min 1; cat -v")
    await write(shell, keys=("Up", "F5"))
    await printed(shell, r"\^\[OA\^\[\[15~")
    await write(shell, keys=("Ctrl-C",))
    await printed(shell, r"\^C|\$ $")
    await shell.send("printf '\\033[?1l'; stty sane eof ^B; cat")
    await write(shell, eof=True)
    assert (await shell.send("echo back-$((6*7))")).viewport.count("back-42") == 1
    with pytest.raises(InvalidRequestError, match="Nonsense"):
        await write(shell, keys=("Nonsense",))
    with pytest.raises(InvalidRequestError):
        await write(shell, b"x", eof=True)


async def test_a_repeated_write_writes_once(shell):
    request_id = new_request_id()
    for _ in range(3):
        receipt = await write(shell, b"echo n=$((N+=1))\r", request_id=request_id)
    assert receipt.written_bytes == 17
    await printed(shell, "n=1")
    assert "n=2" not in (await shell.send("")).viewport


async def test_what_has_no_room_waits_in_order_and_a_stall_is_told(tmp_path):
    settings = WorkerSettings(input=InputSettings(write_stall_s=0.3))
    async with worker_in(tmp_path, settings) as shell:
        await shell.open()
        await shell.send("stty raw -echo; sleep 0.6; cat | wc -c", timeout_s=0.2)
        line = b"x" * 99 + b"\n"
        with pytest.raises(InputBlockedError) as caught:
            await write(shell, line * 2000)
        taken = int(caught.value.metadata["written_bytes"])
        assert 0 < taken < 200_000
        await shell.signal("SIGKILL")


async def test_a_large_write_arrives_whole_behind_a_send_and_before_the_next(shell):
    await shell.send("stty raw -echo; head -c 300001 | md5sum; stty sane", timeout_s=0.2)
    pieces = [bytes([65 + n % 26]) * 10_000 for n in range(30)]
    receipts = await asyncio.gather(*(write(shell, piece) for piece in pieces), write(shell, b"!"))
    assert sum(receipt.written_bytes for receipt in receipts) == 300_001
    await printed(shell, hashlib.md5(b"".join(pieces) + b"!").hexdigest())


async def test_nothing_is_written_after_the_end(shell):
    await shell.send("exit")
    with pytest.raises(SessionExitedError):
        await write(shell, b"x")


# -- attaching --------------------------------------------------------------------------


def emulated(rows, cols, *pieces):
    """What a terminal shows after some bytes."""
    shown = pyte.Screen(cols, rows)
    stream = pyte.ByteStream(shown)
    for piece in pieces:
        stream.feed(piece)
    return [line.rstrip() for line in shown.display], (shown.cursor.y, shown.cursor.x)


async def test_an_attach_repaints_and_goes_on_from_there(shell):
    await shell.send("seq 60; printf 'a\\033[31mb\\033[0mc\\n'")
    stream = events(shell)
    first = await anext(stream)
    assert first.kind is AttachKind.SNAPSHOT
    pieces = [first.data]
    await write(shell, b"echo more-$((6*7))\r")
    at = first.next_offset
    while b"more-42" not in b"".join(pieces):
        event = await anext(stream)
        assert (event.kind, event.offset) == (AttachKind.CHUNK, at)
        at = event.next_offset
        pieces.append(event.data)
    await stream.aclose()
    await shell.send("")
    now = await screen(shell)
    pieces.append(await bytes_from(shell, at))
    lines, cursor = emulated(40, 160, *pieces)
    assert tuple(lines) == now.lines
    assert cursor == (now.cursor_row, now.cursor_col)


async def bytes_from(shell, at):
    args = shell.args(offset=at, max_bytes=1 << 20, wait_s=0.0)
    return (await shell.client.call("read_bytes", args))["data"]


async def test_attaching_resizes_and_every_reader_is_told(shell):
    watching = events(shell)
    assert (await anext(watching)).rows == 40
    attached = events(shell, rows=10, cols=33)
    first = await anext(attached)
    assert (first.rows, first.cols) == (10, 33)
    told = await anext(watching)
    assert (told.kind, told.rows, told.cols) == (AttachKind.RESIZED, 10, 33)
    assert "10 33" in (await shell.send("stty size")).viewport
    await watching.aclose()
    await attached.aclose()
    await eventually(lambda: shell.worker.session.attaching.count == 0)


async def test_a_slow_reader_gets_a_gap_and_the_screen_while_others_get_everything(tmp_path):
    settings = WorkerSettings(scrollback=ScrollbackSettings(bytelog_bytes=1_048_576))
    async with worker_in(tmp_path, settings) as shell:
        await shell.open()
        slow, exact = events(shell), events(shell, snapshot=False, offset=0)
        await anext(slow)

        at = 0

        async def everything():
            nonlocal at
            async for event in exact:
                assert event.kind in (AttachKind.CHUNK, AttachKind.END)
                assert event.offset == at
                at = event.next_offset

        reading = asyncio.create_task(everything())
        log = shell.worker.session.log
        for _ in range(20):  # each far below the ring, so a reader that reads loses nothing
            await shell.send("seq 50000")
            await eventually(lambda: at == log.next_offset or reading.done())
        await shell.send("exit")
        end = log.next_offset
        await reading
        assert at == end
        kinds, seen = [], None
        async for event in slow:
            if seen is not None:
                assert event.offset == seen
            if event.kind is AttachKind.GAP:
                assert event.next_offset > event.offset
            seen = event.next_offset
            kinds.append(event.kind)
        assert AttachKind.GAP in kinds
        assert kinds[kinds.index(AttachKind.GAP) + 1] is AttachKind.SNAPSHOT
        assert kinds[-1] is AttachKind.END
        with pytest.raises(CursorExpiredError):
            await anext(events(shell, snapshot=False, offset=0))


async def test_the_size_survives_the_worker(restarting, tmp_path):
    async with worker_in(tmp_path, config=restarting.config) as shell:
        await shell.open()
        await shell.client.call("resize", shell.args(rows=12, cols=50))
        await restarting.successor(shell)
        assert (await shell.info()).cols == 50
        assert (await screen(shell)).rows == 12
