"""Tool calls over scripted verbs."""

import json

import jsonschema
import pytest

from fabric.core.errors import (
    ForeignSessionError,
    OwnerNotLiveError,
    RegistryUnavailableError,
    UnauthenticatedError,
)
from fabric.core.model import (
    CloseOutcome,
    CloseResult,
    OpenResult,
    ReadPage,
    SendResult,
    SessionInfo,
    SessionStatus,
    SignalDelivered,
    TailPage,
    TaskOutput,
    TaskRecord,
    TaskState,
    WaitReason,
    WaitResult,
)
from fabric.core.settings import TaskSettings
from fabric.core.shared import SharedPage, SharedResult, SharedState
from fabric.tools.surface import Caller
from fabric.tools.table import Card, Surface
from fabric.tools.values import FAILURE

SES = "ses_aaaaaaaaaaaaaaaa"
TSK = "tsk_aaaaaaaaaaaaaaaa"
RECORD = TaskRecord(TSK, "own_x", SES, "label", TaskState.STOPPING)
ALL = frozenset(Surface)
SHARED = SharedState(1, 9, 40, 160, "$", 2, 0, SessionStatus(), "ready", None, 0)


class Scripted:
    """Answers every verb and remembers what it was asked."""

    def __init__(self):
        self.asked = []
        self.error = None
        self.viewport = "command output"

    def __getattr__(self, name):
        async def verb(*args):
            self.asked.append((name, *args))
            if self.error:
                raise self.error
            return {
                "open": OpenResult(
                    SessionInfo(SES, "own_x", "shell", SessionStatus(), pid=42),
                    "stub prompt",
                    WaitReason.STDIN_READ,
                ),
                "send": SendResult(self.viewport, WaitReason.STDIN_READ, SessionStatus()),
                "read": ReadPage("history", 1, 0, 1, truncated=False),
                "signal": SignalDelivered(10),
                "wait_for": WaitResult("pattern", "text", SessionStatus()),
                "tail": TailPage("new", 1, False, 4),
                "close": CloseResult(SES, CloseOutcome.CLOSED),
                "list": (),
                "start_task": RECORD,
                "task_output": TaskOutput("out", RECORD, 3),
                "list_tasks": (RECORD,),
                "kill_task": RECORD,
                "shared_send": SharedResult(SHARED, WaitReason.PROMPT, 1, "out"),
                "shared_signal": SharedResult(SHARED, WaitReason.PROMPT, 1, "", 10),
                "shared_reset": SharedResult(SHARED, WaitReason.PROMPT, 1),
                "shared_read": SharedPage(SHARED, "old", 1, 0, 1),
            }[name]

        return verb


@pytest.fixture
def verbs():
    return Scripted()


def caller(verbs, *, enabled=True, max_bytes=262_144):
    return Caller(
        verbs, surfaces=ALL, tasks=TaskSettings(enabled=enabled), max_result_bytes=max_bytes
    )


async def test_a_foreground_send_gives_text_and_value(verbs):
    answer = await caller(verbs).call("terminal_send", {"sessionId": SES, "text": "ls"}, "req_1")
    assert answer.text == "command output\n[wait: stdin_read]\n[session: running]"
    assert answer.value["kind"] == "foreground"
    assert answer.value["waitReason"] == "stdin_read"
    assert (answer.card, answer.shows_output) == (Card.TERMINAL, True)
    assert (answer.title, answer.description) == ("ls", f"Terminal {SES}")
    (_, session_id, request) = verbs.asked[0]
    assert (session_id, request.data, request.submit) == (SES, b"ls", True)


async def test_a_background_send_gives_a_task_id(verbs):
    args = {"sessionId": SES, "text": "", "run_in_background": True}
    answer = await caller(verbs).call("terminal_send", args, "req_1")
    assert answer.text == f"started background task {TSK}"
    assert answer.value == {"kind": "background", "taskId": TSK}
    assert answer.title == f"Send to terminal {SES} in background"
    assert (answer.card, answer.shows_output) == (Card.EXECUTE, False)


async def test_without_background_the_argument_is_unknown_and_the_task_tools_are_gone(verbs):
    one = caller(verbs, enabled=False)
    args = {"sessionId": SES, "text": "", "run_in_background": True}
    answer = await one.call("terminal_send", args, "req_1")
    assert answer.is_error
    assert 'unknown property "run_in_background"' in answer.text
    assert not verbs.asked
    assert not [tool for tool in one.tools if tool.name.startswith("task_")]
    assert "run_in_background" not in str([tool.schema for tool in one.tools])


