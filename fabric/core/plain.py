"""Dataclasses of ``model`` as plain data and back, for sockets and journals.

A dataclass becomes a dict of its fields; enums become their values; tuples become
lists; bytes stay bytes (the session channel carries them, the journal does not store
any). Unknown keys are ignored on the way back, so that a newer peer may add fields;
missing keys take the field's default.
"""

import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

T = TypeVar("T")
_Decoder = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


def to_plain(value: Any) -> Any:
    """Turn a value of ``model`` into dicts, lists, strings, bytes and numbers."""
    if isinstance(value, str):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    kind: Any = type(value)
    names = _names(kind)
    if names is not None:
        return {name: to_plain(getattr(value, name)) for name in names}
    return value


@functools.cache
def _names(cls: Any) -> tuple[str, ...] | None:
    if not dataclasses.is_dataclass(cls):
        return None
    return tuple(item.name for item in dataclasses.fields(cls))


def from_plain(cls: type[T], data: Any) -> T:
    """Build ``cls`` from what ``to_plain`` made. Raises: TypeError, ValueError, KeyError."""
    kind: Any = cls
    return typing.cast(T, _decoder(kind)(data))


@functools.cache
def _decoder(kind: Any) -> _Decoder:
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        inner = [arg for arg in typing.get_args(kind) if arg is not type(None)]
        decode = _decoder(inner[0])
        return lambda data: None if data is None else decode(data)
    if origin is tuple:
        args = typing.get_args(kind)
        if len(args) == 2 and args[1] is Ellipsis:
            item = _decoder(args[0])
            return lambda data: tuple(item(entry) for entry in data)
        items = [_decoder(arg) for arg in args]
        return lambda data: tuple(decode(entry) for decode, entry in zip(items, data, strict=True))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass_decoder(kind)
    return _same


def _dataclass_decoder(cls: type) -> _Decoder:
    hints = typing.get_type_hints(cls)
    fields = [(item.name, _decoder(hints[item.name])) for item in dataclasses.fields(cls)]

    def decode(data: Any) -> Any:
        return cls(**{name: read(data[name]) for name, read in fields if name in data})

    return decode
