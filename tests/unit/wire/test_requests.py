"""What a request must be: ids, ranges, stated enums, closed fields."""

import pytest
from google.protobuf.duration_pb2 import Duration

from fabric.api.v1 import (
    owner_service_pb2,
    pty_service_pb2,
    task_service_pb2,
    terminal_service_pb2,
)
from fabric.core.errors import InvalidRequestError
from fabric.core.ids import AgentId, HostName, RequestId, SessionId, TaskId
from fabric.core.model import OpenRequest, SandboxMode, SendRequest, SignalName, WaitCondition
from fabric.wire import records, requests
from fabric.wire.fields import refuse_unknown

SES = SessionId("ses_aaaaaaaaaaaaaaaa")
TSK = TaskId("tsk_aaaaaaaaaaaaaaaa")
REQ = RequestId("req-1")
pb = terminal_service_pb2


def test_requests_come_back_equal():
    full = OpenRequest(
        REQ,
        "python",
        "n",
        "/w",
        (("A", "1"), ("B", "")),
        "linux",
        HostName("h"),
        10,
        20,
        "xterm",
        "ls",
        1.5,
    )
    assert requests.open_of(requests.open_message(full)) == full
    bare = OpenRequest(REQ, "shell")
    assert requests.open_of(requests.open_message(bare)) == bare
    send = SendRequest(REQ, b"\x00\xff", False, 0.25)
    assert requests.send_of(requests.send_message(SES, send)) == (SES, send)
    task = SendRequest(REQ, b"x", background=True)
    assert requests.start_of(requests.start_message(SES, task)) == (SES, task)
    assert requests.read_of(requests.read_message(SES, 3, None)) == (SES, 3, 500)
    name = SignalName.SIGTSTP
    assert requests.signal_of(requests.signal_message(SES, name, REQ)) == (SES, name, REQ)
    assert requests.resize_of(requests.resize_message(SES, 1, 1000, REQ)) == (SES, 1, 1000)
    wait = WaitCondition("a.*b", 0.5, True, True, 7)
    assert requests.wait_of(requests.wait_message(SES, wait, 2.0)) == (SES, wait, 2.0)
    assert requests.bytes_of(requests.bytes_message(SES, 5, None, None)) == (SES, 5, 65536, None)
    assert requests.tail_of(requests.tail_message(SES, "c", None)) == (SES, "c", None, None)
    assert requests.tail_of(requests.tail_message(SES, "", 5, REQ)) == (SES, "", 5, REQ)
    assert requests.follow_of(requests.follow_message(SES, None)) == (SES, None)
    assert requests.follow_of(requests.follow_message(SES, 0)) == (SES, 0)
    assert requests.output_of(requests.output_message(TSK, 4, 1.0)) == (TSK, 4, 1.0)
    acquire = records.AcquireRequest(REQ, AgentId("a"), SandboxMode.READ_ONLY, 5.0)
    assert records.acquire_of(records.acquire_message(acquire)) == acquire
    mode = owner_service_pb2.SetModeRequest(request_id=REQ, mode=3)
    assert records.mode_of(mode) == (SandboxMode.DANGER_FULL_ACCESS, REQ)


def test_submit_is_true_when_it_is_left_out():
    message = pb.SendRequest(request_id=REQ, session_id=SES)
    assert requests.send_of(message)[1].submit is True


