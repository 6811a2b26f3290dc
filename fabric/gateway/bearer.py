"""Bearer tokens: who holds a credential.

Two kinds, side by side. A *token file* lists principals with a token or, better, its
SHA-256, one a line::

    # principal   token, or sha256:<hex>, or - for a certificate's subject    maximum mode
    ci            sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  read-only
    alice         kX2v9...                                        danger-full-access

*Signed tokens* are JWTs (HS256) made with a key file, one ``name secret`` a line: the
first key signs, all verify, so a key is rotated by putting a new one on top and dropping
the old one when its last token has expired. A revocation file lists token ids, or
``principal:<name>`` for all of somebody's, one a line.

Files are looked at again when they change, at most once a second; a file that has become
unreadable or wrong keeps what was read last and is reported in the log.
"""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import jwt

from fabric.core.clock import Clock
from fabric.core.errors import FabricError, UnauthenticatedError
from fabric.core.ids import Principal, parse_label
from fabric.core.model import SandboxMode
from fabric.core.settings import SettingsError

AUDIENCE = "pty-fabric/bearer"
HASH_PREFIX = "sha256:"
MIN_KEY_BYTES = 32
LOOK_EVERY_S = 1.0
MAX_REMEMBERED = 4096
T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who calls, the most its sessions may do (None: no bound), and until when (wall time)."""

    principal: Principal
    max_mode: SandboxMode | None = None
    expires_at: float | None = None
    token_id: str | None = None


def token_hash(token: str) -> str:
    """Return the form of a token that a token file may hold instead of it."""
    return HASH_PREFIX + hashlib.sha256(token.encode()).hexdigest()


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        (number, line.split())
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]


class WatchedFile(Generic[T]):
    """A file parsed again when it has changed."""

    def __init__(self, path: str, parse: Callable[[Path], T], clock: Clock) -> None:
        self._path = Path(path)
        self._parse = parse
        self._clock = clock
        self.version = 0
        try:
            self._stamp = self._look()
            self._value = parse(self._path)
        except OSError as error:
            raise SettingsError(f"cannot read {self._path}: {error.strerror}") from error
        self._looked_at = clock.monotonic()

    def _look(self) -> tuple[int, int, int]:
        facts = self._path.stat()
        return facts.st_mtime_ns, facts.st_size, facts.st_ino

    def get(self) -> T:
        """Return the newest content that could be read."""
        now = self._clock.monotonic()
        if now - self._looked_at >= LOOK_EVERY_S:
            self._looked_at = now
            try:
                stamp = self._look()
                if stamp != self._stamp:
                    self._stamp = stamp
                    self._value = self._parse(self._path)
                    self.version += 1
            except (OSError, FabricError) as error:
                _log.warning("credential file not read", extra={"cause": str(error)})
        return self._value


@dataclass(frozen=True, slots=True)
class TokenTable:
    """The content of a token file: identities by hash, and bounds by principal."""

    by_hash: dict[str, tuple[str, Identity]]
    by_principal: dict[str, Identity]


def parse_token_file(path: Path) -> TokenTable:
    """Read a token file. Raises: SettingsError naming every wrong line."""
    faults: list[str] = []
    table = TokenTable({}, {})
    for number, words in _rows(path):
        try:
            if len(words) not in (2, 3):
                raise SettingsError("expected: principal, token or sha256:<hex>, maximum mode")
            identity = Identity(
                Principal(parse_label(words[0], "principal")),
                SandboxMode(words[2]) if len(words) > 2 else None,
            )
            table.by_principal[words[0]] = identity
            if words[1] == "-":
                continue
            stated = words[1].lower()
            digest = stated if stated.startswith(HASH_PREFIX) else token_hash(words[1])
            if len(digest) != len(HASH_PREFIX) + 64:
                raise SettingsError("sha256: is followed by 64 hexadecimal digits")
            table.by_hash[digest] = (digest, identity)
        except (FabricError, ValueError) as error:
            faults.append(f"line {number}: {error}")
    if not table.by_principal:
        faults.append("it names no principal")
    if faults:
        raise SettingsError(f"token file {path}: " + "; ".join(faults))
    return table


def parse_key_file(path: Path) -> dict[str, str]:
    """Read a key file: names and secrets, the signing key first. Raises: SettingsError."""
    keys: dict[str, str] = {}
    for number, words in _rows(path):
        if len(words) != 2 or len(words[1].encode()) < MIN_KEY_BYTES:
            raise SettingsError(
                f"key file {path}: line {number}: expected a name and a secret of at least "
                f"{MIN_KEY_BYTES} bytes"
            )
        keys[words[0]] = words[1]
    if not keys:
        raise SettingsError(f"key file {path} has no key")
    return keys


def parse_revoked_file(path: Path) -> frozenset[str]:
    """Read a revocation file: token ids and ``principal:<name>`` entries."""
    return frozenset(words[0] for _, words in _rows(path))


def new_signing_key() -> str:
    """Make a line for a key file."""
    return f"k{secrets.token_hex(3)} {secrets.token_urlsafe(48)}"


def sign_token(
    key_file: Path, principal: Principal, max_mode: SandboxMode | None, ttl_s: float, now: float
) -> tuple[str, str]:
    """Make a signed bearer token and return it with its id. Raises: SettingsError."""
    name, secret = next(iter(parse_key_file(key_file).items()))
    token_id = secrets.token_hex(8)
    claims: dict[str, object] = {
        "aud": AUDIENCE,
        "sub": parse_label(principal, "principal"),
        "jti": token_id,
        "iat": int(now),
        "exp": int(now + ttl_s),
    }
    if max_mode is not None:
        claims["mode"] = max_mode.value
    return jwt.encode(claims, secret, algorithm="HS256", headers={"kid": name}), token_id


def token_id_of(token: str) -> str:
    """Return the id of a signed token without checking it. Raises: UnauthenticatedError."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except jwt.InvalidTokenError as error:
        raise UnauthenticatedError("this is not a signed token") from error
    return parse_label(str(claims.get("jti", "")), "token id")


