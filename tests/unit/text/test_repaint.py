"""A repaint shows the same on a fresh screen, and what is printed next lands in the same place."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.text.emulate import Emulator
from workers.text.repaint import repaint
from workers.text.screen import Screen
from workers.text.transcript import Transcript

ROWS, COLS = 24, 80
STREAMS = sorted(Path(__file__).with_name("streams").glob("*.bin"))


class Terminal:
    def __init__(self, rows=ROWS, cols=COLS):
        self.screen = Screen(rows, cols)
        self.emulator = Emulator(self.screen)
        self.text = Transcript(nonce="n", max_lines=100, max_bytes=65_536, carry_bytes=4096)

    def feed(self, data):
        self.emulator.feed(data)
        self.text.feed(data)
        return self

    def repainted(self):
        screen = self.screen
        made = repaint(screen.picture(), self.text.modes)
        return Terminal(screen.lines, screen.columns).feed(made)

    @property
    def state(self):
        return self.screen.picture(), self.text.modes


def same_after(first, then, rows=ROWS, cols=COLS):
    one = Terminal(rows, cols).feed(first)
    two = one.repainted()
    assert two.state == one.state
    one.feed(then)
    two.feed(then)
    assert two.screen.rendered() == one.screen.rendered()
    assert two.screen.picture().cursor == one.screen.picture().cursor


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain",
        "wörd 日本 e\u0301".encode(),
        b"x" * COLS,
        "日".encode() * (COLS // 2),
        b"\x1b[24;1H" + b"x" * COLS,
        b"\x1b[5;10r\x1b[7;3Hin",
        b"\x1b[5;10r\x1b[?6h\x1b[2;3Hin",
        b"\x1b[5;10r\x1b[?6h\x1b[2;1H" + b"y" * COLS,
        b"\x1b[?7l" + b"z" * 100,
        b"\x1b[4habc\r",
        b"main\r\n\x1b[?1049h\x1b[3;3Hother",
        b"\x1b[?1049h\x1b[?25l\x1b[?1h\x1b=\x1b[?2004h\x1b[?1002h\x1b[?1006h\x1b[?1004h",
        b"\x1b]2;a title\x07here",
        b"\x1b[?1047hx",
    ],
)
def test_every_state_that_later_output_depends_on_comes_over(data):
    for then in (b"more\r\n" * 30, b"\x1b[Hback\x1b[K\x1b[?1049lleft", b"\x1b[Mup\x1b[L"):
        same_after(data, then)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_recorded_programs_can_be_cut_anywhere(path):
    data = path.read_bytes()[:60_000]
    for cut in range(0, len(data), max(1, len(data) // 12)):
        end = data.find(b"\x1b", cut)  # a sequence cut in two is the log's matter, not ours
        end = len(data) if end < 0 else end
        same_after(data[:end], data[end:])


_PIECES = st.sampled_from(
    [
        b"a", b"word ", "日".encode(), "e\u0301".encode(), b"\r", b"\n", b"\r\n", b"\b", b"\t",
        b"\x1b[A", b"\x1b[3B", b"\x1b[5C", b"\x1b[2D", b"\x1b[H", b"\x1b[4;7H", b"\x1b[K",
        b"\x1b[J", b"\x1b[1J", b"\x1b[2J", b"\x1b[L", b"\x1b[M", b"\x1b[P", b"\x1b[2@",
        b"\x1b[2;5r", b"\x1b[r", b"\x1b[?6h", b"\x1b[?6l", b"\x1b[?7l", b"\x1b[?7h", b"\x1b[4h",
        b"\x1b[4l", b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25l", b"\x1b[?25h", b"\x1bM", b"\x1bD",
        b"x" * 9, b"\x1b[?2004h", b"\x1b[?1h", b"\x1b=", b"\x1b>",
    ]
)  # fmt: skip
_SOME = st.lists(_PIECES, max_size=24).map(b"".join)


@given(_SOME, _SOME)
def test_any_output_can_be_cut(first, then):
    same_after(first, then, 6, 9)
