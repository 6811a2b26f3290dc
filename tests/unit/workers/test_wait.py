"""Conditions of wait_for."""

import pytest

from fabric.core.errors import InvalidRequestError
from fabric.core.model import SessionStatus, WaitCondition
from workers.wait import OVERLAP_CHARS, Watch, check

RUNNING = SessionStatus()


def watch(**condition):
    return Watch(WaitCondition(**condition), RUNNING)


def test_a_pattern_is_found_across_pieces_and_in_the_unfinished_line():
    one = watch(pattern=r"Listening on \d+")
    assert one.output("Listen", "") is None
    assert one.output("ing on ", "") is None
    assert one.output("", "80") == "pattern"
    assert one.match_text == "Listening on 80"


def test_a_pattern_does_not_search_text_twice_beyond_the_overlap():
    one = watch(pattern="needle")
    assert one.output("need" + "x" * OVERLAP_CHARS, "") is None
    assert one.output("le", "") is None


def test_quiet_ready_and_exit():
    one = watch(quiet_s=0.5, ready=True)
    assert one.quiet(0.4) is None
    assert one.quiet(0.5) == "quiet"
    assert one.ready() == "ready"
    assert watch(exit=True).ready() is None
    assert watch(quiet_s=9.0).exited(RUNNING) == "exit"


@pytest.mark.parametrize(
    "condition",
    [
        {},
        {"pattern": ""},
        {"pattern": "("},
        {"pattern": "x" * 2000},
        {"pattern": r"(?=look)"},
        {"quiet_s": 0.0},
        {"quiet_s": -1.0},
        {"quiet_s": 1e9},
    ],
)
def test_a_condition_that_cannot_hold_is_refused(condition):
    with pytest.raises(InvalidRequestError):
        check(WaitCondition(**condition))


def test_a_pattern_that_would_explode_elsewhere_is_quick():
    one = watch(pattern="(a+)+$")
    assert one.output("a" * 100_000 + "b\n", "") is None
