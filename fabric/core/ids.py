"""Ids of the fabric: opaque, unguessable, prefixed, made in one place.

Every generated id carries 80 bits from the operating system's random source in
16 characters of lower-case base 32, so it cannot be guessed and is short enough for
a model to repeat. Nothing in it is a counter.
"""

import base64
import re
import secrets
from typing import NewType

from fabric.core.errors import InvalidRequestError

SessionId = NewType("SessionId", str)
OwnerId = NewType("OwnerId", str)
TaskId = NewType("TaskId", str)
SlotId = NewType("SlotId", str)
HostName = NewType("HostName", str)
Principal = NewType("Principal", str)
AgentId = NewType("AgentId", str)
RequestId = NewType("RequestId", str)

MAX_LABEL_CHARS = 128
_ID_BYTES = 10
_BODY = "[a-z2-7]{16}"
_LABEL = re.compile(r"[\x21-\x7e]{1,128}")


def _token() -> str:
    return base64.b32encode(secrets.token_bytes(_ID_BYTES)).decode("ascii").lower()


def new_session_id() -> SessionId:
    """Mint a session id, ``ses_`` and 16 characters."""
    return SessionId(f"ses_{_token()}")


def new_owner_id() -> OwnerId:
    """Mint an owner id, ``own_`` and 16 characters."""
    return OwnerId(f"own_{_token()}")


def new_task_id() -> TaskId:
    """Mint a task id, ``tsk_`` and 16 characters."""
    return TaskId(f"tsk_{_token()}")


def new_slot_id() -> SlotId:
    """Mint a slot id, ``slt_`` and 16 characters."""
    return SlotId(f"slt_{_token()}")


def new_request_id() -> RequestId:
    """Mint a request id for a caller that brings none, ``req_`` and 16 characters."""
    return RequestId(f"req_{_token()}")


def _parse(text: str, prefix: str, noun: str) -> str:
    if not text or not isinstance(text, str):
        raise InvalidRequestError(f"{noun} must be a non-empty string", field=noun)
    if not re.fullmatch(f"{prefix}_{_BODY}", text):
        raise InvalidRequestError(
            f"{noun} {text[:40]!r} has the wrong form (expected {prefix}_ and 16 characters)",
            field=noun,
        )
    return text


def parse_session_id(text: str) -> SessionId:
    """Check the form of a session id. Raises: InvalidRequestError."""
    return SessionId(_parse(text, "ses", "session_id"))


def parse_owner_id(text: str) -> OwnerId:
    """Check the form of an owner id. Raises: InvalidRequestError."""
    return OwnerId(_parse(text, "own", "owner_id"))


def parse_task_id(text: str) -> TaskId:
    """Check the form of a task id. Raises: InvalidRequestError."""
    return TaskId(_parse(text, "tsk", "task_id"))


def parse_label(text: str, noun: str) -> str:
    """Check a caller-chosen identifier: 1 to 128 printable ASCII characters, no blank.

    Raises: InvalidRequestError.
    """
    if not _LABEL.fullmatch(text):
        raise InvalidRequestError(
            f"{noun} must be 1 to {MAX_LABEL_CHARS} printable ASCII characters without blanks",
            field=noun,
        )
    return text


def parse_request_id(text: str) -> RequestId:
    """Check a caller's request id. Raises: InvalidRequestError."""
    return RequestId(parse_label(text, "request_id"))
