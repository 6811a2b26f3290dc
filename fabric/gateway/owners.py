"""OwnerService: convert, call, sign, convert."""

from collections.abc import AsyncIterator, Awaitable, Callable

from fabric.api.v1 import owner_service_pb2 as pb
from fabric.core.errors import PermissionDeniedError
from fabric.core.ids import parse_request_id
from fabric.core.model import OwnerGrant, SandboxMode
from fabric.gateway.bearer import Identity
from fabric.gateway.calls import Access, Call, Kind, Route, Routes
from fabric.gateway.limits import MODE_RANK, Limits
from fabric.gateway.ports import RegistryPort
from fabric.gateway.tokens import KeyRing
from fabric.wire import records


def allowed_mode(
    identity: Identity, wanted: SandboxMode | None, default: SandboxMode
) -> SandboxMode | None:
    """Return the mode to ask for: what is wanted, or a default the principal may have.

    Raises: PermissionDeniedError.
    """
    bound = identity.max_mode
    if bound is None:
        return wanted
    if wanted is None:
        return None if MODE_RANK[default] <= MODE_RANK[bound] else bound
    if MODE_RANK[wanted] > MODE_RANK[bound]:
        raise PermissionDeniedError(
            f"principal {identity.principal} may have at most sandbox mode {bound}",
            max_mode=bound,
        )
    return wanted


class OwnerService:
    """Give out owners and keep them."""

    name = "OwnerService"

    def __init__(self, registry: RegistryPort, keys: KeyRing, limits: Limits) -> None:
        self._registry = registry
        self._keys = keys
        self._limits = limits

    def routes(self) -> Routes:
        """Return the handlers by the names of their RPCs."""
        return {
            "Acquire": Route(self.acquire, Access.PRINCIPAL, Kind.WORK),
            "Renew": Route(self.renew, Access.OWNER, Kind.QUICK),
            "KeepAlive": Route(self.keep_alive, Access.OWNER, Kind.WAIT),
            "Release": Route(self.release, Access.OWNER, Kind.WORK),
            "SetMode": Route(self.set_mode, Access.OWNER, Kind.QUICK),
        }

    async def acquire(self, call: Call, message: pb.AcquireRequest) -> pb.AcquireResponse:
        """Make or take over an owner."""
        request = records.acquire_of(message)
        grant = await self._registry.acquire(
            call.identity.principal,
            request.agent,
            allowed_mode(call.identity, request.mode, self._limits.default_mode),
            request.lease_s,
            request.request_id,
        )
        allowed_mode(call.identity, grant.mode, grant.mode)
        return pb.AcquireResponse(grant=records.grant_message(grant), owner_token=self._sign(grant))

    async def renew(self, call: Call, message: pb.RenewRequest) -> pb.RenewResponse:
        """Extend the lease."""
        grant = await self._registry.renew(call.caller, records.lease_of(message))
        return pb.RenewResponse(grant=records.grant_message(grant), owner_token=self._sign(grant))

    async def keep_alive(
        self,
        call: Call,
        messages: AsyncIterator[pb.KeepAliveRequest],
        write: Callable[[pb.KeepAliveResponse], Awaitable[None]],
    ) -> None:
        """Extend the lease with every message."""
        async for message in messages:
            grant = await self._registry.renew(call.caller, records.lease_of(message))
            response = pb.KeepAliveResponse(
                grant=records.grant_message(grant), owner_token=self._sign(grant)
            )
            await write(response)

    async def release(self, call: Call, message: pb.ReleaseRequest) -> pb.ReleaseResponse:
        """Dispose of the owner."""
        request_id = parse_request_id(message.request_id)
        return records.release_message(await self._registry.release(call.caller, request_id))

    async def set_mode(self, call: Call, message: pb.SetModeRequest) -> pb.SetModeResponse:
        """Change the owner's mode."""
        mode, request_id = records.mode_of(message)
        allowed_mode(call.identity, mode, mode)
        grant = await self._registry.set_mode(call.caller, mode, request_id)
        return pb.SetModeResponse(grant=records.grant_message(grant))

    def _sign(self, grant: OwnerGrant) -> str:
        return self._keys.tokens.issue(grant)
