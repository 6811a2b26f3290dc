"""Results that a policy has replaced are bounded on the last mile."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.core.errors import InvalidRequestError
from fabric.tools.bound import size
from fabric.tools.policy import finalize_blocks
from fabric.tools.table import Surface


def text(value):
    return {"type": "text", "text": value}


@given(st.text(max_size=2000), st.integers(64, 2100))
def test_one_text_is_bounded_and_says_that_it_was_cut(reason, bound):
    (block,) = finalize_blocks([text(reason)], bound)
    assert size(block["text"]) <= bound
    if size(reason) > bound:
        assert block["text"].endswith("\n[output truncated]")
    else:
        assert block["text"] == reason


def test_a_tasks_result_says_result():
    (block,) = finalize_blocks([text("denied " * 100)], 64, Surface.TASK)
    assert block["text"].startswith("denied ")
    assert block["text"].endswith("\n[result truncated]")


@pytest.mark.parametrize(
    "blocks",
    [
        [],
        [text("x" * 500), text("y" * 500)],
        [{"type": "image", "data": "x" * 500}],
        [{"type": "text"}],
    ],
)
def test_anything_but_one_text_passes_untouched(blocks):
    assert finalize_blocks(blocks, 64) == blocks


def test_what_else_a_block_carries_stays_and_the_given_one_is_not_changed():
    given_block = text("x" * 500) | {"annotations": {"audience": ["user"]}}
    (block,) = finalize_blocks([given_block], 64)
    assert block["annotations"] == {"audience": ["user"]}
    assert len(given_block["text"]) == 500


def test_a_bound_below_the_least_is_refused():
    with pytest.raises(InvalidRequestError):
        finalize_blocks([], 63)
