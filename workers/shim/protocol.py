"""The language between a shim and its holder: frames, versions, field checks.

A frame is a big-endian 32-bit length and that many bytes of UTF-8 JSON, always one
object. The first frame of a connection is the holder's ``hello``
(``{"op": "hello", "v": 1, "key": "..."}``); its shape never changes, so that any two
versions can at least refuse each other in words. After it the holder sends requests
with an ``id`` and gets exactly one reply with that ``id`` (``ok`` true, or ``error``
with a ``code``), in any order; frames with an ``event`` come unasked. Bytes travel as
base64 text. Descriptors ride as SCM_RIGHTS on the first byte of the reply that names
them in ``fds``.

Everything here is pure. It imports neither ``typing`` nor ``dataclasses``: the shim is
a process of its own per session, and each of them would cost a quarter of its start.
"""

import binascii
import json
import struct
from collections.abc import Mapping

VERSION = 1
VERSIONS = (1,)
MAX_HELLO_BYTES = 4096
"""What an unproven peer may make the shim hold."""
MAX_FRAME_BYTES = 4 * 1024 * 1024
"""Above what argv and environment together may be on Linux (a quarter of the stack)."""
MAX_LABELS_BYTES = 256 * 1024

_LENGTH = struct.Struct(">I")

Message = dict[str, object]


class ProtocolError(Exception):
    """What a peer sent cannot be used; ``code`` goes into the refusal."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def encode(message: Mapping[str, object]) -> bytes:
    """Turn a message into one frame.

    Raises:
        ProtocolError: ``FRAME_TOO_LARGE``; the message would be refused by the peer.
    """
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(body) > MAX_FRAME_BYTES:
        raise ProtocolError("FRAME_TOO_LARGE", f"frame of {len(body)} bytes is above the limit")
    return _LENGTH.pack(len(body)) + body


class Decoder:
    """Cuts a byte stream into messages, whatever the chunks.

    ``limit`` is the largest acceptable body in bytes and may be raised once the peer
    has proved itself.
    """

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self.limit = limit
        self._buffer = bytearray()

    def push(self, data: bytes) -> None:
        """Take in bytes as they arrived."""
        self._buffer += data

    def next(self) -> Message | None:
        """Return the next whole message, or None until more bytes arrive.

        One at a time, so that the limit can change between two messages of one chunk.

        Raises:
            ProtocolError: ``FRAME_TOO_LARGE`` or ``GARBAGE``; the stream is lost then.
        """
        if len(self._buffer) < _LENGTH.size:
            return None
        size: int = _LENGTH.unpack_from(self._buffer)[0]
        if size > self.limit:
            raise ProtocolError(
                "FRAME_TOO_LARGE", f"frame of {size} bytes; at most {self.limit} are taken here"
            )
        end = _LENGTH.size + size
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            raise ProtocolError("GARBAGE", "the frame is not JSON") from None
        if not isinstance(message, dict):
            raise ProtocolError("GARBAGE", "the frame is not a JSON object")
        return message


def hello(key: str) -> Message:
    """Build the first message of a holder."""
    return {"op": "hello", "v": VERSION, "key": key}


def check_hello(message: Message) -> str:
    """Return the key a peer offers, once its version is one we speak.

    Raises:
        ProtocolError: ``UNKNOWN_VERSION`` names both sides' versions; ``NO_HELLO``
            when the message is something else.
    """
    if message.get("op") != "hello":
        raise ProtocolError("NO_HELLO", "the first frame must be a hello")
    version = message.get("v")
    if type(version) is not int or version not in VERSIONS:
        spoken = ", ".join(str(known) for known in VERSIONS)
        raise ProtocolError(
            "UNKNOWN_VERSION",
            f"this shim speaks protocol version {spoken}, the peer asked for {version!r:.40}",
        )
    return text(message, "key")


def invalid(message: str) -> ProtocolError:
    """Build the refusal of a malformed field."""
    return ProtocolError("INVALID", message)


def text(message: Message, name: str) -> str:
    """Read a string without NUL, which no system call could take."""
    value = message.get(name)
    if not isinstance(value, str):
        raise invalid(f"{name} must be a string")
    if "\0" in value:
        raise invalid(f"{name} must not hold a NUL character")
    return value


def optional_text(message: Message, name: str) -> str | None:
    """Read a string or an absence."""
    return None if message.get(name) is None else text(message, name)


def whole(message: Message, name: str, low: int, high: int) -> int:
    """Read an integer between ``low`` and ``high``, both included."""
    value = message.get(name)
    if type(value) is not int or not low <= value <= high:
        raise invalid(f"{name} must be a whole number from {low} to {high}")
    return value


def seconds(message: Message, name: str, high: float = 86_400.0) -> float:
    """Read a duration of at most ``high`` seconds."""
    value = message.get(name)
    if type(value) not in (int, float) or not 0 <= value <= high:  # type: ignore[operator]
        raise invalid(f"{name} must be a number of seconds from 0 to {high:g}")
    return float(value)  # type: ignore[arg-type]


def texts(message: Message, name: str) -> tuple[str, ...]:
    """Read a list of strings, each without NUL."""
    value = message.get(name, [])
    if not isinstance(value, list):
        raise invalid(f"{name} must be a list")
    return tuple(text({name: item}, name) for item in value)


def text_map(message: Message, name: str) -> dict[str, str]:
    """Read a map of environment variables."""
    value = message.get(name)
    if not isinstance(value, dict):
        raise invalid(f"{name} must be a map")
    for key in value:
        if not key or "=" in key or "\0" in key:
            raise invalid(f"{name} has an impossible variable name")
    return {key: text({name: item}, name) for key, item in value.items()}


def whole_map(message: Message, name: str) -> dict[str, int]:
    """Read a map of names to whole numbers (resource limits)."""
    value = message.get(name)
    if not isinstance(value, dict):
        raise invalid(f"{name} must be a map")
    return {key: whole({name: item}, name, -1, 2**63 - 1) for key, item in value.items()}


def pack(data: bytes) -> str:
    """Write bytes as text."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def unpack(message: Message, name: str, limit: int = MAX_FRAME_BYTES) -> bytes:
    """Read bytes written by ``pack``."""
    try:
        data = binascii.a2b_base64(text(message, name), strict_mode=True)
    except (ValueError, UnicodeError):
        raise invalid(f"{name} is not base64") from None
    if len(data) > limit:
        raise invalid(f"{name} has {len(data)} bytes; at most {limit} are kept")
    return data
