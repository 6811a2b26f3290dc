"""Whatever is sent, and however it is divided."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.text.naive import Naive
from tests.unit.text.streams import CUTS, LIMIT_S, LINES, STREAMS, THOROUGH, divided, singly
from workers.text.transcript import Transcript
from workers.text.utf8 import byte_length

pytestmark = pytest.mark.timeout(LIMIT_S)


def transcript(
    *, lines: int = 1000, max_bytes: int = 100_000, carry: int = 4096, window: int | None = None
) -> Transcript:
    made = Transcript(nonce="n0", max_lines=lines, max_bytes=max_bytes, carry_bytes=carry)
    if window is not None:
        made._line._window = window
    return made


def shown(made: Transcript, pieces: Iterable[bytes], *, flush: bool = True) -> tuple[object, ...]:
    capture = made.capture(10_000)
    marks = [mark for piece in pieces for mark in made.feed(piece)]
    if flush:
        made.flush()
    page = made.page(0, 10_000, 1_000_000)
    return page, capture.render(), marks, made.text_since_mark, made.modes, made.next_line


@THOROUGH
@given(STREAMS, CUTS)
def test_any_division_gives_the_same(data, cuts):
    whole = shown(transcript(), [data])
    assert shown(transcript(), singly(data)) == whole
    assert shown(transcript(), divided(data, cuts)) == whole


@THOROUGH
@given(STREAMS, CUTS)
def test_any_division_gives_the_same_within_tight_bounds(data, cuts):
    def tight() -> Transcript:
        return transcript(lines=4, max_bytes=24, carry=8, window=10)

    whole = shown(tight(), [data])
    assert shown(tight(), singly(data)) == whole
    assert shown(tight(), divided(data, cuts)) == whole


@THOROUGH
@given(LINES, CUTS)
def test_lines_are_what_a_character_by_character_terminal_shows(data, cuts):
    made = transcript()
    for piece in divided(data, cuts):
        made.feed(piece)
    assert made.page(0, 10_000, 1_000_000).text.split("\n") == (
        Naive().feed(data.decode(errors="replace")).lines or [""]
    )


@THOROUGH
@given(STREAMS)
def test_no_control_is_ever_shown(data):
    page, *_ = shown(transcript(), [data])
    assert not any(ord(c) < 32 and c not in "\n\t" for c in page.text)
    assert not any(0x7F <= ord(c) < 0xA0 for c in page.text)


@THOROUGH
@given(STREAMS)
def test_later_text_always_flows_again(data):
    made = transcript(carry=64)
    made.feed(data)
    made.feed(b"\nx" * 3 + b"\nvisible\n")
    assert made.page(0, 1, 100).text == "visible"


@THOROUGH
@given(STREAMS, STREAMS)
def test_nothing_takes_back_a_finished_line(before, after):
    made = transcript()
    made.feed(before + b"\n")
    kept = made.next_line
    text = made.page(0, 10_000, 1_000_000).text.split("\n")[:kept]
    made.feed(after)
    assert made.page(0, 10_000, 1_000_000).text.split("\n")[:kept] == text


@THOROUGH
@given(STREAMS, CUTS, st.integers(0, 300))
def test_a_capture_is_what_the_log_gained(data, cuts, limit):
    made = transcript()
    made.feed(b"earlier\r\n")
    capture, bounded = made.capture(100_000), made.capture(limit)
    for piece in divided(data, cuts):
        made.feed(piece)
    first = made.next_line
    everything = made.page(0, 10_000, 1_000_000).text.split("\n")[1:]
    text = capture.render().text
    assert text.rstrip("\n") == "\n".join(everything).rstrip("\n")
    assert text.count("\n") == first - 1
    cut = bounded.render()
    assert byte_length(cut.text) <= limit
    assert cut.truncated == (byte_length(text) > limit)
    assert not cut.truncated or cut.omitted_bytes > 0
    assert cut.truncated or cut.text == text


@THOROUGH
@given(STREAMS, CUTS, st.lists(st.booleans(), max_size=9))
def test_taken_pieces_are_the_output_each_part_once(data, cuts, takes):
    made = transcript()
    made.feed(b"$ ")
    capture = made.capture(100_000)
    taken = []
    for piece, take in zip(divided(data, cuts), [*takes, *[False] * 9], strict=False):
        made.feed(piece)
        if take:
            part = capture.take().text
            assert part == "" or part.endswith("\n")
            taken.append(part)
    capture.close()
    made.feed(b"later output\n")
    taken.append(capture.take().text)
    assert capture.take().text == ""
    assert "".join(taken) == capture.render().text


@THOROUGH
@given(STREAMS, st.integers(1, 7), st.integers(1, 12), st.integers(1, 200))
def test_pages_are_contiguous(data, count, lines, max_bytes):
    made = transcript(lines=lines, max_bytes=max_bytes)
    made.feed(data)
    whole = made.page(0, 100_000, 1_000_000)
    assert whole.total_lines <= lines
    assert byte_length(whole.text) <= max_bytes
    pages, offset = [], 0
    while True:
        page = made.page(offset, count, 1_000_000)
        assert (page.line_begin, page.total_lines) == (offset, whole.total_lines)
        if page.line_end == offset:
            break
        pages.append(page.text)
        offset = page.line_end
    assert offset == whole.total_lines
    assert "\n".join(reversed(pages)) == whole.text


@THOROUGH
@given(STREAMS, CUTS)
def test_tails_deliver_each_finished_line_once(data, cuts):
    made = transcript()
    cursor, seen = 0, []
    for piece in divided(data, cuts):
        made.feed(piece)
        page = made.tail(cursor, 1000, 100_000)
        assert not page.truncated
        assert made.tail(page.next_line, 1000, 100_000).lines == 0
        seen += page.text.split("\n") if page.lines else []
        cursor = page.next_line
    assert seen == made.page(0, 1000, 1_000_000).text.split("\n")[: made.next_line]


@THOROUGH
@given(STREAMS, st.integers(1, 5), st.integers(1, 60))
def test_what_is_retained_is_the_newest(data, lines, max_bytes):
    wide, narrow = transcript(), transcript(lines=lines, max_bytes=max_bytes)
    wide.feed(data)
    narrow.feed(data)
    kept = narrow.page(0, 1000, 1_000_000)
    assert wide.page(0, 1000, 1_000_000).text.endswith(kept.text)
    assert narrow.dropped_lines + narrow.total_lines == wide.total_lines
    total = byte_length(wide.page(0, 1000, 1_000_000).text) + (wide.total_lines == wide.next_line)
    end = wide.total_lines == wide.next_line and kept.total_lines > 0
    assert narrow.dropped_bytes + byte_length(kept.text) + end == (total if wide.total_lines else 0)
