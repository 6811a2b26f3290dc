import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EventKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_KIND_UNSPECIFIED: _ClassVar[EventKind]
    EVENT_KIND_TASK_SETTLED: _ClassVar[EventKind]
    EVENT_KIND_SESSION_EXITED: _ClassVar[EventKind]
    EVENT_KIND_SESSION_LOST: _ClassVar[EventKind]
    EVENT_KIND_SESSION_READOPTED: _ClassVar[EventKind]
    EVENT_KIND_HUMAN_HANDBACK: _ClassVar[EventKind]
    EVENT_KIND_LEASE_EXPIRING: _ClassVar[EventKind]
    EVENT_KIND_OWNER_DISPOSED: _ClassVar[EventKind]

class EventEndReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVENT_END_REASON_UNSPECIFIED: _ClassVar[EventEndReason]
    EVENT_END_REASON_OWNER_ENDED: _ClassVar[EventEndReason]
    EVENT_END_REASON_DRAINING: _ClassVar[EventEndReason]
EVENT_KIND_UNSPECIFIED: EventKind
EVENT_KIND_TASK_SETTLED: EventKind
EVENT_KIND_SESSION_EXITED: EventKind
EVENT_KIND_SESSION_LOST: EventKind
EVENT_KIND_SESSION_READOPTED: EventKind
EVENT_KIND_HUMAN_HANDBACK: EventKind
EVENT_KIND_LEASE_EXPIRING: EventKind
EVENT_KIND_OWNER_DISPOSED: EventKind
EVENT_END_REASON_UNSPECIFIED: EventEndReason
EVENT_END_REASON_OWNER_ENDED: EventEndReason
EVENT_END_REASON_DRAINING: EventEndReason

class OwnerEvent(_message.Message):
    __slots__ = ("sequence", "kind", "at", "session_id", "task_id", "detail")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    kind: EventKind
    at: _timestamp_pb2.Timestamp
    session_id: str
    task_id: str
    detail: str
    def __init__(self, sequence: _Optional[int] = ..., kind: _Optional[_Union[EventKind, str]] = ..., at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., session_id: _Optional[str] = ..., task_id: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class FollowEventsRequest(_message.Message):
    __slots__ = ("cursor",)
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    cursor: int
    def __init__(self, cursor: _Optional[int] = ...) -> None: ...

class FollowEventsResponse(_message.Message):
    __slots__ = ("event", "gap", "keep_alive", "end")
    EVENT_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    KEEP_ALIVE_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    event: OwnerEvent
    gap: EventGap
    keep_alive: EventKeepAlive
    end: EventEnd
    def __init__(self, event: _Optional[_Union[OwnerEvent, _Mapping]] = ..., gap: _Optional[_Union[EventGap, _Mapping]] = ..., keep_alive: _Optional[_Union[EventKeepAlive, _Mapping]] = ..., end: _Optional[_Union[EventEnd, _Mapping]] = ...) -> None: ...

class EventGap(_message.Message):
    __slots__ = ("dropped",)
    DROPPED_FIELD_NUMBER: _ClassVar[int]
    dropped: int
    def __init__(self, dropped: _Optional[int] = ...) -> None: ...

class EventKeepAlive(_message.Message):
    __slots__ = ("cursor",)
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    cursor: int
    def __init__(self, cursor: _Optional[int] = ...) -> None: ...

class EventEnd(_message.Message):
    __slots__ = ("reason", "cursor", "detail")
    REASON_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    reason: EventEndReason
    cursor: int
    detail: str
    def __init__(self, reason: _Optional[_Union[EventEndReason, str]] = ..., cursor: _Optional[int] = ..., detail: _Optional[str] = ...) -> None: ...

class AcknowledgeEventsRequest(_message.Message):
    __slots__ = ("sequence",)
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    def __init__(self, sequence: _Optional[int] = ...) -> None: ...

class AcknowledgeEventsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
