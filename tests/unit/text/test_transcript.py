"""The text view on literal input."""

import pytest

from workers.text.marks import Mark, MarkKind
from workers.text.modes import TerminalModes
from workers.text.transcript import Transcript


def transcript(*, lines: int = 1000, max_bytes: int = 1 << 20, carry: int = 65_536) -> Transcript:
    return Transcript(nonce="n0", max_lines=lines, max_bytes=max_bytes, carry_bytes=carry)


def text_of(*pieces: bytes | str, carry: int = 65_536) -> str:
    made = transcript(carry=carry)
    for piece in pieces:
        made.feed(piece.encode() if isinstance(piece, str) else piece)
    made.flush()
    return made.page(0, 1000, 1 << 20).text


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("\rprog   0%\rprog  50%\rprog 100%\r\n", "prog 100%"),
        ("temporary text here\r\x1b[Kfinal-64\r\nxxxx\x1b[2K\rdone-66\r\n", "final-64\ndone-66"),
        ("\x1b[1;38;2;9;8;7mERR-46\x1b[0m ok\x1b[K\r\n", "ERR-46 ok"),
        ("\x1b]0;C:\\WINDOWS title\x07shown-50\r\n\x1b]2;t\x1b\\also-52\r\n", "shown-50\nalso-52"),
        (b"a\xc2\x9eb\nvis-54\nc\xc2\x9dd\xc2\x90e\nvis-81\n", "ab\nvis-54\ncde\nvis-81"),
        ("\x1b)0\x0e\x1b(0abc-74\n", "abc-74"),
        ("東京 👨\u200d🔧 o\u0308k n\u0303z█|\n", "東京 👨\u200d🔧 o\u0308k n\u0303z█|"),
        (b"bad\xff\xfe\xf0byte-68\n", "bad\ufffd\ufffd\ufffdbyte-68"),
        ("a\x1b]0;title\x1b\\b\x1b7c\x07", "abc"),
        ("red\x1b[31m text\x1b[0m\r\n", "red text"),
        ("a\tb\r\nc\x00\x01\x7fd\x0c\x0be", "a\tb\ncde"),
        ("abc\b \b\b \bX", "aX"),
        ("abc\b\bX", "aXc"),
        ("12345\x1b[3DX\x1b[CY", "12X4Y"),
        ("12345\x1b[2GX\x1b[4`Y", "1X3Y5"),
        ("a\x1b[5Cb", "a     b"),
        ("12345\x1b[3D\x1b[1KX", "  X45"),
        ("12345\x1b[3G\x1b[P\x1b[2@", "12  45"),
        ("12345\x1b[2G\x1b[3XY", "1Y  5"),
        ("東京\r\x1b[CX", " X京"),
        ("東京\rX", "X 京"),
        ("abcdefghij\r\tX", "abcdefghXj"),
        ("a\tb\r\x1b[3CX", "a  X    b"),
        ("x\x1b[Iy\x1b[Zz", "x       z"),
        ("=\x1b[5b", "======"),
        ("a\r\nb\r\r\nc\r\n", "a\nb\nc"),
        ("\x1b7one\x1b8two", "two"),
        ("\x1b[sab\x1b[uc", "cb"),
        ("\x1b]52;c;c2VjcmV0\x07\x1b[c\x1b[6n\x1b[21tx", "x"),
        ("\x1b]133;D;forged;0\x07$ \x1b]133;A\x07", "$ "),
        ("\x1b[5;3\x18m\x1b[4\x1am", "mm"),
        ("\x1b[12\nx", "\nx"),
        ("\x1b\x1b[0m[31m", "[31m"),
        ("\x1b[12\x1b[0mm", "m"),
        ("\x1b[é", "é"),
    ],
)
def test_controls_act_within_the_line(data, shown):
    assert text_of(data) == shown


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        ("kept\r\n\x1b[H\x1b[2J\x1b[3Jnew", "kept\nnew"),
        ("\x1b[?1049h\x1b[2;5Halt\x1b[?25l\x1b[?1049l\x1b[?25hmain\r\n", "    alt\nmain"),
        ("row\x1b[5;1Hother\x1b[6dmore", "row\nother\n     more"),
        ("one\x1b[Btwo\x1b[Athree", "one\n   two\n      three"),
        ("one\x1b[Etwo\x1b[Fthree\x1bEfour", "one\ntwo\nthree\nfour"),
        ("one\x1bDtwo\x1bMthree", "one\n   two\n      three"),
        ("one\x1b[rtwo\x1b[Lthree\x1b[Mfour", "one\ntwo\nthree\nfour"),
        ("one\x1bctwo", "one\ntwo"),
        ("one\r\x1b[Btwo", "one\ntwo"),
        ("one\x1b[Stwo", "one\n   two"),
        ("one\x1b[3Ktwo\x1b[3Jx\x1b[4l\x1b[5n\x1b[ @", "onetwox"),
        ("a\x1b[2Jb", "a\n b"),
        ("abc\x1b[2D\x1b[J", "a"),
        ("abc\x1b[D\x1b[1Jx", "  x"),
        ("   \x1b[Hx", "x"),
        ("\x1b7one\r\ntwo\x1b8x", "one\ntwo\nx"),
    ],
)
def test_moves_that_leave_the_line_begin_a_new_one(data, shown):
    assert text_of(data) == shown


