"""Named keys, by literals, and against what terminfo knows of the common terminals."""

import subprocess
import sys

import pytest

from fabric.core.errors import InvalidRequestError
from workers.terminal.keys import encode
from workers.text.modes import TerminalModes

NORMAL = TerminalModes()
APPLICATION = TerminalModes(application_cursor=True, application_keypad=True)


@pytest.mark.parametrize(
    ("name", "normal", "application"),
    [
        ("Enter", b"\r", b"\r"),
        ("Tab", b"\t", b"\t"),
        ("Escape", b"\x1b", b"\x1b"),
        ("Backspace", b"\x7f", b"\x7f"),
        ("Ctrl-C", b"\x03", b"\x03"),
        ("ctrl-c", b"\x03", b"\x03"),
        ("C-c", b"\x03", b"\x03"),
        ("Ctrl-[", b"\x1b", b"\x1b"),
        ("Ctrl-Space", b"\0", b"\0"),
        ("Ctrl-@", b"\0", b"\0"),
        ("Ctrl-/", b"\x1f", b"\x1f"),
        ("Ctrl--", None, None),
        ("Up", b"\x1b[A", b"\x1bOA"),
        ("Left", b"\x1b[D", b"\x1bOD"),
        ("Home", b"\x1b[H", b"\x1bOH"),
        ("End", b"\x1b[F", b"\x1bOF"),
        ("Ctrl-Up", b"\x1b[1;5A", b"\x1b[1;5A"),
        ("Ctrl-Shift-Left", b"\x1b[1;6D", b"\x1b[1;6D"),
        ("Alt-x", b"\x1bx", b"\x1bx"),
        ("Alt-Enter", b"\x1b\r", b"\x1b\r"),
        ("Alt-Up", b"\x1b[1;3A", b"\x1b[1;3A"),
        ("Shift-Tab", b"\x1b[Z", b"\x1b[Z"),
        ("F1", b"\x1bOP", b"\x1bOP"),
        ("F5", b"\x1b[15~", b"\x1b[15~"),
        ("Shift-F5", b"\x1b[15;2~", b"\x1b[15;2~"),
        ("Ctrl-F1", b"\x1b[1;5P", b"\x1b[1;5P"),
        ("F12", b"\x1b[24~", b"\x1b[24~"),
        ("Delete", b"\x1b[3~", b"\x1b[3~"),
        ("PgUp", b"\x1b[5~", b"\x1b[5~"),
        ("KP5", b"5", b"\x1bOu"),
        ("KPEnter", b"\r", b"\x1bOM"),
        ("x", b"x", b"x"),
        ("-", b"-", b"-"),
        ("Alt--", b"\x1b-", b"\x1b-"),
        ("ü", "ü".encode(), "ü".encode()),
        ("Shift-a", b"A", b"A"),
    ],
)
def test_a_key_is_sent_as_the_application_asked_for_it(name, normal, application):
    for modes, expected in ((NORMAL, normal), (APPLICATION, application)):
        if expected is None:
            with pytest.raises(InvalidRequestError):
                encode((name,), modes)
        else:
            assert encode((name,), modes) == expected


def test_keys_are_joined_in_order_and_backspace_is_the_erase_character():
    assert encode(("a", "Backspace", "Enter"), NORMAL, erase=b"\x08") == b"a\x08\r"


@pytest.mark.parametrize("name", ["", "Nonsense", "Ctrl-Nonsense", "F21", "Ctrl-ü", "\ud800"])
def test_what_is_no_key_is_refused_by_name(name):
    with pytest.raises(InvalidRequestError):
        encode((name,), NORMAL)


_CAPABILITIES = {
    "kcuu1": "Up", "kcud1": "Down", "kcub1": "Left", "kcuf1": "Right", "khome": "Home",
    "kend": "End", "kdch1": "Delete", "kich1": "Insert", "kpp": "PageUp", "knp": "PageDown",
    "kcbt": "Shift-Tab", **{f"kf{number}": f"F{number}" for number in range(1, 13)},
}  # fmt: skip


@pytest.mark.parametrize(
    "term", ["xterm-256color", "screen-256color", "tmux-256color", "linux", "rxvt-unicode-256color"]
)
def test_the_codes_are_those_of_terminfo(term):
    """Terminfo lists what keys send after the application has switched its modes on."""
    program = (
        "import curses, sys\n"
        "try: curses.setupterm(sys.argv[1], 1)\n"
        "except curses.error: raise SystemExit(3)\n"
        "for name in sys.argv[2:]: print((curses.tigetstr(name) or b'').hex())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, term, *_CAPABILITIES],
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode == 3:
        pytest.skip(f"terminfo has no {term}")
    assert done.returncode == 0, done.stderr
    linux = term == "linux"
    modes = NORMAL if linux else TerminalModes(application_cursor=True)
    codes = [bytes.fromhex(line) for line in done.stdout.split("\n")[:-1]]
    for code, name in zip(codes, _CAPABILITIES.values(), strict=True):
        known = code and not (linux and name == "Shift-Tab")
        if known and not (term.startswith("rxvt") and name in ("Up", "Down", "Left", "Right")):
            assert encode((name,), modes, term=term) == code, name
