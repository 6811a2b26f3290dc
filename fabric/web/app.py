"""The web server of one gateway: the page over HTTP, one WebSocket a view.

Whatever is wrong with a request for a WebSocket is refused before it is upgraded: another
path, a query, an origin that is not on the list, another protocol. The library's own log
is kept off, since at its lowest level it prints frames, and frames hold tickets and keys.
"""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from fabric.core.settings import GatewaySettings, SettingsError
from fabric.core.settings_web import WebSettings
from fabric.gateway.auth import is_loopback
from fabric.web.bridge import Bridge
from fabric.web.desk import Desk
from fabric.web.frames import PROTOCOL, Close, max_frame_bytes
from fabric.web.outbox import Ending, SocketClosed
from fabric.web.pages import Answer, Pages
from fabric.web.sources import Sources

SOCKET_PATH = "/v1/socket"
CLOSE_S = 2.0
WRITE_BUFFER_BYTES = 65_536
MAX_WAITING_FRAMES = 16
MAX_CLOSE_REASON = 123
_log = logging.getLogger(__name__)
_silent = logging.getLogger("fabric.web.library")
_silent.setLevel(logging.CRITICAL)


class WebServer:
    """Serve browsers on one address. Make and use it inside one running event loop."""

    def __init__(
        self, gateway: GatewaySettings, desk: Desk, sources: Sources, pages: Pages | None = None
    ) -> None:
        self._settings = desk.settings
        self._gateway = gateway
        self._desk = desk
        self._sources = sources
        self._pages = pages
        self._server: Server | None = None
        self._origins: frozenset[str] = frozenset()

    async def start(self) -> str:
        """Listen and return the URL; empty when the settings say off. Raises: SettingsError."""
        settings = self._settings
        if not settings.listen:
            return ""
        check_listener(settings, self._gateway)
        tls = _tls(self._gateway)
        if self._pages is None:
            self._pages = await asyncio.to_thread(Pages, tls=tls is not None)
        host, _, port = settings.listen.rpartition(":")
        try:
            self._server = await serve(
                self._serve,
                host.strip("[]"),
                int(port),
                ssl=tls,
                process_request=self._look_at,
                subprotocols=[Subprotocol(PROTOCOL)],
                compression=None,
                server_header=None,
                open_timeout=settings.hello_s,
                close_timeout=CLOSE_S,
                ping_interval=settings.heartbeat_s,
                ping_timeout=2 * settings.heartbeat_s,
                max_size=max_frame_bytes(self._desk.max_input_bytes),
                max_queue=MAX_WAITING_FRAMES,
                write_limit=WRITE_BUFFER_BYTES,
                logger=_silent,
                reuse_port=False,
            )
        except OSError as error:
            raise SettingsError(
                f"cannot listen on {settings.listen} (web.listen): {error.strerror}"
            ) from error
        bound = int(self._server.sockets[0].getsockname()[1])
        scheme = "http" if tls is None else "https"
        own = f"{scheme}://{host}:{bound}"
        url = (settings.url or own).rstrip("/")
        allowed = {own, url, *(origin.rstrip("/") for origin in settings.origins)}
        if is_loopback(settings.listen):
            names = ("localhost", "127.0.0.1", "[::1]")
            allowed |= {f"{scheme}://{name}:{bound}" for name in names}
        self._origins = frozenset(_origin(item) for item in allowed)
        self._desk.url = url
        _log.info("web server listens", extra={"address": own, "built": self._pages.is_built})
        return url

    async def stop(self) -> None:
        """Close every view with 1001 and end. May be repeated."""
        server, self._server = self._server, None
        self._desk.url = ""
        if server is not None:
            server.close(code=Close.GOING_AWAY)
            await server.wait_closed()

    # -- before the upgrade ---------------------------------------------------------------

    def _look_at(self, connection: ServerConnection, request: Request) -> Response | None:
        pages = self._pages
        if pages is None:
            return None
        upgrades = request.headers.get_all("Upgrade")
        if not upgrades and request.path != SOCKET_PATH:
            return _response(pages.answer(request.path))
        if request.path != SOCKET_PATH:
            return _response(pages.refusal(HTTPStatus.NOT_FOUND, "the socket has another path"))
        if not upgrades:
            text = "this address speaks WebSocket"
            return _response(pages.refusal(HTTPStatus.UPGRADE_REQUIRED, text))
        origins = request.headers.get_all("Origin")
        if len(origins) != 1 or origins[0] not in self._origins:
            text = "pages of this origin may not connect; see the settings web.url and web.origins"
            return _response(pages.refusal(HTTPStatus.FORBIDDEN, text))
        offered = ",".join(request.headers.get_all("Sec-WebSocket-Protocol"))
        if [name.strip() for name in offered.split(",")] != [PROTOCOL]:
            text = f"the one protocol spoken here is {PROTOCOL}"
            return _response(pages.refusal(HTTPStatus.BAD_REQUEST, text))
        connected = 0 if self._server is None else len(self._server.connections)
        if connected >= self._settings.max_views:  # those that have not said hello yet, too
            text = "too many pages are connected to this gateway"
            return _response(pages.refusal(HTTPStatus.SERVICE_UNAVAILABLE, text))
        return None

    async def _serve(self, connection: ServerConnection) -> None:
        await Bridge(_Socket(connection), self._desk, self._sources).run()


class _Socket:
    """A connection of the library as the bridge knows it."""

    def __init__(self, connection: ServerConnection) -> None:
        self._connection = connection

    async def recv(self) -> str:
        text = await _while_open(self._connection.recv)
        if not isinstance(text, str):
            raise Ending(Close.VIOLATION, "frames are text")
        return text

    async def send(self, text: str) -> None:
        await _while_open(lambda: self._connection.send(text))

    async def close(self, code: int, why: str) -> None:
        reason = why.encode()[:MAX_CLOSE_REASON].decode(errors="ignore")
        await self._connection.close(code, reason)


async def _while_open(work: Callable[[], Awaitable[str | bytes | None]]) -> str | bytes | None:
    try:
        return await work()
    except ConnectionClosed:
        raise SocketClosed from None


def check_listener(settings: WebSettings, gateway: GatewaySettings) -> None:
    """Refuse an open door. Raises: SettingsError."""
    open_door = not (is_loopback(settings.listen) or gateway.tls_cert_file or gateway.insecure)
    if settings.listen and open_door:
        raise SettingsError(
            f"refusing to serve browsers on {settings.listen} without TLS (gateway.tls_cert_file"
            " and tls_key_file); listen on 127.0.0.1, add them, or set gateway.insecure"
        )


def _tls(gateway: GatewaySettings) -> ssl.SSLContext | None:
    if not gateway.tls_cert_file:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(gateway.tls_cert_file, gateway.tls_key_file)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"cannot use the TLS files for browsers: {error}") from error
    return context


def _origin(url: str) -> str:
    """Write a URL as a browser names its origin: without the port that goes without saying."""
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, usual) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def _response(answer: Answer) -> Response:
    status = answer.status
    return Response(status.value, status.phrase, Headers(answer.headers), answer.body)