@pytest.mark.parametrize("opener", ["\x1b]0;", "\x1bP", "\x1bX", "\x1b^", "\x1b_", "\x1bk"])
def test_an_unterminated_string_costs_the_rest_of_its_line_only(opener):
    assert text_of(f"a{opener}swallowed\nvisible") == "a\nvisible"
    assert text_of(f"a{opener}swallowed", "\x1b[1mvisible") == "avisible"


def test_a_string_above_the_carry_bound_is_dropped_and_text_flows_again():
    assert text_of("\x1b]0;" + "x" * 6 + "visible", carry=8) == "visible"
    assert text_of("\x1b]0;", "x" * 6, "visible", carry=8) == "visible"
    assert text_of("\x1b]0;" + "x" * 100_000 + "visible", carry=65_536).endswith("xvisible")
    assert text_of("\x1b]0;", *["x" * 50] * 1000, "\x07", "visible") == "visible"


def test_an_endless_sequence_is_bounded():
    assert text_of("\x1b[" + "1" * 20 + "mx", carry=8) == "1" * 12 + "mx"


def test_an_incomplete_sequence_vanishes_at_the_end_and_flush_is_repeatable():
    made = transcript()
    made.feed(b"x\x1b")
    made.flush()
    made.flush()
    made.feed(b"y\xe6\x97")
    made.flush()
    assert made.page(0, 9, 99).text == "xy\ufffd"
    made.feed(b"\x1b]0;" + b"t" * 1000 + b"\xe6")
    made.flush()
    made.feed(b"z")
    assert made.page(0, 9, 99).text == "xy\ufffdz"


def test_marks_come_with_status_and_folder_and_start_the_text_after_them():
    made = transcript()
    assert made.text_since_mark is None
    assert made.feed(b"\x1b]133;") == []
    assert made.text_since_mark is None
    assert made.feed(b"D;n0;127;/tmp/a%20b%3Bc\x07$ ") == [Mark(MarkKind.PROMPT, 127, "/tmp/a b;c")]
    assert made.text_since_mark == "$ "
    assert made.feed(b"if\r\n\x1b]133;P;n0\x1b\\> ") == [Mark(MarkKind.CONTINUATION)]
    assert made.text_since_mark == "> "
    assert made.feed(b"x\r\n\x1b]133;C;n0\x07out\r\nmore") == [Mark(MarkKind.COMMAND)]
    assert made.text_since_mark == "out\nmore"
    assert made.page(0, 99, 999).text == "$ if\n> x\nout\nmore"


@pytest.mark.parametrize(
    ("after", "since"),
    [
        (b"$ ", "$ "),
        (b"$ ls\b \b\b \b", "$ "),
        (b"$ ls\r\x1b[K$ ", "$ "),
        (b"$ ls\x1b[2K\r$ ", "$ "),
        (b"$ ls\r$ \x1b[K", "$ "),
        (b"$ ls\r    \r$ ", "$ "),
        (b"$ ls\x1b[2D\x1b[2P", "$ "),
        (b"$ ls\x1b[H\x1b[2J$ ", "$ "),
        (b"$ ls\x1b[H\x1b[J$ ", "$ "),
        (b"\x1b[?2004h$ \x1b[0m", "$ "),
        (b"$ \x07", "$ "),
        (b"$ ls", "$ ls"),
        (b"$ \r\n", "$ \n"),
        (b"$ x\x1b[1;1Hy", "$ x\ny"),
    ],
)
@pytest.mark.parametrize("before", [b"", b"out\r\n", b"\r", b"done\r\n\r"])
def test_text_after_the_mark_is_what_stands_there(before, after, since):
    made = transcript()
    made.feed(before + b"\x1b]133;D;n0;0\x07" + after)
    assert made.text_since_mark == since


def test_a_prompt_behind_unfinished_output_is_exact_and_so_is_its_redrawing():
    made = transcript()
    made.feed(b"no newline\x1b]133;D;n0;0\x07$ ")
    assert made.text_since_mark == "$ "
    made.feed(b"x\b \b")
    assert made.text_since_mark == "$ "
    made.feed(b"\r\x1b[K$ ")
    assert made.text_since_mark == "$ "


