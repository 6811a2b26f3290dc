import datetime

from fabric.api.v1 import types_pb2 as _types_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class EnvVar(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...

class OpenRequest(_message.Message):
    __slots__ = ("request_id", "type", "name", "cwd", "env", "os", "host", "rows", "cols", "term", "command", "timeout")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    ENV_FIELD_NUMBER: _ClassVar[int]
    OS_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLS_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    type: str
    name: str
    cwd: str
    env: _containers.RepeatedCompositeFieldContainer[EnvVar]
    os: str
    host: str
    rows: int
    cols: int
    term: str
    command: str
    timeout: _duration_pb2.Duration
    def __init__(self, request_id: _Optional[str] = ..., type: _Optional[str] = ..., name: _Optional[str] = ..., cwd: _Optional[str] = ..., env: _Optional[_Iterable[_Union[EnvVar, _Mapping]]] = ..., os: _Optional[str] = ..., host: _Optional[str] = ..., rows: _Optional[int] = ..., cols: _Optional[int] = ..., term: _Optional[str] = ..., command: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class OpenResponse(_message.Message):
    __slots__ = ("session", "motd", "wait_reason", "truncated", "next_offset")
    SESSION_FIELD_NUMBER: _ClassVar[int]
    MOTD_FIELD_NUMBER: _ClassVar[int]
    WAIT_REASON_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    session: _types_pb2.SessionInfo
    motd: str
    wait_reason: _types_pb2.WaitReason
    truncated: bool
    next_offset: int
    def __init__(self, session: _Optional[_Union[_types_pb2.SessionInfo, _Mapping]] = ..., motd: _Optional[str] = ..., wait_reason: _Optional[_Union[_types_pb2.WaitReason, str]] = ..., truncated: _Optional[bool] = ..., next_offset: _Optional[int] = ...) -> None: ...

class SendRequest(_message.Message):
    __slots__ = ("request_id", "session_id", "data", "submit", "timeout")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    data: bytes
    submit: bool
    timeout: _duration_pb2.Duration
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., data: _Optional[bytes] = ..., submit: _Optional[bool] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SendResponse(_message.Message):
    __slots__ = ("viewport", "wait_reason", "status", "evidence", "prompt_kind", "exit_code", "truncated", "omitted_bytes", "first_offset", "next_offset", "outcome", "canonical", "echo", "cwd", "elapsed", "other_input")
    VIEWPORT_FIELD_NUMBER: _ClassVar[int]
    WAIT_REASON_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    PROMPT_KIND_FIELD_NUMBER: _ClassVar[int]
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    OMITTED_BYTES_FIELD_NUMBER: _ClassVar[int]
    FIRST_OFFSET_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    CANONICAL_FIELD_NUMBER: _ClassVar[int]
    ECHO_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_FIELD_NUMBER: _ClassVar[int]
    OTHER_INPUT_FIELD_NUMBER: _ClassVar[int]
    viewport: str
    wait_reason: _types_pb2.WaitReason
    status: _types_pb2.SessionStatus
    evidence: _types_pb2.Evidence
    prompt_kind: _types_pb2.PromptKind
    exit_code: int
    truncated: bool
    omitted_bytes: int
    first_offset: int
    next_offset: int
    outcome: _types_pb2.Outcome
    canonical: bool
    echo: bool
    cwd: str
    elapsed: _duration_pb2.Duration
    other_input: bool
    def __init__(self, viewport: _Optional[str] = ..., wait_reason: _Optional[_Union[_types_pb2.WaitReason, str]] = ..., status: _Optional[_Union[_types_pb2.SessionStatus, _Mapping]] = ..., evidence: _Optional[_Union[_types_pb2.Evidence, str]] = ..., prompt_kind: _Optional[_Union[_types_pb2.PromptKind, str]] = ..., exit_code: _Optional[int] = ..., truncated: _Optional[bool] = ..., omitted_bytes: _Optional[int] = ..., first_offset: _Optional[int] = ..., next_offset: _Optional[int] = ..., outcome: _Optional[_Union[_types_pb2.Outcome, str]] = ..., canonical: _Optional[bool] = ..., echo: _Optional[bool] = ..., cwd: _Optional[str] = ..., elapsed: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., other_input: _Optional[bool] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ("session_id", "offset", "count")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    offset: int
    count: int
    def __init__(self, session_id: _Optional[str] = ..., offset: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class ReadResponse(_message.Message):
    __slots__ = ("text", "total_lines", "line_begin", "line_end", "truncated", "dropped_lines", "dropped_bytes")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_LINES_FIELD_NUMBER: _ClassVar[int]
    LINE_BEGIN_FIELD_NUMBER: _ClassVar[int]
    LINE_END_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    DROPPED_LINES_FIELD_NUMBER: _ClassVar[int]
    DROPPED_BYTES_FIELD_NUMBER: _ClassVar[int]
    text: str
    total_lines: int
    line_begin: int
    line_end: int
    truncated: bool
    dropped_lines: int
    dropped_bytes: int
    def __init__(self, text: _Optional[str] = ..., total_lines: _Optional[int] = ..., line_begin: _Optional[int] = ..., line_end: _Optional[int] = ..., truncated: _Optional[bool] = ..., dropped_lines: _Optional[int] = ..., dropped_bytes: _Optional[int] = ...) -> None: ...

class SignalRequest(_message.Message):
    __slots__ = ("request_id", "session_id", "signal")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    signal: _types_pb2.SignalName
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., signal: _Optional[_Union[_types_pb2.SignalName, str]] = ...) -> None: ...

class SignalResponse(_message.Message):
    __slots__ = ("target_pgid",)
    TARGET_PGID_FIELD_NUMBER: _ClassVar[int]
    target_pgid: int
    def __init__(self, target_pgid: _Optional[int] = ...) -> None: ...

class CloseRequest(_message.Message):
    __slots__ = ("request_id", "session_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ...) -> None: ...

class CloseResponse(_message.Message):
    __slots__ = ("session_id", "outcome", "receipt")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    RECEIPT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    outcome: _types_pb2.CloseOutcome
    receipt: _types_pb2.CloseReceipt
    def __init__(self, session_id: _Optional[str] = ..., outcome: _Optional[_Union[_types_pb2.CloseOutcome, str]] = ..., receipt: _Optional[_Union[_types_pb2.CloseReceipt, _Mapping]] = ...) -> None: ...

class ListRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListResponse(_message.Message):
    __slots__ = ("sessions",)
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    sessions: _containers.RepeatedCompositeFieldContainer[_types_pb2.SessionInfo]
    def __init__(self, sessions: _Optional[_Iterable[_Union[_types_pb2.SessionInfo, _Mapping]]] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class StatusResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _types_pb2.SessionInfo
    def __init__(self, session: _Optional[_Union[_types_pb2.SessionInfo, _Mapping]] = ...) -> None: ...

class SnapshotRequest(_message.Message):
    __slots__ = ("session_id",)
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    def __init__(self, session_id: _Optional[str] = ...) -> None: ...

class SnapshotResponse(_message.Message):
    __slots__ = ("rows", "cols", "lines", "cursor_row", "cursor_col", "cursor_visible", "alternate", "offset", "title")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLS_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    CURSOR_ROW_FIELD_NUMBER: _ClassVar[int]
    CURSOR_COL_FIELD_NUMBER: _ClassVar[int]
    CURSOR_VISIBLE_FIELD_NUMBER: _ClassVar[int]
    ALTERNATE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    rows: int
    cols: int
    lines: _containers.RepeatedScalarFieldContainer[str]
    cursor_row: int
    cursor_col: int
    cursor_visible: bool
    alternate: bool
    offset: int
    title: str
    def __init__(self, rows: _Optional[int] = ..., cols: _Optional[int] = ..., lines: _Optional[_Iterable[str]] = ..., cursor_row: _Optional[int] = ..., cursor_col: _Optional[int] = ..., cursor_visible: _Optional[bool] = ..., alternate: _Optional[bool] = ..., offset: _Optional[int] = ..., title: _Optional[str] = ...) -> None: ...

class ResizeRequest(_message.Message):
    __slots__ = ("request_id", "session_id", "rows", "cols")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    rows: int
    cols: int
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., rows: _Optional[int] = ..., cols: _Optional[int] = ...) -> None: ...

class ResizeResponse(_message.Message):
    __slots__ = ("session",)
    SESSION_FIELD_NUMBER: _ClassVar[int]
    session: _types_pb2.SessionInfo
    def __init__(self, session: _Optional[_Union[_types_pb2.SessionInfo, _Mapping]] = ...) -> None: ...

class WaitForRequest(_message.Message):
    __slots__ = ("session_id", "pattern", "quiet", "ready", "exit", "since_offset", "timeout")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    PATTERN_FIELD_NUMBER: _ClassVar[int]
    QUIET_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    EXIT_FIELD_NUMBER: _ClassVar[int]
    SINCE_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    pattern: str
    quiet: _duration_pb2.Duration
    ready: bool
    exit: bool
    since_offset: int
    timeout: _duration_pb2.Duration
    def __init__(self, session_id: _Optional[str] = ..., pattern: _Optional[str] = ..., quiet: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., ready: _Optional[bool] = ..., exit: _Optional[bool] = ..., since_offset: _Optional[int] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WaitForResponse(_message.Message):
    __slots__ = ("matched", "text", "status", "match_text", "next_offset", "truncated")
    MATCHED_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MATCH_TEXT_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    matched: _types_pb2.WaitMatch
    text: str
    status: _types_pb2.SessionStatus
    match_text: str
    next_offset: int
    truncated: bool
    def __init__(self, matched: _Optional[_Union[_types_pb2.WaitMatch, str]] = ..., text: _Optional[str] = ..., status: _Optional[_Union[_types_pb2.SessionStatus, _Mapping]] = ..., match_text: _Optional[str] = ..., next_offset: _Optional[int] = ..., truncated: _Optional[bool] = ...) -> None: ...

class CancelCallRequest(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    def __init__(self, request_id: _Optional[str] = ...) -> None: ...

class CancelCallResponse(_message.Message):
    __slots__ = ("found",)
    FOUND_FIELD_NUMBER: _ClassVar[int]
    found: bool
    def __init__(self, found: _Optional[bool] = ...) -> None: ...
