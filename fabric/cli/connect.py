"""From a command to the gateway: its address, the credential, and this agent's owner.

An owner outlives the command. Its token is cached in the state folder, one file for each
agent and gateway, and renewed by every call with a long lease, so that sessions stay with
their agent from one command to the next. Acquiring anew raises the owner's epoch and
fences the older token, so it happens under a lock: two commands started at once agree.
"""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from fabric.cli.context import Context
from fabric.client.client import FabricClient
from fabric.client.link import Tls
from fabric.core.errors import (
    GatewayUnavailableError,
    InvalidRequestError,
    OwnerNotLiveError,
    UnauthenticatedError,
)
from fabric.core.ids import AgentId
from fabric.core.model import SandboxMode

LEASE_S = 8 * 3600.0


def gateway_of(context: Context) -> str:
    """Say which gateway to call: flag, FABRIC_GATEWAY, else the local fabric's.

    Raises: GatewayUnavailableError.
    """
    named = getattr(context.arguments, "gateway", None) or context.environ.get("FABRIC_GATEWAY")
    if named:
        return str(named)
    state = context.state
    record = state.record() if state.folder.is_dir() and state.is_up() else None
    if record is None:
        raise GatewayUnavailableError(f"no fabric of {state.folder} is up, and none is named")
    if not record.gateway:
        raise GatewayUnavailableError(
            f"the fabric of {state.folder} is still starting", hint="fabric status; try again"
        )
    return record.gateway


def token_of(context: Context, gateway: str) -> str | None:
    """Return the bearer token for a gateway; the local one's own only for the local one.

    Raises: InvalidRequestError.
    """
    if context.environ.get("FABRIC_TOKEN"):
        return context.environ["FABRIC_TOKEN"]
    named = context.environ.get("FABRIC_TOKEN_FILE")
    state = context.state
    if named is None:
        record = state.record() if state.folder.is_dir() else None
        if record is None or record.gateway != gateway or not state.token_file.exists():
            return None
        named = str(state.token_file)
    try:
        return Path(named).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"cannot read the token file {named}: {error}") from error


def tls_of(context: Context) -> Tls | None:
    """Return how to trust the gateway: FABRIC_CA_FILE (``system`` for the system's roots).

    FABRIC_CERT_FILE and FABRIC_KEY_FILE say who to be; without any of them there is no TLS.
    """
    names = ("FABRIC_CA_FILE", "FABRIC_CERT_FILE", "FABRIC_KEY_FILE")
    ca, cert, key = (context.environ.get(name) or None for name in names)
    if ca is None and cert is None:
        return None
    return Tls(None if ca == "system" else ca, cert, key)


@contextlib.asynccontextmanager
async def connected(
    context: Context, mode: SandboxMode | None = None
) -> AsyncIterator[FabricClient]:
    """Connect as this agent's owner; ``mode`` is set if it differs.

    Raises: GatewayUnavailableError, UnauthenticatedError, SandboxModeLockedError.
    """
    agent, gateway = context.agent, gateway_of(context)
    token, tls = token_of(context, gateway), tls_of(context)
    state = context.state.prepare()
    cached = state.owner_file(agent, gateway)
    with state.holding(cached.with_suffix(".lock"), wait=True):
        known = state.read_owner(cached).get("owner_token")
        try:
            client = await _start(gateway, token, tls, agent, None, known)
        except (OwnerNotLiveError, UnauthenticatedError):
            if known is None:
                raise
            client = await _start(gateway, token, tls, agent, mode, None)
        state.write_owner(cached, {"owner_token": client.owner_token})
    try:
        if mode is not None and client.owner.mode != mode:
            await client.set_mode(mode)
        yield client
    finally:
        await client.stop()


async def _start(
    gateway: str,
    token: str | None,
    tls: Tls | None,
    agent: AgentId,
    mode: SandboxMode | None,
    owner_token: str | None,
) -> FabricClient:
    for lease_s in (LEASE_S, None):
        client = FabricClient.connect(
            gateway,
            token=token,
            tls=tls,
            agent=agent,
            mode=mode,
            lease_s=lease_s,
            owner_token=owner_token,
            keep=True,
        )
        try:
            await client.start()
            break
        except InvalidRequestError as error:
            # A fabric with shorter leases than ours: take what it gives by itself.
            if lease_s is None or error.metadata.get("field") != "lease_s":
                raise
    return client
