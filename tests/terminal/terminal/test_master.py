"""The master on real terminals: nothing is lost, nothing hangs, limits are told."""

import asyncio
import fcntl
import hashlib
import os
import struct
import termios
import tty

import pytest

from fabric.core.errors import InputBlockedError, InputLineTooLongError, SessionExitedError
from tests.support.bare import base_env, open_bash, open_program, spawn_on_pty
from tests.support.eventually import eventually, pause
from workers.terminal.master import READ_BUDGET_BYTES, Master


class Pair:
    """A master under test whose slave the test itself holds."""

    def __init__(self, **options):
        master_fd, self.slave = os.openpty()
        tty.setraw(self.slave)
        self.master = Master(master_fd, **options)
        self.got = bytearray()
        self.pieces = []

    def take(self, data):
        self.got += data
        self.pieces.append(len(data))

    async def __aenter__(self):
        self.master.start(self.take)
        return self

    async def __aexit__(self, *_):
        self.master.close()
        if self.slave >= 0:
            os.close(self.slave)


def cooked(fd):
    attributes = termios.tcgetattr(fd)
    attributes[0] |= termios.ICRNL
    attributes[3] |= termios.ICANON | termios.ISIG
    attributes[6][termios.VEOF] = b"\x04"
    attributes[6][termios.VKILL] = b"\x15"
    attributes[6][termios.VINTR] = b"\x03"
    termios.tcsetattr(fd, termios.TCSANOW, attributes)


async def read_slave(fd, count):
    """Read until ``count`` bytes came, off the loop."""
    got = b""
    while len(got) < count:
        got += await asyncio.to_thread(os.read, fd, 65536)
    return got


async def test_output_arrives_in_order_and_whole():
    async with Pair() as pair:
        text = b"".join(b"%07d\n" % number for number in range(4000))
        await asyncio.to_thread(_write_all, pair.slave, text)
        await eventually(lambda: len(pair.got) == len(text))
        assert pair.got == text


async def test_what_was_written_before_a_drain_is_delivered_by_it():
    async with Pair() as pair:
        for number in range(300):
            os.write(pair.slave, b"%d" % number)
            pair.master.drain()
            assert pair.got.endswith(b"%d" % number)


async def test_one_turn_of_the_loop_takes_a_bounded_piece():
    async with await open_program("sh", "-c", "exec head -c 3000000 /dev/zero") as terminal:
        pieces = []
        terminal.master.start(lambda data: pieces.append(len(data)))
        await eventually(lambda: sum(pieces) >= 3_000_000)
        assert max(pieces) <= READ_BUDGET_BYTES
        assert sum(pieces) == 3_000_000


async def test_the_open_line_is_what_came_since_the_last_line_end():
    async with Pair() as pair:
        os.write(pair.slave, b"one\ntwo> ")
        pair.master.drain()
        assert pair.master.line == b"two> "
        os.write(pair.slave, b"x" * 400)
        pair.master.drain()
        assert pair.master.line == b"x" * 256


async def test_input_goes_byte_by_byte_as_given():
    async with Pair() as pair:
        data = bytes(range(256)) * 3
        await pair.master.write(data)
        assert await read_slave(pair.slave, len(data)) == data


async def test_a_long_write_to_a_raw_reader_waits_for_room_and_arrives_whole():
    async with Pair() as pair:
        data = os.urandom(400_000)
        reader = asyncio.ensure_future(read_slave(pair.slave, len(data)))
        await pair.master.write(data)
        assert await reader == data


async def test_writers_do_not_interleave():
    async with Pair() as pair:
        first, second = b"a" * 60_000, b"b" * 60_000
        reader = asyncio.ensure_future(read_slave(pair.slave, 120_000))
        await asyncio.gather(pair.master.write(first), pair.master.write(second))
        assert await reader == first + second


async def test_a_reader_that_never_reads_is_told_and_the_rest_withdrawn():
    async with Pair(stall_s=0.3) as pair:
        with pytest.raises(InputBlockedError) as caught:
            await pair.master.write(b"x" * 500_000)
        taken = int(caught.value.metadata["written_bytes"])
        assert 0 < taken < 500_000
        assert caught.value.metadata["total_bytes"] == "500000"
        assert struct.unpack("i", fcntl.ioctl(pair.slave, termios.FIONREAD, bytes(4)))[0] == 0
        await pair.master.write(b"later")
        assert await read_slave(pair.slave, 5) == b"later"


async def test_a_slow_reader_is_not_a_stalled_one():
    async with Pair(stall_s=0.5) as pair:
        data = b"y" * 60_000
        got = bytearray()

        async def sip():
            while len(got) < len(data):
                got.extend(await asyncio.to_thread(os.read, pair.slave, 2048))
                await pause(0.01, "the reader is slow")

        reader = asyncio.ensure_future(sip())
        await pair.master.write(data)
        await reader
        assert bytes(got) == data


async def test_a_cancelled_write_leaves_the_terminal_usable():
    async with Pair() as pair:
        task = asyncio.ensure_future(pair.master.write(b"x" * 500_000))
        await eventually(lambda: pair.master._rooms)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        pair.master.discard_input()
        await pair.master.write(b"next")
        assert await read_slave(pair.slave, 4) == b"next"


