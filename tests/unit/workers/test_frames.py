"""Frames of the session channel, whole, byte by byte and at random splits."""

import itertools

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.frames import MAX_FRAME_BYTES, Decoder, FrameError, Kind, encode

MESSAGES = [
    (Kind.HELLO, 1, "key"),
    (Kind.CALL, 1, "send", {"data": b"\xff\x00", "text": "ä"}),
    (Kind.STREAM, 2, "follow", {}, 32),
    (Kind.RESULT, 1, [1, 2.5, None, True]),
    (Kind.CHUNK, 2, b"x" * 1000),
    (Kind.CREDIT, 2, 4),
    (Kind.END, 2),
    (Kind.FAULT, 3, "SEND_ACTIVE", "busy", {"a": "b"}),
    (Kind.CANCEL, 3),
]
STREAM = b"".join(encode(*message) for message in MESSAGES)


def decode(pieces):
    decoder = Decoder()
    return [tuple(frame) for piece in pieces for frame in decoder.feed(piece)]


def test_frames_survive_whole_and_byte_by_byte():
    assert decode([STREAM]) == MESSAGES
    assert decode([STREAM[i : i + 1] for i in range(len(STREAM))]) == MESSAGES


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_frames_survive_random_splits(cuts):
    edges = [0, *sorted(cuts), len(STREAM)]
    assert decode([STREAM[a:b] for a, b in itertools.pairwise(edges)]) == MESSAGES


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        msgpack.packb([]),
        msgpack.packb({"a": 1}),
        msgpack.packb([99, 1]),
        msgpack.packb([int(Kind.CALL), 1]),
        msgpack.packb("CALL"),
        msgpack.packb([int(Kind.END), 1]) + b"\x00",
    ],
)
def test_garbage_is_refused(body):
    with pytest.raises(FrameError):
        Decoder().feed(len(body).to_bytes(4, "big") + body)


def test_a_length_above_the_bound_is_refused_before_its_bytes_arrive():
    with pytest.raises(FrameError):
        Decoder().feed((MAX_FRAME_BYTES + 1).to_bytes(4, "big"))


def test_a_frame_too_long_to_send_is_refused():
    with pytest.raises(FrameError):
        encode(Kind.RESULT, 1, b"x" * (MAX_FRAME_BYTES + 1))
