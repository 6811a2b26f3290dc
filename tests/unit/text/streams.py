"""Hypothesis strategies for what terminals are sent, and ways to divide it."""

import os
from collections.abc import Iterator

from hypothesis import settings
from hypothesis import strategies as st

# More examples on demand: FABRIC_EXAMPLES=2000 for a night, the default for a minute.
EXAMPLES = int(os.environ.get("FABRIC_EXAMPLES", "40"))
THOROUGH = settings(max_examples=EXAMPLES, deadline=None, database=None)
LIMIT_S = 30 + EXAMPLES / 4

WORDS = st.text(
    alphabet=st.sampled_from("abc xyz01 $é日本ü\u0308\u200d👨🔧─|"), min_size=1, max_size=12
).map(str.encode)
LINE_EDITS = st.sampled_from(
    [
        b"\r", b"\b", b"\b \b", b"\t", b"\n", b"\r\n", b"\r\r\n",
        b"\x1b[K", b"\x1b[0K", b"\x1b[1K", b"\x1b[2K", b"\x1b[C", b"\x1b[3C", b"\x1b[D", b"\x1b[2D",
        b"\x1b[5G", b"\x1b[P", b"\x1b[2P", b"\x1b[@", b"\x1b[3X", b"\x1b[9D",
    ]
)  # fmt: skip
OTHER = st.sampled_from(
    [
        b"\x1b[0m", b"\x1b[01;31m", b"\x1b[38;5;1m", b"\x1b[?25l", b"\x1b[?2004h",
        b"\x1b[?2004l", b"\x1b[?1h", b"\x1b[?1l", b"\x1b[?1049h", b"\x1b[?1049l",
        b"\x1b[?1000h", b"\x1b=", b"\x1b>", b"\x1b]0;title\x07", b"\x1b]2;t\x1b\\",
        b"\x1b]52;c;aGk=\x07", b"\x1bPq#0;1\x1b\\", b"\x1b_app\x1b\\", b"\x1b^pm\x1b\\",
        b"\x1bXsos\x1b\\", b"\x1bktitle\x1b\\", b"\x1b]0;open", b"\x1bP", b"\x1b(0", b"\x1b)B",
        b"\x0e", b"\x0f", b"\x1b7", b"\x1b8", b"\x1bM", b"\x1bD", b"\x1bE", b"\x1bc", b"\x1b[H",
        b"\x1b[2J", b"\x1b[J", b"\x1b[3J", b"\x1b[1J", b"\x1b[5;9H", b"\x1b[2A", b"\x1b[B",
        b"\x1b[r", b"\x1b[2;4r", b"\x1b[L", b"\x1b[S", b"\x1b[b", b"\x1b[3b", b"\x1b[s",
        b"\x1b[u", b"\x1b[I", b"\x1b[2Z", b"\x1b[!p", b"\x1b[>4;2m", b"\x1b[c", b"\x1b[6n",
        b"\x1b[12", b"\x1b[", b"\x1b", b"\x1b\x1b", b"\x1b[1\x18", b"\x1b[\x1b[1m", b"\x1b[9\n",
        b"\x07", b"\x00", b"\x7f", b"\x9b", b"\xc2\x9b", b"\xc2\x9d", b"\xff", b"\xe6\x97",
        b"\xf0\x9f\x91", b"\xe2\x82\xac", b"\x1b]133;D;n0;0;/tmp\x07", b"\x1b]133;P;n0\x1b\\",
        b"\x1b]133;C;n0\x07", b"\x1b]133;D;other;1\x07", b"\x1b]133;D;n0;999\x07",
        b"\x1b]133;D;n0",
    ]
)  # fmt: skip
LINES = st.lists(st.one_of(WORDS, LINE_EDITS), max_size=25).map(b"".join)
STREAMS = st.lists(st.one_of(WORDS, LINE_EDITS, OTHER, st.binary(max_size=4)), max_size=30).map(
    b"".join
)
CUTS = st.lists(st.integers(0, 400), max_size=8)


def divided(data: bytes, cuts: list[int]) -> Iterator[bytes]:
    """Cut ``data`` at the given places (modulo its length)."""
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    for begin, end in zip([0, *places], [*places, len(data)], strict=True):
        yield data[begin:end]


def singly(data: bytes) -> Iterator[bytes]:
    """Cut ``data`` into single bytes."""
    return (data[i : i + 1] for i in range(len(data)))