async def test_a_line_the_kernel_would_cut_is_refused_before_anything_is_written():
    async with Pair() as pair:
        cooked(pair.slave)
        with pytest.raises(InputLineTooLongError) as caught:
            await pair.master.write(b"short\n" + b"x" * 4096 + b"\r")
        assert caught.value.metadata == {"limit_bytes": "4095", "line_bytes": "4096"}
        await pair.master.write(b"x" * 4095 + b"\r")
        assert await read_slave(pair.slave, 4096) == b"x" * 4095 + b"\n"


async def test_pieces_of_one_line_count_together():
    async with Pair() as pair:
        cooked(pair.slave)
        await pair.master.write(b"x" * 3000)
        with pytest.raises(InputLineTooLongError):
            await pair.master.write(b"y" * 1096 + b"\r")
        await pair.master.write(b"\x15" + b"z" * 4000 + b"\r")
        assert await read_slave(pair.slave, 4001) == b"z" * 4000 + b"\n"


async def test_an_end_of_file_between_pieces_makes_room():
    async with Pair() as pair:
        cooked(pair.slave)
        reader = asyncio.ensure_future(read_slave(pair.slave, 5001))
        await pair.master.write(b"x" * 2500 + b"\x04" + b"x" * 2500 + b"\r")
        assert await reader == b"x" * 5000 + b"\n"


async def test_the_limit_is_that_of_the_moment():
    async with Pair() as pair:
        pair.master.check_lines(b"x" * 9000)
        cooked(pair.slave)
        with pytest.raises(InputLineTooLongError):
            pair.master.check_lines(b"x" * 9000)


@pytest.mark.parametrize("reader", ["cat", "sh -c 'sleep 1; exec cat'"])
async def test_a_long_paste_of_lines_to_a_cooked_program_is_lossless(reader, tmp_path):
    copy = tmp_path / "copy"
    text = "".join(f"line number {n} of a fairly long paste body\n" for n in range(1500))
    async with await open_bash() as terminal:
        await terminal.send(f"{reader} > {copy}")
        sent = await terminal.send(text, submit=False)
        assert sent.reason == "stdin_read"
        assert (await terminal.send("\x04", submit=False)).verdict.evidence == "marker"
        assert copy.read_text() == text


async def test_a_long_paste_through_the_shells_own_editor_is_lossless(tmp_path):
    copy = tmp_path / "copy"
    text = "".join(f"line\t{n} of 'a' \"fairly\" $long `paste` !body\n" for n in range(1500))
    async with await open_bash() as terminal:
        sent = await terminal.send(f"cat > {copy} <<'EOF'\n{text}EOF")
        assert (sent.reason, sent.verdict.evidence) == ("stdin_read", "marker")
        assert copy.read_text() == text


async def test_a_long_command_line_reaches_the_shell_whole():
    async with await open_bash() as terminal:
        word = "w" * 20_000
        sent = await terminal.send(f"printf %s {word} | md5sum")
        assert hashlib.md5(word.encode()).hexdigest() in sent.text


async def test_the_end_comes_with_the_last_program():
    process, master_fd = spawn_on_pty(("sh", "-c", "echo last words"), base_env())
    master = Master(master_fd)
    got = bytearray()
    master.start(got.extend)
    try:
        await asyncio.to_thread(process.wait)
        assert not master.is_ended
        await master.drain_last()
        assert bytes(got) == b"last words\r\n"
        assert master.is_ended
        with pytest.raises(SessionExitedError):
            await master.write(b"x")
    finally:
        master.close()


async def test_a_program_that_keeps_the_terminal_does_not_hold_the_last_drain():
    async with Pair() as pair:
        os.write(pair.slave, b"still here")
        await pair.master.drain_last()
        assert pair.got == b"still here"
        assert not pair.master.is_ended
        os.close(pair.slave)
        pair.slave = -1
        await eventually(lambda: pair.master.is_ended)


async def test_stopping_input_ends_a_write_that_waits():
    async with Pair() as pair:
        task = asyncio.ensure_future(pair.master.write(b"x" * 500_000))
        await eventually(lambda: pair.master._rooms)
        pair.master.stop_input()
        with pytest.raises(SessionExitedError):
            await task
        pair.master.resume_input()
        pair.master.discard_input()
        await pair.master.write(b"again")


async def test_a_resize_reaches_the_program():
    async with await open_bash() as terminal:
        terminal.master.resize(11, 77)
        assert "11 77" in (await terminal.send("stty size")).lines


async def test_the_slave_is_not_our_controlling_terminal():
    async with Pair() as pair:
        assert os.fstat(pair.master.slave_fd).st_rdev == os.fstat(pair.slave).st_rdev
        assert not os.get_inheritable(pair.master.slave_fd)
        with pytest.raises(OSError, match="ioctl"):
            os.tcgetpgrp(pair.master.slave_fd)


def _write_all(fd, data):
    while data:
        data = data[os.write(fd, data) :]
