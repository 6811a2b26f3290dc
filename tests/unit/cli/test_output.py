import io
import json

import pytest

from fabric.cli.output import Output, visible
from fabric.core.errors import SessionNotFoundError
from fabric.core.model import SignalDelivered


class Terminal(io.StringIO):
    def isatty(self):
        return True


def speak(**kwargs):
    out, err = io.StringIO(), kwargs.pop("stderr", io.StringIO())
    return Output(stdout=out, stderr=err, environ=kwargs.pop("environ", {}), **kwargs), out, err


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本", "plain é 日本"),
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("a\nb\tc", "a\\x0ab\\x09c"),
        ("a\x9bb\x7f", "a\\x9bb\\x7f"),
        ("a\u202eb\u200b", "a\\u202eb\\u200b"),
        ("a\u2028b", "a\\u2028b"),
        ("a\udcffb", "a\\udcffb"),
    ],
)
def test_what_is_not_meant_to_be_seen_is_escaped(text, shown):
    assert visible(text) == shown


def test_results_go_to_stdout_and_everything_else_to_stderr():
    output, out, err = speak()
    output.note("a note")
    output.progress("working")
    output.result({"a": 1}, "text")
    assert out.getvalue() == "text\n"
    assert "a note" in err.getvalue()
    assert "working" in err.getvalue()


def test_json_is_one_object_on_one_line():
    output, out, _ = speak(as_json=True)
    output.result(SignalDelivered(7), "text", "brief")
    assert json.loads(out.getvalue()) == {"target_pgid": 7}
    assert out.getvalue().count("\n") == 1


def test_quiet_prints_only_the_brief_form_and_no_notes():
    output, out, err = speak(quiet=True)
    output.note("a note")
    output.result({}, "long text", "ses_1")
    assert (out.getvalue(), err.getvalue()) == ("ses_1\n", "")


def test_quiet_with_nothing_to_say_prints_nothing():
    output, out, _ = speak(quiet=True)
    output.result({}, "long text", "")
    assert out.getvalue() == ""


def test_an_error_says_reason_and_what_to_try():
    output, out, err = speak()
    output.error(SessionNotFoundError("no session \x1b[2J"), "fabric list")
    assert out.getvalue() == ""
    assert err.getvalue() == "error: no session \\x1b[2J [SESSION_NOT_FOUND]\n  try: fabric list\n"


def test_an_error_as_json_is_one_object_on_stderr():
    output, out, err = speak(as_json=True)
    output.error(SessionNotFoundError("gone", session_id="ses_1"), "fabric list")
    assert out.getvalue() == ""
    assert json.loads(err.getvalue()) == {
        "error": {
            "reason": "SESSION_NOT_FOUND",
            "message": "gone",
            "metadata": {"session_id": "ses_1"},
            "hint": "fabric list",
            "exit_code": 3,
        }
    }


def test_colour_only_on_a_terminal_and_never_with_no_color():
    for environ, stream, coloured in (
        ({}, Terminal(), True),
        ({"NO_COLOR": "1"}, Terminal(), False),
        ({}, io.StringIO(), False),
    ):
        output, _, err = speak(environ=environ, stderr=stream)
        output.error(SessionNotFoundError("x"), "")
        assert ("\x1b[" in err.getvalue()) is coloured


def test_text_the_readers_encoding_cannot_show_is_escaped_not_lost():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Output(stdout=stream, environ={}).result({}, "日本 ok")
    assert raw.getvalue() == b"\\u65e5\\u672c ok\n"
