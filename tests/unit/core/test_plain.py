import dataclasses
import inspect
import types
import typing
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.core import model
from fabric.core.plain import from_plain, to_plain

CLASSES = [
    cls
    for _, cls in inspect.getmembers(model, dataclasses.is_dataclass)
    if cls.__module__.startswith("fabric.core.")
]


def values_of(kind):
    """A strategy for any type that `model` may use."""
    origin = typing.get_origin(kind)
    if isinstance(kind, typing.NewType):
        return values_of(kind.__supertype__)
    if origin in (types.UnionType, typing.Union):
        return st.one_of([values_of(arg) for arg in typing.get_args(kind)])
    if origin is tuple:
        args = typing.get_args(kind)
        if args[-1] is Ellipsis:
            return st.lists(values_of(args[0]), max_size=3).map(tuple)
        return st.tuples(*map(values_of, args))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return st.builds(
            kind, **{f.name: values_of(hints[f.name]) for f in dataclasses.fields(kind)}
        )
    return {
        str: st.text(max_size=8),
        bytes: st.binary(max_size=8),
        int: st.integers(),
        bool: st.booleans(),
        float: st.floats(allow_nan=False),
        type(None): st.none(),
    }[kind]


def only_plain(data) -> bool:
    if isinstance(data, dict):
        return all(type(key) is str and only_plain(value) for key, value in data.items())
    if isinstance(data, list):
        return all(map(only_plain, data))
    return data is None or type(data) in (str, bytes, int, float, bool)


def test_there_are_classes_to_try():
    assert len(CLASSES) > 25


@pytest.mark.parametrize("cls", CLASSES)
def test_round_trip(cls):
    @given(values_of(cls))
    def check(value):
        data = to_plain(value)
        assert only_plain(data)
        assert from_plain(cls, data) == value

    check()


def test_keys_of_a_newer_peer_are_ignored_and_missing_ones_take_the_default():
    status = from_plain(model.SessionStatus, {"exit": {"exit_code": 7, "new_field": 1}, "more": 2})
    assert status.exit == model.ExitStatus(exit_code=7)
    assert from_plain(model.SessionStatus, {}) == model.SessionStatus()


def test_a_missing_required_key_and_an_unknown_enum_are_errors():
    with pytest.raises(TypeError):
        from_plain(model.SignalDelivered, {})
    with pytest.raises(ValueError, match="no-such-mode"):
        from_plain(model.Confinement, {"mode": "no-such-mode"})


def test_enums_become_plain_strings():
    data = to_plain({"x": 1}) and to_plain(model.SandboxMode.READ_ONLY)
    assert type(data) is str
