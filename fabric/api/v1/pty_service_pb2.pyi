import datetime

from fabric.api.v1 import types_pb2 as _types_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FollowEndReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FOLLOW_END_REASON_UNSPECIFIED: _ClassVar[FollowEndReason]
    FOLLOW_END_REASON_SESSION_ENDED: _ClassVar[FollowEndReason]
    FOLLOW_END_REASON_DRAINING: _ClassVar[FollowEndReason]
    FOLLOW_END_REASON_DETACHED: _ClassVar[FollowEndReason]
FOLLOW_END_REASON_UNSPECIFIED: FollowEndReason
FOLLOW_END_REASON_SESSION_ENDED: FollowEndReason
FOLLOW_END_REASON_DRAINING: FollowEndReason
FOLLOW_END_REASON_DETACHED: FollowEndReason

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
    __slots__ = ("session_id", "consumer", "lines", "request_id")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    CONSUMER_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    consumer: str
    lines: int
    request_id: str
    def __init__(self, session_id: _Optional[str] = ..., consumer: _Optional[str] = ..., lines: _Optional[int] = ..., request_id: _Optional[str] = ...) -> None: ...

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

class Input(_message.Message):
    __slots__ = ("data", "keys", "eof")
    DATA_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    EOF_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    keys: Keys
    eof: bool
    def __init__(self, data: _Optional[bytes] = ..., keys: _Optional[_Union[Keys, _Mapping]] = ..., eof: _Optional[bool] = ...) -> None: ...

class Keys(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class WriteRequest(_message.Message):
    __slots__ = ("request_id", "session_id", "input")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    input: Input
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., input: _Optional[_Union[Input, _Mapping]] = ...) -> None: ...

class WriteResponse(_message.Message):
    __slots__ = ("written_bytes", "offset")
    WRITTEN_BYTES_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    written_bytes: int
    offset: int
    def __init__(self, written_bytes: _Optional[int] = ..., offset: _Optional[int] = ...) -> None: ...

class AttachRequest(_message.Message):
    __slots__ = ("start", "input", "resize", "ack")
    START_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    RESIZE_FIELD_NUMBER: _ClassVar[int]
    ACK_FIELD_NUMBER: _ClassVar[int]
    start: AttachStart
    input: Input
    resize: AttachSize
    ack: AttachAck
    def __init__(self, start: _Optional[_Union[AttachStart, _Mapping]] = ..., input: _Optional[_Union[Input, _Mapping]] = ..., resize: _Optional[_Union[AttachSize, _Mapping]] = ..., ack: _Optional[_Union[AttachAck, _Mapping]] = ...) -> None: ...

class AttachStart(_message.Message):
    __slots__ = ("session_id", "snapshot", "offset", "size", "window_bytes", "history")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    WINDOW_BYTES_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    snapshot: bool
    offset: int
    size: AttachSize
    window_bytes: int
    history: bool
    def __init__(self, session_id: _Optional[str] = ..., snapshot: _Optional[bool] = ..., offset: _Optional[int] = ..., size: _Optional[_Union[AttachSize, _Mapping]] = ..., window_bytes: _Optional[int] = ..., history: _Optional[bool] = ...) -> None: ...

class AttachSize(_message.Message):
    __slots__ = ("rows", "cols")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    cols: int
    def __init__(self, rows: _Optional[int] = ..., cols: _Optional[int] = ...) -> None: ...

class AttachAck(_message.Message):
    __slots__ = ("next_offset",)
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    next_offset: int
    def __init__(self, next_offset: _Optional[int] = ...) -> None: ...

class AttachResponse(_message.Message):
    __slots__ = ("snapshot", "chunk", "gap", "keep_alive", "resized", "refused", "end")
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    KEEP_ALIVE_FIELD_NUMBER: _ClassVar[int]
    RESIZED_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    snapshot: AttachSnapshot
    chunk: FollowChunk
    gap: FollowGap
    keep_alive: FollowKeepAlive
    resized: AttachResized
    refused: AttachRefused
    end: AttachEnd
    def __init__(self, snapshot: _Optional[_Union[AttachSnapshot, _Mapping]] = ..., chunk: _Optional[_Union[FollowChunk, _Mapping]] = ..., gap: _Optional[_Union[FollowGap, _Mapping]] = ..., keep_alive: _Optional[_Union[FollowKeepAlive, _Mapping]] = ..., resized: _Optional[_Union[AttachResized, _Mapping]] = ..., refused: _Optional[_Union[AttachRefused, _Mapping]] = ..., end: _Optional[_Union[AttachEnd, _Mapping]] = ...) -> None: ...

class AttachSnapshot(_message.Message):
    __slots__ = ("data", "next_offset", "size", "alternate", "truncated")
    DATA_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    ALTERNATE_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    next_offset: int
    size: AttachSize
    alternate: bool
    truncated: bool
    def __init__(self, data: _Optional[bytes] = ..., next_offset: _Optional[int] = ..., size: _Optional[_Union[AttachSize, _Mapping]] = ..., alternate: _Optional[bool] = ..., truncated: _Optional[bool] = ...) -> None: ...

class AttachResized(_message.Message):
    __slots__ = ("size", "next_offset")
    SIZE_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    size: AttachSize
    next_offset: int
    def __init__(self, size: _Optional[_Union[AttachSize, _Mapping]] = ..., next_offset: _Optional[int] = ...) -> None: ...

class AttachRefused(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class AttachEnd(_message.Message):
    __slots__ = ("reason", "next_offset", "status")
    REASON_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    reason: FollowEndReason
    next_offset: int
    status: _types_pb2.SessionStatus
    def __init__(self, reason: _Optional[_Union[FollowEndReason, str]] = ..., next_offset: _Optional[int] = ..., status: _Optional[_Union[_types_pb2.SessionStatus, _Mapping]] = ...) -> None: ...
