"""What is a mark and what is not."""

import pytest

from workers.text.marks import Mark, MarkKind, parse_mark


@pytest.mark.parametrize(
    ("body", "mark"),
    [
        ("133;D;k", Mark(MarkKind.PROMPT)),
        ("133;D;k;", Mark(MarkKind.PROMPT)),
        ("133;D;k;0", Mark(MarkKind.PROMPT, 0)),
        ("133;D;k;255;/a%3Bb%20%C3%A9", Mark(MarkKind.PROMPT, 255, "/a;b é")),
        ("133;D;k;1;", Mark(MarkKind.PROMPT, 1)),
        ("133;D;k;;/x", Mark(MarkKind.PROMPT, None, "/x")),
        ("133;P;k", Mark(MarkKind.CONTINUATION)),
        ("133;C;k", Mark(MarkKind.COMMAND)),
        ("133;D;k;256", None),
        ("133;D;k;-1", None),
        ("133;D;k;1e2", None),
        ("133;D;k;0000", None),
        ("133;D;k;²", None),
        ("133;D;other;0", None),
        ("133;X;k;0", None),
        ("133;D", None),
        ("134;D;k", None),
    ],
)
def test_the_grammar(body, mark):
    assert parse_mark(body, "k") == mark


def test_without_a_nonce_nothing_is_a_mark():
    assert parse_mark("133;D;", "") is None
