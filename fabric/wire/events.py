"""Owner events as messages, and back."""

from fabric.api.v1 import event_service_pb2 as pb
from fabric.core.errors import InvalidRequestError
from fabric.core.ids import SessionId, TaskId
from fabric.core.model import EventKind, OwnerEvent
from fabric.wire.scalars import EnumTable, clean_or_none, timestamp, wall_of

KIND = EnumTable(EventKind, pb.EventKind, "EVENT_KIND_")
OWNER_ENDED = pb.EVENT_END_REASON_OWNER_ENDED
DRAINING = pb.EVENT_END_REASON_DRAINING
_KNOWN = frozenset(KIND.numbers.values())


def event_message(value: OwnerEvent) -> pb.OwnerEvent:
    """Convert an event."""
    return pb.OwnerEvent(
        sequence=value.sequence,
        kind=KIND.numbers[value.kind],
        at=timestamp(value.at),
        session_id=value.session_id,
        task_id=value.task_id,
        detail=clean_or_none(value.detail),
    )


def event_of(message: pb.OwnerEvent) -> OwnerEvent | None:
    """Convert an event; None for a kind that only a newer version knows."""
    if message.kind not in _KNOWN:
        return None
    return OwnerEvent(
        message.sequence,
        KIND.of(message.kind),
        wall_of(message.at),
        SessionId(message.session_id) if message.HasField("session_id") else None,
        TaskId(message.task_id) if message.HasField("task_id") else None,
        message.detail if message.HasField("detail") else None,
    )


def cursor_of(message: pb.FollowEventsRequest) -> int | None:
    """Return the number of the last event seen. Raises: InvalidRequestError."""
    if not message.HasField("cursor"):
        return None
    if message.cursor < 0:
        raise InvalidRequestError("cursor must not be negative", field="cursor")
    return message.cursor
