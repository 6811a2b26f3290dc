import datetime

from fabric.api.v1 import types_pb2 as _types_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetServerInfoRequest(_message.Message):
    __slots__ = ("client_version",)
    CLIENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    client_version: str
    def __init__(self, client_version: _Optional[str] = ...) -> None: ...

class GetServerInfoResponse(_message.Message):
    __slots__ = ("version", "api_major", "api_minor", "capabilities", "limits", "host", "principal", "max_mode", "draining", "types")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    API_MAJOR_FIELD_NUMBER: _ClassVar[int]
    API_MINOR_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    MAX_MODE_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    TYPES_FIELD_NUMBER: _ClassVar[int]
    version: str
    api_major: int
    api_minor: int
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    limits: Limits
    host: str
    principal: str
    max_mode: _types_pb2.SandboxMode
    draining: bool
    types: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, version: _Optional[str] = ..., api_major: _Optional[int] = ..., api_minor: _Optional[int] = ..., capabilities: _Optional[_Iterable[str]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ..., host: _Optional[str] = ..., principal: _Optional[str] = ..., max_mode: _Optional[_Union[_types_pb2.SandboxMode, str]] = ..., draining: _Optional[bool] = ..., types: _Optional[_Iterable[str]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("max_message_bytes", "max_send_bytes", "max_result_bytes", "max_wait", "send_timeout", "lease", "request_retention", "max_waits_per_owner", "max_sessions_per_owner", "max_tasks_per_owner", "pty_backend_type", "pty_tail_lines")
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_SEND_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_RESULT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAX_WAIT_FIELD_NUMBER: _ClassVar[int]
    SEND_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    REQUEST_RETENTION_FIELD_NUMBER: _ClassVar[int]
    MAX_WAITS_PER_OWNER_FIELD_NUMBER: _ClassVar[int]
    MAX_SESSIONS_PER_OWNER_FIELD_NUMBER: _ClassVar[int]
    MAX_TASKS_PER_OWNER_FIELD_NUMBER: _ClassVar[int]
    PTY_BACKEND_TYPE_FIELD_NUMBER: _ClassVar[int]
    PTY_TAIL_LINES_FIELD_NUMBER: _ClassVar[int]
    max_message_bytes: int
    max_send_bytes: int
    max_result_bytes: int
    max_wait: _duration_pb2.Duration
    send_timeout: _duration_pb2.Duration
    lease: _duration_pb2.Duration
    request_retention: _duration_pb2.Duration
    max_waits_per_owner: int
    max_sessions_per_owner: int
    max_tasks_per_owner: int
    pty_backend_type: str
    pty_tail_lines: int
    def __init__(self, max_message_bytes: _Optional[int] = ..., max_send_bytes: _Optional[int] = ..., max_result_bytes: _Optional[int] = ..., max_wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., send_timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., request_retention: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., max_waits_per_owner: _Optional[int] = ..., max_sessions_per_owner: _Optional[int] = ..., max_tasks_per_owner: _Optional[int] = ..., pty_backend_type: _Optional[str] = ..., pty_tail_lines: _Optional[int] = ...) -> None: ...

class ListNodesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListNodesResponse(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeState]
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodeState, _Mapping]]] = ...) -> None: ...

class NodeState(_message.Message):
    __slots__ = ("host", "alive", "os", "arch", "sandbox_kinds", "sessions", "max_sessions", "warm", "ptys_free", "memory_free_bytes", "fds_free", "draining", "gateway")
    HOST_FIELD_NUMBER: _ClassVar[int]
    ALIVE_FIELD_NUMBER: _ClassVar[int]
    OS_FIELD_NUMBER: _ClassVar[int]
    ARCH_FIELD_NUMBER: _ClassVar[int]
    SANDBOX_KINDS_FIELD_NUMBER: _ClassVar[int]
    SESSIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    WARM_FIELD_NUMBER: _ClassVar[int]
    PTYS_FREE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    FDS_FREE_FIELD_NUMBER: _ClassVar[int]
    DRAINING_FIELD_NUMBER: _ClassVar[int]
    GATEWAY_FIELD_NUMBER: _ClassVar[int]
    host: str
    alive: bool
    os: str
    arch: str
    sandbox_kinds: _containers.RepeatedScalarFieldContainer[str]
    sessions: int
    max_sessions: int
    warm: int
    ptys_free: int
    memory_free_bytes: int
    fds_free: int
    draining: bool
    gateway: str
    def __init__(self, host: _Optional[str] = ..., alive: _Optional[bool] = ..., os: _Optional[str] = ..., arch: _Optional[str] = ..., sandbox_kinds: _Optional[_Iterable[str]] = ..., sessions: _Optional[int] = ..., max_sessions: _Optional[int] = ..., warm: _Optional[int] = ..., ptys_free: _Optional[int] = ..., memory_free_bytes: _Optional[int] = ..., fds_free: _Optional[int] = ..., draining: _Optional[bool] = ..., gateway: _Optional[str] = ...) -> None: ...
