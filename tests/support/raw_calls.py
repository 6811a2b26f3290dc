"""Calls as any other language would make them: a channel, a message, headers."""

from typing import Any

import grpc.aio

from fabric.api.v1 import owner_service_pb2, terminal_service_pb2
from fabric.core.ids import new_request_id
from fabric.wire.metadata import caller_headers
from fabric.wire.methods import METHODS
from fabric.wire.status import error_from


class RawCaller:
    """One caller without the client: nothing is retried, nothing is added."""

    def __init__(self, address: str, bearer: str | None = None) -> None:
        self.channel = grpc.aio.insecure_channel(address)
        self.bearer = bearer
        self.owner_token: str | None = None

    async def __aenter__(self) -> "RawCaller":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.channel.close()
        del self.channel  # its sockets close with it

    def start(
        self,
        name: str,
        message: Any,
        *,
        timeout: float | None = 10,
        headers: tuple[tuple[str, str], ...] | None = None,
    ) -> Any:
        """Begin a call and return it; it can be cancelled."""
        method = METHODS[name]
        if headers is None:
            headers = caller_headers(self.bearer, self.owner_token)
        raw = message if isinstance(message, bytes) else message.SerializeToString()
        make = self.channel.unary_stream if method.server_streaming else self.channel.unary_unary
        stub = make(method.path, response_deserializer=method.response.FromString)
        return stub(raw, timeout=timeout, metadata=headers)

    async def call(self, name: str, message: Any, **options: Any) -> Any:
        """Make a call; errors come as the fabric's own."""
        try:
            return await self.start(name, message, **options)
        except grpc.aio.AioRpcError as failure:
            trailing = dict(failure.trailing_metadata() or ())
            error = error_from(failure.code(), failure.details(), trailing)
            error.code = failure.code()  # type: ignore[attr-defined]
            raise error from None

    async def acquire(self, agent: str = "raw") -> None:
        request = owner_service_pb2.AcquireRequest(request_id=new_request_id(), agent=agent)
        self.owner_token = (await self.call("OwnerService.Acquire", request)).owner_token

    async def open(self) -> str:
        request = terminal_service_pb2.OpenRequest(request_id=new_request_id(), type="shell")
        return (await self.call("TerminalService.Open", request)).session.session_id
