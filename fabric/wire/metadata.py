"""The headers of a call, in one place for both sides.

``authorization`` names the principal, ``fabric-owner-token`` the owner. Between gateways
``fabric-peer-key`` replaces both: a gateway that holds the fabric's key is trusted to
state the owner and the epoch it has verified. The deadline travels as gRPC's own
``grpc-timeout``.
"""

from collections.abc import Iterable, Mapping

from fabric.core import tracing
from fabric.core.errors import UnauthenticatedError
from fabric.core.ids import RequestId
from fabric.core.model import Caller

AUTHORIZATION = "authorization"
BEARER = "Bearer "
OWNER_TOKEN = "fabric-owner-token"  # noqa: S105  (the name of a header)
REQUEST_ID = "fabric-request-id"
PEER_KEY = "fabric-peer-key"
PEER_OWNER = "fabric-peer-owner"
PEER_EPOCH = "fabric-peer-epoch"

Headers = tuple[tuple[str, str], ...]


def caller_headers(
    bearer: str | None, owner_token: str | None, request_id: RequestId | None = None
) -> Headers:
    """Build the headers of a client's call."""
    rows: list[tuple[str, str]] = []
    if bearer:
        rows.append((AUTHORIZATION, BEARER + bearer))
    if owner_token:
        rows.append((OWNER_TOKEN, owner_token))
    if request_id:
        rows.append((REQUEST_ID, request_id))
    return tuple(rows)


def peer_headers(peer_key: str, caller: Caller) -> Headers:
    """Build the headers of a gateway's call to another gateway."""
    rows = (
        (PEER_KEY, peer_key),
        (PEER_OWNER, caller.owner_id),
        (PEER_EPOCH, str(caller.epoch)),
    )
    parent = tracing.current.get()
    return rows if parent is None else (*rows, (tracing.HEADER, parent))


def text_headers(metadata: Iterable[tuple[str, str | bytes]] | None) -> Mapping[str, str]:
    """Index a call's headers; binary ones are none of ours."""
    return {key: value for key, value in metadata or () if isinstance(value, str)}


def bearer_of(headers: Mapping[str, str]) -> str | None:
    """Return the bearer token. Raises: UnauthenticatedError when the header has another form."""
    value = headers.get(AUTHORIZATION)
    if value is None:
        return None
    scheme, _, token = value.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise UnauthenticatedError("the authorization header must read: Bearer <token>")
    return token.strip()
