"""Background sends, waits and events from the command line, through every layer."""

import pytest

FULL = ("--mode", "danger-full-access")


@pytest.fixture
def main(cli) -> str:
    return cli("open", "-q", "--name", "main", *FULL, check=True).out.strip()


def test_a_task_outlives_its_command_and_its_session(cli, main):
    task = cli("send", "-q", "main", "--background", "sleep 0.3; echo done", check=True).out.strip()
    assert task.startswith("tsk_")
    assert task in cli("tasks", "-q", check=True).out.split()
    shown = cli("output", task, "--wait", check=True).out
    assert "\ndone\n" in shown
    assert shown.endswith("[status: completed, wait: stdin_read]\n")
    cli("close", "main", check=True)
    assert "\ndone\n" in cli("output", task, check=True).out
    assert "had already finished" in cli("kill", task, check=True).out


def test_a_kill_is_a_real_interrupt(cli, main):
    line = "trap 'echo caught' INT; while :; do sleep 0.1; done"
    task = cli("send", "-q", "main", "--background", line, check=True).out.strip()
    assert cli("kill", task, check=True).out == f"requested cancellation of task {task}\n"
    cli("signal", "main", "term")
    shown = cli("output", task, "--wait", "--timeout", "20", "--json", check=True).json
    assert shown["record"]["state"] == "killed"


def test_a_wait_says_what_held(cli, main):
    cli("send", "-q", "main", "--background", "sleep 0.2; echo port 80 open", check=True)
    found = cli("wait", "main", r"port \d+ open", "--since", "0", "--json", check=True).json
    assert (found["matched"], found["match_text"]) == ("pattern", "port 80 open")
    late = cli("wait", "main", "never", "--timeout", "0.2")
    assert late.code == 8
    assert late.out.endswith("[matched: timeout]\n")


def test_events_tell_what_happened(cli, main):
    task = cli("send", "-q", "main", "--background", "echo hi", check=True).out.strip()
    cli("output", task, "--wait", check=True)
    settled = cli("events", "--count", "1", "--acknowledge", "--json", check=True).json
    assert (settled["sequence"], settled["kind"], settled["task_id"]) == (1, "task_settled", task)
    cli("send", "main", "exit 3")
    exited = cli("events", "--count", "1", "--json", check=True).json
    assert (exited["sequence"], exited["kind"], exited["session_id"]) == (2, "session_exited", main)


@pytest.mark.parametrize(
    ("argv", "code", "reason"),
    [
        (("output", "tsk_aaaaaaaaaaaaaaaa"), 3, "TASK_NOT_FOUND"),
        (("kill", "nonsense"), 2, "INVALID_REQUEST"),
        (("wait", "nobody", "x"), 3, "SESSION_NOT_FOUND"),
        (("events", "--since", "99", "--count", "1"), 2, "INVALID_REQUEST"),
    ],
)
def test_errors_have_exit_code_and_reason(cli, argv, code, reason):
    done = cli(*argv, "--json")
    assert (done.code, done.error["reason"]) == (code, reason)
