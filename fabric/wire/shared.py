"""The shared terminal between the values of ``fabric.core.shared`` and protobuf."""

from dataclasses import replace
from datetime import timedelta

from fabric.api.v1 import pty_service_pb2 as pty
from fabric.api.v1 import shared_terminal_service_pb2 as pb
from fabric.core.errors import InvalidRequestError
from fabric.core.ids import RequestId, SessionId, parse_request_id, parse_session_id
from fabric.core.model import SignalName, WaitReason
from fabric.core.shared import (
    Person,
    PersonRequest,
    SharedPage,
    SharedResult,
    SharedSend,
    SharedState,
    SharedStatus,
    ViewEvent,
    ViewKind,
    ViewTicket,
)
from fabric.wire import attach, convert, fields, scalars

DEFAULT_COUNT = 500
RESET = "reset"
DRAINING = "draining"


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


@fields.built
def view_message(
    readonly: bool, resume: str, session_id: SessionId | None = None
) -> pb.SharedTerminalServiceViewRequest:
    """Convert the start of a view. Raises: InvalidRequestError."""
    return pb.SharedTerminalServiceViewRequest(
        readonly=readonly, resume=resume, session_id=session_id or ""
    )


def view_event_message(event: ViewEvent, view: str) -> pb.SharedTerminalServiceViewResponse:
    """Convert an event of a view."""
    made = pb.SharedTerminalServiceViewResponse(generation=event.generation)
    if event.kind is ViewKind.ATTACHED:
        made.attached.CopyFrom(
            pb.SharedAttached(
                controller=event.controller,
                view=(event.view or view) if event.controller else "",
                resume=event.resume,
                reason=event.reason,
            )
        )
    elif event.kind is ViewKind.RESET:
        made.end.reason = RESET
    elif event.status is not None:
        status = event.status
        made.status.CopyFrom(
            pb.SharedStatus(
                queue_status=status.queue_status,
                holder=status.holder or "",
                pending_count=status.pending_count,
                takeover=status.takeover,
                lease=status.lease,
                exited=status.exited,
                last_lease=status.last_lease,
            )
        )
    elif event.screen is not None:
        shown = attach.event_message(event.screen)
        kind = shown.WhichOneof("event")
        if kind in ("snapshot", "chunk", "gap"):
            getattr(made, kind).CopyFrom(getattr(shown, kind))
    return made


def view_event_of(message: pb.SharedTerminalServiceViewResponse) -> tuple[ViewEvent, str] | None:
    """Convert an event and the name of the view; None for one that only says it is alive."""
    kind, generation = message.WhichOneof("event"), message.generation
    if kind == "attached":
        told = message.attached
        event = ViewEvent(
            ViewKind.ATTACHED,
            generation,
            controller=told.controller,
            resume=told.resume,
            reason=told.reason,
        )
        return event, told.view
    if kind == "end":
        return ViewEvent(ViewKind.RESET, generation, reason=message.end.reason), ""
    if kind == "status":
        told_status = message.status
        status = SharedStatus(
            generation,
            told_status.queue_status,
            told_status.holder or None,
            told_status.pending_count,
            told_status.takeover if told_status.HasField("takeover") else None,
            told_status.lease if told_status.HasField("lease") else None,
            told_status.exited,
            told_status.last_lease,
        )
        return ViewEvent(ViewKind.STATUS, generation, status=status), ""
    if kind in ("snapshot", "chunk", "gap"):
        shown = attach.event_of(pty.AttachResponse(**{kind: getattr(message, kind)}))
        return ViewEvent(ViewKind.SCREEN, generation, screen=shown), ""
    return None


@fields.built
def act_message(
    request: PersonRequest, session_id: SessionId | None = None
) -> pb.SharedTerminalServiceActRequest:
    """Convert what a person does. Raises: InvalidRequestError."""
    made = pb.SharedTerminalServiceActRequest(
        request_id=request.request_id,
        view=request.view,
        generation=request.generation,
        session_id=session_id or "",
    )
    if request.kind is Person.BEGIN:
        made.begin = request.data
    elif request.kind is Person.TAKE_OVER:
        made.take_over = request.target
    elif request.kind is Person.TYPE:
        made.input.CopyFrom(pb.SharedInput(lease=request.lease, data=request.data))
    else:
        made.interrupt = request.lease
    return made


def act_of(message: pb.SharedTerminalServiceActRequest) -> PersonRequest:
    """Convert what a person does. Raises: InvalidRequestError when nothing is stated."""
    made = PersonRequest(
        view=message.view,
        kind=Person.BEGIN,
        generation=message.generation,
        request_id=parse_request_id(message.request_id),
    )
    kind = message.WhichOneof("action")
    if kind == "begin":
        return replace(made, data=message.begin)
    if kind == "take_over":
        return replace(made, kind=Person.TAKE_OVER, target=message.take_over)
    if kind == "input":
        told = message.input
        return replace(made, kind=Person.TYPE, lease=told.lease, data=told.data)
    if kind == "interrupt":
        return replace(made, kind=Person.INTERRUPT, lease=message.interrupt)
    raise InvalidRequestError("state one of begin, take_over, input and interrupt", field="action")


@fields.built
def ticket_request(
    session_id: SessionId | None, *, overview: bool, readonly: bool
) -> pb.CreateViewTicketRequest:
    """Convert the wish for a link. Raises: InvalidRequestError."""
    made = pb.CreateViewTicketRequest(readonly=readonly)
    if session_id is not None:
        made.session_id = session_id
    elif overview:
        made.overview = True
    return made


def ticket_target(message: pb.CreateViewTicketRequest) -> tuple[SessionId | None, bool]:
    """Convert what a link shows: a session, or whether the list. Raises: InvalidRequestError."""
    kind = message.WhichOneof("target")
    if kind == "overview" and not message.overview:
        raise InvalidRequestError("overview, if stated, must be true", field="overview")
    at = parse_session_id(message.session_id) if kind == "session_id" else None
    return at, kind == "overview"


def ticket_message(ticket: ViewTicket) -> pb.CreateViewTicketResponse:
    """Convert a link."""
    made = pb.CreateViewTicketResponse(url=ticket.url, ticket=ticket.ticket)
    made.expires_in.FromTimedelta(timedelta(seconds=ticket.expires_in_s))
    return made


def ticket_of(message: pb.CreateViewTicketResponse) -> ViewTicket:
    """Convert a link."""
    expires_in_s = message.expires_in.ToTimedelta().total_seconds()
    return ViewTicket(message.ticket, message.url, expires_in_s)
