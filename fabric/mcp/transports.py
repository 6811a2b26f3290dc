"""The two ways in: standard input and output, and streamable HTTP.

Over HTTP the credential is the caller's own, from its ``Authorization`` header; the server
lends its own to nobody. Without TLS it listens on loopback only, unless told otherwise for a
proxy in front of it that has TLS.
"""

import asyncio
import contextlib
import ipaddress
import json
import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.stdio import stdio_server

from fabric.core.errors import InvalidRequestError
from fabric.mcp.seats import Seats, Visitor
from fabric.mcp.server import build
from fabric.mcp.stdio import Wire

PATH = "/mcp"
AGENT_HEADER = b"fabric-agent"
SESSION_HEADER = b"mcp-session-id"
MAX_BODY_BYTES = 8_388_608
DRAIN_S = 2
_VISITOR = "fabric.visitor"


async def serve_stdio(seats: Seats, visitor: Visitor, **options: Any) -> None:
    """Serve the one client at the other end of standard input and output until it leaves."""
    server = build(seats, lambda _: visitor, **options)
    try:
        wire: Any = Wire()
        async with stdio_server(wire, wire) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await asyncio.shield(seats.close())


async def serve_http(
    seats: Seats,
    listen: str,
    ready: Callable[[str], None],
    *,
    needs_token: Callable[[], bool],
    insecure: bool,
    idle_s: float,
    **options: Any,
) -> None:
    """Serve HTTP on ``listen`` until cancelled. Raises: InvalidRequestError."""
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdigit():
        raise InvalidRequestError(f"--http {listen!r}: must read HOST:PORT")
    if not insecure and not _is_loopback(host):
        raise InvalidRequestError(
            f"refusing to listen on {host} in clear; put a proxy with TLS in front of loopback, "
            "or give --insecure on a network you trust"
        )
    server = build(seats, lambda context: context.request.scope[_VISITOR], **options)
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        host=host,
        max_request_body_size=MAX_BODY_BYTES,
        session_idle_timeout=idle_s,
    )
    bound = _bind(host, int(port))
    config = uvicorn.Config(
        Front(app, seats, needs_token),
        log_config=None,
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=DRAIN_S,
    )
    listener: Any = uvicorn.Server(config)
    listener.capture_signals = contextlib.nullcontext  # signals are the command's
    sweeping = asyncio.create_task(seats.sweep(), name="mcp-sweep")
    serving = asyncio.create_task(listener.serve(sockets=[bound]), name="mcp-http")
    try:
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{bound.getsockname()[1]}{PATH}")
        await asyncio.shield(serving)
    finally:
        listener.should_exit = True
        sweeping.cancel()
        await asyncio.wait({serving, sweeping})
        await asyncio.shield(seats.close())


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise InvalidRequestError(f"cannot listen on {host}:{port}: {error.strerror}") from error


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


class Front:
    """ASGI in front of the protocol: who asks, and which seat that keeps in use."""

    def __init__(self, app: Any, seats: Seats, needs_token: Callable[[], bool]) -> None:
        self._app = app
        self._seats = seats
        self._needs_token = needs_token

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        visitor = visitor_of(scope["headers"])
        if visitor.token is None and self._needs_token():
            await _refuse(send)
            return
        scope[_VISITOR] = visitor
        # The protocol's sessions answer only to the credential that made them.
        access = AccessToken(token="", client_id=visitor.key.rpartition(" ")[2], scopes=[])
        scope["user"] = AuthenticatedUser(access)
        with self._seats.using(visitor):
            await self._app(scope, receive, send)
        if scope["method"] == "DELETE" and visitor.session and visitor.agent is None:
            await self._seats.give_up(visitor)


def visitor_of(headers: Any) -> Visitor:
    """Tell the visitor from the headers of a request."""
    found = {bytes(name).lower(): bytes(value).decode("latin-1") for name, value in headers}
    kind, _, token = found.get(b"authorization", "").partition(" ")
    return Visitor(
        token=token.strip() or None if kind.lower() == "bearer" else None,
        agent=found.get(AGENT_HEADER) or None,
        session=found.get(SESSION_HEADER) or None,
    )


async def _refuse(send: Any) -> None:
    message = "this fabric wants a token: send the header Authorization: Bearer <token>"
    error = {"code": -32001, "message": message, "data": {"reason": "UNAUTHENTICATED"}}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})
