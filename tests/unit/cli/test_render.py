import pytest

from fabric.cli import render
from fabric.core.model import (
    CloseOutcome,
    CloseReceipt,
    CloseResult,
    EndedProcess,
    ExitStatus,
    NodeState,
    OpenResult,
    Outcome,
    ReadPage,
    SendResult,
    SessionInfo,
    SessionStatus,
    SignalDelivered,
    SignalName,
    WaitReason,
)

RUNNING = SessionStatus()
EXITED = SessionStatus(ExitStatus(exit_code=7))


def info(**facts):
    return SessionInfo("ses_1", "own_1", "shell", facts.pop("status", RUNNING), **facts)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (RUNNING, "running"),
        (EXITED, "exited code=7"),
        (SessionStatus(ExitStatus(signal="SIGKILL", detail="oom")), "exited signal=SIGKILL (oom)"),
        (SessionStatus(ExitStatus()), "exited for an unknown reason"),
    ],
)
def test_status(status, text):
    assert render.status_text(status) == text


def test_a_session_is_one_line_and_its_name_cannot_break_it():
    line = render.session_line(info(name="a\n\x1b[2Jb", pid=5, host="n1", busy=True))
    assert line == "ses_1 (a\\x0a\\x1b[2Jb) [shell] running pid=5 on n1 busy"
    assert render.session_line(info(status=EXITED)) == "ses_1 [shell] exited code=7"


def test_opened():
    result = OpenResult(info(name="main"), "$ ", WaitReason.STDIN_READ)
    assert render.opened(result) == "started terminal session ses_1 (main) [type: shell]\n$ "
    assert render.opened(OpenResult(info(), "", WaitReason.STDIN_READ)).endswith(
        "(no startup output)"
    )


def test_sent():
    result = SendResult("hi\n$ ", WaitReason.STDIN_READ, RUNNING, exit_code=0)
    text = "hi\n$ \n[wait: stdin_read]\n[exit code: 0]\n[session: running]"
    assert render.sent(result) == text
    cut = SendResult("", WaitReason.SESSION_EXIT, EXITED, truncated=True, omitted_bytes=9)
    assert render.sent(cut) == (
        "(no new output)\n[wait: session_exit]\n[session: exited code=7]\n"
        "[output truncated: 9 bytes omitted]"
    )
    lost = SendResult("", WaitReason.TIMEOUT, RUNNING, outcome=Outcome.UNKNOWN)
    assert "[outcome: unknown; it may have run" in render.sent(lost)
    given_up = SendResult("", WaitReason.TIMEOUT, RUNNING, outcome=Outcome.CANCELLED)
    assert render.sent(given_up).endswith("[outcome: cancelled]")


def test_page():
    assert render.page(ReadPage("a\nb", 9, 3, 5, False)) == "a\nb\n[lines: 3-5 of 9]"
    assert render.page(ReadPage("", 0, 0, 0, True, dropped_lines=4)) == (
        "(no retained output)\n[lines: 0-0 of 0]\n[4 older lines are no longer kept]\n"
        "[output truncated]"
    )


def test_signalled_and_closed():
    assert render.signalled(SignalName.SIGINT, SignalDelivered(7)) == (
        "delivered SIGINT to foreground process group 7"
    )
    again = CloseResult("ses_1", CloseOutcome.ALREADY_CLOSING)
    assert render.closed(again) == "terminal session ses_1 was already closing"
    receipt = CloseReceipt(None, (EndedProcess(5, "sleep", "SIGTERM"), EndedProcess(6, "x")))
    assert render.closed(CloseResult("ses_1", CloseOutcome.CLOSED, receipt)) == (
        "closed terminal session ses_1\n  ended 5 sleep by SIGTERM\n  ended 6 x"
    )


def test_empty_lists_say_so():
    assert render.sessions([]) == "(no terminal sessions)"
    assert render.nodes([]) == "(no nodes)"


def test_nodes():
    node = NodeState(
        "n1", True, arch="x86_64", sandbox_kinds=("bubblewrap",), sessions=1, max_sessions=64,
        warm=4, ptys_free=9, memory_free_bytes=3 * 1024**3, gateway="127.0.0.1:7",
    )  # fmt: skip
    assert render.nodes([node, NodeState("n2", False)]) == (
        "n1 up linux/x86_64 sessions=1/64 warm=4 ptys_free=9 memory_free=3.0GiB "
        "sandbox=bubblewrap gateway=127.0.0.1:7\nn2 down"
    )
