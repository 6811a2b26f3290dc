import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.shim.listing import parse_ps
from workers.shim.tree import Row, descendants, heads, parse_stat


def stat(name="bash", state="S", threads=1):
    head = f"77 ({name}) {state} 70 77 77 34816 77 4194304 1 2 3 4 5 6 7 8"
    return f"{head} 20 0 {threads} 0 4242 1 2 3 4 5"


@pytest.mark.parametrize("name", ["bash", "tmux: server", "a) S 1 (b", "((", ") R 1", ""])
def test_stat_is_read_whatever_the_name(name):
    assert parse_stat(stat(name)) == Row(77, 70, 4242, "S", 1, name)


@pytest.mark.parametrize("line", ["", "77", "77 (bash)", "77 (bash) S 70", "x (bash) " + "1 " * 30])
def test_malformed_stat_is_an_error(line):
    with pytest.raises(ValueError, match=r"malformed|invalid literal"):
        parse_stat(line)


@pytest.mark.parametrize(
    ("state", "threads", "living"),
    [("S", 1, True), ("T", 1, True), ("D", 1, True), ("Z", 1, False), ("X", 0, False),
     ("Z", 3, True)],
)  # fmt: skip
def test_zombie_has_ended_unless_other_threads_run(state, threads, living):
    assert parse_stat(stat(state=state, threads=threads)).is_living is living


def pids(rows):
    return [row.pid for row in rows]


def test_children_come_before_parents():
    rows = [Row(2, 1, 0), Row(3, 2, 0), Row(4, 3, 0), Row(5, 2, 0), Row(9, 8, 0)]
    order = pids(descendants(rows, 1))
    assert sorted(order) == [2, 3, 4, 5]
    assert order.index(4) < order.index(3) < order.index(2)
    assert order.index(5) < order.index(2)


def test_absent_root_has_no_descendants():
    assert descendants([Row(2, 1, 0)], 77) == []
    assert descendants([], 1) == []


def test_root_is_not_its_own_descendant():
    assert pids(descendants([Row(1, 0, 0), Row(2, 1, 0)], 1)) == [2]


def test_cycles_end():
    rows = [Row(1, 3, 0), Row(2, 1, 0), Row(3, 2, 0), Row(4, 4, 0)]
    assert sorted(pids(descendants(rows, 1))) == [2, 3]


@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), max_size=40))
def test_any_table_ends_and_keeps_the_order(pairs):
    rows = [Row(pid, ppid, 0) for pid, ppid in pairs]
    order = descendants(rows, 1)
    assert len({row.pid for row in order}) == len(order)
    for index, row in enumerate(order):
        assert row.ppid not in [earlier.pid for earlier in order[:index]]


def test_head_without_wrapper_is_the_root():
    rows = [Row(3, 2, 0, name="bash"), Row(2, 1, 7, name="bash")]
    assert pids(heads(rows, (2, 7), ())) == [2]


def test_recycled_or_absent_root_gives_no_head():
    rows = [Row(2, 1, 8), Row(3, 2, 9)]
    assert heads(rows, (2, 7), ()) == []
    assert heads(rows, (5, 7), ()) == []
    assert heads(rows, None, ()) == []


def test_shell_behind_wrappers_is_their_oldest_child():
    rows = [
        Row(9, 3, 40, name="sleep"),
        Row(4, 3, 12, name="bash"),
        Row(3, 2, 11, name="bwrap"),
        Row(2, 1, 10, name="bwrap"),
    ]
    assert pids(heads(rows, (2, 10), ("bwrap",))) == [2, 3, 4]


def test_wrapper_that_has_not_started_its_child_yet_stands_alone():
    assert pids(heads([Row(2, 1, 10, name="bwrap")], (2, 10), ("bwrap",))) == [2]


def test_wrappers_in_a_cycle_end():
    rows = [Row(2, 3, 10, name="bwrap"), Row(3, 2, 11, name="bwrap")]
    assert pids(heads(rows, (2, 10), ("bwrap",))) == [2, 3]


def test_values_compare_by_fields():
    assert Row(1, 2, 3) == Row(1, 2, 3)
    assert Row(1, 2, 3) != Row(1, 2, 4)
    assert Row(1, 2, 3) != (1, 2, 3)
    assert len({Row(1, 2, 3), Row(1, 2, 3)}) == 1
    assert "pid=1" in repr(Row(1, 2, 3))


def test_ps_lines_are_read_and_order_by_start():
    listing = (
        "  501     1 Ss   Mon Jan  5 09:01:02 2026     /bin/my shell\n"
        "  777   501 R+   Mon Jan  5 09:01:03 2026     vim\n"
        "  778   501 Z    Sat Jan 31 23:59:59 2026     (sh)\n"
        "  779   501 S    Sun Feb  1 00:00:00 2026     x\n"
        "garbage\n"
        "  a b c d e f g h i\n"
        "  780   501 S    Sun Foo  1 00:00:00 2026     x\n"
    )
    rows = parse_ps(listing)
    assert [(row.pid, row.ppid, row.state, row.name) for row in rows] == [
        (501, 1, "S", "my shell"), (777, 501, "R", "vim"), (778, 501, "Z", "(sh)"),
        (779, 501, "S", "x"),
    ]  # fmt: skip
    assert [row.start for row in rows] == sorted({row.start for row in rows})
