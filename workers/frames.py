"""Frames of the session channel: what goes over the unix socket, without any socket.

A frame is a 4-byte big-endian length and that many bytes of msgpack, holding a list whose
first item is its kind:

    [HELLO, version, key]              client, once, first; the server answers in kind
    [CALL, id, method, args]           args is a map of plain data
    [STREAM, id, method, args, credit] as CALL, answered by CHUNKs while credit lasts
    [RESULT, id, value]                ends a CALL
    [CHUNK, id, value]                 one item of a STREAM
    [CREDIT, id, n]                    the client took n items
    [END, id]                          ends a STREAM
    [FAULT, id, reason, message, metadata]  ends either
    [CANCEL, id]                       the caller wants no answer any more

Ids are chosen by the client and unique among its open calls. A frame longer than
``MAX_FRAME_BYTES``, or one that is not such a list, is a protocol error that ends the
connection: nothing after it can be trusted.
"""

import struct
from enum import IntEnum
from typing import Any

import msgpack

VERSION = 1
MAX_FRAME_BYTES = 16 * 1024 * 1024
_LENGTH = struct.Struct(">I")


class Kind(IntEnum):
    """The kinds of frames."""

    HELLO = 0
    CALL = 1
    STREAM = 2
    RESULT = 3
    CHUNK = 4
    CREDIT = 5
    END = 6
    FAULT = 7
    CANCEL = 8


_ARITY = {
    Kind.HELLO: 3,
    Kind.CALL: 4,
    Kind.STREAM: 5,
    Kind.RESULT: 3,
    Kind.CHUNK: 3,
    Kind.CREDIT: 3,
    Kind.END: 2,
    Kind.FAULT: 5,
    Kind.CANCEL: 2,
}


class FrameError(ValueError):
    """The peer does not speak this protocol."""


def encode(kind: Kind, *items: Any) -> bytes:
    """Make one frame. Raises: FrameError when it would be too long."""
    body: bytes = msgpack.packb([int(kind), *items], use_bin_type=True)
    if len(body) > MAX_FRAME_BYTES:
        raise FrameError(f"a frame of {len(body)} bytes exceeds {MAX_FRAME_BYTES}")
    return _LENGTH.pack(len(body)) + body


class Decoder:
    """Bytes in any pieces in, whole frames out."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[list[Any]]:
        """Take bytes and return the frames they complete. Raises: FrameError."""
        buffer = self._buffer
        buffer += data
        frames: list[list[Any]] = []
        start = 0
        while len(buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(buffer, start)
            if length > MAX_FRAME_BYTES:
                raise FrameError(f"a frame of {length} bytes exceeds {MAX_FRAME_BYTES}")
            end = start + _LENGTH.size + length
            if len(buffer) < end:
                break
            frames.append(_parse(bytes(buffer[start + _LENGTH.size : end])))
            start = end
        if start:
            del buffer[:start]
        return frames


def _parse(body: bytes) -> list[Any]:
    try:
        frame = msgpack.unpackb(body, raw=False, strict_map_key=True)
        kind = Kind(frame[0])
    except (ValueError, TypeError, IndexError, KeyError, msgpack.UnpackException) as error:
        raise FrameError("a frame is not a known message") from error
    if not isinstance(frame, list) or len(frame) != _ARITY[kind]:
        raise FrameError(f"a {kind.name} frame has {len(frame)} items")
    frame[0] = kind
    return frame
