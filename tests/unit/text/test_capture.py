"""A send's own output within its bound."""

import pytest

from workers.text.capture import HeadTail
from workers.text.transcript import Transcript
from workers.text.utf8 import byte_length


def transcript(lines: int = 10_000, max_bytes: int = 1 << 20) -> Transcript:
    return Transcript(nonce="n0", max_lines=lines, max_bytes=max_bytes, carry_bytes=4096)


def test_head_and_tail_stand_around_a_line_that_says_what_is_missing():
    made = transcript()
    made.feed(b"$ ")
    capture = made.capture(1000)
    for n in range(1000):
        made.feed(b"line %d\r\n" % n)
    made.feed(b"$ ")
    text = capture.render()
    lines = text.text.split("\n")
    at = lines.index(f"[… {text.omitted_bytes} bytes omitted …]")
    assert text.truncated
    assert lines[0] == "line 0"
    assert lines[-1] == "$ "
    assert lines[-2] == "line 999"
    assert all(line.startswith("line ") for line in lines[:at] + lines[at + 1 : -1])
    assert byte_length(text.text) <= 1000
    whole = byte_length("".join(f"line {n}\n" for n in range(1000)) + "$ ")
    kept = byte_length(text.text) - byte_length(lines[at]) - 1
    assert kept + text.omitted_bytes == whole


def test_it_stays_right_when_retention_drops_its_lines():
    made = transcript(lines=5, max_bytes=64)
    capture = made.capture(100_000)
    for n in range(500):
        made.feed(b"line %d\n" % n)
    assert capture.render().text == "".join(f"line {n}\n" for n in range(500))
    assert not capture.render().truncated


def test_wide_text_is_cut_at_code_points_with_a_line_of_its_own_for_the_gap():
    made = transcript()
    capture = made.capture(200)
    made.feed("日本".encode() * 100)
    text = capture.render()
    head, gap, tail = text.text.split("\n")
    assert gap.startswith("[… ")
    assert set(head) == set(tail) == {"日", "本"}
    assert byte_length(text.text) <= 200


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 8, 30, 34, 36, 40, 64])
def test_the_bound_holds_however_small(limit):
    made = transcript()
    capture = made.capture(limit)
    made.feed("日本語\r\n".encode() * 100 + b"end")
    text = capture.render()
    assert byte_length(text.text) <= limit
    assert text.truncated
    if limit >= 3:
        assert text.text.endswith("end")


def test_a_giant_line_keeps_its_beginning():
    made = transcript(max_bytes=65_536)
    capture = made.capture(1000)
    made.feed(b"BEGIN" + b"x" * 300_000)
    made.feed(b"y" * 300_000 + b"END")
    text = capture.render()
    assert text.text.startswith("BEGINxxx")
    assert text.text.endswith("yyyEND")


def test_an_edit_left_of_its_beginning_belongs_to_it():
    made = transcript()
    made.feed(b"$ ")
    capture = made.capture(1000)
    made.feed(b"ls -l\r\x1b[K$ pwd\r\n/tmp\r\n$ ")
    assert capture.render().text == "$ pwd\n/tmp\n$ "


def test_a_newline_after_its_beginning_is_no_output_of_the_line_before():
    made = transcript()
    made.feed(b"abc\r")
    capture = made.capture(1000)
    made.feed(b"\nx")
    assert capture.render().text == "\nx"


def test_taking_while_it_runs_gives_whole_lines_and_the_rest_at_the_end():
    made = transcript()
    made.feed(b"$ ")
    capture = made.capture(1000)
    assert capture.take().text == ""
    made.feed(b"make\r\npart 1\r\npart")
    assert capture.take().text == "make\npart 1\n"
    assert capture.take().text == ""
    made.feed(b" 2\r\n$ ")
    assert capture.take(final=True).text == "part 2\n$ "
    assert capture.take(final=True).text == ""
    capture.close()
    capture.close()
    made.feed(b"later")
    assert capture.take().text == ""
    assert capture.render().text == "make\npart 1\npart 2\n$ "


def test_a_take_is_bounded_too():
    made = transcript()
    capture = made.capture(100)
    capture.take()
    made.feed(b"0123456789\r\n" * 100)
    piece = capture.take()
    assert piece.truncated
    assert byte_length(piece.text) <= 100
    made.feed(b"short\r\n")
    assert capture.take().text == "short\n"


def test_memory_is_bounded_in_a_flood():
    buffer = HeadTail(1000)
    for _ in range(1000):
        buffer.add("x" * 300 + "\n")
    buffer.add("y" * 1_000_000)
    assert sum(map(len, buffer._tail)) <= 2000
    assert buffer.render().text.endswith("yyy")
