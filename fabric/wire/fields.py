"""The rules single fields of a request must keep, and the refusal of unknown ones."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from fabric.core.errors import InvalidRequestError
from fabric.wire.scalars import MAX_SECONDS, NANOS, seconds_of

MAX_ROWS_COLS = 1000
MAX_OFFSET = 2**53  # what every language's numbers hold exactly
P = ParamSpec("P")
M = TypeVar("M")
_NESTED: dict[Any, tuple[tuple[str, bool], ...]] = {}


def _nested(message: Message) -> tuple[tuple[str, bool], ...]:
    descriptor = message.DESCRIPTOR
    found = _NESTED.get(descriptor)
    if found is None:
        found = tuple(
            (field.name, bool(field.is_repeated))
            for field in descriptor.fields
            if field.message_type is not None
        )
        _NESTED[descriptor] = found
    return found


def refuse_unknown(message: Message) -> None:
    """Refuse a request with fields this version does not know. Raises: InvalidRequestError."""
    unknown: Any = UnknownFieldSet(message)
    for field in unknown:
        raise InvalidRequestError(
            f"unknown field {field.field_number} in {message.DESCRIPTOR.name}; "
            "this server does not know it",
            field=str(field.field_number),
        )
    for name, repeated in _nested(message):
        if repeated:
            for item in getattr(message, name):
                refuse_unknown(item)
        elif message.HasField(name):
            refuse_unknown(getattr(message, name))


def plain_text(text: str, field: str) -> str:
    """Return a text without NUL characters. Raises: InvalidRequestError."""
    if "\0" in text:
        raise InvalidRequestError(f"{field} must not contain a NUL character", field=field)
    return text


def optional_text(message: Any, field: str) -> str | None:
    """Return an optional text field, which must not be empty. Raises: InvalidRequestError."""
    if not message.HasField(field):
        return None
    text: str = getattr(message, field)
    if not text:
        raise InvalidRequestError(f"{field} must be non-empty when it is given", field=field)
    return plain_text(text, field)


def checked_seconds(message: Duration, field: str) -> float:
    """Return the seconds of a Duration. Raises: InvalidRequestError when it is none."""
    whole, nanos = message.seconds, message.nanos
    if abs(nanos) >= NANOS or abs(whole) > MAX_SECONDS or whole * nanos < 0:
        raise InvalidRequestError(
            f"{field} is no valid duration: nanos must be below {NANOS} and have the sign of"
            f" seconds, seconds at most {MAX_SECONDS}",
            field=field,
        )
    return seconds_of(message)


def positive_seconds(message: Any, field: str) -> float | None:
    """Return the seconds of a field that must be above 0, None when absent.

    Raises: InvalidRequestError.
    """
    if not message.HasField(field):
        return None
    seconds = checked_seconds(getattr(message, field), field)
    if not seconds > 0:
        raise InvalidRequestError(f"{field} must be greater than 0 seconds", field=field)
    return seconds


def checked_offset(value: int, field: str = "offset") -> int:
    """Return an offset, 0 or more. Raises: InvalidRequestError."""
    if not 0 <= value <= MAX_OFFSET:
        raise InvalidRequestError(f"{field} must be a non-negative safe integer", field=field)
    return value


def checked_count(message: Any, field: str, default: int) -> int:
    """Return a count, 1 or more. Raises: InvalidRequestError."""
    value: int = getattr(message, field) if message.HasField(field) else default
    if not 0 < value <= MAX_OFFSET:
        raise InvalidRequestError(f"{field} must be a positive safe integer", field=field)
    return value


def checked_cells(value: int, field: str) -> int:
    """Return a number of rows or columns. Raises: InvalidRequestError."""
    if not 1 <= value <= MAX_ROWS_COLS:
        raise InvalidRequestError(f"{field} must be from 1 to {MAX_ROWS_COLS}", field=field)
    return value


def fitting(value: int | None, field: str, bits: int = 64) -> int | None:
    """Return a number that fits its wire type. Raises: InvalidRequestError."""
    if value is not None and not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise InvalidRequestError(f"{field} must fit {bits} bits", field=field)
    return value


def wait_seconds(message: Any) -> float | None:
    """Return the seconds of a wait field, None when absent. Raises: InvalidRequestError."""
    if not message.HasField("wait"):
        return None
    seconds = checked_seconds(message.wait, "wait")
    if seconds < 0:
        raise InvalidRequestError("wait must not be negative", field="wait")
    return seconds


def built(function: Callable[P, M]) -> Callable[P, M]:
    """Let a function that builds a message refuse values the message cannot hold.

    Raises: InvalidRequestError.
    """

    @functools.wraps(function)
    def build(*args: P.args, **kwargs: P.kwargs) -> M:
        try:
            return function(*args, **kwargs)
        except UnicodeEncodeError as error:
            raise InvalidRequestError(
                f"the request holds text that is not valid Unicode: {error.object[:40]!r}"
            ) from error
        except (TypeError, ValueError) as error:
            raise InvalidRequestError(f"the request holds a wrong value: {error}") from error

    return build