def test_text_after_the_mark_is_bounded_however_much_follows():
    made = transcript(max_bytes=100)
    made.feed(b"\x1b]133;D;n0;0\x07$ " + b"x" * 50_000)
    assert len(made.text_since_mark or "") == 4096
    made.feed(b"\r\n" * 5 + b"$ ")
    assert (made.text_since_mark or "").startswith("$ xxx")


def test_readline_scrolling_a_long_line_shows_what_a_person_sees():
    made = transcript()
    capture_from = made.capture(1000)
    made.feed(b"\x1b]133;D;n0;0\x07$ \r<42 arg43 arg44\r\nstart-81\r\n")
    assert capture_from.render().text == "<42 arg43 arg44\nstart-81\n"


def test_modes_follow_the_application():
    made = transcript()
    assert made.modes == TerminalModes()
    made.feed(b"\x1b[?2004;1h\x1b[?1049h\x1b[?25l\x1b[?1002;1006h\x1b=\x1b[?1004h")
    assert made.modes == TerminalModes(True, True, True, True, False, True, 1002, True)
    made.feed(b"\x1b[?2004l\x1b[?1002l\x1b[!p")
    assert made.modes == TerminalModes(alternate_screen=True, focus_events=True, mouse_sgr=True)
    made.feed(b"\x1b[?9h\x1b[?1047l\x1b[?66h\x1b>\x1b[?777h\x1b[4h\x1b[=5h")
    assert made.modes == TerminalModes(focus_events=True, mouse=9, mouse_sgr=True)
    made.feed(b"\x1bc")
    assert made.modes == TerminalModes()


def test_paging_arithmetic():
    made = transcript(lines=10_000)
    made.feed(b"".join(b"L%d\r\n" % n for n in range(23)) + b"$ ")
    assert made.total_lines == 24
    page = made.page(2, 2, 1000)
    assert (page.text, page.line_begin, page.line_end, page.total_lines) == ("L20\nL21", 2, 4, 24)
    beyond = made.page(9999, 5, 1000)
    assert (beyond.text, beyond.line_begin, beyond.line_end) == ("", 9999, 9999)
    assert not beyond.truncated
    last = made.page(22, 10, 1000)
    assert (last.text, last.line_end) == ("L0\nL1", 24)
    cut = made.page(0, 3, 4)
    assert (cut.text, cut.line_end, cut.truncated) == ("2\n$ ", 2, True)


def test_a_page_is_truncated_only_by_what_it_would_have_shown():
    made = transcript(lines=10)
    made.feed(b"".join(b"L%d\r\n" % n for n in range(30)))
    assert made.dropped_lines == 20
    assert made.dropped_bytes == sum(len(f"L{n}\n") for n in range(20))
    assert not made.page(0, 10, 1000).truncated
    assert made.page(0, 11, 1000).truncated
    assert made.page(0, 11, 1000).dropped_lines == 20
    assert made.page(10, 1, 1000).truncated


def test_both_bounds_hold_and_cut_at_code_points():
    made = transcript(lines=3, max_bytes=12)
    made.feed("界\n界\n界\n界\n".encode())
    assert made.page(0, 10, 6).text == "\n界"
    assert made.page(0, 10, 6).truncated
    assert made.page(0, 10, 1).text == ""
    assert made.page(0, 10, 1).line_end == 0
    made.feed("日本語日本語日本語".encode())
    assert made.page(0, 10, 100).text == "語日本語"
    assert (made.total_lines, made.dropped_lines, made.dropped_bytes) == (1, 4, 16 + 15)
    assert made.page(0, 1, 100).truncated


def test_tail_is_a_cursor_of_whole_lines():
    made = transcript(lines=50)
    made.feed(b"motd\r\n$ ")
    cursor = made.next_line
    assert made.tail(cursor, 200, 1000).lines == 0
    made.feed(b"ping\r\npong\r\nPassword: ")
    page = made.tail(cursor, 200, 1000)
    assert (page.text, page.lines, page.truncated) == ("$ ping\npong", 2, False)
    assert made.tail(page.next_line, 200, 1000).lines == 0
    made.feed(b"\r\n")
    assert made.tail(page.next_line, 200, 1000).text == "Password: "
    made.feed(b"".join(b"%d\r\n" % n for n in range(100)))
    backlog = made.tail(page.next_line, 3, 1000)
    assert (backlog.text, backlog.lines, backlog.truncated) == ("97\n98\n99", 3, True)
    assert made.tail(backlog.next_line, 3, 1000).lines == 0
    assert made.tail(0, 1000, 1000).truncated
    assert made.tail(0, 1000, 5).text == "98\n99"
    assert made.tail(0, 1000, 1).text == "9"
    assert made.tail(10_000, 5, 5).truncated