@pytest.mark.parametrize(
    ("name", "args", "faults"),
    [
        ("terminal_send", {}, ['missing required property "sessionId"', '"text"']),
        ("terminal_send", {"sessionId": 1, "text": 1}, ['"sessionId" must be a string', '"text"']),
        ("terminal_send", {"sessionId": SES, "text": "", "submit": 1}, ["must be a boolean"]),
        ("terminal_send", {"sessionId": "", "text": ""}, ["non-empty"]),
        ("terminal_list", {"bogus": 1}, ['unknown property "bogus"']),
        ("terminal_read", {"sessionId": SES, "offset": "1"}, ["must be a number"]),
        ("terminal_read", {"sessionId": SES, "count": 0}, ["must be at least 1"]),
        ("terminal_read", {"sessionId": SES, "count": 1.5}, ["whole number"]),
        ("terminal_read", {"sessionId": SES, "count": float("nan")}, ["safe number"]),
        ("terminal_read", {"sessionId": SES, "count": float("inf")}, ["safe number"]),
        ("terminal_read", {"sessionId": SES, "offset": 2**53}, ["safe number"]),
        ("terminal_signal", {"sessionId": SES, "signal": "SIGFOO"}, ['must be one of ["SIGINT"']),
        ("terminal_open", {"type": ""}, ["type must be a non-empty string"]),
        ("task_output", {"task_id": ""}, ["invalid task_id"]),
        ("task_output", {"task_id": TSK, "wait": True, "timeout_ms": -5}, ["invalid wait timeout"]),
        ("task_output", {"task_id": TSK, "wait": True, "timeout_ms": 0}, ["invalid wait timeout"]),
        ("terminal_list", [], ["expected a JSON object"]),
        ("nonsense", {}, ["unknown tool"]),
    ],
)
async def test_faults_are_answers_and_reach_no_verb(verbs, name, args, faults):
    answer = await caller(verbs).call(name, args, "req_1")
    assert answer.is_error
    assert answer.text.startswith("Error: ")
    for fault in faults:
        assert fault in answer.text
    assert not verbs.asked


async def test_an_error_carries_its_reason(verbs):
    verbs.error = ForeignSessionError("belongs to another", session_id=SES)
    answer = await caller(verbs).call("terminal_close", {"sessionId": SES}, "req_1")
    assert answer.is_error
    assert answer.value["error"]["reason"] == "FOREIGN_SESSION"
    assert answer.value["error"]["session_id"] == SES


@pytest.mark.parametrize(
    "error", [OwnerNotLiveError, UnauthenticatedError, RegistryUnavailableError]
)
async def test_what_a_model_can_do_nothing_about_is_the_harness_matter(verbs, error):
    verbs.error = error("gone")
    with pytest.raises(error):
        await caller(verbs).call("terminal_list", {}, "req_1")


async def test_every_tool_of_the_table_answers(verbs):
    one = caller(verbs)
    samples = {
        "type": "shell",
        "sessionId": SES,
        "task_id": TSK,
        "text": "x",
        "signal": "SIGINT",
        "pattern": "x",
        "command": "ls",
        "id": SES,
        "data": "x",
    }
    for tool in one.tools:
        args = {p.name: samples[p.name] for p in tool.params if p.name in samples}
        answer = await one.call(tool.name, args, "req_1")
        assert not answer.is_error, answer.text
        jsonschema.validate(answer.value, tool.value_schema)
        assert answer.text
        assert "locations" not in answer.value


CARDS = {
    ("terminal_open", "generic/execute"): ({"type": "shell"}, "Open terminal shell"),
    ("terminal_read", "generic/read"): ({"sessionId": SES}, f"Read terminal {SES}"),
    ("terminal_signal", "generic/execute"): (
        {"sessionId": SES, "signal": "SIGINT"},
        f"Signal terminal {SES}",
    ),
    ("terminal_close", "generic/delete"): ({"sessionId": SES}, f"Close terminal {SES}"),
    ("terminal_list", "generic/read"): ({}, "List terminal sessions"),
    ("terminal_send", "terminal"): ({"sessionId": SES, "text": ""}, "(send input)"),
}


