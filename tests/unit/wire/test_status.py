"""Every error survives the wire: the table in both directions, and what newer servers say."""

import pickle
import re
from pathlib import Path

import grpc
import pytest
from google.protobuf.any_pb2 import Any
from google.rpc import error_details_pb2, status_pb2

from fabric.core.errors import (
    CursorExpiredError,
    DeadlineError,
    FabricError,
    GatewayUnavailableError,
    InternalError,
    LimitReachedError,
    SendActiveError,
    SessionStateError,
    UnknownReasonError,
    UnsupportedError,
    error_classes,
)
from fabric.core.settings import SettingsError
from fabric.wire import status

ROOT = Path(__file__).parents[3]
CLASSES = [
    cls
    for cls in error_classes()
    if cls not in (FabricError, UnknownReasonError)
    and cls.__module__ in ("fabric.core.errors", "fabric.core.settings")
]


def _back(error: FabricError) -> FabricError:
    sent = status.status_of(error)
    return status.error_from(sent.code, sent.details, dict(sent.trailing_metadata))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_error_comes_back_as_itself(cls):
    error = cls("a sentence with ünïcode", session_id="ses_x", oldest_offset=7)
    back = _back(error)
    assert type(back) is cls
    assert (back.reason, back.message) == (cls.reason, error.message)
    assert back.metadata == {"session_id": "ses_x", "oldest_offset": "7"}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_class_has_a_code_and_only_unavailable_is_tried_again(cls):
    code = status.code_of(cls("x"))
    assert code is status.CODES[cls.reason]
    assert cls.retryable == (code is grpc.StatusCode.UNAVAILABLE)
    assert re.fullmatch(r"[A-Z][A-Z0-9_]+[A-Z0-9]", cls.reason)
    assert len(cls.reason) <= 63


def test_no_reason_is_in_the_table_without_a_class():
    assert set(status.CODES) == {cls.reason for cls in CLASSES}


def test_a_subclass_without_an_entry_takes_the_code_of_its_base():
    class LocalError(SendActiveError):
        reason = "SOMETHING_LOCAL"

    assert status.code_of(LocalError("x")) is grpc.StatusCode.FAILED_PRECONDITION
    assert status.code_of(FabricError("x")) is grpc.StatusCode.INTERNAL


def _newer(code: grpc.StatusCode, reason: str, domain: str = status.DOMAIN) -> FabricError:
    detail = Any()
    detail.Pack(error_details_pb2.ErrorInfo(reason=reason, domain=domain, metadata={"a": "b"}))
    raw = status_pb2.Status(code=code.value[0], message="m", details=[detail]).SerializeToString()
    return status.error_from(code, "m", {status.DETAILS_HEADER: raw})


def test_an_unknown_reason_keeps_its_name_and_takes_the_class_of_its_code():
    error = _newer(grpc.StatusCode.FAILED_PRECONDITION, "TERMINAL_ON_FIRE")
    assert type(error) is SessionStateError
    assert error.reason == "TERMINAL_ON_FIRE"
    assert error.metadata == {"a": "b"}
    assert pickle.loads(pickle.dumps(error)).reason == "TERMINAL_ON_FIRE"
    assert SessionStateError.reason == "SESSION_STATE"
    assert _newer(grpc.StatusCode.UNAVAILABLE, "MOON_PHASE").retryable
    assert isinstance(_newer(grpc.StatusCode.DATA_LOSS, "LOST_BYTES"), UnknownReasonError)


def test_metadata_of_another_side_cannot_break_the_error():
    detail = Any()
    info = error_details_pb2.ErrorInfo(
        reason="SEND_ACTIVE", domain=status.DOMAIN, metadata={"message": "x", "self": "y"}
    )
    detail.Pack(info)
    raw = status_pb2.Status(code=9, message="m", details=[detail]).SerializeToString()
    error = status.error_from(
        grpc.StatusCode.FAILED_PRECONDITION, "m", {status.DETAILS_HEADER: raw}
    )
    assert (error.message, error.metadata) == ("m", {"message": "x", "self": "y"})


@pytest.mark.parametrize(
    ("code", "cls"),
    [
        (grpc.StatusCode.UNAVAILABLE, GatewayUnavailableError),
        (grpc.StatusCode.DEADLINE_EXCEEDED, DeadlineError),
        (grpc.StatusCode.UNIMPLEMENTED, UnsupportedError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, LimitReachedError),
        (grpc.StatusCode.UNKNOWN, UnknownReasonError),
    ],
)
def test_a_status_of_grpc_itself_is_read_by_its_code(code, cls):
    error = status.error_from(code, "transport", {})
    assert type(error) is cls
    assert error.message == "transport"


def test_another_domain_and_garbage_are_not_ours():
    foreign = _newer(grpc.StatusCode.FAILED_PRECONDITION, "SEND_ACTIVE", domain="elsewhere")
    assert type(foreign) is SessionStateError
    garbage = status.error_from(
        grpc.StatusCode.INTERNAL, None, {status.DETAILS_HEADER: b"\xff\xff\xff"}
    )
    assert garbage.message == "internal"


def test_a_status_fits_the_headers_of_any_peer():
    error = CursorExpiredError("ä" * 5000, **{f"key_{n}": "v" * 2000 for n in range(50)})
    sent = status.status_of(error)
    assert len(sent.details.encode()) <= status.MAX_MESSAGE_BYTES
    assert len(sent.trailing_metadata[0][1]) <= 3072
    assert type(_back(error)) is CursorExpiredError


def test_keys_that_metadata_may_not_have_are_left_out():
    error = InternalError("x", good_key="1", **{"bad key": "2", "": "3", "k" * 65: "4"})
    assert _back(error).metadata == {"good_key": "1"}


def test_lone_surrogates_do_not_break_the_status():
    assert _back(InternalError("a\udcffb", path="\udcff")).message == "a?b"


def test_the_table_in_the_readme_is_the_code():
    rows = re.findall(
        r"^\| `(\w+)` \| `(\w+)` \| (\w+) \| (yes|no) \| (\d) \|$",
        (ROOT / "proto" / "README.md").read_text(),
        re.MULTILINE,
    )
    assert rows == [
        (
            cls.__name__,
            cls.reason,
            status.CODES[cls.reason].name,
            "yes" if cls.retryable else "no",
            str(cls.exit_code),
        )
        for cls in CLASSES
    ]


def test_settings_errors_travel_too():
    assert type(_back(SettingsError("gateway.listen: bad"))) is SettingsError
