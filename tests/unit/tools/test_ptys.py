"""Variables as shell lines, and the four verbs over scripted ones."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.core.errors import ForeignSessionError, InvalidRequestError, SessionLostError
from fabric.core.model import OpenResult, SessionInfo, SessionStatus, WaitReason
from fabric.core.settings import PtySettings
from fabric.tools.ptys import Ptys, exports, quoted

SES = "ses_aaaaaaaaaaaaaaaa"


class Verbs:
    def __init__(self, error=None):
        self.requests = []
        self.error = error

    async def open(self, request):
        self.requests.append(request)
        info = SessionInfo(SES, "own_x", "shell", SessionStatus(), pid=42)
        return OpenResult(info, "out", WaitReason.STDIN_READ)

    async def close(self, session_id, request_id):
        if self.error:
            raise self.error


def test_variables_are_exported_in_order_with_posix_quoting():
    assert exports({"FOO": "bar baz", "WEIRD": "it's"}) == (
        "export FOO='bar baz'\nexport WEIRD='it'\\''s'\n"
    )
    assert exports({"E": ""}) == "export E=''\n"


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20))
def test_no_control_character_is_ever_typed(value):
    typed = quoted(value)
    assert not {char for char in typed if ord(char) < 32 or ord(char) == 127} - set("\n\t")


@pytest.mark.parametrize(
    "value",
    ["", "it's", "a\nb\n", "\x1b[A\x03\x7f\r", '$HOME `id` \\ "x" !1', "'", "tab\t", "ü€😀"],
)
def test_a_shell_reads_back_the_same_value(value):
    script = exports({"V": value}) + 'printf "%s." "$V"'
    done = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, capture_output=True)
    assert done.stdout.decode() == value + "."


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "FABRIC_X", "A\n"])
def test_names_no_shell_can_export_are_refused(name):
    with pytest.raises(InvalidRequestError):
        exports({name: "x"})


async def test_a_blank_command_and_variables_without_a_shell_reach_nobody():
    verbs = Verbs()
    for command in ("", "  ", "\n\t"):
        with pytest.raises(InvalidRequestError, match="command must be a non-empty string"):
            await Ptys(verbs, PtySettings()).open(command, "req_1")
    with pytest.raises(InvalidRequestError, match="'python'"):
        await Ptys(verbs, PtySettings("python")).open("1", "req_1", env={"A": "b"})
    assert not verbs.requests
    await Ptys(verbs, PtySettings("python")).open("1", "req_1", env={})
    opened = await Ptys(verbs, PtySettings()).open("ls", "req_1", env={"A": "b"}, term="xterm")
    assert (opened.session_id, opened.pid, opened.initial_output) == (SES, 42, "out")
    assert [request.type for request in verbs.requests] == ["python", "shell"]
    assert verbs.requests[1].command == "export A='b'\nls"
    assert verbs.requests[1].env == ()


async def test_closing_what_is_gone_is_an_answer_and_closing_anothers_an_error():
    assert await Ptys(Verbs(), PtySettings()).close(SES, "req_1") is True
    assert await Ptys(Verbs(SessionLostError("x")), PtySettings()).close(SES, "req_1") is False
    with pytest.raises(ForeignSessionError):
        await Ptys(Verbs(ForeignSessionError("x")), PtySettings()).close(SES, "req_1")
