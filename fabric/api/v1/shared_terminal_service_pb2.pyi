import datetime

from fabric.api.v1 import pty_service_pb2 as _pty_service_pb2
from fabric.api.v1 import types_pb2 as _types_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SharedState(_message.Message):
    __slots__ = ("generation", "sequence", "rows", "cols", "viewport", "cursor_x", "cursor_y", "status", "queue_status", "holder", "pending_count", "truncated")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLS_FIELD_NUMBER: _ClassVar[int]
    VIEWPORT_FIELD_NUMBER: _ClassVar[int]
    CURSOR_X_FIELD_NUMBER: _ClassVar[int]
    CURSOR_Y_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_STATUS_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    generation: int
    sequence: int
    rows: int
    cols: int
    viewport: str
    cursor_x: int
    cursor_y: int
    status: _types_pb2.SessionStatus
    queue_status: str
    holder: str
    pending_count: int
    truncated: bool
    def __init__(self, generation: _Optional[int] = ..., sequence: _Optional[int] = ..., rows: _Optional[int] = ..., cols: _Optional[int] = ..., viewport: _Optional[str] = ..., cursor_x: _Optional[int] = ..., cursor_y: _Optional[int] = ..., status: _Optional[_Union[_types_pb2.SessionStatus, _Mapping]] = ..., queue_status: _Optional[str] = ..., holder: _Optional[str] = ..., pending_count: _Optional[int] = ..., truncated: _Optional[bool] = ...) -> None: ...

class SharedOutcome(_message.Message):
    __slots__ = ("state", "wait_reason", "queue_time_ms", "output", "process_group")
    STATE_FIELD_NUMBER: _ClassVar[int]
    WAIT_REASON_FIELD_NUMBER: _ClassVar[int]
    QUEUE_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    PROCESS_GROUP_FIELD_NUMBER: _ClassVar[int]
    state: SharedState
    wait_reason: str
    queue_time_ms: int
    output: str
    process_group: int
    def __init__(self, state: _Optional[_Union[SharedState, _Mapping]] = ..., wait_reason: _Optional[str] = ..., queue_time_ms: _Optional[int] = ..., output: _Optional[str] = ..., process_group: _Optional[int] = ...) -> None: ...

