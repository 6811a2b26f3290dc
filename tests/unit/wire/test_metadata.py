"""The headers of a call."""

import pytest

from fabric.core.errors import UnauthenticatedError
from fabric.core.ids import OwnerId, RequestId
from fabric.core.model import Caller
from fabric.wire import metadata


def test_headers_name_only_what_there_is():
    assert metadata.caller_headers(None, None) == ()
    assert metadata.caller_headers("t", "o", RequestId("r")) == (
        ("authorization", "Bearer t"),
        ("fabric-owner-token", "o"),
        ("fabric-request-id", "r"),
    )
    assert dict(metadata.peer_headers("k", Caller(OwnerId("own_a"), 3))) == {
        "fabric-peer-key": "k",
        "fabric-peer-owner": "own_a",
        "fabric-peer-epoch": "3",
    }


def test_binary_headers_are_left_out():
    assert metadata.text_headers([("a", "1"), ("b-bin", b"2")]) == {"a": "1"}
    assert metadata.text_headers(None) == {}


@pytest.mark.parametrize("value", ["", "Bearer", "Bearer ", "Basic abc", "abc"])
def test_another_form_of_credential_is_refused(value):
    with pytest.raises(UnauthenticatedError, match="Bearer <token>"):
        metadata.bearer_of({"authorization": value})


def test_a_bearer_token_is_found():
    assert metadata.bearer_of({"authorization": "bearer abc"}) == "abc"
    assert metadata.bearer_of({}) is None
