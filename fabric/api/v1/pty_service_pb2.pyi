import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FollowEndReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FOLLOW_END_REASON_UNSPECIFIED: _ClassVar[FollowEndReason]
    FOLLOW_END_REASON_SESSION_ENDED: _ClassVar[FollowEndReason]
    FOLLOW_END_REASON_DRAINING: _ClassVar[FollowEndReason]
FOLLOW_END_REASON_UNSPECIFIED: FollowEndReason
FOLLOW_END_REASON_SESSION_ENDED: FollowEndReason
FOLLOW_END_REASON_DRAINING: FollowEndReason

class ReadBytesRequest(_message.Message):
    __slots__ = ("session_id", "offset", "max_bytes", "wait")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    offset: int
    max_bytes: int
    wait: _duration_pb2.Duration
    def __init__(self, session_id: _Optional[str] = ..., offset: _Optional[int] = ..., max_bytes: _Optional[int] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ReadBytesResponse(_message.Message):
    __slots__ = ("offset", "data", "next_offset", "oldest_offset", "ended")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    OLDEST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    offset: int
    data: bytes
    next_offset: int
    oldest_offset: int
    ended: bool
    def __init__(self, offset: _Optional[int] = ..., data: _Optional[bytes] = ..., next_offset: _Optional[int] = ..., oldest_offset: _Optional[int] = ..., ended: _Optional[bool] = ...) -> None: ...

class TailRequest(_message.Message):
    __slots__ = ("session_id", "consumer", "lines")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    consumer: str
    lines: int
    def __init__(self, session_id: _Optional[str] = ..., consumer: _Optional[str] = ..., lines: _Optional[int] = ...) -> None: ...

class TailResponse(_message.Message):
    __slots__ = ("text", "lines", "truncated", "next_line")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    NEXT_LINE_FIELD_NUMBER: _ClassVar[int]
    text: str
    lines: int
    truncated: bool
    next_line: int
    def __init__(self, text: _Optional[str] = ..., lines: _Optional[int] = ..., truncated: _Optional[bool] = ..., next_line: _Optional[int] = ...) -> None: ...

class FollowRequest(_message.Message):
    __slots__ = ("session_id", "offset")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    offset: int
    def __init__(self, session_id: _Optional[str] = ..., offset: _Optional[int] = ...) -> None: ...

class FollowResponse(_message.Message):
    __slots__ = ("chunk", "gap", "keep_alive", "end")
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    KEEP_ALIVE_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    chunk: FollowChunk
    gap: FollowGap
    keep_alive: FollowKeepAlive
    end: FollowEnd
    def __init__(self, chunk: _Optional[_Union[FollowChunk, _Mapping]] = ..., gap: _Optional[_Union[FollowGap, _Mapping]] = ..., keep_alive: _Optional[_Union[FollowKeepAlive, _Mapping]] = ..., end: _Optional[_Union[FollowEnd, _Mapping]] = ...) -> None: ...

class FollowChunk(_message.Message):
    __slots__ = ("offset", "data")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    offset: int
    data: bytes
    def __init__(self, offset: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class FollowGap(_message.Message):
    __slots__ = ("offset", "next_offset")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    offset: int
    next_offset: int
    def __init__(self, offset: _Optional[int] = ..., next_offset: _Optional[int] = ...) -> None: ...

class FollowKeepAlive(_message.Message):
    __slots__ = ("next_offset",)
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    next_offset: int
    def __init__(self, next_offset: _Optional[int] = ...) -> None: ...

class FollowEnd(_message.Message):
    __slots__ = ("reason", "next_offset")
    REASON_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    reason: FollowEndReason
    next_offset: int
    def __init__(self, reason: _Optional[_Union[FollowEndReason, str]] = ..., next_offset: _Optional[int] = ...) -> None: ...
