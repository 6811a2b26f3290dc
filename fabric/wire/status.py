"""Errors as gRPC statuses and back: the only file with gRPC codes.

The code says whether a call may be tried again, the reason in ``ErrorInfo`` what
happened, the message is for people. The way back goes by reason, then by code: a
reason of a newer server keeps its name on an error of the class its code stands for.

A status travels in headers, and peers bound those (8 KiB by default), so messages and
metadata are cut to ``MAX_MESSAGE_BYTES`` and ``MAX_METADATA_BYTES``.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from fabric.core.errors import (
    CancelledCallError,
    DeadlineError,
    FabricError,
    GatewayUnavailableError,
    InternalError,
    InvalidRequestError,
    LimitReachedError,
    PermissionDeniedError,
    SessionStateError,
    UnauthenticatedError,
    UnknownReasonError,
    UnsupportedError,
    error_classes,
    error_of,
)

DOMAIN = "pty-fabric"
DETAILS_HEADER = "grpc-status-details-bin"
MAX_MESSAGE_BYTES = 1024
MAX_METADATA_BYTES = 1536
_KEY = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_C = grpc.StatusCode

CODES: Mapping[str, grpc.StatusCode] = {
    "INTERNAL": _C.INTERNAL,
    "INVALID_REQUEST": _C.INVALID_ARGUMENT,
    "INVALID_SETTINGS": _C.INVALID_ARGUMENT,
    "INPUT_TOO_LARGE": _C.INVALID_ARGUMENT,
    "INPUT_LINE_TOO_LONG": _C.INVALID_ARGUMENT,
    "INVALID_ARGS": _C.INVALID_ARGUMENT,
    "UNKNOWN_TOOL": _C.INVALID_ARGUMENT,
    "REQUEST_ID_CONFLICT": _C.INVALID_ARGUMENT,
    "UNAUTHENTICATED": _C.UNAUTHENTICATED,
    "PERMISSION_DENIED": _C.PERMISSION_DENIED,
    "FOREIGN_SESSION": _C.PERMISSION_DENIED,
    "OWNER_NOT_LIVE": _C.PERMISSION_DENIED,
    "SESSION_NOT_FOUND": _C.NOT_FOUND,
    "SESSION_LOST": _C.NOT_FOUND,
    "TASK_NOT_FOUND": _C.NOT_FOUND,
    "NODE_NOT_FOUND": _C.NOT_FOUND,
    "NAME_TAKEN": _C.ALREADY_EXISTS,
    "SESSION_STATE": _C.FAILED_PRECONDITION,
    "SEND_ACTIVE": _C.FAILED_PRECONDITION,
    "SESSION_EXITED": _C.FAILED_PRECONDITION,
    "SESSION_CLOSING": _C.FAILED_PRECONDITION,
    "INPUT_BLOCKED": _C.FAILED_PRECONDITION,
    "QUEUE_BLOCKED": _C.FAILED_PRECONDITION,
    "NOT_CONTROLLER": _C.FAILED_PRECONDITION,
    "SIGNAL_REFUSED": _C.FAILED_PRECONDITION,
    "SANDBOX_MODE_LOCKED": _C.FAILED_PRECONDITION,
    "SANDBOX_UNAVAILABLE": _C.FAILED_PRECONDITION,
    "SPAWN_FAILED": _C.FAILED_PRECONDITION,
    "UNSUPPORTED": _C.FAILED_PRECONDITION,
    "STALE_GENERATION": _C.ABORTED,
    "OUTCOME_UNKNOWN": _C.ABORTED,
    "CURSOR_EXPIRED": _C.OUT_OF_RANGE,
    "CALL_CANCELLED": _C.CANCELLED,
    "LIMIT_REACHED": _C.RESOURCE_EXHAUSTED,
    "QUEUE_FULL": _C.RESOURCE_EXHAUSTED,
    "CAPACITY_REACHED": _C.RESOURCE_EXHAUSTED,
    "PTY_EXHAUSTED": _C.RESOURCE_EXHAUSTED,
    "REGISTRY_UNAVAILABLE": _C.UNAVAILABLE,
    "GATEWAY_UNAVAILABLE": _C.UNAVAILABLE,
    "DRAINING": _C.UNAVAILABLE,
    "STARTUP_TIMEOUT": _C.DEADLINE_EXCEEDED,
    "DEADLINE": _C.DEADLINE_EXCEEDED,
    "CLEANUP_INCOMPLETE": _C.INTERNAL,
}

_BY_CODE: Mapping[grpc.StatusCode, type[FabricError]] = {
    _C.INVALID_ARGUMENT: InvalidRequestError,
    _C.UNAUTHENTICATED: UnauthenticatedError,
    _C.PERMISSION_DENIED: PermissionDeniedError,
    _C.FAILED_PRECONDITION: SessionStateError,
    _C.RESOURCE_EXHAUSTED: LimitReachedError,
    _C.UNAVAILABLE: GatewayUnavailableError,
    _C.DEADLINE_EXCEEDED: DeadlineError,
    _C.CANCELLED: CancelledCallError,
    _C.UNIMPLEMENTED: UnsupportedError,
}
_KNOWN = frozenset(cls.reason for cls in error_classes())


class RpcStatus(NamedTuple):
    """What ``abort_with_status`` takes."""

    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, bytes], ...]


def code_of(error: FabricError) -> grpc.StatusCode:
    """Return the code of an error: its reason's, or that of the nearest base class."""
    code = CODES.get(error.reason)
    if code is not None:
        return code
    for cls in type(error).__mro__:
        reason = cls.__dict__.get("reason")
        if isinstance(reason, str) and reason in CODES:
            return CODES[reason]
    return _C.INTERNAL


