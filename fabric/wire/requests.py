"""Requests as protobuf messages and back, with the rules a request must keep.

``x_message`` is the client's half and ``x_of`` the server's. The server's half checks
form only (ids, ranges, stated enums) and raises ``InvalidRequestError`` with the field in
the metadata; whether the request makes sense now is for the registry and the session.

Arguments are closed: a field this version does not know is refused by number, never
ignored, since ignoring it would do something else than what was asked.
"""

from typing import NamedTuple

from fabric.api.v1 import (
    pty_service_pb2,
    task_service_pb2,
    terminal_service_pb2,
)
from fabric.core.errors import InvalidRequestError
from fabric.core.ids import (
    HostName,
    RequestId,
    SessionId,
    TaskId,
    parse_request_id,
    parse_session_id,
    parse_task_id,
)
from fabric.core.model import OpenRequest, SendRequest, SignalName, WaitCondition
from fabric.wire import fields, scalars
from fabric.wire.scalars import duration

DEFAULT_COUNT = 500
DEFAULT_BYTES = 65_536
MAX_CONSUMER_CHARS = 128


@fields.built
def open_message(request: OpenRequest) -> terminal_service_pb2.OpenRequest:
    """Convert a request to open. Raises: InvalidRequestError."""
    return terminal_service_pb2.OpenRequest(
        request_id=request.request_id,
        type=request.type,
        name=request.name,
        cwd=request.cwd,
        env=[terminal_service_pb2.EnvVar(name=name, value=value) for name, value in request.env],
        os=request.os,
        host=request.host,
        rows=fields.fitting(request.rows, "rows", 32),
        cols=fields.fitting(request.cols, "cols", 32),
        term=request.term,
        command=request.command,
        timeout=duration(request.timeout_s),
    )


def open_of(message: terminal_service_pb2.OpenRequest) -> OpenRequest:
    """Convert a request to open. Raises: InvalidRequestError."""
    request_id = parse_request_id(message.request_id)
    if not message.type:
        raise InvalidRequestError("type must be a non-empty string", field="type")
    env: list[tuple[str, str]] = []
    for item in message.env:
        if not item.name or "=" in item.name:
            raise InvalidRequestError("env names must be non-empty and without '='", field="env")
        env.append((fields.plain_text(item.name, "env"), fields.plain_text(item.value, "env")))
    host = fields.optional_text(message, "host")
    return OpenRequest(
        request_id=request_id,
        type=fields.plain_text(message.type, "type"),
        name=fields.optional_text(message, "name"),
        cwd=fields.optional_text(message, "cwd"),
        env=tuple(env),
        os=fields.optional_text(message, "os"),
        host=None if host is None else HostName(host),
        rows=fields.checked_cells(message.rows, "rows") if message.HasField("rows") else None,
        cols=fields.checked_cells(message.cols, "cols") if message.HasField("cols") else None,
        term=fields.optional_text(message, "term"),
        command=_command(message),
        timeout_s=fields.positive_seconds(message, "timeout"),
    )


def _command(message: terminal_service_pb2.OpenRequest) -> str | None:
    if not message.HasField("command"):
        return None
    if not message.command.strip():
        raise InvalidRequestError("command must be a non-empty string", field="command")
    return fields.plain_text(message.command, "command")


@fields.built
def send_message(session_id: SessionId, request: SendRequest) -> terminal_service_pb2.SendRequest:
    """Convert a send. Raises: InvalidRequestError."""
    return terminal_service_pb2.SendRequest(
        request_id=request.request_id,
        session_id=session_id,
        data=request.data,
        submit=request.submit,
        timeout=duration(request.timeout_s),
    )


def send_of(message: terminal_service_pb2.SendRequest) -> tuple[SessionId, SendRequest]:
    """Convert a send. Raises: InvalidRequestError."""
    return parse_session_id(message.session_id), SendRequest(
        request_id=parse_request_id(message.request_id),
        data=message.data,
        submit=message.submit if message.HasField("submit") else True,
        timeout_s=fields.positive_seconds(message, "timeout"),
    )


