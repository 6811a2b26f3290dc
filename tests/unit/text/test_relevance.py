"""What of a long stretch the screen is fed with."""

import pytest

from workers.text.relevance import MAX_FEED_BYTES, Origin, Situation, Step, plan

LINES = b"".join(b"line %d\r\n" % n for n in range(500))
NEW = Situation(rows=4, cols=10, column=0, at_bottom=False, scrolls_whole=True, alternate=False)


def situation(**changes: object) -> Situation:
    fields = {name: getattr(NEW, name) for name in NEW.__dataclass_fields__}
    return Situation(**{**fields, **changes})


def fed(data: bytes, **changes: object) -> list[tuple[bytes, Origin]]:
    return [(step.data, step.origin) for step in plan(data, situation(**changes))]


LAST = b"line 496\r\nline 497\r\nline 498\r\nline 499\r\n"[10:]


def test_a_short_stretch_is_fed_as_it_is():
    assert plan(b"x" * 80, NEW) == [Step(b"x" * 80)]


def test_of_lines_only_the_last_screen_is_fed():
    assert fed(LINES) == [(b"", Origin.PRESENT), (LAST, Origin.BOTTOM)]


def test_what_outlives_the_lines_is_fed_first_each_as_it_was_last():
    data = (
        b"\x1b[?25l\x1b[?25h\x1b[4h\x1b]2;old\x07\x1b]0;new\x1b\\\x1b[2;3r\x1b[r\x1b[?7;1h" + LINES
    )
    state = b"\x1b[?25h\x1b[4h\x1b]0;new\x1b\\\x1b[r\x1b[?7h\x1b[?1h"
    assert fed(data) == [(state, Origin.PRESENT), (LAST, Origin.BOTTOM)]


def test_a_soft_reset_outlives_what_came_before_it():
    data = b"\x1b]0;t\x07\x1b[?1h\x1b[4h\x1b[2;3r\x1b[!p" + LINES
    assert fed(data)[0] == (b"\x1b]0;t\x07\x1b[!p", Origin.PRESENT)
    assert fed(b"\x1b[!p" + LINES, scrolls_whole=False)[1] == (LAST, Origin.BOTTOM)
    assert fed(b"\x1b[!p" + LINES)[0] == (b"\x1b[!p", Origin.PRESENT)


@pytest.mark.parametrize(
    "data",
    [
        b"\x1b[2;3r" + LINES,
        LINES[:-6] + b"\x1b[3A" + b"end\r\n",
        b"x\n" * 500,
        b"\x1b[?6h" + LINES[:-2000] + b"\x1b[H\x1b[2J" + b"\x1b[2;2Hx" * 20,
    ],
    ids=["region", "move up", "no return", "origin mode"],
)
def test_without_an_argument_everything_is_fed(data):
    assert fed(data) == [(data, Origin.PRESENT)]


def test_a_region_before_the_stretch_counts_too():
    assert fed(LINES, scrolls_whole=False) == [(LINES, Origin.PRESENT)]
    assert fed(b"\x1b[1;4r" + LINES, scrolls_whole=False)[1] == (LAST, Origin.BOTTOM)


def test_at_the_bottom_one_screen_of_lines_is_proof_enough():
    data = b"\x1b[0m" * 30 + b"a\r\nb\r\nc\r\nd\r\ne\r\n"
    assert fed(data, at_bottom=True)[-1] == (b"c\r\nd\r\ne\r\n", Origin.BOTTOM)
    assert fed(data) == [(data, Origin.PRESENT)]


def test_a_screen_of_one_row_has_its_last_line():
    data = b"x\r\n" * 20 + b"last"
    assert fed(data, rows=1)[-1] == (b"last", Origin.BOTTOM)
    assert fed(data, rows=1, at_bottom=True)[-1] == (b"last", Origin.BOTTOM)
    assert fed(b"x" * 25 + b"\x1b[0m", rows=1) == [(b"x" * 25 + b"\x1b[0m", Origin.PRESENT)]


@pytest.mark.parametrize(
    "clear", [b"\x1b[H\x1b[2J", b"\x1b[H\x1b[J", b"\x1b[2J\x1b[H", b"\x1b[1;1H\x1b[2J"]
)
def test_a_cleared_screen_is_where_feeding_begins(clear):
    data = b"\x1b[?25l" + b"\x1b[3;3Hx" * 50 + clear + b"\x1b[2;2Hy"
    assert fed(data) == [(b"\x1b[?25l" + clear + b"\x1b[2;2Hy", Origin.PRESENT)]


def test_a_reset_forgets_everything():
    assert fed(b"\x1b[?1049h\x1b[2;3r" + LINES + b"\x1bcnew") == [
        (b"\x1bc", Origin.PRESENT),
        (b"new", Origin.PRESENT),
    ]


