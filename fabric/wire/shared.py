"""The shared terminal between the values of ``fabric.core.shared`` and protobuf."""

from fabric.api.v1 import shared_terminal_service_pb2 as pb
from fabric.core.ids import RequestId, SessionId, parse_request_id, parse_session_id
from fabric.core.model import SignalName, WaitReason
from fabric.core.shared import SharedPage, SharedResult, SharedSend, SharedState
from fabric.wire import convert, fields, scalars

DEFAULT_COUNT = 500


def state_message(value: SharedState) -> pb.SharedState:
    """Convert a state."""
    return pb.SharedState(
        generation=value.generation,
        sequence=value.sequence,
        rows=value.rows,
        cols=value.cols,
        viewport=scalars.clean(value.viewport),
        cursor_x=value.cursor_x,
        cursor_y=value.cursor_y,
        status=convert.status_message(value.status),
        queue_status=value.queue_status,
        holder=value.holder or "",
        pending_count=value.pending_count,
        truncated=value.truncated,
    )


def state_of(message: pb.SharedState) -> SharedState:
    """Convert a state."""
    return SharedState(
        generation=message.generation,
        sequence=message.sequence,
        rows=message.rows,
        cols=message.cols,
        viewport=message.viewport,
        cursor_x=message.cursor_x,
        cursor_y=message.cursor_y,
        status=convert.status_of(message.status),
        queue_status=message.queue_status,
        holder=message.holder or None,
        pending_count=message.pending_count,
        truncated=message.truncated,
    )


def outcome_message(value: SharedResult) -> pb.SharedOutcome:
    """Convert an outcome."""
    return pb.SharedOutcome(
        state=state_message(value.state),
        wait_reason=value.wait_reason.value,
        queue_time_ms=value.queue_time_ms,
        output=None if value.output is None else scalars.clean(value.output),
        process_group=value.process_group,
    )


def outcome_of(message: pb.SharedOutcome) -> SharedResult:
    """Convert an outcome."""
    return SharedResult(
        state=state_of(message.state),
        wait_reason=WaitReason(message.wait_reason),
        queue_time_ms=message.queue_time_ms,
        output=message.output if message.HasField("output") else None,
        process_group=message.process_group if message.HasField("process_group") else None,
    )


def page_message(value: SharedPage) -> pb.SharedTerminalServiceReadResponse:
    """Convert a page."""
    return pb.SharedTerminalServiceReadResponse(
        state=state_message(value.state),
        text=scalars.clean(value.text),
        total_lines=value.total_lines,
        line_begin=value.line_begin,
        line_end=value.line_end,
        truncated=value.truncated,
    )


def page_of(message: pb.SharedTerminalServiceReadResponse) -> SharedPage:
    """Convert a page."""
    return SharedPage(
        state=state_of(message.state),
        text=message.text,
        total_lines=message.total_lines,
        line_begin=message.line_begin,
        line_end=message.line_end,
        truncated=message.truncated,
    )


@fields.built
def send_message(
    request: SharedSend, session_id: SessionId | None = None
) -> pb.SharedTerminalServiceSendRequest:
    """Convert a send. Raises: InvalidRequestError."""
    return pb.SharedTerminalServiceSendRequest(
        request_id=request.request_id,
        data=request.data,
        submit=request.submit,
        session_id=session_id or "",
    )


def send_of(message: pb.SharedTerminalServiceSendRequest) -> SharedSend:
    """Convert a send. Raises: InvalidRequestError."""
    submit = message.submit if message.HasField("submit") else True
    return SharedSend(parse_request_id(message.request_id), message.data, submit)


@fields.built
def read_message(
    offset: int, count: int | None, session_id: SessionId | None = None
) -> pb.SharedTerminalServiceReadRequest:
    """Convert a request for history. Raises: InvalidRequestError."""
    return pb.SharedTerminalServiceReadRequest(
        offset=fields.fitting(offset, "offset"),
        count=fields.fitting(count, "count"),
        session_id=session_id or "",
    )


def read_of(message: pb.SharedTerminalServiceReadRequest) -> tuple[int, int]:
    """Convert a request for history: offset, count. Raises: InvalidRequestError."""
    offset = fields.checked_offset(message.offset)
    return offset, fields.checked_count(message, "count", DEFAULT_COUNT)


@fields.built
def signal_message(
    name: SignalName, request_id: RequestId, session_id: SessionId | None = None
) -> pb.SharedTerminalServiceSignalRequest:
    """Convert a signal. Raises: InvalidRequestError."""
    return pb.SharedTerminalServiceSignalRequest(
        request_id=request_id,
        signal=scalars.SIGNAL_NAME.numbers[name],
        session_id=session_id or "",
    )


def signal_of(message: pb.SharedTerminalServiceSignalRequest) -> tuple[SignalName, RequestId]:
    """Convert a signal. Raises: InvalidRequestError."""
    name = SignalName(scalars.SIGNAL_NAME.stated(message.signal, "signal"))
    return name, parse_request_id(message.request_id)


@fields.built
def reset_message(
    request_id: RequestId, session_id: SessionId | None = None
) -> pb.SharedTerminalServiceResetRequest:
    """Convert a reset. Raises: InvalidRequestError."""
    return pb.SharedTerminalServiceResetRequest(request_id=request_id, session_id=session_id or "")


def forwarded(text: str) -> SessionId | None:
    """Return the session a gateway states. Raises: InvalidRequestError."""
    return parse_session_id(text) if text else None
