"""Task records and their bounded output."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.core.model import TaskState
from workers.tasks import CONSUME, Output, Task, label_of


def task():
    return Task("tsk_x", "own_x", "ses_x", "label", 100, now=1.0)


def test_the_first_terminal_outcome_wins():
    one = task()
    assert one.settle(TaskState.COMPLETED, "wait: stdin_read", 2.0)
    assert not one.settle(TaskState.FAILED, "late", 3.0)
    assert one.record.state is TaskState.COMPLETED
    assert one.record.finished_at == 2.0


def test_a_stopping_task_ends_killed_even_if_the_shell_came_back_cleanly():
    one = task()
    one.stop()
    assert one.record.state is TaskState.STOPPING
    one.settle(TaskState.COMPLETED, "wait: stdin_read", 2.0)
    assert one.record.state is TaskState.KILLED
    one.stop()
    assert one.record.state is TaskState.KILLED


def test_a_consuming_read_moves_on_and_a_cursor_read_repeats():
    one = task()
    one.output.append("one\n")
    assert one.read(CONSUME).text == "one\n"
    assert one.read(CONSUME).text == ""
    assert one.read(0).text == "one\n"
    one.output.append("two\n")
    assert one.read(4).text == "two\n"
    assert one.read(CONSUME).text == "two\n"
    assert one.read(999).text == ""


def test_dropped_output_is_an_explicit_truncation():
    output = Output(10)
    output.append("0123456789")
    output.append("ab")
    assert output.read(0) == ("23456789ab", 12, True)
    assert output.read(5) == ("56789ab", 12, False)


def test_a_piece_that_came_cut_is_a_truncation_for_whoever_reads_it():
    output = Output(100)
    output.append("one\n")
    output.append("a\n[… 9 bytes omitted …]\nz\n", truncated=True)
    end = output.end
    output.append("more\n")
    assert [output.read(at)[2] for at in (0, 4, end - 1, end, end + 3)] == [True] * 3 + [False] * 2
    assert output.read(CONSUME)[2]
    output.append("last\n")
    assert output.read(CONSUME) == ("last\n", end + 10, False)


@given(st.lists(st.text(), max_size=30), st.integers(1, 40))
def test_output_stays_within_its_bound_and_keeps_the_newest(pieces, bound):
    output = Output(bound)
    whole = ""
    for piece in pieces:
        piece = piece.encode("utf-8", "replace").decode()
        output.append(piece)
        whole += piece
        assert len(output.text.encode()) <= bound
        assert whole.endswith(output.text)
        assert output.end == len(whole)


@pytest.mark.parametrize(
    ("data", "label"),
    [
        (b"", "ses_x: (input)"),
        (b"make\n all ", "ses_x: make all"),
        (b"x" * 100, "ses_x: " + "x" * 80 + "…"),
    ],
)
def test_a_label_is_one_short_line(data, label):
    assert label_of("ses_x", data) == label
