"""Cuts never exceed their bound, never split a code point, and keep what must stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.tools.bound import (
    TRUNCATED,
    finalize,
    keep_ends,
    keep_head,
    keep_tail,
    reserve,
    reserve_prefix,
    size,
)

TEXT = st.text(max_size=400)


@given(TEXT, st.integers(0, 500))
def test_head_and_tail_are_whole_code_points_within_the_bound(text, bound):
    for cut, whole in (
        (keep_head(text, bound), text.startswith),
        (keep_tail(text, bound), text.endswith),
    ):
        assert size(cut) <= bound
        assert whole(cut)
        if size(text) <= bound:
            assert cut == text


@given(TEXT, st.integers(64, 700), st.booleans())
def test_a_reserved_suffix_is_always_whole(body, bound, truncated):
    suffix = "\n[wait: stdin_read]\n[session: running]"
    made = reserve(body, suffix, bound, truncated=truncated)
    assert size(made) <= bound
    assert suffix in made
    assert made.count(TRUNCATED) == int(truncated or size(body + suffix) > bound)


@given(st.text(min_size=1, max_size=20), st.integers(150, 400), st.integers(2100, 2900))
def test_a_long_body_keeps_both_ends_and_says_what_is_missing(piece, count, bound):
    text = piece * (count * 20 // len(piece))
    made = keep_ends(text, bound)
    assert size(made) <= bound
    head, rest = made.split("\n[… ", 1)
    count, tail = rest.split(" bytes omitted …]\n", 1)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert size(head) + size(tail) + int(count) == size(text)


@pytest.mark.parametrize("bound", range(1, 40))
def test_tiny_bounds_hold_for_every_shape(bound):
    assert size(reserve("body", "\n[wait: timeout]", bound, truncated=True)) <= bound
    assert size(reserve_prefix("started x\n", "motd" * 30, bound, truncated=False)) <= bound
    assert size(finalize("x" * 100, bound)) <= bound


def test_an_acknowledgement_bound_to_8_bytes_is_exactly_8_long():
    assert size(finalize("delivered SIGINT to foreground process group 10", 8)) == 8
    assert finalize("delivered SIGINT to foreground process group 10", 32).endswith(TRUNCATED)
