"""The screen on demand equals a screen that saw every byte."""

import contextlib
import os
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.core.model import ScreenSnapshot
from tests.unit.text.streams import CUTS, LIMIT_S, STREAMS, THOROUGH, divided, singly
from workers.text.bytelog import ByteLog
from workers.text.emulate import Emulator
from workers.text.screen import Screen, ScreenView

pytestmark = [
    pytest.mark.timeout(LIMIT_S),
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memfd"),
]
RECORDS = {path.stem: path.read_bytes() for path in (Path(__file__).parent / "streams").iterdir()}
SAVES_CURSOR = re.compile(rb"\x1b(?:[78]|\[[su])")


@contextlib.contextmanager
def log_of(size: int = 8 << 20) -> Iterator[ByteLog]:
    fd = os.memfd_create("test", os.MFD_CLOEXEC)
    log = ByteLog(fd, size)
    os.close(fd)
    try:
        yield log
    finally:
        log.close()


def what(snapshot: ScreenSnapshot) -> tuple[object, ...]:
    return (
        snapshot.lines,
        (snapshot.cursor_row, snapshot.cursor_col),
        snapshot.cursor_visible,
        snapshot.alternate,
        snapshot.title,
    )


def on_demand(pieces: list[bytes], rows: int = 24, cols: int = 80) -> ScreenSnapshot:
    """Look after each piece; return the last look."""
    with log_of() as log:
        view = ScreenView(rows, cols)
        for piece in pieces:
            log.append(piece)
            snapshot = view.snapshot(log)
        return snapshot


def saw_everything(data: bytes, rows: int = 24, cols: int = 80) -> tuple[object, ...]:
    screen = Screen(rows, cols)
    Emulator(screen).feed(data)
    return (
        screen.rendered(),
        (screen.cursor.y, min(screen.cursor.x, cols - 1)),
        not screen.cursor.hidden,
        screen.alternate,
        screen.title,
    )


def shown(data: bytes | str, rows: int = 4, cols: int = 10) -> tuple[list[str], tuple[int, int]]:
    data = data.encode() if isinstance(data, str) else data
    snapshot = on_demand([data], rows, cols)
    return list(snapshot.lines), (snapshot.cursor_row, snapshot.cursor_col)


@pytest.mark.parametrize("name", sorted(set(RECORDS) - {"vim_left"}))
def test_recorded_programs_look_as_in_pyte(name):
    """Plain pyte raises at ``CSI > m`` and ``CSI ? m``, which change no character."""
    data = RECORDS[name]
    reference = pyte.Screen(80, 24)
    pyte.ByteStream(reference).feed(re.sub(rb"\x1b\[[>?][0-9;]*m", b"", data))
    snapshot = on_demand([data])
    assert snapshot.lines == tuple(row.rstrip() for row in reference.display)
    assert snapshot.cursor_row == reference.cursor.y
    assert snapshot.cursor_col == min(reference.cursor.x, 79)
    assert snapshot.cursor_visible != reference.cursor.hidden


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_looking_in_between_changes_nothing(name):
    data = RECORDS[name]
    moments = random.Random(name)
    for _ in range(12):
        cut, end = sorted((moments.randrange(len(data)), moments.randrange(len(data))))
        both = on_demand([data[:cut], data[cut:end]])
        assert what(both) == what(on_demand([data[:end]])) == saw_everything(data[:end])


def test_leaving_a_full_screen_program_shows_the_screen_before():
    snapshot = on_demand([RECORDS["vim_left"]])
    assert not snapshot.alternate
    assert snapshot.lines[:6] == (
        "$ echo before",
        "before",
        "$ vim -u NONE -N numbers.txt",
        "$ echo after",
        "after",
        "$",
    )


def test_the_alternate_screen_is_told():
    assert on_demand([RECORDS["less"]]).alternate
    assert on_demand([RECORDS["vim"]]).alternate
    assert not on_demand([RECORDS["top"]]).alternate


