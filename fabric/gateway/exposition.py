"""``GET /metrics`` over HTTP/1.1, and nothing else.

Not through gRPC, because Prometheus does not speak it; not through a web framework, because
one answer to one request needs none. A request is read to its empty line, within bounds of
size and time; every answer closes the connection.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from fabric.core.errors import SettingsError

MAX_REQUEST_BYTES = 8192
REQUEST_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 10.0
MAX_CONNECTIONS = 16
TEXT = "text/plain; version=0.0.4; charset=utf-8"
_log = logging.getLogger(__name__)
Render = Callable[[], Awaitable[str]]


class Exposition:
    """Serve what ``render`` returns. Make and use it inside one running event loop."""

    def __init__(self, listen: str, render: Render) -> None:
        self._listen = listen
        self._render = render
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.address = ""

    async def start(self) -> str:
        """Listen and return the address, as ``host:port``. Raises: SettingsError."""
        host, _, port = self._listen.rpartition(":")
        try:
            self._server = await asyncio.start_server(
                self._accept, host.strip("[]"), int(port), limit=MAX_REQUEST_BYTES
            )
        except OSError as error:
            raise SettingsError(
                f"cannot listen on metrics.listen {self._listen}: {error.strerror or error}"
            ) from error
        number = self._server.sockets[0].getsockname()[1]
        self.address = f"{host}:{number}"
        return self.address

    async def stop(self) -> None:
        """Stop listening and end what is open. May be repeated."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for task in list(self._open):
            task.cancel()
        if self._open:
            await asyncio.wait(self._open)
        await server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._open) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._open.add(task)
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                writer.write(await self._answer(head))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass  # a caller that is slow, wrong or gone gets no answer
        except asyncio.CancelledError:
            pass  # the end of the gateway
        finally:
            self._open.discard(task)
            with contextlib.suppress(OSError):
                writer.close()

    async def _answer(self, head: bytes) -> bytes:
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split()
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return _response(400, "Bad Request", "no HTTP request\n")
        if words[0] not in ("GET", "HEAD"):
            return _response(405, "Method Not Allowed", "GET only\n", "Allow: GET, HEAD\r\n")
        if words[1].partition("?")[0] != "/metrics":
            return _response(404, "Not Found", "only /metrics is here\n")
        try:
            text = await self._render()
        except Exception:  # noqa: BLE001  (the boundary: the details stay in the log)
            _log.exception("metrics failed")
            return _response(500, "Internal Server Error", "see the gateway's log\n")
        return _response(200, "OK", text, body=words[0] == "GET")


def _response(code: int, name: str, text: str, extra: str = "", *, body: bool = True) -> bytes:
    data = text.encode()
    head = (
        f"HTTP/1.1 {code} {name}\r\nContent-Type: {TEXT}\r\nContent-Length: {len(data)}\r\n"
        f"Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n{extra}"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (data if body else b"")
