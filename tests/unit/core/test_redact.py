"""Secrets leave neither a text nor a stream, wherever the stream is cut."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from fabric.core.redact import Redactor, names_a_secret, secrets_of

SECRET = "hunter2-hunter2"
PIECES = st.lists(
    st.sampled_from([SECRET, "hunter2-", "hunter", "2", "\n", "漢", "x"]), max_size=12
)


@given(PIECES, st.lists(st.integers(0, 60), max_size=8))
def test_a_stream_cut_anywhere_says_what_the_whole_would(pieces, cuts):
    text = "".join(pieces)
    data = text.encode()
    redactor = Redactor([SECRET])
    edges = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    made = b"".join(redactor.feed(data[start:end]) for start, end in itertools.pairwise(edges))
    assert made + redactor.flush() == redactor.text(text).encode()


@given(st.text("abc", min_size=6, max_size=9), st.text("abc", min_size=6, max_size=9), PIECES)
def test_no_secret_of_several_is_left(one, two, pieces):
    redactor = Redactor([one, two])
    data = (one + "".join(pieces) + two + one).encode()
    made = b"".join(redactor.feed(data[at : at + 1]) for at in range(len(data)))
    made += redactor.flush()
    assert one.encode() not in made
    assert two.encode() not in made


def test_what_is_held_back_is_never_longer_than_a_secret():
    redactor = Redactor([SECRET])
    assert redactor.feed(b"$ hunter2-hunter") == b"$ "
    assert redactor.feed(b"!") == b"hunter2-hunter!"
    assert redactor.flush() == b""


def test_names_decide_what_is_secret_and_short_values_are_none():
    found = secrets_of(
        {"API_KEY": "k" * 8, "db_password": "p" * 8, "HOME": "/home/someone", "TOKEN": "1"}
    )
    assert found == {"k" * 8, "p" * 8}
    assert names_a_secret("My_Secret_Thing")
    assert not names_a_secret("PATH")


def test_without_secrets_everything_passes():
    redactor = Redactor([])
    assert redactor.feed(b"abc") == b"abc"
    assert redactor.text("abc") == "abc"