@fields.built
def start_message(session_id: SessionId, request: SendRequest) -> task_service_pb2.StartTaskRequest:
    """Convert a background send."""
    return task_service_pb2.StartTaskRequest(
        request_id=request.request_id,
        session_id=session_id,
        data=request.data,
        submit=request.submit,
    )


def start_of(message: task_service_pb2.StartTaskRequest) -> tuple[SessionId, SendRequest]:
    """Convert a background send. Raises: InvalidRequestError."""
    return parse_session_id(message.session_id), SendRequest(
        request_id=parse_request_id(message.request_id),
        data=message.data,
        submit=message.submit if message.HasField("submit") else True,
        background=True,
    )


@fields.built
def read_message(
    session_id: SessionId, offset: int, count: int | None
) -> terminal_service_pb2.ReadRequest:
    """Convert a request for lines. Raises: InvalidRequestError."""
    return terminal_service_pb2.ReadRequest(
        session_id=session_id,
        offset=fields.fitting(offset, "offset"),
        count=fields.fitting(count, "count"),
    )


def read_of(message: terminal_service_pb2.ReadRequest) -> tuple[SessionId, int, int]:
    """Convert a request for lines: session, offset, count. Raises: InvalidRequestError."""
    session_id = parse_session_id(message.session_id)
    return (
        session_id,
        fields.checked_offset(message.offset),
        fields.checked_count(message, "count", DEFAULT_COUNT),
    )


@fields.built
def signal_message(
    session_id: SessionId, name: SignalName, request_id: RequestId
) -> terminal_service_pb2.SignalRequest:
    """Convert a signal."""
    return terminal_service_pb2.SignalRequest(
        request_id=request_id, session_id=session_id, signal=scalars.SIGNAL_NAME.numbers[name]
    )


def signal_of(
    message: terminal_service_pb2.SignalRequest,
) -> tuple[SessionId, SignalName, RequestId]:
    """Convert a signal. Raises: InvalidRequestError."""
    session_id = parse_session_id(message.session_id)
    name = scalars.SIGNAL_NAME.stated(message.signal, "signal")
    return session_id, name, parse_request_id(message.request_id)


def resize_of(message: terminal_service_pb2.ResizeRequest) -> tuple[SessionId, int, int]:
    """Convert a resize: session, rows, columns. Raises: InvalidRequestError."""
    session_id = parse_session_id(message.session_id)
    parse_request_id(message.request_id)
    return (
        session_id,
        fields.checked_cells(message.rows, "rows"),
        fields.checked_cells(message.cols, "cols"),
    )


@fields.built
def resize_message(
    session_id: SessionId, rows: int, cols: int, request_id: RequestId
) -> terminal_service_pb2.ResizeRequest:
    """Convert a resize. Raises: InvalidRequestError."""
    return terminal_service_pb2.ResizeRequest(
        request_id=request_id,
        session_id=session_id,
        rows=fields.fitting(rows, "rows", 32),
        cols=fields.fitting(cols, "cols", 32),
    )


@fields.built
def wait_message(
    session_id: SessionId, condition: WaitCondition, timeout_s: float | None
) -> terminal_service_pb2.WaitForRequest:
    """Convert a wait. Raises: InvalidRequestError."""
    return terminal_service_pb2.WaitForRequest(
        session_id=session_id,
        pattern=condition.pattern,
        quiet=duration(condition.quiet_s),
        ready=condition.ready,
        exit=condition.exit,
        since_offset=fields.fitting(condition.since_offset, "since_offset"),
        timeout=duration(timeout_s),
    )


def wait_of(
    message: terminal_service_pb2.WaitForRequest,
) -> tuple[SessionId, WaitCondition, float | None]:
    """Convert a wait: session, condition, timeout in seconds. Raises: InvalidRequestError."""
    session_id = parse_session_id(message.session_id)
    since = message.since_offset if message.HasField("since_offset") else None
    condition = WaitCondition(
        pattern=fields.optional_text(message, "pattern"),
        quiet_s=fields.positive_seconds(message, "quiet"),
        ready=message.ready,
        exit=message.exit,
        since_offset=None if since is None else fields.checked_offset(since, "since_offset"),
    )
    timed = condition.pattern is not None or condition.quiet_s is not None
    if not (timed or condition.ready or condition.exit):
        raise InvalidRequestError("state at least one of pattern, quiet, ready, exit")
    return session_id, condition, fields.positive_seconds(message, "timeout")