def test_a_giant_line_is_one_bounded_line():
    made = transcript(max_bytes=1 << 20)
    piece = b"0123456789" * 6_554
    for _ in range(64):
        made.feed(piece)
    assert made.total_lines == 1
    assert made.dropped_lines == 0
    assert made.dropped_bytes == 64 * len(piece) - (1 << 20)
    page = made.page(0, 1, 1 << 21)
    assert (len(page.text), page.truncated) == (1 << 20, True)
    made.feed(b"\r\nnext")
    assert made.page(0, 1, 100).text == "next"
    assert len(made.page(1, 1, 1 << 21).text) == (1 << 20) - 5


def test_a_return_on_a_giant_line_reaches_the_window_only():
    made = transcript(max_bytes=1 << 20)
    made.feed(b"a" * 100_000 + b"\rb")
    text = made.page(0, 1, 1 << 20).text
    assert len(text) == 100_000
    assert text.index("b") == 100_000 - 4_096


def test_marks_and_captures_hold_their_place_in_a_giant_edited_line():
    made = transcript(max_bytes=1 << 20)
    early = made.capture(1 << 20)
    made.feed(b"a" * 3000 + b"\b\b")
    late = made.capture(1 << 20)
    made.feed(b"\x1b]133;C;n0\x07" + b"b" * 3000)
    assert made.text_since_mark == "b" * 3000
    made.feed(b"c" * 3000 + b"\bd")
    middle = made.capture(1 << 20)
    made.feed(b"e" * 1000 + "日".encode() * 2000 + b"\bx")
    whole = "a" * 2998 + "b" * 3000 + "c" * 2999 + "d" + "e" * 1000 + "日" * 1999 + " x"
    assert made.page(0, 1, 1 << 20).text == whole
    assert early.render().text == whole
    assert late.render().text == whole[2998:]
    assert middle.render().text == whole[8998:]
    assert made.text_since_mark == whole[2998 : 2998 + 4096]


def test_a_tail_shows_what_is_left_of_a_cut_line():
    made = transcript(max_bytes=20)
    made.feed(b"0123456789012345678\nabc\n")
    page = made.tail(0, 10, 100)
    assert (page.text, page.lines, page.truncated) == ("456789012345678\nabc", 2, True)
    made.feed(b"x")
    assert made.page(0, 1, 100).text == "x"
    assert made.tail(1, 10, 100).text == "abc"


def test_a_cut_line_begins_at_a_code_point():
    made = transcript(max_bytes=12)
    made.feed("日本語日本語\nab\n".encode())
    assert made.page(0, 9, 100).text == "本語\nab"
    assert made.dropped_bytes == 12
    made = transcript(max_bytes=4)
    made.feed(b"abc\nde\n")
    assert (made.page(0, 9, 100).text, made.dropped_lines) == ("de", 1)


def test_bounds_filled_exactly_by_the_line_being_written():
    made = transcript(max_bytes=4)
    made.feed(b"abc\nwxyz")
    assert (made.page(0, 9, 100).text, made.dropped_lines) == ("wxyz", 1)
    made = transcript(lines=1)
    made.feed(b"abc\nx")
    assert (made.page(0, 9, 100).text, made.dropped_bytes) == ("x", 4)


def test_a_capture_that_begins_late_in_a_giant_line_has_its_part_only():
    made = transcript(max_bytes=5000)
    made.feed(b"a" * 8000)
    capture = made.capture(100_000)
    made.feed(b"b" * 8000)
    made.feed(b"c" * 8000 + b"\n")
    assert capture.render().text == "b" * 8000 + "c" * 8000 + "\n"


def test_reading_reaches_into_older_blocks():
    made = transcript(lines=20_000)
    for n in range(20_000):
        made.feed(b"line %d\r\n" % n)
    assert made.page(19_998, 1, 100).text == "line 1"
    assert made.page(10_000, 2, 100).text == "line 9998\nline 9999"


def test_feeding_nothing_in_a_long_string_changes_nothing():
    made = transcript()
    for piece in (b"\x1b]0;" + b"x" * 1000, b"", b"\x00", b"y\x1b", b"\\z"):
        made.feed(piece)
    assert made.page(0, 1, 100).text == "z"


def test_feeding_much_at_once_is_divided():
    made = transcript(max_bytes=1 << 16)
    made.feed(b"x" * 99 + b"\n" + b"y\r\n" * 400_000)
    assert made.next_line == 400_001
    assert made.total_lines == 1000
