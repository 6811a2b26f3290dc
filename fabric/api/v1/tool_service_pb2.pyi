from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Tool(_message.Message):
    __slots__ = ("name", "description", "parameters_json", "surface", "card", "read_only", "destructive", "value_json")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_JSON_FIELD_NUMBER: _ClassVar[int]
    SURFACE_FIELD_NUMBER: _ClassVar[int]
    CARD_FIELD_NUMBER: _ClassVar[int]
    READ_ONLY_FIELD_NUMBER: _ClassVar[int]
    DESTRUCTIVE_FIELD_NUMBER: _ClassVar[int]
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    parameters_json: str
    surface: str
    card: str
    read_only: bool
    destructive: bool
    value_json: str
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., parameters_json: _Optional[str] = ..., surface: _Optional[str] = ..., card: _Optional[str] = ..., read_only: _Optional[bool] = ..., destructive: _Optional[bool] = ..., value_json: _Optional[str] = ...) -> None: ...

class ListToolsRequest(_message.Message):
    __slots__ = ("surfaces",)
    SURFACES_FIELD_NUMBER: _ClassVar[int]
    surfaces: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, surfaces: _Optional[_Iterable[str]] = ...) -> None: ...

class ListToolsResponse(_message.Message):
    __slots__ = ("tools", "guidance")
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    GUIDANCE_FIELD_NUMBER: _ClassVar[int]
    tools: _containers.RepeatedCompositeFieldContainer[Tool]
    guidance: str
    def __init__(self, tools: _Optional[_Iterable[_Union[Tool, _Mapping]]] = ..., guidance: _Optional[str] = ...) -> None: ...

class CallToolRequest(_message.Message):
    __slots__ = ("request_id", "name", "arguments_json")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARGUMENTS_JSON_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    name: str
    arguments_json: str
    def __init__(self, request_id: _Optional[str] = ..., name: _Optional[str] = ..., arguments_json: _Optional[str] = ...) -> None: ...

class CallToolResponse(_message.Message):
    __slots__ = ("text", "value_json", "is_error", "card", "title", "description", "shows_output")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    VALUE_JSON_FIELD_NUMBER: _ClassVar[int]
    IS_ERROR_FIELD_NUMBER: _ClassVar[int]
    CARD_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    SHOWS_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    text: str
    value_json: str
    is_error: bool
    card: str
    title: str
    description: str
    shows_output: bool
    def __init__(self, text: _Optional[str] = ..., value_json: _Optional[str] = ..., is_error: _Optional[bool] = ..., card: _Optional[str] = ..., title: _Optional[str] = ..., description: _Optional[str] = ..., shows_output: _Optional[bool] = ...) -> None: ...

class CallToolStreamRequest(_message.Message):
    __slots__ = ("call",)
    CALL_FIELD_NUMBER: _ClassVar[int]
    call: CallToolRequest
    def __init__(self, call: _Optional[_Union[CallToolRequest, _Mapping]] = ...) -> None: ...

class CallToolStreamResponse(_message.Message):
    __slots__ = ("progress", "answer")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    progress: ToolProgress
    answer: CallToolResponse
    def __init__(self, progress: _Optional[_Union[ToolProgress, _Mapping]] = ..., answer: _Optional[_Union[CallToolResponse, _Mapping]] = ...) -> None: ...

class ToolProgress(_message.Message):
    __slots__ = ("elapsed_ms",)
    ELAPSED_MS_FIELD_NUMBER: _ClassVar[int]
    elapsed_ms: int
    def __init__(self, elapsed_ms: _Optional[int] = ...) -> None: ...
