"""Times keep their nanoseconds, enums their names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.core.model import WaitReason
from fabric.wire import scalars


@given(st.floats(min_value=-1e9, max_value=1e9, allow_nan=False))
def test_a_duration_comes_back_to_the_nanosecond(seconds):
    message = scalars.duration(seconds)
    assert abs(message.nanos) < 1_000_000_000
    assert message.seconds * message.nanos >= 0
    assert scalars.seconds_of(message) == pytest.approx(seconds, abs=1e-6)


@given(st.floats(min_value=-1e6, max_value=4e9, allow_nan=False))
def test_an_instant_comes_back(wall):
    message = scalars.timestamp(wall)
    assert 0 <= message.nanos < 1_000_000_000
    assert scalars.wall_of(message) == pytest.approx(wall, abs=1e-6)


def test_none_stays_none():
    assert scalars.duration(None) is None
    assert scalars.timestamp(None) is None
    assert scalars.clean_or_none(None) is None


def test_every_member_has_its_own_number():
    numbers = list(scalars.WAIT_REASON.numbers.values())
    assert len(set(numbers)) == len(WaitReason)
    assert 0 not in numbers


def test_clean_leaves_good_text_alone():
    assert scalars.clean("plain") == "plain"
    assert scalars.clean("ünïcode €") == "ünïcode €"
    assert scalars.clean("a\ud800") == "a?"