def pieces_of(choice: random.Random) -> bytes:
    """Make one stretch of output of some kind."""
    count = choice.choice([3, 30, 300])
    kinds = [
        lambda: SAVES_CURSOR.sub(b"", choice.choice(list(RECORDS.values()))),
        lambda: b"".join(b"line %d %s\r\n" % (i, b"w" * (i * 7 % 120)) for i in range(count)),
        lambda: b"".join(b"\x1b[32mcolour %d\x1b[0m\x1b[K\r\n" % i for i in range(count)),
        lambda: b"z" * choice.randrange(1, 9000),
        lambda: choice.choice([b"\x1b[H\x1b[2J", b"\x1b[2J", b"\x1b[H\x1b[J", b"\x1bc", b"\x1b[J"]),
        lambda: choice.choice(
            [b"\x1b[5;10r", b"\x1b[r", b"\x1b[1;24r", b"\x1b[3;8Hhi", b"\x1b[!p"]
        ),
        lambda: choice.choice(
            [b"\x1b[10A", b"\x1bM", b"\x1b[5L", b"\x1b[2S", b"\x1b[2T", b"\x1bD"]
        ),
        lambda: "".join(f"日本語 é {i}\r\n" for i in range(count)).encode(),
        lambda: b"".join(b"\rprogress %d" % i for i in range(count)),
        lambda: choice.choice([b"\x1b[?7l", b"\x1b[?7h", b"\x1b[4h", b"\x1b[4l", b"\x1b[?25l"]),
        lambda: choice.choice([b"\x1b[?25h", b"\x1b]2;title\x07", b"\x1b[?6h", b"\x1b[?6l"]),
        lambda: b"\x1b[?1049h\x1b[H\x1b[2Jinside " + b"x\r\n" * count + b"\x1b[?25l",
        lambda: choice.choice([b"\x1b[?1049l", b"\x1b[2;5r\x1b[?1049l", b"\x1b[?1049;25l"]),
        lambda: choice.choice([b"\x1b[?1047h", b"\x1b[?1047l", b"\x1b[?47l"]),
        lambda: b"".join(b"staircase\n" for i in range(count)),
    ]
    return choice.choice(kinds)()


@pytest.mark.parametrize("seed", range(40))
def test_long_mixed_output_equals_a_screen_that_saw_everything(seed):
    choice = random.Random(seed)
    rows, cols = choice.choice([(24, 80), (5, 20), (40, 160)])
    pieces = [pieces_of(choice) for _ in range(choice.randrange(1, 12))]
    with log_of() as log:
        view = ScreenView(rows, cols)
        data = b""
        for piece in pieces:
            log.append(piece)
            data += piece
            if choice.random() < 0.3:
                assert what(view.snapshot(log)) == saw_everything(data, rows, cols)
        assert what(view.snapshot(log)) == saw_everything(data, rows, cols)


