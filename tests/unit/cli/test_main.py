import json
import os
import sys
from importlib import metadata
from pathlib import Path

import pytest

from fabric.cli import lifecycle
from fabric.cli.main import COMMANDS, main
from fabric.core.sources import example, known_keys


@pytest.fixture(autouse=True)
def _own_world(monkeypatch, tmp_path):
    for name in ("FABRIC_CONFIG", "FABRIC_GATEWAY", "FABRIC_TOKEN", "FABRIC_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FABRIC_STATE_DIR", str(tmp_path / "state"))


def run(capsys, *argv):
    code = main(argv)
    out, err = capsys.readouterr()
    return code, out, err


def test_help_is_a_result(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert all(f"    {name} " in out for name in COMMANDS)


def test_version(capsys):
    assert run(capsys, "--version") == (0, f"pty-fabric {metadata.version('pty-fabric')}\n", "")


def test_a_wrong_argument_is_exit_code_2_with_a_hint_and_nothing_on_stdout(capsys):
    code, out, err = run(capsys, "open", "--nonsense")
    assert (code, out) == (2, "")
    assert "--nonsense" in err
    assert "try: fabric --help" in err or "try: fabric open --help" in err


def test_a_wrong_argument_with_json_is_json(capsys):
    code, out, err = run(capsys, "--json", "nonsense")
    assert (code, out) == (2, "")
    assert json.loads(err)["error"]["reason"] == "INVALID_REQUEST"


def test_config_show_names_value_and_origin(capsys, monkeypatch):
    monkeypatch.setenv("FABRIC_NODE__MAX_SESSIONS", "9")
    code, out, _ = run(capsys, "config", "show", "--set", "log.level=DEBUG")
    assert code == 0
    rows = [line.split() for line in out.splitlines()]
    assert [row[0] for row in rows] == [key.name for key in known_keys()]
    assert ["log.level", "DEBUG", "(flag)"] in rows
    assert ["node.max_sessions", "9", "(env", "FABRIC_NODE__MAX_SESSIONS)"] in rows
    assert ["gateway.tls_key_file", '""', "(default)"] in rows


def test_config_show_of_one_key_for_scripts(capsys):
    assert run(capsys, "config", "show", "-q", "node.warm_sessions") == (0, "4\n", "")
    _, out, _ = run(capsys, "config", "show", "--json", "log.level")
    assert json.loads(out) == {"log.level": {"value": "INFO", "origin": "default"}}


def test_config_example_is_the_example_file(capsys):
    assert run(capsys, "config", "example") == (0, example(), "")


def test_every_fault_of_the_settings_is_told_at_once(capsys):
    code, _, err = run(capsys, "config", "show", "--set", "log.level=x", "--set", "nod.x=1")
    assert code == 2
    assert "log.level = 'x' (flag)" in err
    assert "nod.x (flag): unknown key" in err
    assert "[INVALID_SETTINGS]" in err


def test_status_when_nothing_runs_is_a_result_with_its_own_exit_code(capsys, tmp_path):
    code, out, err = run(capsys, "status", "--json")
    assert (code, err) == (7, "")
    assert json.loads(out) == {"running": False, "state_dir": str(tmp_path / "state")}


def test_down_when_nothing_runs_is_fine_and_makes_no_folder(capsys, tmp_path):
    code, out, err = run(capsys, "down")
    assert (code, err) == (0, "")
    assert "no fabric" in out
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("argv", [("list",), ("send", "s", "x"), ("nodes",)])
def test_without_a_gateway_the_error_says_how_to_get_one(capsys, argv):
    code, out, err = run(capsys, *argv)
    assert (code, out) == (7, "")
    assert "GATEWAY_UNAVAILABLE" in err
    assert "fabric up" in err


def test_a_wrong_agent_is_refused(capsys):
    code, _, err = run(capsys, "list", "--agent", "a b")
    assert code == 2
    assert "agent must be" in err


def test_close_wants_sessions_or_all(capsys):
    for argv in (("close",), ("close", "--all", "s")):
        code, _, err = run(capsys, *argv)
        assert code == 2
        assert "--all" in err


def test_the_ssh_library_is_refused_by_name_and_version(capsys, monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda name: "3.2.3")
    code, out, err = run(capsys, "up")
    assert (code, out) == (5, "")
    assert "SSH library" in err


def test_up_in_a_folder_where_one_runs_says_where_it_is(capsys, monkeypatch, tmp_path):
    state = lifecycle.StateDir(tmp_path / "state").prepare()
    state.write_record(lifecycle.Record(7, 8, "127.0.0.1:9", "c", True, 1.0, "0"))
    with state.holding(state.lock_file, wait=False):
        code, out, err = run(capsys, "up")
    assert (code, out) == (5, "")
    assert "[ALREADY_UP]" in err
    assert "127.0.0.1:9" in err


@pytest.mark.parametrize("gateway", ["", None])
def test_up_in_a_folder_where_one_starts_or_ends_says_so(capsys, tmp_path, gateway):
    state = lifecycle.StateDir(tmp_path / "state").prepare()
    if gateway is not None:
        state.write_record(lifecycle.Record(7, 8, gateway, "c", True, 1.0, "0"))
    with state.holding(state.lock_file, wait=False):
        code, _, err = run(capsys, "up")
    assert code == 5
    assert "just starting or ending" in err
    assert "try again" in err


def test_an_interrupt_is_130(capsys, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(lifecycle, "status", interrupt)
    assert run(capsys, "status")[0] == 130


def test_a_reader_that_left_is_no_error(capsys, monkeypatch):
    """`fabric list | head -1`: nothing to tell, nobody to tell it to."""

    def broken(_):
        raise BrokenPipeError

    monkeypatch.setattr(lifecycle, "status", broken)
    with Path(os.devnull).open("w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["status"]) == 0
