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

class TaskRecord(_message.Message):
    __slots__ = ("task_id", "owner_id", "session_id", "label", "state", "kind", "detail", "started_at", "finished_at")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    OWNER_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    LABEL_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_AT_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    owner_id: str
    session_id: str
    label: str
    state: _types_pb2.TaskState
    kind: str
    detail: str
    started_at: _timestamp_pb2.Timestamp
    finished_at: _timestamp_pb2.Timestamp
    def __init__(self, task_id: _Optional[str] = ..., owner_id: _Optional[str] = ..., session_id: _Optional[str] = ..., label: _Optional[str] = ..., state: _Optional[_Union[_types_pb2.TaskState, str]] = ..., kind: _Optional[str] = ..., detail: _Optional[str] = ..., started_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., finished_at: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class StartTaskRequest(_message.Message):
    __slots__ = ("request_id", "session_id", "data", "submit")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    session_id: str
    data: bytes
    submit: bool
    def __init__(self, request_id: _Optional[str] = ..., session_id: _Optional[str] = ..., data: _Optional[bytes] = ..., submit: _Optional[bool] = ...) -> None: ...

class StartTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: TaskRecord
    def __init__(self, task: _Optional[_Union[TaskRecord, _Mapping]] = ...) -> None: ...

class TaskOutputRequest(_message.Message):
    __slots__ = ("task_id", "cursor", "wait")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    CURSOR_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    cursor: int
    wait: _duration_pb2.Duration
    def __init__(self, task_id: _Optional[str] = ..., cursor: _Optional[int] = ..., wait: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class TaskOutputResponse(_message.Message):
    __slots__ = ("text", "task", "next_cursor", "truncated")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    NEXT_CURSOR_FIELD_NUMBER: _ClassVar[int]
    TRUNCATED_FIELD_NUMBER: _ClassVar[int]
    text: str
    task: TaskRecord
    next_cursor: int
    truncated: bool
    def __init__(self, text: _Optional[str] = ..., task: _Optional[_Union[TaskRecord, _Mapping]] = ..., next_cursor: _Optional[int] = ..., truncated: _Optional[bool] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("tasks",)
    TASKS_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[TaskRecord]
    def __init__(self, tasks: _Optional[_Iterable[_Union[TaskRecord, _Mapping]]] = ...) -> None: ...

class KillTaskRequest(_message.Message):
    __slots__ = ("request_id", "task_id")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    task_id: str
    def __init__(self, request_id: _Optional[str] = ..., task_id: _Optional[str] = ...) -> None: ...

class KillTaskResponse(_message.Message):
    __slots__ = ("task",)
    TASK_FIELD_NUMBER: _ClassVar[int]
    task: TaskRecord
    def __init__(self, task: _Optional[_Union[TaskRecord, _Mapping]] = ...) -> None: ...
