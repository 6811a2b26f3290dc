"""Sessions from the command line through gateway, registry, Ray, node, worker and shim."""

import json
import signal
import subprocess

import pytest

from tests.support.command import Command
from tests.support.eventually import eventually_sync

FULL = ("--mode", "danger-full-access")


@pytest.fixture
def main(cli) -> str:
    return cli("open", "-q", "--name", "main", *FULL, check=True).out.strip()


def test_state_lasts_from_one_command_to_the_next(cli, main):
    assert cli("send", main, "cd /usr && export A='x y'", check=True).out.endswith(
        "[wait: stdin_read]\n[exit code: 0]\n[session: running]\n"
    )
    assert cli("send", "-q", "main", 'pwd; echo "$A"').out.splitlines()[1:3] == ["/usr", "x y"]


def test_results_are_on_stdout_and_nothing_else(cli):
    done = cli("open", *FULL, check=True)
    assert done.err == ""
    assert done.out.startswith("started terminal session ses_")
    assert cli("list", "-q").out.strip() in done.out


def test_json_everywhere(cli, main):
    sent = cli("send", "--json", main, "exit 7").json
    assert sent["wait_reason"] == "session_exit"
    assert sent["status"]["exit"] == {"exit_code": 7, "signal": None, "detail": None}
    assert cli("read", "--json", main).json["total_lines"] >= 1
    (info,) = cli("list", "--json").json
    assert (info["session_id"], info["name"]) == (main, "main")
    closed = cli("close", "--json", main).json
    assert (closed["session_id"], closed["outcome"]) == (main, "closed")
    (node,) = cli("nodes", "--json").json
    assert node["alive"]
    assert node["node_dir"] == ""
    status = cli("status", "--json").json
    assert status["running"]
    assert status["embedded"]


def test_an_interrupt_is_a_real_signal(cli, main):
    assert "[wait: timeout]" in cli("send", main, "sleep 1000", "--timeout", "0.3").out
    assert "SIGINT to foreground process group" in cli("signal", main, "int", check=True).out
    assert "130" in cli("send", "-q", main, "echo $?").out.splitlines()


def test_text_from_standard_input_is_typed_as_it_is(cli, main):
    text = "cat <<'E'\nit's \"quoted\" $HOME `x`\nE\n"
    out = cli("send", "-q", main, "-", stdin=text, check=True).out
    assert 'it\'s "quoted" $HOME `x`' in out.splitlines()


@pytest.mark.parametrize(
    ("argv", "code", "reason"),
    [
        (("send", "ses_aaaaaaaaaaaaaaaa", "x"), 3, "SESSION_NOT_FOUND"),
        (("send", "ses_wrong", "x"), 2, "INVALID_REQUEST"),
        (("read", "nobody"), 3, "SESSION_NOT_FOUND"),
        (("open", "no-such-type"), 5, "UNSUPPORTED"),
        (("open", "--cwd", "/no/such/folder", *FULL), 5, "SPAWN_FAILED"),
        (("open", "--host", "no-such-host"), 3, "NODE_NOT_FOUND"),
        (("open", "--name", "a\nb"), 2, "INVALID_REQUEST"),
        (("read", "x", "--count", "0"), 3, "SESSION_NOT_FOUND"),
        (("close",), 2, "INVALID_REQUEST"),
    ],
)
def test_errors_have_exit_code_reason_and_hint(cli, argv, code, reason):
    done = cli(*argv, "--json")
    assert (done.code, done.out) == (code, "")
    assert done.error["reason"] == reason
    assert done.error["exit_code"] == code
    plain = cli(*argv)
    assert (plain.code, plain.out) == (code, "")
    assert f"[{reason}]" in plain.err


def test_a_name_is_taken_once(cli, main):
    assert cli("open", "--name", "main", "--json").error["reason"] == "NAME_TAKEN"


def test_another_agent_gets_nothing(cli, main):
    other = Command(cli.state_dir, FABRIC_AGENT="stranger")
    assert other("list").out == "(no terminal sessions)\n"
    for argv in (("read", main), ("send", main, "x"), ("close", main), ("signal", main, "INT")):
        done = other(*argv, "--json")
        assert (done.code, done.error["reason"]) == (4, "FOREIGN_SESSION"), argv


def test_without_its_token_nobody_is_served(cli, main):
    address = cli("status", "--json").json["gateway"]
    cases = ({}, {"FABRIC_TOKEN": "wrong"})
    for number, environ in enumerate(cases):
        folder = cli.state_dir / f"other{number}"
        other = Command(folder, FABRIC_GATEWAY=address, **environ)
        assert other("list", "--json").error["reason"] == "UNAUTHENTICATED"


def test_ctrl_c_cancels_the_send_and_the_session_lives(cli, main):
    process = cli.start("send", main, "sleep 1000")
    eventually_sync(lambda: cli("list", "--json").json[0]["busy"], within=20)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "waiting for the program to be interrupted" in err
    done = cli("send", "-q", main, "echo back-$((6*7))", check=True)
    assert "back-42" in done.out.splitlines()


def test_a_killed_client_leaves_the_session_usable(cli, main):
    process = cli.start("send", main, "sleep 1000")
    eventually_sync(lambda: cli("list", "--json").json[0]["busy"], within=20)
    process.kill()
    process.communicate()
    eventually_sync(lambda: not cli("list", "--json").json[0]["busy"], within=20)
    assert "back-42" in cli("send", "-q", main, "echo back-$((6*7))").out.splitlines()


def test_a_name_cannot_paint_the_readers_terminal(cli):
    """A foreground program renames itself; what is shown of it is escaped."""
    done = cli("open", "--name", "\x1b[31mred", *FULL)
    assert done.code == 2
    assert "\x1b" not in done.err


def test_close_all_closes_all_and_says_what_ended(cli):
    for _ in range(2):
        cli("open", *FULL, check=True)
    closed = cli("close", "--all", "--json", check=True).json
    assert [row["outcome"] for row in closed] == ["closed", "closed"]
    assert all(row["receipt"]["ended"] for row in closed)
    assert cli("list", "-q").out == ""


def test_two_commands_at_once_are_one_owner(cli, main):
    """A fresh owner token is made once, though both commands find none."""
    for path in (cli.state_dir / "owners").glob("*.json"):
        path.unlink()
    first, second = (cli.start("list", "--json") for _ in range(2))
    outs = [process.communicate(timeout=60)[0] for process in (first, second)]
    assert [len(json.loads(out)) for out in outs] == [1, 1]


def test_a_reader_that_leaves_is_no_error(cli, main):
    line = f"{' '.join(cli.argv('read', main))} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], env=cli.environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_state_folder_is_private(cli):
    assert cli.state_dir.stat().st_mode & 0o777 == 0o700
    files = [path for path in cli.state_dir.iterdir() if path.is_file()]
    assert {path.name for path in files} >= {"gateway.token", "ray.token", "fabric.json"}
    secret = [path for path in files if "token" in path.name or path.suffix == ".json"]
    assert [path for path in secret if path.stat().st_mode & 0o077] == []
