"""The fifteen settings of the shared terminal: their defaults and their rules."""

from dataclasses import asdict

import pytest

from fabric.core.settings import SettingsError, SharedSettings


def test_the_defaults():
    assert asdict(SharedSettings()) == {
        "shell_path": "/bin/bash",
        "shell_args": ("--noprofile", "--norc", "-i"),
        "rows": 40,
        "cols": 160,
        "scrollback_lines": 10_000,
        "scrollback_max_bytes": 4_194_304,
        "max_tool_output_bytes": 262_144,
        "max_input_bytes": 65_536,
        "max_queued_operations": 128,
        "max_sessions": 32,
        "poll_interval_s": 0.05,
        "operation_timeout_s": 30.0,
        "interrupt_timeout_s": 5.0,
        "disconnect_grace_s": 15.0,
        "dispose_grace_s": 3.0,
    }


@pytest.mark.parametrize(
    "field",
    [name for name, value in asdict(SharedSettings()).items() if isinstance(value, int | float)],
)
@pytest.mark.parametrize("value", [0, -1])
def test_every_number_must_be_above_zero(field, value):
    with pytest.raises(SettingsError, match=field):
        SharedSettings(**{field: value})


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"shell_path": "/bin/zsh"}, "must name bash"),
        ({"shell_args": ("-i", "")}, "empty"),
        ({"rows": 1001}, "at most 1000"),
        ({"max_tool_output_bytes": 1023}, "between 1024 and scrollback_max_bytes"),
        ({"max_tool_output_bytes": 2048, "scrollback_max_bytes": 2000}, "between 1024"),
    ],
)
def test_a_broken_rule_is_named(fields, rule):
    with pytest.raises(SettingsError, match=rule):
        SharedSettings(**fields)
