import re
import shlex

import pytest

from fabric.core.errors import InvalidRequestError
from fabric.core.ids import AgentId, OwnerId, Principal, SessionId
from fabric.core.model import OpenSpec, SandboxMode
from fabric.core.settings import ShellSettings
from workers.terminal.dialects import BashDialect, PlainDialect, Prompts, dialect_for
from workers.terminal.master import bracketed

SHELL = ShellSettings()


def bash(shell: ShellSettings = SHELL, term: str = "dumb") -> BashDialect:
    return BashDialect("cafe", "ses_x", shell, term)


def spec(kind: str, argv: tuple[str, ...] | None = None) -> OpenSpec:
    return OpenSpec(
        session_id=SessionId("ses_x"), owner_id=OwnerId("own_x"), epoch=1,
        principal=Principal("me"), agent=AgentId("agt_x"), type=kind,
        mode=SandboxMode.READ_ONLY, argv=argv,
    )  # fmt: skip


def test_bash_starts_without_files_of_the_user():
    assert bash().argv == ("/bin/bash", "--noprofile", "--norc", "-i")


def test_startup_files_are_read_when_the_settings_say_so():
    dialect = bash(ShellSettings(read_startup_files=True))
    assert dialect.argv == ("/bin/bash", "-i")
    assert "PIPESTATUS" not in dialect.env
    assert "unset -v PROMPT_COMMAND" not in dialect.env["PROMPT_COMMAND"]


def test_prompts_carry_marks_with_the_nonce():
    env = bash().env
    assert r"\e]133;D;cafe;$?\a" in env["PS1"]
    assert env["PS2"] == r"\e]133;P;cafe\a> "
    assert env["PS0"] == r"\e]133;C;cafe\a"
    assert bash().prompts == Prompts("$ ", "> ")


def test_a_capable_terminal_is_told_that_the_mark_is_invisible():
    assert r"\[\e]133;D;cafe;$?\a\]" in bash(term="xterm-256color").env["PS1"]


def test_a_dumb_terminal_gets_no_pager():
    assert bash().env["PAGER"] == bash().env["GIT_PAGER"] == "cat"
    assert "PAGER" not in bash(term="xterm").env
    assert bash().env["TERM"] == "dumb"
    assert bash().env["FABRIC_SESSION_ID"] == "ses_x"


def test_a_plain_program_has_no_marks():
    dialect = PlainDialect(("python3", "-q"), "ses_x", "xterm")
    assert dialect.prompts is None
    assert dialect.env == {"TERM": "xterm", "FABRIC_SESSION_ID": "ses_x"}


def test_the_bootstrap_is_one_command_that_keeps_its_output_to_itself():
    boot = bash().env["PROMPT_COMMAND"]
    assert "\n" not in boot
    assert re.fullmatch(r"\{ .* \} >/dev/null 2>&1", boot)
    shlex.split(boot)


def test_a_type_chooses_the_dialect():
    assert isinstance(dialect_for(spec("shell"), SHELL, "n"), BashDialect)
    assert dialect_for(spec("python"), SHELL, "n").argv == ("python3", "-q")
    assert dialect_for(spec("shell", ("cat",)), SHELL, "n").argv == ("cat",)


def test_an_unknown_type_names_the_known_ones():
    with pytest.raises(InvalidRequestError, match="shell, python, sh, gdb, node"):
        dialect_for(spec("fortran"), SHELL, "n")


@pytest.mark.parametrize(
    ("data", "wrapped"),
    [
        (b"a\nb", b"\x1b[200~a\nb\x1b[201~"),
        (b"a\nb\r", b"\x1b[200~a\nb\x1b[201~\r"),
        (b"a\rb\n\n", b"\x1b[200~a\rb\x1b[201~\n\n"),
        (b"one line\r", b"one line\r"),
        (b"", b""),
        (b"a\nb\x1b[201~c", b"a\nb\x1b[201~c"),
        (b"\x1b[200~a\nb\x1b[201~", b"\x1b[200~a\nb\x1b[201~"),
    ],
)
def test_a_paste_is_bracketed_when_it_has_lines(data, wrapped):
    assert bracketed(data) == wrapped