WRONG = [
    (requests.open_of, pb.OpenRequest(type="shell"), "request_id"),
    (requests.open_of, pb.OpenRequest(request_id="a b", type="shell"), "request_id"),
    (requests.open_of, pb.OpenRequest(request_id=REQ), "type must be a non-empty"),
    (requests.open_of, pb.OpenRequest(request_id=REQ, type="shell", name=""), "name must be"),
    (requests.open_of, pb.OpenRequest(request_id=REQ, type="shell", cwd="a\0b"), "NUL"),
    (requests.open_of, pb.OpenRequest(request_id=REQ, type="shell", rows=0), "rows must be"),
    (requests.open_of, pb.OpenRequest(request_id=REQ, type="shell", cols=1001), "cols must be"),
    (requests.open_of, pb.OpenRequest(request_id=REQ, type="pty", command=" \t"), "command must"),
    (
        requests.open_of,
        pb.OpenRequest(request_id=REQ, type="shell", env=[pb.EnvVar(name="A=B")]),
        "env names",
    ),
    (
        requests.open_of,
        pb.OpenRequest(request_id=REQ, type="shell", timeout=Duration(seconds=-1)),
        "timeout must be greater",
    ),
    *(
        (
            requests.send_of,
            pb.SendRequest(request_id=REQ, session_id=SES, timeout=Duration(**wrong)),
            "timeout is no valid duration",
        )
        for wrong in (
            {"nanos": 2_000_000_000},
            {"seconds": 1, "nanos": -1},
            {"seconds": -1, "nanos": 1},
            {"seconds": 315_576_000_001},
        )
    ),
    (requests.send_of, pb.SendRequest(request_id=REQ), "session_id must be a non-empty"),
    (requests.send_of, pb.SendRequest(request_id=REQ, session_id="pty-1"), "wrong form"),
    (requests.send_of, pb.SendRequest(session_id=SES), "request_id"),
    (
        requests.send_of,
        pb.SendRequest(request_id=REQ, session_id=SES, timeout=Duration()),
        "timeout must be greater",
    ),
    (requests.read_of, pb.ReadRequest(session_id=SES, offset=-1), "offset must be a non-negative"),
    (requests.read_of, pb.ReadRequest(session_id=SES, count=0), "count must be a positive"),
    (requests.read_of, pb.ReadRequest(session_id=SES, count=2**60), "count must be a positive"),
    (requests.signal_of, pb.SignalRequest(request_id=REQ, session_id=SES), "signal must be one of"),
    (requests.signal_of, pb.SignalRequest(session_id=SES, signal=1), "request_id"),
    (
        requests.resize_of,
        pb.ResizeRequest(request_id=REQ, session_id=SES, rows=-1, cols=1),
        "rows must be",
    ),
    (requests.wait_of, pb.WaitForRequest(session_id=SES), "at least one of"),
    (requests.wait_of, pb.WaitForRequest(session_id=SES, pattern=""), "pattern must be"),
    (
        requests.wait_of,
        pb.WaitForRequest(session_id=SES, ready=True, since_offset=-5),
        "since_offset",
    ),
    (
        requests.bytes_of,
        pty_service_pb2.ReadBytesRequest(session_id=SES, max_bytes=0),
        "max_bytes must be",
    ),
    (
        requests.bytes_of,
        pty_service_pb2.ReadBytesRequest(session_id=SES, wait=Duration(seconds=-1)),
        "wait must not",
    ),
    (
        requests.bytes_of,
        pty_service_pb2.ReadBytesRequest(session_id=SES, wait=Duration(nanos=2_000_000_000)),
        "wait is no valid duration",
    ),
    (
        requests.tail_of,
        pty_service_pb2.TailRequest(session_id=SES, consumer="c" * 129),
        "consumer must be",
    ),
    (requests.tail_of, pty_service_pb2.TailRequest(session_id=SES, lines=-1), "lines must be"),
    (requests.output_of, task_service_pb2.TaskOutputRequest(task_id="tsk_1"), "wrong form"),
    (requests.output_of, task_service_pb2.TaskOutputRequest(task_id=TSK, cursor=-1), "cursor"),
    (records.acquire_of, owner_service_pb2.AcquireRequest(request_id=REQ), "agent must be"),
    (
        records.acquire_of,
        owner_service_pb2.AcquireRequest(request_id=REQ, agent="a", mode=99),
        "mode must be one of",
    ),
    (records.mode_of, owner_service_pb2.SetModeRequest(request_id=REQ), "mode must be one of"),
]


@pytest.mark.parametrize(("read", "message", "words"), WRONG, ids=[row[2] for row in WRONG])
def test_a_wrong_request_says_what_is_wrong(read, message, words):
    with pytest.raises(InvalidRequestError, match=words):
        read(message)


def test_unknown_fields_are_refused_by_number_at_any_depth():
    unknown = b"\xf8\x3f\x01"  # field 1023, varint 1
    message = pb.SendRequest.FromString(
        pb.SendRequest(session_id=SES).SerializeToString() + unknown
    )
    with pytest.raises(InvalidRequestError, match="unknown field 1023 in SendRequest"):
        refuse_unknown(message)
    inner = pb.EnvVar.FromString(pb.EnvVar(name="A").SerializeToString() + unknown)
    with pytest.raises(InvalidRequestError, match="1023 in EnvVar"):
        refuse_unknown(pb.OpenRequest(env=[inner]))
    nested = Duration.FromString(unknown)
    with pytest.raises(InvalidRequestError, match="1023 in Duration"):
        refuse_unknown(pb.SendRequest(timeout=nested))
    refuse_unknown(pb.OpenRequest(env=[pb.EnvVar(name="A")], timeout=Duration(seconds=1)))


def test_numbers_that_do_not_fit_are_refused_by_the_client():
    with pytest.raises(InvalidRequestError, match="count must fit"):
        requests.read_message(SES, 0, 2**63)
    with pytest.raises(InvalidRequestError, match="rows must fit"):
        requests.resize_message(SES, 2**31, 1, REQ)
    for seconds in (float("nan"), float("inf"), 1e18):
        with pytest.raises(InvalidRequestError, match="finite"):
            requests.send_message(SES, SendRequest(REQ, b"", timeout_s=seconds))


def test_text_that_utf8_cannot_carry_is_refused_by_the_client():
    with pytest.raises(InvalidRequestError, match="not valid Unicode"):
        requests.open_message(OpenRequest(REQ, "shell", cwd="/\udcff"))


def test_a_value_of_another_type_is_refused_by_the_client():
    with pytest.raises(InvalidRequestError, match="wrong value"):
        requests.open_message(OpenRequest(REQ, "shell", cwd=7))
