"""What is refused of an open request before anything is reserved."""

from typing import Any

import pytest

from fabric.core.errors import InvalidRequestError, SettingsError, UnsupportedError
from fabric.core.ids import RequestId
from fabric.core.model import OpenRequest
from fabric.core.settings import ShellSettings
from fabric.registry.request import check, programs_of

PROGRAMS = programs_of(ShellSettings(programs=("python=python3 -q", "one = prog")))


def request(**fields: Any) -> OpenRequest:
    return OpenRequest(RequestId("r"), fields.pop("type", "shell"), **fields)


def test_programs_are_read_from_their_setting():
    assert dict(PROGRAMS) == {"python": ("python3", "-q"), "one": ("prog",)}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"type": "python", "name": "Ünïcode name 1"},
        {"cwd": "/", "env": (("A_1", ""), ("PATH", "/bin"))},
        {"cwd": "~old/x", "term": "rxvt-unicode-256color.v1+x"},
        {"rows": 1, "cols": 4096, "timeout_s": 0.1, "term": "xterm", "command": "ls\n"},
    ],
)
def test_what_is_well_formed_passes(fields: dict[str, Any]):
    check(request(**fields), PROGRAMS)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"type": ""}, "type"),
        ({"name": ""}, "name"),
        ({"name": "x" * 129}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"cwd": ""}, "cwd"),
        ({"cwd": "/a\0b"}, "cwd"),
        ({"cwd": "/" * 4097}, "cwd"),
        ({"cwd": "~"}, "cwd"),
        ({"cwd": "~/work"}, "cwd"),
        ({"term": ""}, "term"),
        ({"term": "xterm\nevil"}, "term"),
        ({"term": "../xterm"}, "term"),
        ({"command": "x" * 65_537}, "command"),
        ({"rows": 0}, "rows"),
        ({"cols": 4097}, "cols"),
        ({"timeout_s": 0.0}, "timeout_s"),
        ({"timeout_s": float("inf")}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"env": (("", "x"),)}, "env"),
        ({"env": (("A=B", "x"),)}, "env"),
        ({"env": (("FABRIC_KEY", "x"),)}, "env"),
        ({"env": (("A", "x\0y"),)}, "env"),
        ({"env": (("A", "x" * 131_072),)}, "env"),
    ],
)
def test_what_is_malformed_is_named(fields: dict[str, Any], field: str):
    with pytest.raises(InvalidRequestError) as failure:
        check(request(**fields), PROGRAMS)
    assert failure.value.metadata["field"] == field
    assert failure.value.message.startswith(field)


def test_an_unknown_type_is_answered_with_those_there_are():
    with pytest.raises(UnsupportedError, match="there are shell, one, python"):
        check(request(type="bash"), PROGRAMS)


def test_a_program_may_not_be_named_shell():
    with pytest.raises(SettingsError):
        ShellSettings(programs=("shell=/bin/sh",))
