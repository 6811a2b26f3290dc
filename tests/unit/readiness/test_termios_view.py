import termios

import pytest

from fabric.core.model import PromptKind
from workers.readiness.termios_view import (
    CANONICAL_LIMIT,
    TermiosView,
    is_line_editor,
    kind_of,
    longest_line,
    view_of,
    wakes_reader,
)

COOKED_L = termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN


def attributes(iflag=termios.ICRNL | termios.IXON, lflag=COOKED_L, oflag=termios.OPOST, **chars):
    table = [b"\x00"] * 32
    table[termios.VINTR], table[termios.VQUIT], table[termios.VSUSP] = b"\x03", b"\x1c", b"\x1a"
    table[termios.VEOF], table[termios.VKILL] = b"\x04", b"\x15"
    table[termios.VEOL], table[termios.VEOL2] = b"\x00", b"\xff"
    for name, value in chars.items():
        table[getattr(termios, name)] = value
    return [iflag, oflag, 0, lflag, 0, 0, table]


COOKED = view_of(attributes())
RAW = view_of(attributes(iflag=0, lflag=termios.ISIG, VMIN=1, VTIME=0))


def test_settings_of_a_cooked_terminal():
    assert TermiosView(
        canonical=True, echo=True, signals=True, cr_is_newline=True, ignore_cr=False,
        processes_output=True,
        flow_control=True, line_ends=b"\n\x04", signal_chars=b"\x03\x1c\x1a", line_kill=b"\x15",
    ) == COOKED  # fmt: skip


def test_a_raw_terminal_has_no_line_ends_and_no_limit():
    assert RAW.line_ends == b""
    assert RAW.line_kill == b""
    assert RAW.timeout_s is None
    assert longest_line(b"x" * 9000, RAW, 0) == (0, 0)


def test_a_raw_read_without_minimum_is_bounded():
    assert view_of(attributes(lflag=0, VMIN=0, VTIME=5)).timeout_s == 0.5
    assert view_of(attributes(lflag=0, VMIN=b"\x00", VTIME=b"\x14")).timeout_s == 2.0


@pytest.mark.parametrize(
    ("canonical", "echo", "editor", "kind"),
    [
        (True, True, False, PromptKind.LINE), (True, False, False, PromptKind.PASSWORD),
        (False, False, True, PromptKind.LINE), (False, False, False, PromptKind.KEY),
        (False, True, False, PromptKind.KEY), (None, None, False, PromptKind.NONE),
    ],
)  # fmt: skip
def test_kind_of_a_proved_reader(canonical, echo, editor, kind):
    assert kind_of(canonical, echo, line_editor=editor) is kind


def test_readline_is_known_by_its_settings_and_node_by_its_name():
    readline = view_of(attributes(iflag=0, lflag=termios.ISIG))
    node = view_of(attributes(iflag=0, lflag=0))
    pager = view_of(attributes(lflag=termios.ISIG))
    cbreak = view_of(attributes(lflag=termios.ISIG))
    setraw = view_of(attributes(iflag=0, lflag=0, oflag=0))
    assert is_line_editor(readline, frozenset({"mytool"}))
    assert is_line_editor(node, frozenset({"node"}))
    assert is_line_editor(node, frozenset({"python3.12"}))
    assert not is_line_editor(node, frozenset({"vim"}))
    assert not is_line_editor(pager, frozenset({"less"}))
    assert not is_line_editor(cbreak, frozenset({"python3"}))
    assert not is_line_editor(setraw, frozenset({"python3"}))
    assert not is_line_editor(COOKED, frozenset({"node"}))


@pytest.mark.parametrize(
    ("data", "wakes"),
    [(b"", False), (b"abc", False), (b"abc\n", True), (b"abc\r", True), (b"\x04", True),
     (b"\x03", True), (b"a\x15", False)],
)  # fmt: skip
def test_only_a_whole_line_or_a_signal_can_end_a_canonical_wait(data, wakes):
    assert wakes_reader(data, COOKED) is wakes


def test_every_byte_can_end_a_raw_wait():
    assert wakes_reader(b"a", RAW)
    assert not wakes_reader(b"", RAW)


def test_a_carriage_return_that_is_ignored_ends_nothing():
    view = view_of(attributes(iflag=termios.IGNCR | termios.ICRNL))
    assert not wakes_reader(b"a\r", view)


def test_the_longest_line_is_measured_without_its_end():
    assert longest_line(b"ab\nabcd\nabc", COOKED, 0) == (4, 3)
    assert longest_line(b"ab\rabcd\x04", COOKED, 0) == (4, 0)


def test_an_open_line_counts_with_what_is_added_to_it():
    assert longest_line(b"ab\n", COOKED, 10) == (12, 0)
    assert longest_line(b"ab", COOKED, 10) == (12, 12)


def test_a_killed_line_starts_anew():
    assert longest_line(b"abc\x15de", COOKED, 10) == (13, 2)


def test_the_limit_is_that_of_the_kernel():
    assert CANONICAL_LIMIT in (4095, 1024)