class BytesRequest(NamedTuple):
    """A request for raw bytes; ``wait_s`` is None for no wait."""

    session_id: SessionId
    offset: int
    max_bytes: int
    wait_s: float | None


def bytes_of(message: pty_service_pb2.ReadBytesRequest) -> BytesRequest:
    """Convert a request for raw bytes. Raises: InvalidRequestError."""
    return BytesRequest(
        parse_session_id(message.session_id),
        fields.checked_offset(message.offset),
        fields.checked_count(message, "max_bytes", DEFAULT_BYTES),
        fields.wait_seconds(message),
    )


@fields.built
def bytes_message(
    session_id: SessionId, offset: int, max_bytes: int | None, wait_s: float | None
) -> pty_service_pb2.ReadBytesRequest:
    """Convert a request for raw bytes. Raises: InvalidRequestError."""
    return pty_service_pb2.ReadBytesRequest(
        session_id=session_id,
        offset=fields.fitting(offset, "offset"),
        max_bytes=fields.fitting(max_bytes, "max_bytes"),
        wait=duration(wait_s),
    )


class TailRequest(NamedTuple):
    """A request for new lines; ``lines`` is None for the server's default."""

    session_id: SessionId
    consumer: str
    lines: int | None
    request_id: RequestId | None


def tail_of(message: pty_service_pb2.TailRequest) -> TailRequest:
    """Convert a request for new lines. Raises: InvalidRequestError."""
    session_id = parse_session_id(message.session_id)
    if len(message.consumer) > MAX_CONSUMER_CHARS:
        raise InvalidRequestError(
            f"consumer must be at most {MAX_CONSUMER_CHARS} characters", field="consumer"
        )
    return TailRequest(
        session_id,
        message.consumer,
        fields.checked_count(message, "lines", 1) if message.HasField("lines") else None,
        parse_request_id(message.request_id) if message.HasField("request_id") else None,
    )


@fields.built
def tail_message(
    session_id: SessionId,
    consumer: str,
    lines: int | None,
    request_id: RequestId | None = None,
) -> pty_service_pb2.TailRequest:
    """Convert a request for new lines. Raises: InvalidRequestError."""
    return pty_service_pb2.TailRequest(
        session_id=session_id,
        consumer=consumer,
        lines=fields.fitting(lines, "lines", 32),
        request_id=request_id,
    )


def follow_of(message: pty_service_pb2.FollowRequest) -> tuple[SessionId, int | None]:
    """Convert a request for a stream: session, offset. Raises: InvalidRequestError."""
    session_id = parse_session_id(message.session_id)
    return session_id, fields.checked_offset(message.offset) if message.HasField("offset") else None


@fields.built
def follow_message(session_id: SessionId, offset: int | None) -> pty_service_pb2.FollowRequest:
    """Convert a request for a stream. Raises: InvalidRequestError."""
    return pty_service_pb2.FollowRequest(
        session_id=session_id, offset=fields.fitting(offset, "offset")
    )


def output_of(message: task_service_pb2.TaskOutputRequest) -> tuple[TaskId, int, float | None]:
    """Convert a request for a task's output: task, cursor, wait. Raises: InvalidRequestError."""
    task_id = parse_task_id(message.task_id)
    return task_id, fields.checked_offset(message.cursor, "cursor"), fields.wait_seconds(message)


@fields.built
def output_message(
    task_id: TaskId, cursor: int, wait_s: float | None
) -> task_service_pb2.TaskOutputRequest:
    """Convert a request for a task's output. Raises: InvalidRequestError."""
    return task_service_pb2.TaskOutputRequest(
        task_id=task_id, cursor=fields.fitting(cursor, "cursor"), wait=duration(wait_s)
    )
