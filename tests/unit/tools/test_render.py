"""The exact text of every answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.core.errors import SessionNotFoundError
from fabric.core.model import (
    CloseOutcome,
    CloseResult,
    ExitStatus,
    OpenResult,
    Outcome,
    ReadPage,
    SendResult,
    SessionInfo,
    SessionStatus,
    SignalDelivered,
    SignalName,
    TailPage,
    TaskOutput,
    TaskRecord,
    TaskState,
    WaitReason,
    WaitResult,
)
from fabric.tools import render
from fabric.tools.bound import RESULT_TRUNCATED, TRUNCATED, size

BIG = 262_144
SES = "ses_aaaaaaaaaaaaaaaa"
TSK = "tsk_aaaaaaaaaaaaaaaa"


def info(**facts):
    base = {"session_id": SES, "owner_id": "own_x", "type": "shell", "status": SessionStatus()}
    return SessionInfo(**(base | facts))


def exited(code=None, signal=None):
    return SessionStatus(ExitStatus(code, signal))


def sent(viewport, reason=WaitReason.STDIN_READ, status=None, truncated=False):
    return SendResult(viewport, reason, status or SessionStatus(), truncated=truncated)


def record(state=TaskState.COMPLETED, detail="wait: stdin_read", label="x", task_id=TSK):
    return TaskRecord(task_id, "own_x", SES, label, state, detail=detail)


def test_open_names_the_session_and_shows_the_first_output():
    made = OpenResult(info(name="main"), "$ ", WaitReason.STDIN_READ)
    assert render.opened(made, BIG) == f"started terminal session {SES} (main) [type: shell]\n$ "
    bare = OpenResult(info(), "", WaitReason.STDIN_READ)
    assert render.opened(bare, BIG).endswith("[type: shell]\n(no startup output)")


def test_open_keeps_the_id_and_the_mark_when_it_is_cut():
    made = OpenResult(info(), "x" * 500, WaitReason.STDIN_READ)
    text = render.opened(made, 96)
    assert SES in text
    assert text.endswith(TRUNCATED)
    assert size(text) <= 96
    assert size(render.opened(made, 32)) <= 32


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (sent("out"), "out\n[wait: stdin_read]\n[session: running]"),
        (
            sent("", WaitReason.TIMEOUT, truncated=True),
            "(no new output)\n[wait: timeout]\n[session: running]\n[output truncated]",
        ),
        (
            sent("x", WaitReason.SESSION_EXIT, exited(signal="SIGTERM")),
            "x\n[wait: session_exit]\n[session: exited code=null signal=SIGTERM]",
        ),
        (
            sent("x", WaitReason.SESSION_EXIT, exited(code=2)),
            "x\n[wait: session_exit]\n[session: exited code=2 signal=null]",
        ),
        (
            sent("x", WaitReason.SESSION_EXIT, exited()),
            "x\n[wait: session_exit]\n[session: exited code=null signal=null]",
        ),
    ],
)
def test_send(result, text):
    assert render.sent(result, BIG) == text


def test_a_send_whose_worker_died_says_that_it_may_have_run():
    lost = SendResult("", WaitReason.TIMEOUT, SessionStatus(), outcome=Outcome.UNKNOWN)
    text = render.sent(lost, BIG)
    assert text.startswith(
        "(no new output)\n[wait: timeout]\n[session: running]\n[outcome: unknown;"
    )


def test_a_small_bound_keeps_the_facts_of_a_send_and_the_newest_output():
    text = render.sent(sent("printf 'PTY_OK\\n'\nPTY_OK\n$ "), 64)
    assert text == "Y_OK\n$ \n[wait: stdin_read]\n[session: running]\n[output truncated]"
    assert size(text) <= 64


def test_read():
    page = ReadPage("history", 1, 0, 1, truncated=False)
    assert render.page(page, BIG) == "history\n[lines: 0-1 of 1]"
    empty = ReadPage("", 0, 0, 0, truncated=True)
    assert render.page(empty, BIG) == "(no retained output)\n[lines: 0-0 of 0]\n[output truncated]"
    wide = ReadPage("y" * 200, 20, 0, 10, truncated=False)
    assert "[lines: 0-10 of 20]" in render.page(wide, 48)


def test_the_short_answers():
    delivered = SignalDelivered(10)
    assert (
        render.signalled(SignalName.SIGINT, delivered, BIG)
        == "delivered SIGINT to foreground process group 10"
    )
    assert (
        render.closed(CloseResult(SES, CloseOutcome.CLOSED), BIG)
        == f"closed terminal session {SES}"
    )
    assert (
        render.closed(CloseResult(SES, CloseOutcome.ALREADY_CLOSING), BIG)
        == f"terminal session {SES} was already closing"
    )
    assert render.failed(SessionNotFoundError("no such session"), BIG) == "Error: no such session"
    assert render.started(record(), 64) == f"started background task {TSK}"


def test_list_shows_the_four_states():
    rows = render.listed(
        (
            info(name="main", pid=7),
            info(status=exited(code=2), pid=8),
            info(status=exited(signal="SIGKILL")),
            info(status=exited()),
        ),
        BIG,
    ).split("\n")
    assert rows == [
        f"{SES} (main) [shell] running pid=7",
        f"{SES} [shell] exited code=2 signal=null pid=8",
        f"{SES} [shell] exited code=null signal=SIGKILL",
        f"{SES} [shell] exited code=null signal=null",
    ]
    assert render.listed((), BIG) == "(no terminal sessions)"


@pytest.mark.parametrize(
    ("text", "truncated", "start"),
    [
        ("", True, "[output truncated]\n[status"),
        ("x", True, "x\n[output truncated]\n[status"),
        ("x\n", True, "x\n[output truncated]\n[status"),
        ("x", False, "x\n[status"),
        ("", False, "(no new output)\n[status"),
    ],
)
def test_task_output(text, truncated, start):
    made = render.task_output(TaskOutput(text, record(), 0, truncated), BIG)
    assert made.startswith(start)
    assert made.endswith("[status: completed, wait: stdin_read]")


@given(st.text(max_size=300), st.integers(64, 400), st.booleans())
def test_task_output_keeps_its_status_within_any_bound(text, bound, truncated):
    made = render.task_output(TaskOutput(text, record(), 0, truncated), bound)
    assert size(made) <= bound
    assert "[status: completed" in made
    if size(text) < bound and "[output" not in text:
        assert made.count(TRUNCATED) <= 1


WIDE = "漢" * 100


def test_a_task_of_wide_characters_keeps_its_status_and_one_mark_before_it():
    made = render.task_output(TaskOutput(WIDE, record(detail=None), 0), 48)
    assert size(made) <= 48
    assert made.endswith(f"\n{TRUNCATED}\n[status: completed]")
    assert made.count(TRUNCATED) == 1
    assert size(render.sent(sent(WIDE), 128)) <= 128


@pytest.mark.parametrize("bound", range(64, 200))
def test_a_long_detail_gives_way_to_the_state(bound):
    row = record(TaskState.FAILED, detail="the node said " + "no " * 100)
    made = render.task_output(TaskOutput("x", row, 0), bound)
    assert size(made) <= bound
    assert made.endswith("[status: failed]")


def test_what_is_cut_of_a_task_beside_its_output_says_result():
    long = record(detail="z" * 200)
    assert render.task_killed(long, 64).endswith("\n[result truncated]")
    assert size(render.task_killed(long, 8)) <= 8
    error = SessionNotFoundError("m" * 200)
    assert render.failed(error, 64).endswith("\n[output truncated]")
    assert render.failed(error, 64, RESULT_TRUNCATED).endswith("\n[result truncated]")


def test_tasks_are_listed_and_killed_in_words():
    assert render.task_list((record(),), BIG) == f"{TSK} [pty-send] completed — x"
    assert render.task_list((), BIG) == "(no background tasks)"
    stopping = record(TaskState.STOPPING, None)
    assert render.task_killed(stopping, BIG) == f"requested cancellation of task {TSK}"
    assert (
        render.task_killed(record(), BIG)
        == f"task {TSK} had already finished [status: completed, wait: stdin_read]"
    )


def test_notices_shrink_in_steps_and_keep_the_id_as_long_as_they_can():
    row = record(label="ses_x: make all")
    whole = render.notice(row, BIG)
    assert whole == (
        f"background task {TSK} (pty-send: ses_x: make all) finished "
        "[status: completed, wait: stdin_read]. Read its output with task_output."
    )
    for bound in (80, 64, 61, 32, 8):
        made = render.notice(row, bound)
        assert size(made) <= bound
        assert made.endswith("_output."[-bound:])
        if bound >= 61:
            assert TSK in made
    assert "[notice truncated]" in render.notice(row, 90)


@pytest.mark.parametrize(
    ("task_id", "bound", "text"),
    [
        ("subagent-1", 62, "background task subagent-1\nDone; task_output."),
        (
            "pty-send-100",
            66,
            "background task pty-send-100\n[notice truncated]\nDone; task_output.",
        ),
        ("subagent-1", 34, "background task\nDone; task_output."),
        ("subagent-1", 8, "_output."),
    ],
)
def test_the_short_forms_of_a_notice(task_id, bound, text):
    assert render.notice(record(task_id=task_id, label="l" * 40), bound) == text


@given(st.text(max_size=2000), st.integers(64, 4096))
def test_every_send_stays_within_its_bound_with_its_facts(viewport, bound):
    text = render.sent(sent(viewport), bound)
    assert size(text) <= bound
    assert "[wait: stdin_read]\n[session: running]" in text


ANY = st.text(max_size=3000)
CAP = st.integers(64, 4096)


@given(ANY, ANY, CAP, st.booleans())
def test_no_answer_exceeds_its_bound_and_each_keeps_what_a_model_needs(text, more, cap, truncated):
    """Any content: within the bound, valid text, ids and facts whole."""
    row = record(detail=more or None, label=text)
    kept = {
        render.opened(OpenResult(info(name=more), text, WaitReason.STDIN_READ), cap): SES,
        render.sent(sent(text, truncated=truncated), cap): "[wait: stdin_read]\n[session: running]",
        render.page(ReadPage(text, 9, 2, 5, truncated), cap): "[lines: 2-5 of 9]",
        render.task_output(TaskOutput(text, row, 0, truncated), cap): "[status: completed",
        render.started(row, cap): TSK,
        render.notice(row, cap): TSK,
        render.task_killed(row, cap): TSK,
        render.closed(CloseResult(SES, CloseOutcome.CLOSED), cap): SES,
        render.signalled(SignalName.SIGINT, SignalDelivered(10), cap): "SIGINT",
        render.failed(SessionNotFoundError(text), cap): "Error: ",
        render.listed((info(name=text),) * 3, cap): "",
        render.task_list((row,) * 3, cap): "",
        render.waited(WaitResult("pattern", text, SessionStatus()), cap): "[matched: pattern]",
        render.tailed(TailPage(text, 1, truncated), cap): "",
    }
    for made, part in kept.items():
        assert len(made.encode("utf-8", "replace")) <= cap
        assert made.encode("utf-8", "replace").decode("utf-8")
        assert part in made