def _cut(text: str, limit: int) -> str:
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return raw.decode("utf-8")
    return raw[: limit - 3].decode("utf-8", "ignore") + "…"


def _fitting(metadata: Mapping[str, str]) -> dict[str, str]:
    room = MAX_METADATA_BYTES
    kept: dict[str, str] = {}
    for key, value in metadata.items():
        if not _KEY.fullmatch(key):
            continue
        text = _cut(value, 512)
        room -= len(key) + len(text.encode()) + 8
        if room < 0:
            break
        kept[key] = text
    return kept


def status_of(error: FabricError) -> RpcStatus:
    """Turn an error into the status that carries it."""
    code = code_of(error)
    message = _cut(error.message, MAX_MESSAGE_BYTES)
    number: int = code.value[0]
    status = status_pb2.Status(code=number, message=message)
    status.details.add().Pack(
        error_details_pb2.ErrorInfo(
            reason=error.reason, domain=DOMAIN, metadata=_fitting(error.metadata)
        )
    )
    return RpcStatus(code, message, ((DETAILS_HEADER, status.SerializeToString()),))


def error_from(
    code: grpc.StatusCode, details: str | None, trailing: Mapping[str, str | bytes]
) -> FabricError:
    """Rebuild the error that a status carries."""
    info = _info_of(trailing.get(DETAILS_HEADER))
    message = details or code.name.lower().replace("_", " ")
    if info is None:
        return _BY_CODE.get(code, UnknownReasonError)(message, grpc_code=code.name)
    metadata = dict(info.metadata)
    if info.reason in _KNOWN:
        return error_of(info.reason, message, metadata)
    error = _BY_CODE.get(code, UnknownReasonError)(message)
    error.__dict__["reason"] = info.reason
    error.metadata.update(metadata)
    return error


def _info_of(raw: str | bytes | None) -> error_details_pb2.ErrorInfo | None:
    if not isinstance(raw, bytes):
        return None
    info = error_details_pb2.ErrorInfo()
    try:
        status = status_pb2.Status.FromString(raw)
        for detail in status.details:
            if detail.Is(info.DESCRIPTOR) and detail.Unpack(info) and info.domain == DOMAIN:
                return info
    except DecodeError:
        return None
    return None


def internal() -> InternalError:
    """Make the error for something unforeseen: it names nothing but itself."""
    return InternalError("internal error; the server's log has the details")
