import datetime

from fabric.api.v1 import types_pb2 as _types_pb2
from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OwnerGrant(_message.Message):
    __slots__ = ("owner_id", "epoch", "principal", "agent", "mode", "lease", "expires_at")
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    owner_id: str
    epoch: int
    principal: str
    agent: str
    mode: _types_pb2.SandboxMode
    lease: _duration_pb2.Duration
    expires_at: _timestamp_pb2.Timestamp
    def __init__(self, owner_id: _Optional[str] = ..., epoch: _Optional[int] = ..., principal: _Optional[str] = ..., agent: _Optional[str] = ..., mode: _Optional[_Union[_types_pb2.SandboxMode, str]] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., expires_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class AcquireRequest(_message.Message):
    __slots__ = ("request_id", "agent", "mode", "lease")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    AGENT_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    agent: str
    mode: _types_pb2.SandboxMode
    lease: _duration_pb2.Duration
    def __init__(self, request_id: _Optional[str] = ..., agent: _Optional[str] = ..., mode: _Optional[_Union[_types_pb2.SandboxMode, str]] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class AcquireResponse(_message.Message):
    __slots__ = ("grant", "owner_token")
    GRANT_FIELD_NUMBER: _ClassVar[int]
    OWNER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    grant: OwnerGrant
    owner_token: str
    def __init__(self, grant: _Optional[_Union[OwnerGrant, _Mapping]] = ..., owner_token: _Optional[str] = ...) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ("lease",)
    LEASE_FIELD_NUMBER: _ClassVar[int]
    lease: _duration_pb2.Duration
    def __init__(self, lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class RenewResponse(_message.Message):
    __slots__ = ("grant", "owner_token")
    GRANT_FIELD_NUMBER: _ClassVar[int]
    OWNER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    grant: OwnerGrant
    owner_token: str
    def __init__(self, grant: _Optional[_Union[OwnerGrant, _Mapping]] = ..., owner_token: _Optional[str] = ...) -> None: ...

class KeepAliveRequest(_message.Message):
    __slots__ = ("lease",)
    LEASE_FIELD_NUMBER: _ClassVar[int]
    lease: _duration_pb2.Duration
    def __init__(self, lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class KeepAliveResponse(_message.Message):
    __slots__ = ("grant", "owner_token")
    GRANT_FIELD_NUMBER: _ClassVar[int]
    OWNER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    grant: OwnerGrant
    owner_token: str
    def __init__(self, grant: _Optional[_Union[OwnerGrant, _Mapping]] = ..., owner_token: _Optional[str] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    def __init__(self, request_id: _Optional[str] = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ("closed", "failed")
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    closed: _containers.RepeatedScalarFieldContainer[str]
    failed: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, closed: _Optional[_Iterable[str]] = ..., failed: _Optional[_Iterable[str]] = ...) -> None: ...

class SetModeRequest(_message.Message):
    __slots__ = ("request_id", "mode")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    mode: _types_pb2.SandboxMode
    def __init__(self, request_id: _Optional[str] = ..., mode: _Optional[_Union[_types_pb2.SandboxMode, str]] = ...) -> None: ...

class SetModeResponse(_message.Message):
    __slots__ = ("grant",)
    GRANT_FIELD_NUMBER: _ClassVar[int]
    grant: OwnerGrant
    def __init__(self, grant: _Optional[_Union[OwnerGrant, _Mapping]] = ...) -> None: ...
