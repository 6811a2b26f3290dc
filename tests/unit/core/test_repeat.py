import pytest

from fabric.core.errors import QueueFullError, RequestIdConflictError
from fabric.core.repeat import Repeats, digest_of


def table(retention_s=10.0, max_entries=3) -> Repeats[str]:
    return Repeats(retention_s=retention_s, max_entries=max_entries)


A, B = digest_of("a"), digest_of("b")


def test_digest_tells_parts_apart():
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert digest_of(b"x") != digest_of("x")
    assert digest_of("a", 1) == digest_of("a", 1)


def test_a_repeat_joins_the_running_call_and_gets_its_answer_later():
    repeats = table()
    assert repeats.find("r1", A, now=0) is None
    repeats.reserve("r1", A, "handle", now=0)
    assert repeats.find("r1", A, now=1) == "handle"
    repeats.settle("r1", now=2, answer="answer")
    assert repeats.find("r1", A, now=3) == "answer"


def test_other_content_under_the_same_id_is_a_conflict():
    repeats = table()
    repeats.reserve("r1", A, "x", now=0)
    with pytest.raises(RequestIdConflictError) as caught:
        repeats.find("r1", B, now=0)
    assert caught.value.metadata["request_id"] == "r1"


def test_answers_are_kept_for_the_retention_after_they_settled():
    repeats = table(retention_s=10)
    repeats.reserve("r1", A, "x", now=0)
    repeats.settle("r1", now=5)
    assert repeats.find("r1", A, now=14.9) == "x"
    assert repeats.find("r1", A, now=15) is None
    assert len(repeats) == 0


def test_a_running_call_never_expires():
    repeats = table(retention_s=1)
    repeats.reserve("r1", A, "x", now=0)
    assert repeats.find("r1", A, now=1e9) == "x"


def test_the_oldest_settled_answer_makes_room():
    repeats = table(max_entries=2)
    repeats.reserve("r1", A, "1", now=0)
    repeats.reserve("r2", A, "2", now=0)
    repeats.settle("r2", now=1)
    repeats.reserve("r3", A, "3", now=2)
    assert repeats.find("r2", A, now=2) is None
    assert repeats.find("r1", A, now=2) == "1"
    assert len(repeats) == 2


def test_running_calls_alone_fill_the_table():
    repeats = table(max_entries=1)
    repeats.reserve("r1", A, "1", now=0)
    with pytest.raises(QueueFullError):
        repeats.reserve("r2", A, "2", now=0)


def test_a_call_without_effect_is_forgotten():
    repeats = table()
    repeats.reserve("r1", A, "1", now=0)
    repeats.forget("r1")
    repeats.forget("r1")
    repeats.settle("r1", now=0)
    assert repeats.find("r1", B, now=0) is None


def test_settled_answers_behind_a_running_call_expire_too():
    """A long running call at the head must not keep every later answer alive."""
    repeats = table(retention_s=10, max_entries=100)
    repeats.reserve("long", A, "x", now=0)
    repeats.reserve("short", A, "y", now=0)
    repeats.settle("short", now=1)
    assert repeats.find("short", A, now=100) is None
    assert repeats.find("long", A, now=100) == "x"
