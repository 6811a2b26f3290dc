"""Counting and cutting by UTF-8 size."""

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.text.streams import THOROUGH
from workers.text.utf8 import byte_length, newest, oldest


@THOROUGH
@given(st.text(), st.integers(0, 30))
def test_cuts_are_the_longest_that_fit(text, limit):
    for kept, whole in (
        (newest(text, limit), lambda n: text[len(text) - n :]),
        (oldest(text, limit), lambda n: text[:n]),
    ):
        assert kept == whole(len(kept))
        assert byte_length(kept) <= limit
        assert len(kept) == len(text) or byte_length(whole(len(kept) + 1)) > limit


def test_nothing_fits_in_nothing():
    assert newest("abc", 0) == oldest("abc", 0) == newest("日", 2) == oldest("日", -1) == ""
