"""Owner tokens: what a gateway gives out for an owner and every gateway accepts.

A token is a JWT (HS256) over owner id, epoch, principal and agent, signed with a key the
registry hands to every gateway when it joins. So a gateway verifies it without asking
anybody. It says that the owner was granted, not that it still lives: a later acquisition
raises the epoch, and the registry and the sessions refuse the older one. ``exp`` is the
end of the lease and a slack, so that a renewal on its way is not cut off.

The first key signs, all keys verify, and ``kid`` says which one; a key this gateway has
not seen makes it ask the registry again, at most every ``REFRESH_EVERY_S``.

What was verified is remembered by the token itself. A dictionary compares strings only
when their keyed 64-bit hashes agree, so a lookup tells nothing about a stored token.
"""

import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import Any

import jwt

from fabric.core.clock import Clock
from fabric.core.errors import OwnerNotLiveError, UnauthenticatedError
from fabric.core.ids import OwnerId, Principal
from fabric.core.model import Caller, GatewayKeys, OwnerGrant

AUDIENCE = "pty-fabric/owner"
SLACK_S = 30.0
REFRESH_EVERY_S = 5.0
MAX_REMEMBERED = 4096
_REQUIRED = ["sub", "epoch", "prn", "agt", "exp", "aud"]


class UnknownKeyError(Exception):
    """The token names a key this gateway does not have; the registry may have newer ones."""


@dataclass(frozen=True, slots=True)
class OwnerClaim:
    """What a verified token says; ``expires_at`` is wall time in seconds."""

    caller: Caller
    principal: Principal
    expires_at: float


def key_id(key: str) -> str:
    """Name a key without revealing it."""
    return hashlib.sha256(b"kid:" + key.encode()).hexdigest()[:12]


class OwnerTokens:
    """Issue and verify owner tokens."""

    def __init__(self, keys: GatewayKeys, clock: Clock) -> None:
        self._clock = clock
        self._remembered: dict[str, OwnerClaim] = {}
        self._keys: dict[str, str] = {}
        self._signing = ""
        self.replace(keys)

    def replace(self, keys: GatewayKeys) -> None:
        """Take the keys the registry gives now; tokens of keys that are gone stop counting."""
        if not keys.token_keys:
            raise UnauthenticatedError("the registry gave no key for owner tokens")
        self._keys = {key_id(key): key for key in keys.token_keys}
        self._signing = keys.token_keys[0]
        self._remembered.clear()

    def issue(self, grant: OwnerGrant) -> str:
        """Make the token of a grant."""
        claims: dict[str, Any] = {
            "aud": AUDIENCE,
            "sub": grant.owner_id,
            "epoch": grant.epoch,
            "prn": grant.principal,
            "agt": grant.agent,
            "exp": int(grant.expires_at + SLACK_S) + 1,
        }
        headers = {"kid": key_id(self._signing)}
        return jwt.encode(claims, self._signing, algorithm="HS256", headers=headers)

    def verify(self, token: str) -> OwnerClaim:
        """Check a token. Raises: UnauthenticatedError, UnknownKeyError, OwnerNotLiveError."""
        claim = self._remembered.get(token)
        if claim is None:
            claim = self._decode(token)
            if len(self._remembered) >= MAX_REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[token] = claim
        if self._clock.wall() >= claim.expires_at:
            self._remembered.pop(token, None)
            raise OwnerNotLiveError(
                "the owner's lease has ended; acquire the owner again",
                owner_id=claim.caller.owner_id,
            )
        return claim

    def _decode(self, token: str) -> OwnerClaim:
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            key = self._keys.get(kid) if isinstance(kid, str) else None
            if key is None:
                raise UnknownKeyError(kid)
            claims = jwt.decode(
                token,
                key,
                algorithms=["HS256"],
                audience=AUDIENCE,
                options={"require": _REQUIRED, "verify_exp": False},
            )
            return OwnerClaim(
                Caller(OwnerId(str(claims["sub"])), int(claims["epoch"])),
                Principal(str(claims["prn"])),
                float(claims["exp"]),
            )
        except (jwt.InvalidTokenError, ValueError, TypeError) as error:
            raise UnauthenticatedError("the owner token is not valid") from error


class KeyRing:
    """The keys of the fabric at this gateway, asked for again when one is missing.

    Until the registry has given them it holds keys that nobody knows.
    """

    def __init__(self, clock: Clock) -> None:
        keys = GatewayKeys((secrets.token_hex(32),), secrets.token_hex(32))
        self.tokens = OwnerTokens(keys, clock)
        self.peer_key = keys.peer_key
        self._refreshed_at = -REFRESH_EVERY_S

    def may_refresh(self) -> bool:
        """Tell whether the registry may be asked again now, and count it as asked."""
        now = time.monotonic()
        if now - self._refreshed_at < REFRESH_EVERY_S:
            return False
        self._refreshed_at = now
        return True

    def replace(self, keys: GatewayKeys) -> None:
        """Take the keys the registry gives now."""
        self.tokens.replace(keys)
        self.peer_key = keys.peer_key
