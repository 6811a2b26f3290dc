import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SandboxMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SANDBOX_MODE_UNSPECIFIED: _ClassVar[SandboxMode]
    SANDBOX_MODE_READ_ONLY: _ClassVar[SandboxMode]
    SANDBOX_MODE_WORKSPACE_WRITE: _ClassVar[SandboxMode]
    SANDBOX_MODE_DANGER_FULL_ACCESS: _ClassVar[SandboxMode]

class Network(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NETWORK_UNSPECIFIED: _ClassVar[Network]
    NETWORK_SHARED: _ClassVar[Network]
    NETWORK_NONE: _ClassVar[Network]

class WaitReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WAIT_REASON_UNSPECIFIED: _ClassVar[WaitReason]
    WAIT_REASON_STDIN_READ: _ClassVar[WaitReason]
    WAIT_REASON_INFERRED_IDLE: _ClassVar[WaitReason]
    WAIT_REASON_TIMEOUT: _ClassVar[WaitReason]
    WAIT_REASON_SESSION_EXIT: _ClassVar[WaitReason]
    WAIT_REASON_HUMAN_HANDOFF: _ClassVar[WaitReason]
    WAIT_REASON_PROMPT: _ClassVar[WaitReason]
    WAIT_REASON_CANCELLED: _ClassVar[WaitReason]

class Evidence(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVIDENCE_UNSPECIFIED: _ClassVar[Evidence]
    EVIDENCE_NONE: _ClassVar[Evidence]
    EVIDENCE_MARKER: _ClassVar[Evidence]
    EVIDENCE_SYSCALL: _ClassVar[Evidence]
    EVIDENCE_TERMIOS: _ClassVar[Evidence]
    EVIDENCE_SILENCE: _ClassVar[Evidence]
    EVIDENCE_DEADLINE: _ClassVar[Evidence]
    EVIDENCE_EXIT: _ClassVar[Evidence]

class PromptKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROMPT_KIND_UNSPECIFIED: _ClassVar[PromptKind]
    PROMPT_KIND_NONE: _ClassVar[PromptKind]
    PROMPT_KIND_SHELL: _ClassVar[PromptKind]
    PROMPT_KIND_CONTINUATION: _ClassVar[PromptKind]
    PROMPT_KIND_LINE: _ClassVar[PromptKind]
    PROMPT_KIND_PASSWORD: _ClassVar[PromptKind]
    PROMPT_KIND_KEY: _ClassVar[PromptKind]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_COMPLETED: _ClassVar[Outcome]
    OUTCOME_CANCELLED: _ClassVar[Outcome]
    OUTCOME_UNKNOWN: _ClassVar[Outcome]

class SignalName(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SIGNAL_NAME_UNSPECIFIED: _ClassVar[SignalName]
    SIGNAL_NAME_SIGINT: _ClassVar[SignalName]
    SIGNAL_NAME_SIGTERM: _ClassVar[SignalName]
    SIGNAL_NAME_SIGKILL: _ClassVar[SignalName]
    SIGNAL_NAME_SIGTSTP: _ClassVar[SignalName]
    SIGNAL_NAME_SIGHUP: _ClassVar[SignalName]

class TaskState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_STATE_UNSPECIFIED: _ClassVar[TaskState]
    TASK_STATE_RUNNING: _ClassVar[TaskState]
    TASK_STATE_STOPPING: _ClassVar[TaskState]
    TASK_STATE_COMPLETED: _ClassVar[TaskState]
    TASK_STATE_KILLED: _ClassVar[TaskState]
    TASK_STATE_FAILED: _ClassVar[TaskState]
    TASK_STATE_LOST: _ClassVar[TaskState]

class CloseOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CLOSE_OUTCOME_UNSPECIFIED: _ClassVar[CloseOutcome]
    CLOSE_OUTCOME_CLOSED: _ClassVar[CloseOutcome]
    CLOSE_OUTCOME_ALREADY_CLOSING: _ClassVar[CloseOutcome]

class WaitMatch(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    WAIT_MATCH_UNSPECIFIED: _ClassVar[WaitMatch]
    WAIT_MATCH_PATTERN: _ClassVar[WaitMatch]
    WAIT_MATCH_QUIET: _ClassVar[WaitMatch]
    WAIT_MATCH_READY: _ClassVar[WaitMatch]
    WAIT_MATCH_EXIT: _ClassVar[WaitMatch]
    WAIT_MATCH_TIMEOUT: _ClassVar[WaitMatch]
SANDBOX_MODE_UNSPECIFIED: SandboxMode
SANDBOX_MODE_READ_ONLY: SandboxMode
SANDBOX_MODE_WORKSPACE_WRITE: SandboxMode
SANDBOX_MODE_DANGER_FULL_ACCESS: SandboxMode
NETWORK_UNSPECIFIED: Network
NETWORK_SHARED: Network
NETWORK_NONE: Network
WAIT_REASON_UNSPECIFIED: WaitReason
WAIT_REASON_STDIN_READ: WaitReason
WAIT_REASON_INFERRED_IDLE: WaitReason
WAIT_REASON_TIMEOUT: WaitReason
WAIT_REASON_SESSION_EXIT: WaitReason
WAIT_REASON_HUMAN_HANDOFF: WaitReason
WAIT_REASON_PROMPT: WaitReason
WAIT_REASON_CANCELLED: WaitReason
EVIDENCE_UNSPECIFIED: Evidence
EVIDENCE_NONE: Evidence
EVIDENCE_MARKER: Evidence
EVIDENCE_SYSCALL: Evidence
EVIDENCE_TERMIOS: Evidence
EVIDENCE_SILENCE: Evidence
EVIDENCE_DEADLINE: Evidence
EVIDENCE_EXIT: Evidence
PROMPT_KIND_UNSPECIFIED: PromptKind
PROMPT_KIND_NONE: PromptKind
PROMPT_KIND_SHELL: PromptKind
PROMPT_KIND_CONTINUATION: PromptKind
PROMPT_KIND_LINE: PromptKind
PROMPT_KIND_PASSWORD: PromptKind
PROMPT_KIND_KEY: PromptKind
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_COMPLETED: Outcome
OUTCOME_CANCELLED: Outcome
OUTCOME_UNKNOWN: Outcome
SIGNAL_NAME_UNSPECIFIED: SignalName
SIGNAL_NAME_SIGINT: SignalName
SIGNAL_NAME_SIGTERM: SignalName
SIGNAL_NAME_SIGKILL: SignalName
SIGNAL_NAME_SIGTSTP: SignalName
SIGNAL_NAME_SIGHUP: SignalName
TASK_STATE_UNSPECIFIED: TaskState
TASK_STATE_RUNNING: TaskState
TASK_STATE_STOPPING: TaskState
TASK_STATE_COMPLETED: TaskState
TASK_STATE_KILLED: TaskState
TASK_STATE_FAILED: TaskState
TASK_STATE_LOST: TaskState
CLOSE_OUTCOME_UNSPECIFIED: CloseOutcome
CLOSE_OUTCOME_CLOSED: CloseOutcome
CLOSE_OUTCOME_ALREADY_CLOSING: CloseOutcome
WAIT_MATCH_UNSPECIFIED: WaitMatch
WAIT_MATCH_PATTERN: WaitMatch
WAIT_MATCH_QUIET: WaitMatch
WAIT_MATCH_READY: WaitMatch
WAIT_MATCH_EXIT: WaitMatch
WAIT_MATCH_TIMEOUT: WaitMatch

class ExitStatus(_message.Message):
    __slots__ = ("exit_code", "signal", "detail")
    EXIT_CODE_FIELD_NUMBER: _ClassVar[int]
    SIGNAL_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    exit_code: int
    signal: str
    detail: str
    def __init__(self, exit_code: _Optional[int] = ..., signal: _Optional[str] = ..., detail: _Optional[str] = ...) -> None: ...

class SessionStatus(_message.Message):
    __slots__ = ("exit",)
    EXIT_FIELD_NUMBER: _ClassVar[int]
    exit: ExitStatus
    def __init__(self, exit: _Optional[_Union[ExitStatus, _Mapping]] = ...) -> None: ...

class Confinement(_message.Message):
    __slots__ = ("mode", "network", "kind", "partial", "workspace_root", "run_as", "limited_by", "limits", "unmet_limits")
    MODE_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_FIELD_NUMBER: _ClassVar[int]
    WORKSPACE_ROOT_FIELD_NUMBER: _ClassVar[int]
    RUN_AS_FIELD_NUMBER: _ClassVar[int]
    LIMITED_BY_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    UNMET_LIMITS_FIELD_NUMBER: _ClassVar[int]
    mode: SandboxMode
    network: Network
    kind: str
    partial: bool
    workspace_root: str
    run_as: str
    limited_by: str
    limits: _containers.RepeatedScalarFieldContainer[str]
    unmet_limits: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, mode: _Optional[_Union[SandboxMode, str]] = ..., network: _Optional[_Union[Network, str]] = ..., kind: _Optional[str] = ..., partial: _Optional[bool] = ..., workspace_root: _Optional[str] = ..., run_as: _Optional[str] = ..., limited_by: _Optional[str] = ..., limits: _Optional[_Iterable[str]] = ..., unmet_limits: _Optional[_Iterable[str]] = ...) -> None: ...

class SessionInfo(_message.Message):
    __slots__ = ("session_id", "owner_id", "type", "status", "name", "pid", "host", "cwd", "confinement", "rows", "cols", "created_at", "last_activity_at", "adoption", "busy")
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    CWD_FIELD_NUMBER: _ClassVar[int]
    CONFINEMENT_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLS_FIELD_NUMBER: _ClassVar[int]
    CREATED_AT_FIELD_NUMBER: _ClassVar[int]
    LAST_ACTIVITY_AT_FIELD_NUMBER: _ClassVar[int]
    ADOPTION_FIELD_NUMBER: _ClassVar[int]
    BUSY_FIELD_NUMBER: _ClassVar[int]
    session_id: str
    owner_id: str
    type: str
    status: SessionStatus
    name: str
    pid: int
    host: str
    cwd: str
    confinement: Confinement
    rows: int
    cols: int
    created_at: _timestamp_pb2.Timestamp
    last_activity_at: _timestamp_pb2.Timestamp
    adoption: int
    busy: bool
    def __init__(self, session_id: _Optional[str] = ..., owner_id: _Optional[str] = ..., type: _Optional[str] = ..., status: _Optional[_Union[SessionStatus, _Mapping]] = ..., name: _Optional[str] = ..., pid: _Optional[int] = ..., host: _Optional[str] = ..., cwd: _Optional[str] = ..., confinement: _Optional[_Union[Confinement, _Mapping]] = ..., rows: _Optional[int] = ..., cols: _Optional[int] = ..., created_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., last_activity_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., adoption: _Optional[int] = ..., busy: _Optional[bool] = ...) -> None: ...

class EndedProcess(_message.Message):
    __slots__ = ("pid", "name", "last_signal")
    PID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LAST_SIGNAL_FIELD_NUMBER: _ClassVar[int]
    pid: int
    name: str
    last_signal: str
    def __init__(self, pid: _Optional[int] = ..., name: _Optional[str] = ..., last_signal: _Optional[str] = ...) -> None: ...

class CloseReceipt(_message.Message):
    __slots__ = ("root_exit", "ended", "survivors", "elapsed")
    ROOT_EXIT_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    SURVIVORS_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_FIELD_NUMBER: _ClassVar[int]
    root_exit: ExitStatus
    ended: _containers.RepeatedCompositeFieldContainer[EndedProcess]
    survivors: _containers.RepeatedCompositeFieldContainer[EndedProcess]
    elapsed: _duration_pb2.Duration
    def __init__(self, root_exit: _Optional[_Union[ExitStatus, _Mapping]] = ..., ended: _Optional[_Iterable[_Union[EndedProcess, _Mapping]]] = ..., survivors: _Optional[_Iterable[_Union[EndedProcess, _Mapping]]] = ..., elapsed: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...
