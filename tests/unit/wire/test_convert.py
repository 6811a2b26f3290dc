"""A value that went out as a message and came back is equal."""

import dataclasses

import pytest

from fabric.api.v1 import terminal_service_pb2, types_pb2
from fabric.core.errors import UnsupportedError
from fabric.core.ids import AgentId, HostName, OwnerId, Principal, SessionId, TaskId
from fabric.core.model import (
    BytesPage,
    CloseOutcome,
    CloseReceipt,
    CloseResult,
    Confinement,
    EndedProcess,
    Evidence,
    ExitStatus,
    Network,
    NodeState,
    OpenResult,
    Outcome,
    OwnerGrant,
    PromptKind,
    ReadPage,
    ReleaseReceipt,
    SandboxMode,
    ScreenSnapshot,
    SendResult,
    SessionInfo,
    SessionStatus,
    TailPage,
    TaskOutput,
    TaskRecord,
    TaskState,
    WaitReason,
    WaitResult,
)
from fabric.wire import convert, records, server
from fabric.wire.server import ServerInfo

SES, OWN, TSK = SessionId("ses_a"), OwnerId("own_a"), TaskId("tsk_a")
BARE = SessionInfo(SES, OWN, "shell", SessionStatus())
FULL = SessionInfo(
    SES,
    OWN,
    "python",
    SessionStatus(ExitStatus(signal="SIGKILL", detail="oom")),
    name="näme",
    pid=2**40,
    host=HostName("h"),
    cwd="/tmp/ä",
    confinement=Confinement(
        SandboxMode.WORKSPACE_WRITE,
        Network.NONE,
        "bubblewrap",
        True,
        "/workspace",
        "alice",
        "rlimit",
        ("memory", "pids"),
        ("cpu_weight",),
    ),
    rows=1,
    cols=2,
    created_at=1_700_000_000.25,
    last_activity_at=1_700_000_001.5,
    adoption=3,
    busy=True,
)
RECORD = TaskRecord(TSK, OWN, SES, "label", TaskState.RUNNING, started_at=5.0)
SETTLED = dataclasses.replace(RECORD, state=TaskState.LOST, detail="d", finished_at=6.25)
SENT = SendResult(
    "hi\n",
    WaitReason.STDIN_READ,
    SessionStatus(ExitStatus(exit_code=0)),
    Evidence.SYSCALL,
    PromptKind.PASSWORD,
    exit_code=0,
    truncated=True,
    omitted_bytes=7,
    first_offset=2**40,
    next_offset=2**40 + 3,
    outcome=Outcome.UNKNOWN,
    canonical=False,
    echo=False,
    cwd="/",
    elapsed_s=0.125,
)
NODE = NodeState(
    HostName("n"), True, "darwin", "arm64", ("seatbelt",), 1, 2, 3, 4, 2**40, 6, True, "n:1"
)
GRANT = OwnerGrant(
    OWN, 2**33, Principal("p"), AgentId("a"), SandboxMode.DANGER_FULL_ACCESS, 120.5, 1.75
)
INFO = ServerInfo(
    "0.1.0",
    1,
    2,
    HostName("h"),
    Principal("p"),
    SandboxMode.READ_ONLY,
    ("tasks",),
    ("shell",),
    True,
    *range(1, 4),
    *(0.5, 1.5, 2.5, 3.5),
    *range(4, 7),
)
RECEIPT = CloseReceipt(
    ExitStatus(exit_code=1),
    (EndedProcess(1, "bash", "SIGTERM"), EndedProcess(2, "x")),
    (EndedProcess(3, "y", "SIGKILL"),),
    0.25,
)
CASES = [
    (convert.info_message, convert.info_of, BARE),
    (convert.info_message, convert.info_of, FULL),
    (convert.open_message, convert.open_of, OpenResult(FULL, "motd", WaitReason.PROMPT, True, 9)),
    (convert.send_message, convert.send_of, SENT),
    (convert.send_message, convert.send_of, SendResult("", WaitReason.TIMEOUT, SessionStatus())),
    (convert.read_message, convert.read_of, ReadPage("t", 1, 2, 3, True, 4, 5)),
    (
        convert.snapshot_message,
        convert.snapshot_of,
        ScreenSnapshot(2, 3, ("a", "é"), 1, 2, True, True, 9, "title"),
    ),
    (convert.bytes_message, convert.bytes_of, BytesPage(1, b"\x00\xff", 3, 1, True)),
    (convert.tail_message, convert.tail_of, TailPage("a\n", 1, True, 4)),
    (
        convert.close_message,
        convert.close_of,
        CloseResult(SES, CloseOutcome.ALREADY_CLOSING),
    ),
    (convert.close_message, convert.close_of, CloseResult(SES, CloseOutcome.CLOSED, RECEIPT)),
    (
        convert.close_message,
        convert.close_of,
        CloseResult(SES, CloseOutcome.CLOSED, CloseReceipt(None)),
    ),
    *(
        (
            convert.wait_message,
            convert.wait_of,
            WaitResult(matched, "t", SessionStatus(), "m", 4, True),
        )
        for matched in ("pattern", "quiet", "ready", "exit", "timeout")
    ),
    (records.task_message, records.task_of, RECORD),
    (records.task_message, records.task_of, SETTLED),
    (records.output_message, records.output_of, TaskOutput("t", SETTLED, 5, True)),
    (records.grant_message, records.grant_of, GRANT),
    (records.release_message, records.release_of, ReleaseReceipt((SES,), (SessionId("ses_b"),))),
    (records.node_message, records.node_of, NODE),
    (records.node_message, records.node_of, NodeState(HostName("n"), False)),
    (server.server_message, server.server_of, INFO),
]


@pytest.mark.parametrize(("there", "back", "value"), CASES)
def test_a_value_comes_back_equal(there, back, value):
    message = there(value)
    assert back(type(message).FromString(message.SerializeToString())) == value


@pytest.mark.parametrize("reason", list(WaitReason))
@pytest.mark.parametrize("mode", list(SandboxMode))
def test_every_enum_value_travels(reason, mode):
    value = OpenResult(
        dataclasses.replace(BARE, confinement=Confinement(mode)), "", reason, False, 0
    )
    assert convert.open_of(convert.open_message(value)) == value


def test_a_folder_of_the_node_stays_inside():
    value = dataclasses.replace(NODE, node_dir="/secret/place")
    assert records.node_of(records.node_message(value)) == NODE


def test_a_value_of_a_newer_server_is_named_or_read_as_not_known():
    with pytest.raises(UnsupportedError, match="wait_reason 99"):
        convert.send_of(terminal_service_pb2.SendResponse(wait_reason=99))
    message = terminal_service_pb2.SendResponse(
        wait_reason=types_pb2.WAIT_REASON_TIMEOUT, evidence=99, prompt_kind=99, outcome=99
    )
    result = convert.send_of(message)
    assert (result.evidence, result.prompt_kind) == (Evidence.NONE, PromptKind.NONE)
    assert result.outcome is Outcome.UNKNOWN


def test_names_that_utf8_cannot_carry_are_replaced():
    value = dataclasses.replace(BARE, cwd="/tmp/\udcff")
    assert convert.info_of(convert.info_message(value)).cwd == "/tmp/?"
