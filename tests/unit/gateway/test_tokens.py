"""Owner tokens without a gateway."""

import jwt
import pytest

from fabric.core.clock import ManualClock
from fabric.core.errors import OwnerNotLiveError, UnauthenticatedError
from fabric.core.ids import AgentId, OwnerId, Principal
from fabric.core.model import Caller, GatewayKeys, OwnerGrant, SandboxMode
from fabric.gateway.tokens import (
    AUDIENCE,
    MAX_REMEMBERED,
    SLACK_S,
    KeyRing,
    OwnerTokens,
    UnknownKeyError,
    key_id,
)

OLD, NEW = "o" * 48, "n" * 48
GRANT = OwnerGrant(
    OwnerId("own_a"), 3, Principal("p"), AgentId("a"), SandboxMode.READ_ONLY, 60.0, 1060.0
)


def _tokens(*keys: str, clock: ManualClock | None = None) -> OwnerTokens:
    return OwnerTokens(GatewayKeys(keys, "peer"), clock or ManualClock(1000.0))


def test_a_token_says_what_was_granted():
    tokens = _tokens(OLD)
    claim = tokens.verify(tokens.issue(GRANT))
    assert claim.caller == Caller(OwnerId("own_a"), 3)
    assert claim.principal == "p"
    assert claim is tokens.verify(tokens.issue(GRANT)), "the second time it is remembered"


def test_a_token_ends_with_its_lease_and_a_slack():
    clock = ManualClock(1000.0)
    tokens = _tokens(OLD, clock=clock)
    token = tokens.issue(GRANT)
    clock.advance(60.0 + SLACK_S)
    tokens.verify(token)
    clock.advance(2.0)
    for _ in range(2):
        with pytest.raises(OwnerNotLiveError, match="acquire the owner again"):
            tokens.verify(token)


def test_all_keys_verify_and_the_first_signs():
    token = _tokens(OLD).issue(GRANT)
    both = _tokens(NEW, OLD)
    assert both.verify(token).caller.epoch == 3
    assert jwt.get_unverified_header(both.issue(GRANT))["kid"] == key_id(NEW)
    with pytest.raises(UnknownKeyError):
        _tokens(NEW).verify(token)


def test_keys_that_are_gone_stop_counting_even_for_remembered_tokens():
    tokens = _tokens(OLD)
    token = tokens.issue(GRANT)
    tokens.verify(token)
    tokens.replace(GatewayKeys((NEW,), "peer"))
    with pytest.raises(UnknownKeyError):
        tokens.verify(token)
    with pytest.raises(UnauthenticatedError, match="no key"):
        tokens.replace(GatewayKeys((), "peer"))


def _forged(key: str = OLD, algorithm: str = "HS256", **changes: object) -> str:
    claims: dict[str, object] = {
        "aud": AUDIENCE, "sub": "own_a", "epoch": 1, "prn": "p", "agt": "a", "exp": 2000,
    }  # fmt: skip
    claims.update(changes)
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, key or None, algorithm=algorithm, headers={"kid": key_id(OLD)})


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b.c",
        "a" * 5000,
        _forged(NEW),
        _forged("", "none"),
        _forged(aud="pty-fabric/bearer"),
        _forged(sub=None),
        _forged(epoch="x"),
        _forged(exp=None),
        _forged(algorithm="HS512", key=OLD + OLD),
    ],
)
def test_a_forged_token_is_refused(token):
    with pytest.raises(UnauthenticatedError, match="not valid"):
        _tokens(OLD).verify(token)


def test_a_good_one_made_the_same_way_is_accepted():
    assert _tokens(OLD).verify(_forged()).caller.epoch == 1


def test_what_is_remembered_is_bounded():
    tokens = _tokens(OLD)
    for epoch in range(MAX_REMEMBERED + 5):
        claims = {
            "aud": AUDIENCE, "sub": "own_a", "epoch": epoch, "prn": "p", "agt": "a", "exp": 2000,
        }  # fmt: skip
        tokens.verify(jwt.encode(claims, OLD, algorithm="HS256", headers={"kid": key_id(OLD)}))
    assert len(tokens._remembered) == MAX_REMEMBERED


def test_a_key_ring_asks_again_only_so_often():
    ring = KeyRing(ManualClock(1000.0))
    unknown = _tokens(OLD).issue(GRANT)
    with pytest.raises(UnknownKeyError):
        ring.tokens.verify(unknown)
    assert ring.may_refresh()
    assert not ring.may_refresh()
    ring.replace(GatewayKeys((OLD,), "peer"))
    assert ring.peer_key == "peer"
    assert ring.tokens.verify(unknown).caller.epoch == 3