def test_an_endless_line_is_cut_by_whole_rows():
    data = b"x\r\n" + b"0123456789" * 500 + b"abc"
    assert fed(data)[1] == (b"0123456789" * 4 + b"abc", Origin.BOTTOM)
    assert fed(b"\x1b[31m" + b"0123456789" * 500, column=3)[1] == (
        b"789" + b"0123456789" * 4,
        Origin.BOTTOM,
    )


@pytest.mark.parametrize(
    ("data", "changes"),
    [
        (b"0123456789" * 500, {"wraps": False}),
        (b"\x1b[?7l\r\n" + b"0123456789" * 500, {}),
        (b"0123456789" * 500, {"column": -1}),
        (b"x\n" + b"0123456789" * 500, {}),
        (b"\t" + b"0123456789" * 500, {}),
        (b"0123456789" * 11, {}),
    ],
    ids=["no wrap", "turned off", "unknown column", "staircase", "tab", "too short"],
)
def test_an_endless_line_of_unknown_layout_is_fed_whole(data, changes):
    assert fed(data, **changes) == [(data, Origin.PRESENT)]


def test_a_finished_stay_on_the_alternate_screen_leaves_modes_only():
    inside = b"\x1b[?1h\x1b[2;3r" + b"\x1b[3;3Hx" * 50
    data = b"a\r\n\x1b[?1049;25h" + inside + b"\x1b[?1049lb"
    assert fed(data) == [
        (b"a\r\n\x1b[?25h\x1b7\x1b[2;3r\x1b8\x1b[?1hb", Origin.PRESENT),
    ]


def test_the_alternate_screen_that_is_shown_is_planned_by_itself():
    data = LINES + b"\x1b[?1049h\x1b[?1049h" + LINES
    assert fed(data) == [
        (b"", Origin.PRESENT),
        (LAST, Origin.BOTTOM),
        (b"\x1b[?1049h", Origin.PRESENT),
        (b"", Origin.PRESENT),
        (LAST, Origin.BOTTOM),
    ]
    assert fed(b"\x1b[?1049h" + LINES, alternate=True)[1] == (LAST, Origin.BOTTOM)


def test_a_stay_that_leaves_nothing_leaves_nothing():
    data = b"a\r\n\x1b[?1049h" + b"\x1b[3;3Hx" * 50 + b"\x1b[?1049lb"
    assert fed(data) == [(b"a\r\nb", Origin.PRESENT)]


def test_coming_back_from_the_alternate_screen():
    data = b"\x1b[2;3r" + b"\x1b[3;3Hx" * 50 + b"\x1b[?1049l" + b"0123456789" * 20
    assert fed(data, alternate=True) == [
        (b"\x1b[2;3r\x1b[?1049l", Origin.PRESENT),
        (b"0123456789" * 20, Origin.PRESENT),
    ]


def test_older_switches_share_the_cursor_and_are_fed_whole():
    data = b"\x1b[?47h" + LINES + b"\x1b[?47l"
    assert fed(data) == [(data, Origin.PRESENT)]
    long = b"\x1b[?1047h" + b"\x1b[3;3Hx" * (MAX_FEED_BYTES // 7 + 1)
    assert fed(long)[0] == (b"\x1b[?1047h", Origin.PRESENT)


def test_a_number_that_only_contains_a_switch_is_none():
    assert fed(b"\x1b[?10490h" + LINES)[1] == (LAST, Origin.BOTTOM)


def test_an_endless_program_is_fed_its_last_part():
    data = b"\x1b[?1h" + b"\x1b[3;3Hx" * (MAX_FEED_BYTES // 7 * 2)
    first, last = plan(data, NEW)
    assert first == Step(b"\x1b[?1h")
    assert last.origin is Origin.TOP
    assert last.data.startswith(b"\x1b[3;3H")
    assert MAX_FEED_BYTES - 7 <= len(last.data) <= MAX_FEED_BYTES
    plain = plan("é".encode() * MAX_FEED_BYTES, NEW)
    assert len(plain[1].data) == MAX_FEED_BYTES


def test_after_a_loss_feeding_begins_at_a_safe_place():
    assert fed(b"half a line\r\nx", lost=True) == [(b"\nx", Origin.TOP)]
    assert fed(b"no place at all", lost=True) == [(b"no place at all", Origin.TOP)]
    assert fed(b"m\x1b[1mx", lost=True) == [(b"\x1b[1mx", Origin.TOP)]
    assert fed(b"junk\x1b[1m" + LINES, lost=True)[1] == (LAST, Origin.BOTTOM)


def test_a_wide_window_is_searched_when_lines_are_long():
    data = (b"x" * 20_000 + b"\r\n") * 30
    steps = fed(data)
    assert steps[1] == ((b"x" * 20_000 + b"\r\n") * 3, Origin.BOTTOM)
