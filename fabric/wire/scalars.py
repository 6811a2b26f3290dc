"""Enums, durations, instants and text between the model and protobuf.

The tables are built once, by name: a member ``STDIN_READ`` of ``WaitReason`` is the value
``WAIT_REASON_STDIN_READ`` of the message enum, and a missing name fails at import.
"""

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Generic, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from fabric.api.v1 import pty_service_pb2, types_pb2
from fabric.core.errors import InvalidRequestError, UnsupportedError
from fabric.core.model import (
    CloseOutcome,
    Evidence,
    Network,
    Outcome,
    PromptKind,
    SandboxMode,
    SignalName,
    TaskState,
    WaitReason,
)

E = TypeVar("E", bound=Enum)
NANOS = 1_000_000_000
MAX_SECONDS = 315_576_000_000  # the bound of google.protobuf.Duration, 10,000 years


class EnumTable(Generic[E]):
    """One enum of the model and its numbers on the wire."""

    def __init__(self, model: type[E], message: Any, prefix: str) -> None:
        self._prefix = prefix
        self._noun = prefix.lower().strip("_")
        self.numbers: Mapping[E, Any] = {
            member: message.Value(f"{prefix}{member.name}") for member in model
        }
        self._members: Mapping[int, E] = {number: item for item, number in self.numbers.items()}

    def of(self, number: int) -> E:
        """Return the member a peer named. Raises: UnsupportedError for one it does not know."""
        member = self._members.get(number)
        if member is None:
            raise UnsupportedError(
                f"the other side answered {self._noun} {number}, which this version does not know; "
                "update this side"
            )
        return member

    def stated(self, number: int, field: str) -> E:
        """Return the member a request names. Raises: InvalidRequestError."""
        member = self._members.get(number)
        if member is None:
            names = ", ".join(member.name for member in self.numbers)
            raise InvalidRequestError(f"{field} must be one of {names}", field=field)
        return member

    def maybe(self, number: int, field: str) -> E | None:
        """Return the member a request names, None for unspecified. Raises: InvalidRequestError."""
        return None if number == 0 else self.stated(number, field)

    def known_or(self, number: int, fallback: E) -> E:
        """Return the member, or ``fallback`` for one this version does not know."""
        return self._members.get(number, fallback)


SANDBOX_MODE = EnumTable(SandboxMode, types_pb2.SandboxMode, "SANDBOX_MODE_")
NETWORK = EnumTable(Network, types_pb2.Network, "NETWORK_")
WAIT_REASON = EnumTable(WaitReason, types_pb2.WaitReason, "WAIT_REASON_")
EVIDENCE = EnumTable(Evidence, types_pb2.Evidence, "EVIDENCE_")
PROMPT_KIND = EnumTable(PromptKind, types_pb2.PromptKind, "PROMPT_KIND_")
OUTCOME = EnumTable(Outcome, types_pb2.Outcome, "OUTCOME_")
SIGNAL_NAME = EnumTable(SignalName, types_pb2.SignalName, "SIGNAL_NAME_")
TASK_STATE = EnumTable(TaskState, types_pb2.TaskState, "TASK_STATE_")
CLOSE_OUTCOME = EnumTable(CloseOutcome, types_pb2.CloseOutcome, "CLOSE_OUTCOME_")

WAIT_MATCHES: Mapping[str, Any] = {
    name: types_pb2.WaitMatch.Value(f"WAIT_MATCH_{name.upper()}")
    for name in ("pattern", "quiet", "ready", "exit", "timeout")
}
WAIT_MATCH_NAMES: Mapping[int, str] = {number: name for name, number in WAIT_MATCHES.items()}
SESSION_ENDED = pty_service_pb2.FOLLOW_END_REASON_SESSION_ENDED
DRAINING = pty_service_pb2.FOLLOW_END_REASON_DRAINING


def duration(seconds: float | None) -> Duration | None:
    """Turn seconds into a Duration. Raises: InvalidRequestError unless they are finite."""
    if seconds is None:
        return None
    if not math.isfinite(seconds) or abs(seconds) > MAX_SECONDS:
        raise InvalidRequestError(f"a time of {seconds!r} seconds is not a finite duration")
    whole = int(seconds)
    nanos = round((seconds - whole) * NANOS)
    if abs(nanos) == NANOS:
        whole, nanos = whole + (1 if nanos > 0 else -1), 0
    return Duration(seconds=whole, nanos=nanos)


def seconds_of(message: Duration) -> float:
    """Turn a Duration into seconds."""
    return message.seconds + message.nanos / NANOS


def timestamp(wall: float | None) -> Timestamp | None:
    """Turn seconds since 1970 into a Timestamp."""
    if wall is None:
        return None
    whole = math.floor(wall)
    return Timestamp(seconds=whole, nanos=min(NANOS - 1, round((wall - whole) * NANOS)))


def wall_of(message: Timestamp) -> float:
    """Turn a Timestamp into seconds since 1970."""
    return message.seconds + message.nanos / NANOS


def clean(value: str) -> str:
    """Replace what UTF-8 cannot carry (file names may hold lone surrogates)."""
    if value.isascii():
        return value
    return value.encode("utf-8", "replace").decode("utf-8")


def clean_or_none(value: str | None) -> str | None:
    """Replace what UTF-8 cannot carry; None stays None."""
    return None if value is None else clean(value)
