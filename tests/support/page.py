"""A page without a browser: the frames as the page sends and reads them."""

import asyncio
import base64
import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from fabric.web.frames import PROTOCOL
from tests.support.eventually import eventually

PATH = "/v1/socket"


def socket_url(url: str) -> str:
    """The WebSocket's address below a page's."""
    return url.replace("http", "ws", 1).partition("#")[0].rstrip("/") + PATH


@dataclass
class Page:
    """One connected page; collects what it is sent."""

    socket: ClientConnection
    url: str = ""
    acks: bool = True
    frames: list[dict[str, Any]] = field(default_factory=list)
    code: int | None = None
    painted: bytes = b""
    sequence: int = -1
    received: int = 0
    at: float = 0.0

    async def read(self) -> None:
        try:
            async for text in self.socket:
                await self._take(json.loads(text))
        except ConnectionClosed:
            pass
        self.code = self.socket.close_code

    async def _take(self, frame: dict[str, Any]) -> None:
        if frame["type"] in ("snapshot", "output"):
            data = base64.b64decode(frame.pop("data"))
            self.received += len(data)
            self.at = time.monotonic()
            if frame["type"] == "snapshot":
                self.painted = data
            else:
                assert frame["sequence"] > self.sequence
                self.painted += data
            self.sequence = frame["sequence"]
            if self.acks:
                await self.send("ack", sequence=self.sequence)
        self.frames.append(frame)

    @property
    def attached(self) -> dict[str, Any]:
        return self.first("attached")

    @property
    def status(self) -> dict[str, Any]:
        return [frame for frame in self.frames if frame["type"] == "status"][-1]

    @property
    def generation(self) -> int:
        return self.attached["generation"]

    def all(self, kind: str) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame["type"] == kind]

    def first(self, kind: str) -> dict[str, Any]:
        return self.all(kind)[0]

    async def send(self, kind: str, **fields: Any) -> None:
        generation = fields.pop("generation", self._generation())
        await self.raw(json.dumps({"v": 1, "generation": generation, "type": kind, **fields}))

    def _generation(self) -> int:
        told = self.all("attached")
        return told[0]["generation"] if told else 1

    async def raw(self, text: str | bytes) -> None:
        await self.socket.send(text)

    async def until(self, name: str, count: int = 1, /, **facts: Any) -> dict[str, Any]:
        """Wait for the count-th frame of a kind that says so."""

        def found() -> list[dict[str, Any]]:
            return [
                frame for frame in self.all(name) if all(frame[k] == v for k, v in facts.items())
            ]

        def known() -> bool:
            assert self.code is None or len(found()) >= count, (self.code, self.socket.close_reason)
            return len(found()) >= count

        await eventually(known, what=f"{name} {facts}")
        return found()[count - 1]

    async def shows(self, text: str) -> None:
        await eventually(lambda: text.encode() in self.painted, what=f"{text!r} on the screen")

    def quiet_for(self, seconds: float) -> bool:
        """Whether nothing was painted for so long."""
        return time.monotonic() - self.at >= seconds

    async def closed(self, within: float = 5.0) -> int | None:
        await eventually(lambda: self.code is not None, within, "the end of the connection")
        return self.code


@asynccontextmanager
async def page(
    url: str, *, resume: str = "", acks: bool = True, hello: bool = True, **options: Any
):
    """Connect as a page does; ``url`` is a link, or the server's address with ``resume``."""
    base, _, ticket = url.partition("/#t=")
    options.setdefault("origin", base)
    options.setdefault("subprotocols", [PROTOCOL])
    async with connect(
        socket_url(base), max_size=None, compression=None, ping_interval=None, **options
    ) as socket:
        made = Page(socket, base, acks)
        if hello:
            secret = {"resume": resume} if resume else {"ticket": ticket}
            await made.raw(json.dumps({"v": 1, "type": "hello", **secret}))
        reading = asyncio.create_task(made.read())
        try:
            yield made
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