class SignedTokens:
    """Verify signed bearer tokens; what was verified is remembered until a file changes."""

    def __init__(self, key_file: str, revoked_file: str, clock: Clock) -> None:
        self._clock = clock
        self._keys = WatchedFile(key_file, parse_key_file, clock)
        self._revoked = (
            WatchedFile(revoked_file, parse_revoked_file, clock) if revoked_file else None
        )
        self._remembered: dict[str, Identity] = {}
        self._versions = (0, 0)

    def verify(self, token: str) -> Identity | None:
        """Return who holds a token, None when it is not a signed one.

        Raises: UnauthenticatedError when it is one that does not count.
        """
        if token.count(".") != 2:
            return None
        keys = self._keys.get()
        revoked = self._revoked.get() if self._revoked else frozenset()
        versions = (self._keys.version, self._revoked.version if self._revoked else 0)
        if versions != self._versions:
            self._versions = versions
            self._remembered.clear()
        identity = self._remembered.get(token)
        if identity is None:
            identity = self._decode(token, keys)
            if len(self._remembered) >= MAX_REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[token] = identity
        if identity.token_id in revoked or f"principal:{identity.principal}" in revoked:
            raise UnauthenticatedError("the bearer token was revoked")
        if identity.expires_at is not None and self._clock.wall() >= identity.expires_at:
            self._remembered.pop(token, None)
            raise UnauthenticatedError("the bearer token has expired")
        return identity

    def _decode(self, token: str, keys: dict[str, str]) -> Identity:
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            key = keys.get(kid) if isinstance(kid, str) else None
            if key is None:
                raise UnauthenticatedError("the bearer token was signed with an unknown key")
            claims = jwt.decode(
                token,
                key,
                algorithms=["HS256"],
                audience=AUDIENCE,
                options={
                    "require": ["sub", "jti", "exp", "aud"],
                    "verify_exp": False,
                    "verify_iat": False,
                },
            )
            mode = claims.get("mode")
            return Identity(
                Principal(parse_label(str(claims["sub"]), "principal")),
                None if mode is None else SandboxMode(mode),
                float(claims["exp"]),
                str(claims["jti"]),
            )
        except (jwt.InvalidTokenError, ValueError, TypeError) as error:
            raise UnauthenticatedError("the bearer token is not valid") from error


class ListedTokens:
    """Verify the tokens of a token file."""

    def __init__(self, token_file: str, clock: Clock) -> None:
        self._table = WatchedFile(token_file, parse_token_file, clock)

    def verify(self, token: str) -> Identity | None:
        """Return who holds a token, None when the file does not list it."""
        # The table is keyed by SHA-256: what a lookup's time tells about a hash helps nobody
        # to find a token. The comparison itself is in constant time.
        digest = token_hash(token)
        entry = self._table.get().by_hash.get(digest)
        if entry is None or not hmac.compare_digest(entry[0], digest):
            return None
        return entry[1]

    def of_principal(self, principal: str) -> Identity | None:
        """Return what the file says of a principal known by other means."""
        return self._table.get().by_principal.get(principal)
