"""Who of the views controls a shared terminal."""

from workers.history import rows_of, visible_lines
from workers.viewing import INVALID_RESUME, OCCUPIED, READONLY, Controllers


def controllers():
    made = Controllers(grace_s=15)
    assert made.claim("one", "proof1", readonly=False, resume="", at=0) == ""
    return made


def test_the_first_view_that_may_write_controls():
    made = Controllers(grace_s=15)
    assert made.claim("phone", "p", readonly=True, resume="", at=0) == READONLY
    assert made.claim("one", "p", readonly=False, resume="", at=0) == ""
    assert made.claim("two", "p", readonly=False, resume="", at=0) == OCCUPIED


def test_a_proof_is_good_once_and_only_while_its_holder_is_away():
    made = controllers()
    assert made.claim("two", "x", readonly=False, resume="proof1", at=1) == INVALID_RESUME
    assert made.left("one", 10)
    assert made.claim("two", "x", readonly=False, resume="guess", at=11) == INVALID_RESUME
    assert made.claim("again", "proof2", readonly=False, resume="proof1", at=24.9) == ""
    assert made.left("again", 30)
    assert made.claim("late", "x", readonly=False, resume="proof1", at=31) == INVALID_RESUME


def test_a_proof_is_no_good_after_the_grace():
    made = controllers()
    made.left("one", 10)
    assert made.claim("again", "x", readonly=False, resume="proof1", at=25) == INVALID_RESUME


def test_the_place_stays_taken_until_what_was_held_is_recovered():
    made = controllers()
    made.left("one", 10)
    assert made.claim("two", "x", readonly=False, resume="", at=12) == OCCUPIED
    assert not made.free(24, recovered=True)
    assert not made.free(25, recovered=False)
    assert made.claim("two", "x", readonly=False, resume="", at=26) == OCCUPIED
    assert made.free(27, recovered=True)
    assert made.claim("two", "x", readonly=False, resume="", at=27) == ""


def test_a_reader_that_leaves_changes_nothing():
    made = controllers()
    assert not made.left("two", 5)
    assert made.absent_since is None


def test_a_reset_revokes_place_and_proof():
    made = controllers()
    made.left("one", 1)
    made.revoke()
    assert made.claim("one", "x", readonly=False, resume="proof1", at=2) == INVALID_RESUME
    assert made.claim("one", "x", readonly=False, resume="", at=2) == ""


def test_lines_take_as_many_rows_as_they_are_wide():
    assert [rows_of("x" * n, 10) for n in (0, 1, 10, 11, 21)] == [1, 1, 1, 2, 3]
    assert rows_of("你" * 6, 10) == 2


def test_a_line_that_is_partly_on_the_screen_is_no_history():
    assert visible_lines(["a", "b", "c"], 2, 10) == 2
    assert visible_lines(["a", "x" * 15, "c"], 2, 10) == 2
    assert visible_lines(["a"], 40, 10) == 1
    assert visible_lines([], 40, 10) == 0