@pytest.mark.parametrize(("tool", "shown"), list(CARDS.items()))
async def test_every_call_has_its_card(verbs, tool, shown):
    (name, card), (args, title) = tool, shown
    answer = await caller(verbs).call(name, args, "req_1")
    assert (answer.card, answer.title) == (card, title)
    assert answer.shows_output is (card == "terminal")


async def test_a_failed_send_has_no_output_on_its_card(verbs):
    verbs.error = ForeignSessionError("no")
    answer = await caller(verbs).call("terminal_send", {"sessionId": SES, "text": "x"}, "req_1")
    assert (answer.card, answer.shows_output) == (Card.TERMINAL, False)
    jsonschema.validate(answer.value, FAILURE)


async def test_an_open_without_a_pid_has_no_pid_and_a_named_one_is_titled_by_it(verbs):
    answer = await caller(verbs).call("terminal_open", {"type": "shell", "name": "main"}, "req_1")
    assert answer.title == "Open terminal main"
    (_, request) = verbs.asked[0]
    assert (request.type, request.name, request.cwd) == ("shell", "main", None)
    assert answer.value["pid"] == 42
    assert "name" not in answer.value


async def test_a_page_is_asked_for_as_it_was_given(verbs):
    args = {"sessionId": SES, "offset": 7, "count": 3}
    answer = await caller(verbs).call("terminal_read", args, "req_1")
    assert verbs.asked == [("read", SES, 7, 3)]
    assert answer.text == "history\n[lines: 0-1 of 1]"


async def test_a_wait_for_a_task_has_a_default_and_a_longest(verbs):
    one = caller(verbs)
    for args, wait_s in [
        ({}, 0.0),
        ({"wait": True}, 30.0),
        ({"wait": True, "timeout_ms": 10**9}, 600.0),
        ({"timeout_ms": -5}, 0.0),
    ]:
        await one.call("task_output", {"task_id": TSK, **args}, "req_1")
        assert verbs.asked[-1] == ("task_output", TSK, -1, wait_s)


@pytest.mark.parametrize(
    ("call", "mark"),
    [
        (("terminal_read", {"sessionId": SES}), "[output truncated]"),
        (("task_kill", {"task_id": TSK}), "[result truncated]"),
    ],
)
async def test_errors_are_bounded_in_the_words_of_their_family(verbs, call, mark):
    verbs.error = ForeignSessionError("m" * 1000)
    answer = await caller(verbs, max_bytes=64).call(*call, "req_1")
    assert len(answer.text) <= 64
    assert answer.text.startswith("Error: m")
    assert answer.text.endswith(f"\n{mark}")


@pytest.mark.parametrize("fact", ["x" * 10_000, "{0}{text}", "\x1b[31m"])
async def test_a_title_is_the_text_as_it_is_and_bounded(verbs, fact):
    answer = await caller(verbs).call("terminal_send", {"sessionId": SES, "text": fact}, "req_1")
    assert answer.title == fact[:4096]
    assert json.dumps(answer.value)


async def test_the_byte_surface_renders_json_and_plain_tails(verbs):
    one = caller(verbs)
    opened = await one.call("pty_open", {"command": "ls", "env": {"A": "b"}}, "req_1")
    assert json.loads(opened.text) == opened.value
    assert opened.value["initialOutput"] == "stub prompt"
    assert verbs.asked[-1][1].command == "export A='b'\nls"
    sent = await one.call("pty_send", {"id": SES, "data": "x", "submit": False}, "req_1")
    assert json.loads(sent.text) == {"delta": "command output", "status": {"kind": "running"}}
    tailed = await one.call("pty_tail", {"id": SES}, "req_1")
    assert (tailed.text, tailed.value["lines"]) == ("new", 1)
    assert verbs.asked[-1] == ("tail", SES, "", 200, "req_1")
    closed = await one.call("pty_close", {"id": SES}, "req_1")
    assert closed.text == '{"closed": true}'
    for name, args in (("pty_open", {"command": " "}), ("pty_send", {"id": "", "data": ""})):
        assert (await one.call(name, args, "req_1")).is_error


async def test_a_long_delta_gives_way_and_the_text_stays_json(verbs):
    verbs.viewport = 'say "x"\n' * 40_000
    answer = await caller(verbs, max_bytes=4096).call("pty_send", {"id": SES, "data": "x"}, "req_1")
    shown = json.loads(answer.text)
    assert len(answer.text.encode()) <= 4096
    assert shown["truncated"]
    assert "bytes omitted" in shown["delta"]
    assert answer.value["delta"] == verbs.viewport
