import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.shim import protocol
from workers.shim.protocol import Decoder, ProtocolError


def decode_all(decoder, chunks):
    messages = []
    for chunk in chunks:
        decoder.push(chunk)
        while (message := decoder.next()) is not None:
            messages.append(message)
    return messages


MESSAGES = [
    {"op": "hello", "v": 1, "key": "ü\u0000"},
    {"id": 1},
    {"id": 2, "x": [1, None, "€" * 500]},
]


@given(st.lists(st.integers(min_value=1, max_value=40), max_size=200))
def test_messages_survive_any_split(sizes):
    stream = b"".join(protocol.encode(message) for message in MESSAGES)
    chunks = []
    for size in sizes:
        chunks.append(stream[:size])
        stream = stream[size:]
    assert decode_all(Decoder(), [*chunks, stream]) == MESSAGES


def test_frame_is_length_and_json():
    assert protocol.encode({"id": 1}) == b'\x00\x00\x00\x08{"id":1}'


def test_oversized_frame_is_refused_before_its_body_arrives():
    decoder = Decoder(limit=100)
    decoder.push(b"\x00\x00\x00\x65")
    with pytest.raises(ProtocolError) as refused:
        decoder.next()
    assert refused.value.code == "FRAME_TOO_LARGE"


def test_limit_can_grow_between_two_messages_of_one_chunk():
    decoder = Decoder(limit=20)
    decoder.push(protocol.encode({"a": 1}) + protocol.encode({"b": "x" * 50}))
    assert decoder.next() == {"a": 1}
    decoder.limit = 1000
    assert decoder.next() == {"b": "x" * 50}


def test_message_above_the_limit_is_not_encoded():
    with pytest.raises(ProtocolError, match="above the limit"):
        protocol.encode({"x": "y" * protocol.MAX_FRAME_BYTES})


@pytest.mark.parametrize("body", [b"nonsense", b"\xff\xfe", b"[1,2]", b"1", b"[" * 100_000, b""])
def test_garbage_is_refused(body):
    decoder = Decoder()
    decoder.push(len(body).to_bytes(4, "big") + body)
    with pytest.raises(ProtocolError) as refused:
        decoder.next()
    assert refused.value.code == "GARBAGE"


def test_hello_gives_the_key():
    assert protocol.check_hello(protocol.hello("s3cret")) == "s3cret"


@pytest.mark.parametrize("version", [0, 2, True, "1", None, 1.0])
def test_unknown_version_is_refused_and_both_sides_are_named(version):
    with pytest.raises(ProtocolError, match="speaks protocol version 1, the peer asked for") as no:
        protocol.check_hello({"op": "hello", "v": version, "key": "k"})
    assert no.value.code == "UNKNOWN_VERSION"


def test_version_is_checked_before_anything_else():
    with pytest.raises(ProtocolError) as no:
        protocol.check_hello({"op": "hello", "v": 9, "secret": "a field of the future"})
    assert no.value.code == "UNKNOWN_VERSION"


@pytest.mark.parametrize(
    ("message", "code"),
    [({"op": "spawn"}, "NO_HELLO"), ({}, "NO_HELLO"), ({"op": "hello", "v": 1}, "INVALID")],
)
def test_other_first_messages_are_refused(message, code):
    with pytest.raises(ProtocolError) as no:
        protocol.check_hello(message)
    assert no.value.code == code


@pytest.mark.parametrize(
    "read",
    [
        lambda: protocol.text({"f": 1}, "f"),
        lambda: protocol.text({"f": "a\0b"}, "f"),
        lambda: protocol.whole({"f": 0}, "f", 1, 5),
        lambda: protocol.whole({"f": 6}, "f", 1, 5),
        lambda: protocol.whole({"f": True}, "f", 0, 5),
        lambda: protocol.whole({"f": 1.5}, "f", 0, 5),
        lambda: protocol.seconds({"f": -1}, "f"),
        lambda: protocol.seconds({"f": float("nan")}, "f"),
        lambda: protocol.seconds({"f": "1"}, "f"),
        lambda: protocol.texts({"f": "ab"}, "f"),
        lambda: protocol.texts({"f": ["a", 1]}, "f"),
        lambda: protocol.text_map({"f": []}, "f"),
        lambda: protocol.text_map({"f": {"A=B": "c"}}, "f"),
        lambda: protocol.text_map({"f": {"": "c"}}, "f"),
        lambda: protocol.text_map({"f": {"A": 1}}, "f"),
        lambda: protocol.whole_map({"f": [1]}, "f"),
        lambda: protocol.whole_map({"f": {"cpu": "1"}}, "f"),
        lambda: protocol.unpack({"f": "*"}, "f"),
        lambda: protocol.unpack({"f": "é"}, "f"),
        lambda: protocol.unpack({"f": protocol.pack(b"12345")}, "f", 4),
    ],
)
def test_malformed_field_is_refused_by_name(read):
    with pytest.raises(ProtocolError, match="f ") as refused:
        read()
    assert refused.value.code == "INVALID"


def test_well_formed_fields_are_read():
    assert protocol.optional_text({}, "f") is None
    assert protocol.optional_text({"f": "x"}, "f") == "x"
    assert protocol.texts({}, "f") == ()
    assert protocol.text_map({"f": {"A": "b"}}, "f") == {"A": "b"}
    assert protocol.whole_map({"f": {"cpu": -1}}, "f") == {"cpu": -1}
    assert protocol.seconds({"f": 2}, "f") == 2.0
    assert protocol.whole({"f": 5}, "f", 1, 5) == 5


@given(st.binary())
def test_bytes_survive(data):
    assert protocol.unpack({"f": protocol.pack(data)}, "f") == data