class SharedTerminalServiceSendRequest(_message.Message):
    __slots__ = ("request_id", "data", "submit", "session_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    data: bytes
    submit: bool
    session_id: str
    def __init__(self, request_id: _Optional[str] = ..., data: _Optional[bytes] = ..., submit: _Optional[bool] = ..., session_id: _Optional[str] = ...) -> None: ...

class SharedTerminalServiceSendResponse(_message.Message):
    __slots__ = ("outcome",)
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    outcome: SharedOutcome
    def __init__(self, outcome: _Optional[_Union[SharedOutcome, _Mapping]] = ...) -> None: ...

class SharedTerminalServiceReadRequest(_message.Message):
    __slots__ = ("offset", "count", "session_id")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    offset: int
    count: int
    session_id: str
    def __init__(self, offset: _Optional[int] = ..., count: _Optional[int] = ..., session_id: _Optional[str] = ...) -> None: ...

class SharedTerminalServiceReadResponse(_message.Message):
    __slots__ = ("state", "text", "total_lines", "line_begin", "line_end", "truncated")
    STATE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_LINES_FIELD_NUMBER: _ClassVar[int]
    LINE_BEGIN_FIELD_NUMBER: _ClassVar[int]
    LINE_END_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    state: SharedState
    text: str
    total_lines: int
    line_begin: int
    line_end: int
    truncated: bool
    def __init__(self, state: _Optional[_Union[SharedState, _Mapping]] = ..., text: _Optional[str] = ..., total_lines: _Optional[int] = ..., line_begin: _Optional[int] = ..., line_end: _Optional[int] = ..., truncated: _Optional[bool] = ...) -> None: ...

class SharedTerminalServiceSignalRequest(_message.Message):
    __slots__ = ("request_id", "signal", "session_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    signal: _types_pb2.SignalName
    session_id: str
    def __init__(self, request_id: _Optional[str] = ..., signal: _Optional[_Union[_types_pb2.SignalName, str]] = ..., session_id: _Optional[str] = ...) -> None: ...

class SharedTerminalServiceSignalResponse(_message.Message):
    __slots__ = ("outcome",)
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    outcome: SharedOutcome
    def __init__(self, outcome: _Optional[_Union[SharedOutcome, _Mapping]] = ...) -> None: ...

class SharedTerminalServiceResetRequest(_message.Message):
    __slots__ = ("request_id", "session_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ...) -> None: ...

class SharedTerminalServiceResetResponse(_message.Message):
    __slots__ = ("outcome",)
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    outcome: SharedOutcome
    def __init__(self, outcome: _Optional[_Union[SharedOutcome, _Mapping]] = ...) -> None: ...

class SharedTerminalServiceViewRequest(_message.Message):
    __slots__ = ("readonly", "resume", "session_id")
    READONLY_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    readonly: bool
    resume: str
    session_id: str
    def __init__(self, readonly: _Optional[bool] = ..., resume: _Optional[str] = ..., session_id: _Optional[str] = ...) -> None: ...

class SharedTerminalServiceViewResponse(_message.Message):
    __slots__ = ("generation", "attached", "snapshot", "chunk", "gap", "status", "end", "keep_alive")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    SNAPSHOT_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    GAP_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    KEEP_ALIVE_FIELD_NUMBER: _ClassVar[int]
    generation: int
    attached: SharedAttached
    snapshot: _pty_service_pb2.AttachSnapshot
    chunk: _pty_service_pb2.FollowChunk
    gap: _pty_service_pb2.FollowGap
    status: SharedStatus
    end: SharedGenerationEnd
    keep_alive: _pty_service_pb2.FollowKeepAlive
    def __init__(self, generation: _Optional[int] = ..., attached: _Optional[_Union[SharedAttached, _Mapping]] = ..., snapshot: _Optional[_Union[_pty_service_pb2.AttachSnapshot, _Mapping]] = ..., chunk: _Optional[_Union[_pty_service_pb2.FollowChunk, _Mapping]] = ..., gap: _Optional[_Union[_pty_service_pb2.FollowGap, _Mapping]] = ..., status: _Optional[_Union[SharedStatus, _Mapping]] = ..., end: _Optional[_Union[SharedGenerationEnd, _Mapping]] = ..., keep_alive: _Optional[_Union[_pty_service_pb2.FollowKeepAlive, _Mapping]] = ...) -> None: ...

class SharedAttached(_message.Message):
    __slots__ = ("controller", "view", "resume", "reason")
    CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    RESUME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    controller: bool
    view: str
    resume: str
    reason: str
    def __init__(self, controller: _Optional[bool] = ..., view: _Optional[str] = ..., resume: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class SharedStatus(_message.Message):
    __slots__ = ("queue_status", "holder", "pending_count", "takeover", "lease", "exited", "last_lease")
    QUEUE_STATUS_FIELD_NUMBER: _ClassVar[int]
    HOLDER_FIELD_NUMBER: _ClassVar[int]
    PENDING_COUNT_FIELD_NUMBER: _ClassVar[int]
    TAKEOVER_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    EXITED_FIELD_NUMBER: _ClassVar[int]
    LAST_LEASE_FIELD_NUMBER: _ClassVar[int]
    queue_status: str
    holder: str
    pending_count: int
    takeover: int
    lease: int
    exited: bool
    last_lease: int
    def __init__(self, queue_status: _Optional[str] = ..., holder: _Optional[str] = ..., pending_count: _Optional[int] = ..., takeover: _Optional[int] = ..., lease: _Optional[int] = ..., exited: _Optional[bool] = ..., last_lease: _Optional[int] = ...) -> None: ...

class SharedGenerationEnd(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

class SharedTerminalServiceActRequest(_message.Message):
    __slots__ = ("request_id", "view", "generation", "begin", "take_over", "input", "interrupt", "session_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    TAKE_OVER_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    INTERRUPT_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    view: str
    generation: int
    begin: bytes
    take_over: int
    input: SharedInput
    interrupt: int
    session_id: str
    def __init__(self, request_id: _Optional[str] = ..., view: _Optional[str] = ..., generation: _Optional[int] = ..., begin: _Optional[bytes] = ..., take_over: _Optional[int] = ..., input: _Optional[_Union[SharedInput, _Mapping]] = ..., interrupt: _Optional[int] = ..., session_id: _Optional[str] = ...) -> None: ...

class SharedInput(_message.Message):
    __slots__ = ("lease", "data")
    LEASE_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    lease: int
    data: bytes
    def __init__(self, lease: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class SharedTerminalServiceActResponse(_message.Message):
    __slots__ = ("lease",)
    LEASE_FIELD_NUMBER: _ClassVar[int]
    lease: int
    def __init__(self, lease: _Optional[int] = ...) -> None: ...

class CreateViewTicketRequest(_message.Message):
    __slots__ = ("session_id", "overview", "readonly")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    OVERVIEW_FIELD_NUMBER: _ClassVar[int]
    READONLY_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    overview: bool
    readonly: bool
    def __init__(self, session_id: _Optional[str] = ..., overview: _Optional[bool] = ..., readonly: _Optional[bool] = ...) -> None: ...

class CreateViewTicketResponse(_message.Message):
    __slots__ = ("url", "ticket", "expires_in")
    URL_FIELD_NUMBER: _ClassVar[int]
    TICKET_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_IN_FIELD_NUMBER: _ClassVar[int]
    url: str
    ticket: str
    expires_in: _duration_pb2.Duration
    def __init__(self, url: _Optional[str] = ..., ticket: _Optional[str] = ..., expires_in: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