@pytest.mark.parametrize(
    "flood",
    [
        b"".join(b"%d\r\n" % n for n in range(700_000)),
        b"x" * 157 + b"\r\n",
        b"\x1b[01;34mdirectory\x1b[0m  \x1b[01;32mprogram\x1b[0m text\x1b[K\r\n",
        b"0123456789",
    ],
    ids=["seq", "wide", "coloured", "endless"],
)
def test_five_megabytes_are_looked_at_in_a_moment(flood):
    data = flood * (5_000_000 // len(flood) + 1)
    with log_of() as log:
        view = ScreenView(40, 160)
        log.append(b"$ flood\r\n")
        view.snapshot(log)
        log.append(data)
        begin = time.process_time()
        snapshot = view.snapshot(log)
        assert time.process_time() - begin < 0.5  # some 0.05 s on an idle machine
        tail = saw_everything(data[-100_000 // 160 * 160 :], 40, 160)
        if not flood.startswith(b"0123456789"):
            assert what(snapshot) == tail
        assert len("".join(snapshot.lines)) > 40


def test_what_the_ring_has_lost_is_not_guessed():
    with log_of(10_000) as log:
        view = ScreenView(4, 10)
        log.append(b"\x1b[?25lold\r\n")
        view.snapshot(log)
        log.append(b"\x1b[2;3r" + b"x" * 20_000 + b"\r\none\r\ntwo\r\n$ ")
        snapshot = view.snapshot(log)
        assert snapshot.lines == ("", "one", "two", "$")
        assert snapshot.offset == log.next_offset


def test_an_endless_full_screen_stream_is_shown_from_its_last_part(monkeypatch):
    monkeypatch.setattr("workers.text.relevance.MAX_FEED_BYTES", 20_000)
    frame = b"".join(b"\x1b[%d;1Hrow %d\x1b[K" % (n, n) for n in range(1, 25))
    data = b"\x1b[5;5Hstale" + frame * 100
    assert on_demand([data]).lines == tuple(f"row {n}" for n in range(1, 25))


@pytest.mark.parametrize(
    ("data", "rows", "cursor"),
    [
        ("a\tb\r\n\x1b[2Cx", ["a       b", "  x", "", ""], (1, 3)),
        ("0123456789ab", ["0123456789", "ab", "", ""], (1, 2)),
        ("\x1b[?7l0123456789ab", ["012345678b", "", "", ""], (0, 9)),
        ("\x1b[?7l0123456789é日", ["01234567日", "", "", ""], (0, 9)),
        ("012345678日", ["012345678", "日", "", ""], (1, 2)),
        ("東京\r\x1b[CX", [" X京", "", "", ""], (0, 2)),
        ("東京\rX", ["X 京", "", "", ""], (0, 1)),
        ("東京\x1b[2G\x1b[P", [" 京", "", "", ""], (0, 1)),
        ("o\u0308x", ["öx", "", "", ""], (0, 2)),
        ("\u0308x", ["x", "", "", ""], (0, 1)),
        ("日\u0301x", ["日\u0301x", "", "", ""], (0, 3)),
        ("👨\u200d🔧ok", ["👨\u200d🔧ok", "", "", ""], (0, 6)),
        ("abc\x1b[1K", ["", "", "", ""], (0, 3)),
        ("abc\x1b[2D\x1b[K", ["a", "", "", ""], (0, 1)),
        ("abc\x1b[2Kx", ["   x", "", "", ""], (0, 4)),
        ("abc\x1b[9K\x1b[7J", ["abc", "", "", ""], (0, 3)),
        ("abcd\x1b[3D\x1b[2@x", ["ax bcd", "", "", ""], (0, 2)),
        ("abcd\x1b[3D\x1b[2X", ["a  d", "", "", ""], (0, 1)),
        ("0123456789\x1b[P", ["0123456789", "", "", ""], (0, 9)),
        ("\x1b[4hab\rcd", ["cdab", "", "", ""], (0, 2)),
        ("=\x1b[4b", ["=====", "", "", ""], (0, 5)),
        ("\x1b[4b", ["", "", "", ""], (0, 0)),
        ("a\r\nb\r\nc\x1b[2;1H\x1b[L", ["a", "", "b", "c"], (1, 0)),
        ("a\r\nb\r\nc\x1b[2;1H\x1b[M", ["a", "c", "", ""], (1, 0)),
        ("a\r\nb\r\nc\x1b[S", ["b", "c", "", ""], (2, 1)),
        ("a\r\nb\r\nc\x1b[2T", ["", "", "a", "b"], (2, 1)),
        ("a\x1b[1;2;3;4;5T", ["a", "", "", ""], (0, 1)),
        ("a\r\nb\x1b[H\x1bM", ["", "a", "b", ""], (0, 0)),
        ("a\x1b[3Hb\x1bM\x1bMc", ["ac", "", "b", ""], (0, 2)),
        ("a\x1bEb\x1bDc", ["a", "b", " c", ""], (2, 2)),
        ("\x1b[2;3ra\r\nb\r\nc\r\nd\r\ne", ["a", "d", "e", ""], (2, 1)),
        ("\x1b[3;2r\x1b[4Hx", ["", "", "", "x"], (3, 1)),
        ("\x1b[2;3r\x1b[Lx\x1b[r", ["x", "", "", ""], (0, 0)),
        ("\x1b[2;3r\x1b[?6hx\x1b[2dy\x1b[9dz", ["", "x", " yz", ""], (2, 3)),
        ("\x1b[2;2H\x1b7\x1b[Ha\x1b8b\x1b8c", ["a", " c", "", ""], (1, 2)),
        ("ab\x1b8c", ["cb", "", "", ""], (0, 1)),
        ("\x1b[2;2H\x1b[s\x1b[Hx\x1b[uy", ["x", " y", "", ""], (1, 2)),
        ("a\x1b[?1049hb\x1b[?1049hc\x1b[?1049ld", ["ad", "", "", ""], (0, 2)),
        ("a\x1b[?47hb\x1b[?47lc", ["a c", "", "", ""], (0, 3)),
        ("a\x1b[?47hb\x1b[?1049lc", ["a c", "", "", ""], (0, 3)),
        ("a\x1b[?1049hb\x1bcd", ["d", "", "", ""], (0, 1)),
        ("\x1b[2;3r\x1b[4h\x1b[!pab\rc", ["cb", "", "", ""], (0, 1)),
        ("\x1b#8\x1b[H\x1b[J\x1b(0q", ["q", "", "", ""], (0, 1)),
        ("ab\x1b[2Ix\x1b[Zy", ["ab      yx", "", "", ""], (0, 9)),
        ("\x1b[3g\tx", ["         x", "", "", ""], (0, 9)),
        ("\x1b[3g\x1b[3G\x1bH\r\tx", ["  x", "", "", ""], (0, 3)),
        ("a\x0bb\x0cc\x07d\x0e\x0f\x00\x7fe", ["a", " b", "  cde", ""], (2, 5)),
        ("\x1b[?3hx\x1b[?5hy", ["xy", "", "", ""], (0, 2)),
        ("\x1b[>4;2m\x1b[?4m\x1b[=1c\x1b[0c\x1b[6n\x1b[1;2Ax", ["x", "", "", ""], (0, 1)),
        ("a\x1b[?Jb\x1b[?K\x1b[>Kc", ["abc", "", "", ""], (0, 3)),
        ("\x1b[5;1;7Hx\x1b[;3Hy\x1b[:;Hz", ["z y", "", "", "x"], (0, 1)),
        ("a\x1b]0;t\x1b\\\x1bPq\x1b\\\x1b]0;cut\x18b", ["ab", "", "", ""], (0, 2)),
        ("1\r\n2\r\n3\r\n4\x1b[2;1H\x1b[1J", ["", "", "3", "4"], (1, 0)),
        ("1\r\n2\x1b[1;1H\x1b[3J", ["1", "2", "", ""], (0, 0)),
    ],
)
def test_controls_do_what_they_do_on_a_terminal(data, rows, cursor):
    assert shown(data) == (rows, cursor)


@pytest.mark.parametrize(
    ("title", "stream"),
    [("new", b"\x1b]0;old\x07\x1b]2;new\x1b\\"), ("icon", b"\x1b]0;icon\x07\x1b]1;x\x07")],
)
def test_the_title_is_kept(title, stream):
    assert on_demand([stream]).title == title


def test_the_cursor_may_be_hidden():
    assert not on_demand([b"\x1b[?25l"]).cursor_visible
    assert on_demand([b"\x1b[?25l\x1b7\x1b[?25h\x1b8"]).cursor_visible


@pytest.mark.parametrize(
    ("before", "size", "rows", "cursor"),
    [
        (b"1\r\n2\r\n$ ", (3, 5), ("1", "2", "$"), (2, 2)),
        (b"1\r\n2\r\n3\r\n$ ", (2, 5), ("3", "$"), (1, 2)),
        (b"1\x1b[H", (2, 5), ("1", ""), (0, 0)),
        (b"1234567890\r\n$ ", (5, 4), ("1234", "$", "", "", ""), (1, 2)),
        ("123日\r\n$ ".encode(), (4, 4), ("123", "$", "", ""), (1, 2)),
        (b"1\r\n2\r\n3\r\n4\x1b[?1049h", (2, 5), ("", ""), (1, 1)),
    ],
)
def test_a_new_size_keeps_what_is_around_the_cursor(before, size, rows, cursor):
    with log_of() as log:
        view = ScreenView(4, 10)
        log.append(before)
        view.snapshot(log)
        view.resize(9, 9)
        view.resize(*size)
        snapshot = view.snapshot(log)
        assert (snapshot.lines, (snapshot.cursor_row, snapshot.cursor_col)) == (rows, cursor)
        assert (snapshot.rows, snapshot.cols) == size


def test_a_new_size_counts_from_its_place_in_the_stream():
    with log_of() as log:
        view = ScreenView(4, 4)
        log.append(b"12345\r\n")
        view.resize(4, 8, at=log.next_offset)
        log.append(b"12345")
        assert view.snapshot(log).lines == ("1234", "5", "12345", "")


@THOROUGH
@given(STREAMS, CUTS, st.sampled_from([(4, 10), (2, 3), (1, 1), (24, 80)]))
def test_nothing_raises_and_any_division_gives_the_same(data, cuts, size):
    whole = what(on_demand([data], *size))
    assert what(on_demand([*singly(data), b""], *size)) == whole
    assert what(on_demand(list(divided(data, cuts)), *size)) == whole
