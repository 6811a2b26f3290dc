"""Input and attaching between the values of ``fabric.core.attach`` and protobuf."""

from typing import Any

from fabric.api.v1 import pty_service_pb2 as pb
from fabric.core.attach import (
    MAX_KEYS,
    AttachEvent,
    AttachKind,
    AttachStart,
    WriteReceipt,
    WriteRequest,
)
from fabric.core.errors import InvalidRequestError
from fabric.core.ids import RequestId, SessionId, parse_request_id, parse_session_id
from fabric.wire import convert, fields, scalars

MIN_WINDOW_BYTES = 65_536
MAX_WINDOW_BYTES = 8_388_608
DEFAULT_WINDOW_BYTES = 1_048_576
DETACHED = pb.FOLLOW_END_REASON_DETACHED


@fields.built
def input_message(request: WriteRequest) -> pb.Input:
    """Convert input. Raises: InvalidRequestError."""
    if request.keys:
        return pb.Input(keys=pb.Keys(names=request.keys))
    return pb.Input(eof=True) if request.eof else pb.Input(data=request.data)


def input_of(message: pb.Input, request_id: RequestId) -> WriteRequest:
    """Convert input. Raises: InvalidRequestError when nothing is stated."""
    kind = message.WhichOneof("input")
    if kind == "keys":
        if not 0 < len(message.keys.names) <= MAX_KEYS:
            raise InvalidRequestError(f"state 1 to {MAX_KEYS} keys", field="keys")
        return WriteRequest(request_id, keys=tuple(message.keys.names))
    if kind == "data" and message.data:
        return WriteRequest(request_id, message.data)
    if kind == "eof" and message.eof:
        return WriteRequest(request_id, eof=True)
    raise InvalidRequestError("state one of data, keys and eof", field="input")


@fields.built
def write_message(session_id: SessionId, request: WriteRequest) -> pb.WriteRequest:
    """Convert a write. Raises: InvalidRequestError."""
    return pb.WriteRequest(
        request_id=request.request_id, session_id=session_id, input=input_message(request)
    )


def write_of(message: pb.WriteRequest) -> tuple[SessionId, WriteRequest]:
    """Convert a write. Raises: InvalidRequestError."""
    request_id = parse_request_id(message.request_id)
    return parse_session_id(message.session_id), input_of(message.input, request_id)


def receipt_message(value: WriteReceipt) -> pb.WriteResponse:
    """Convert what a write did."""
    return pb.WriteResponse(written_bytes=value.written_bytes, offset=value.offset)


def receipt_of(message: pb.WriteResponse) -> WriteReceipt:
    """Convert what a write did."""
    return WriteReceipt(message.written_bytes, message.offset)


@fields.built
def start_message(
    session_id: SessionId, start: AttachStart, window_bytes: int | None = None
) -> pb.AttachRequest:
    """Convert the start of an attach. Raises: InvalidRequestError."""
    sized = start.rows is not None and start.cols is not None
    made = pb.AttachStart(
        session_id=session_id,
        snapshot=start.snapshot,
        offset=fields.fitting(start.offset, "offset"),
        size=size_message(start.rows, start.cols) if sized else None,
        window_bytes=window_bytes,
        history=start.history,
    )
    return pb.AttachRequest(start=made)


def start_of(message: pb.AttachStart) -> tuple[SessionId, AttachStart, int]:
    """Convert the start of an attach: session, start, window. Raises: InvalidRequestError."""
    session_id = parse_session_id(message.session_id)
    if message.snapshot and message.HasField("offset"):
        raise InvalidRequestError("a snapshot says itself from where it goes on", field="offset")
    window = DEFAULT_WINDOW_BYTES
    if message.HasField("window_bytes"):
        window = message.window_bytes
        if not MIN_WINDOW_BYTES <= window <= MAX_WINDOW_BYTES:
            raise InvalidRequestError(
                f"window_bytes must be from {MIN_WINDOW_BYTES} to {MAX_WINDOW_BYTES}",
                field="window_bytes",
            )
    rows, cols = size_of(message.size) if message.HasField("size") else (None, None)
    offset = fields.checked_offset(message.offset) if message.HasField("offset") else None
    return session_id, AttachStart(offset, message.snapshot, rows, cols, message.history), window


@fields.built
def size_message(rows: int | None, cols: int | None) -> pb.AttachSize:
    """Convert a size. Raises: InvalidRequestError."""
    return pb.AttachSize(
        rows=fields.fitting(rows, "rows", 32), cols=fields.fitting(cols, "cols", 32)
    )


def size_of(message: pb.AttachSize) -> tuple[int, int]:
    """Convert a size. Raises: InvalidRequestError."""
    return (
        fields.checked_cells(message.rows, "rows"),
        fields.checked_cells(message.cols, "cols"),
    )


def event_message(event: AttachEvent) -> pb.AttachResponse:
    """Convert an event."""
    kind = event.kind
    if kind is AttachKind.CHUNK:
        return pb.AttachResponse(chunk=pb.FollowChunk(offset=event.offset, data=event.data))
    if kind is AttachKind.GAP:
        gap = pb.FollowGap(offset=event.offset, next_offset=event.next_offset)
        return pb.AttachResponse(gap=gap)
    size = pb.AttachSize(rows=event.rows, cols=event.cols)
    if kind is AttachKind.SNAPSHOT:
        snapshot = pb.AttachSnapshot(
            data=event.data,
            next_offset=event.next_offset,
            size=size,
            alternate=event.alternate,
            truncated=event.truncated,
        )
        return pb.AttachResponse(snapshot=snapshot)
    if kind is AttachKind.RESIZED:
        resized = pb.AttachResized(size=size, next_offset=event.next_offset)
        return pb.AttachResponse(resized=resized)
    if kind is AttachKind.REFUSED:
        reason, _, text = event.detail.partition(": ")
        return pb.AttachResponse(refused=pb.AttachRefused(reason=reason, message=text))
    return end_message(scalars.SESSION_ENDED, event)


def end_message(reason: Any, event: AttachEvent) -> pb.AttachResponse:
    """Build the last event, for ``reason``."""
    status = None if event.status is None else convert.status_message(event.status)
    end = pb.AttachEnd(reason=reason, next_offset=event.next_offset, status=status)
    return pb.AttachResponse(end=end)


def event_of(message: pb.AttachResponse) -> AttachEvent | None:
    """Convert an event; None for one that only says that the stream is alive."""
    kind = message.WhichOneof("event")
    if kind == "chunk":
        offset, data = message.chunk.offset, message.chunk.data
        return AttachEvent(AttachKind.CHUNK, offset, offset + len(data), data)
    if kind == "gap":
        return AttachEvent(AttachKind.GAP, message.gap.offset, message.gap.next_offset)
    if kind == "snapshot":
        shown = message.snapshot
        return AttachEvent(
            AttachKind.SNAPSHOT, shown.next_offset, shown.next_offset, shown.data,
            rows=shown.size.rows, cols=shown.size.cols, alternate=shown.alternate,
            truncated=shown.truncated,
        )  # fmt: skip
    if kind == "resized":
        at, size = message.resized.next_offset, message.resized.size
        return AttachEvent(AttachKind.RESIZED, at, at, rows=size.rows, cols=size.cols)
    if kind == "refused":
        detail = f"{message.refused.reason}: {message.refused.message}"
        return AttachEvent(AttachKind.REFUSED, 0, 0, detail=detail)
    if kind == "end":
        end = message.end
        status = convert.status_of(end.status) if end.HasField("status") else None
        return AttachEvent(AttachKind.END, end.next_offset, end.next_offset, status=status)
    return None
