"""The ring of exact bytes, in a memory file of the test's own."""

import contextlib
import fcntl
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.core.errors import CursorExpiredError, InvalidRequestError
from tests.unit.text.streams import LIMIT_S, THOROUGH
from workers.text.bytelog import HEADER_BYTES, ByteLog, file_bytes, ledger_memory

pytestmark = [
    pytest.mark.timeout(LIMIT_S),
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memfd"),
]


@contextlib.contextmanager
def memory() -> Iterator[int]:
    fd = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def log_of(size: int) -> Iterator[ByteLog]:
    with memory() as fd:
        log = ByteLog(fd, size)
        try:
            yield log
        finally:
            log.close()


@THOROUGH
@given(st.integers(1, 40), st.lists(st.binary(max_size=100), max_size=20), st.integers(0, 50))
def test_it_holds_the_newest_bytes_at_their_offsets(size, pieces, count):
    whole = b"".join(pieces)
    with log_of(size) as log:
        for piece in pieces:
            log.append(piece)
        assert log.next_offset == len(whole)
        assert log.first_offset == max(0, len(whole) - size)
        for offset in range(log.first_offset, log.next_offset + 1):
            assert log.read(offset, count) == (offset, whole[offset : offset + count])


def test_offsets_outside_are_told_apart():
    with log_of(10) as log:
        log.append(b"0123456789abc")
        with pytest.raises(CursorExpiredError) as gap:
            log.read(2, 1)
        assert gap.value.metadata["oldest_offset"] == "3"
        with pytest.raises(InvalidRequestError):
            log.read(14, 1)
        assert log.read(13, 5) == (13, b"")
        assert log.read(5, 0) == (5, b"")
        assert log.read(5, -1) == (5, b"")


def test_a_successor_finds_everything_whatever_size_it_asks_for():
    with memory() as fd:
        log = ByteLog(fd, 100)
        log.append(b"x" * 150)
        ledger_memory(log)[:3] = b"abc"
        with contextlib.suppress(BufferError):
            log.close()
        again = ByteLog(fd, 7)
        assert (again.size, again.first_offset, again.next_offset) == (100, 50, 150)
        assert bytes(ledger_memory(again)[:3]) == b"abc"
        assert os.fstat(fd).st_size == file_bytes(100)


@pytest.mark.parametrize("header", [4096, HEADER_BYTES])
def test_a_sealed_file_is_used_as_it_is(header):
    with memory() as fd:
        os.ftruncate(fd, header + 5000)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
        log = ByteLog(fd, 5000)
        log.append(b"ab" * 4000)
        assert log.read(log.first_offset, 9999)[1] == b"ab" * 2500
        assert len(log.ledger) == header - 64
        log.close()
        again = ByteLog(fd, 5000)
        assert again.next_offset == 8000
        again.close()


def test_what_is_no_log_is_refused():
    with memory() as fd, pytest.raises(InvalidRequestError, match="positive"):
        ByteLog(fd, 0)
    with memory() as fd:
        os.pwrite(fd, b"PTYLOG\0\2" + bytes(100_000), 0)
        with pytest.raises(InvalidRequestError, match="version"):
            ByteLog(fd, 10)
    with memory() as fd:
        ByteLog(fd, 10).close()
        os.pwrite(fd, (1 << 40).to_bytes(8, "little"), 8)
        with pytest.raises(InvalidRequestError, match="damaged"):
            ByteLog(fd, 10)


def test_another_byte_order_is_refused(monkeypatch):
    monkeypatch.setattr("workers.text.bytelog.sys.byteorder", "big")
    with memory() as fd, pytest.raises(InvalidRequestError, match="little-endian"):
        ByteLog(fd, 10)


def test_views_show_the_ring_without_a_copy():
    with log_of(10) as log:
        log.append(b"0123456789abc")
        views = log.views(3, 100)
        assert [bytes(view) for view in views] == [b"3456789", b"abc"]
        for view in views:
            view.release()


def test_an_append_moves_first_before_it_overwrites_and_next_after(monkeypatch):
    """Stopped between copying and publishing, the log offers no byte it overwrote."""
    with log_of(10) as log:
        log.append(b"0123456789")
        ring = log._ring

        class Dead:
            def __setitem__(self, place, data):
                ring[place] = data
                raise KeyboardInterrupt

            def __getitem__(self, place):
                return ring[place]

            def release(self):
                ring.release()

        log._ring = Dead()
        with pytest.raises(KeyboardInterrupt):
            log.append(b"abcd")
        log._ring = ring
        assert (log.first_offset, log.next_offset) == (4, 10)
        assert log.read(4, 100) == (4, b"456789")
        log.append(b"efgh")
        assert log.read(4, 100) == (4, b"456789efgh")
