"""A server for the page that a test plays by hand: real files and headers, scripted frames.

For what a real server would rarely do: holes in a sequence, frames that are none, any close
code. The socket is taken over inside the browser, so no port is open.
"""

import base64
import json
import mimetypes
from typing import Any

from playwright.async_api import BrowserContext, Page, Route, WebSocketRoute

from tests.support.chromium import STATIC
from tests.support.eventually import eventually

ORIGIN = "http://page.test"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' ws://page.test; "
    "img-src data: 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
SETTINGS = {
    "rows": 40, "cols": 160, "scrollback_lines": 1000, "max_input_bytes": 65_536,
    "heartbeat_s": 15, "grace_s": 15, "window_bytes": 262_144,
}  # fmt: skip


class ScriptedServer:
    """The frames of the page as they came, and the means to answer."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.frames: list[dict[str, Any]] = []
        self.complaints: list[str] = []
        self.connections = 0
        self.generation = 1
        self.sequence = 0
        self._socket: WebSocketRoute | None = None

    @classmethod
    async def open(cls, context: BrowserContext, link: str = "/#t=ticket") -> "ScriptedServer":
        """Show the page in a new tab and take its first frame."""
        page = await context.new_page()
        server = cls(page)
        page.on("pageerror", lambda error: server.complaints.append(str(error)))
        page.on("console", lambda said: _note(server, said.type, said.text))
        await page.route(f"{ORIGIN}/**", _serve)
        await page.route_web_socket("**/v1/socket", server._connected)
        await page.goto(ORIGIN + link)
        return server

    def _connected(self, socket: WebSocketRoute) -> None:
        self.connections += 1
        self._socket = socket
        socket.on_message(lambda text: self.frames.append(json.loads(text)))

    async def sent(self, kind: str, number: int = 1) -> list[dict[str, Any]]:
        """Return the frames of one type once there are that many."""
        await eventually(lambda: len(self.of(kind)) >= number, what=f"{number} x {kind}")
        return self.of(kind)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame["type"] == kind]

    def say(self, _type: str, **fields: Any) -> None:
        frame = {"v": 1, "generation": self.generation, "type": _type, **fields}
        assert self._socket is not None
        self._socket.send(json.dumps(frame))

    def send_raw(self, text: str) -> None:
        assert self._socket is not None
        self._socket.send(text)

    async def close(self, code: int) -> None:
        assert self._socket is not None
        await self._socket.close(code=code)

    async def attach(self, role: str = "controller", **fields: Any) -> None:
        """Answer the first frame of the newest connection."""
        await eventually(lambda: len(self.of("hello")) >= self.connections > 0)
        session = {"name": "shared-terminal", "program": "bash", "node": "node-a"}
        given = {"kind": "shared", "resume": "proof", "session": session, "settings": SETTINGS}
        self.say("attached", **(given | {"role": role} | fields))

    def paint(self, data: str | bytes, truncated: bool = False) -> None:
        raw = data.encode() if isinstance(data, str) else data
        self.say(
            "snapshot", sequence=self.sequence, data=_encoded(raw), rows=40, cols=160,
            truncated=truncated,
        )  # fmt: skip

    def print(self, data: str | bytes) -> None:
        raw = data.encode() if isinstance(data, str) else data
        self.sequence += len(raw)
        self.say("output", sequence=self.sequence, data=_encoded(raw))

    def stand(self, queue: str = "ready", holder: str | None = None, **fields: Any) -> None:
        given = {"process": "running", "pending": 0, "takeover": None, "sequence": self.sequence}
        self.say("status", **(given | {"queue": queue, "holder": holder} | fields))

    async def idle(self, screen: str = "$ ") -> None:
        """Attach a controller to an idle prompt."""
        await self.attach()
        self.paint(screen)
        self.stand()
        await self.page.locator("#status").get_by_text("Idle prompt").wait_for()


def _note(server: ScriptedServer, kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        server.complaints.append(text)


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


async def _serve(route: Route) -> None:
    path = route.request.url.removeprefix(ORIGIN).partition("#")[0]
    file = STATIC / ("index.html" if path == "/" else path.lstrip("/"))
    if not file.is_file():
        await route.fulfill(status=404)
        return
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    await route.fulfill(
        body=file.read_bytes(),
        headers={"content-type": kind, "content-security-policy": POLICY},
    )
