"""What is served over plain HTTP: the built page, whether the server lives, nothing else.

The page's files are data of this package, made at build time and read once; a name that
is none of theirs is not looked for on the disk. No cookies, no query, no request body.
"""

from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from importlib.resources.abc import Traversable

FOLDER = "static"
INDEX = "index.html"
MAX_FILES = 200
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = (
    ("Content-Security-Policy", POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
STRICT_TRANSPORT = ("Strict-Transport-Security", "max-age=31536000")
NOT_BUILT = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>pty-fabric</title>
<h1>The page is not built</h1>
<p>This gateway runs, but its installation lacks the browser's half. In a checkout run
<code>make web</code>; an installed package brings it. Then restart the gateway.</p></html>
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of HTTP."""

    status: HTTPStatus
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Pages:
    """The files of the page, in memory."""

    def __init__(self, root: Traversable | None = None, *, tls: bool = False) -> None:
        self._more = (*HEADERS, STRICT_TRANSPORT) if tls else HEADERS
        self._files: dict[str, tuple[str, bytes]] = {}
        found = resources.files("fabric.web") / FOLDER if root is None else root
        if found.is_dir():
            self._read(found, "/")

    @property
    def is_built(self) -> bool:
        """Tell whether the page is there."""
        return f"/{INDEX}" in self._files

    def answer(self, target: str) -> Answer:
        """Answer a GET of ``target``, the path with its query."""
        if target == "/healthz":
            return self._answer(HTTPStatus.OK, TYPES[".txt"], b"ok\n", "no-store")
        if target in ("/", f"/{INDEX}"):
            if not self.is_built:
                kind, body = TYPES[".html"], NOT_BUILT.encode()
                return self._answer(HTTPStatus.SERVICE_UNAVAILABLE, kind, body, "no-store")
            return self._answer(HTTPStatus.OK, *self._files[f"/{INDEX}"], "no-store")
        known = self._files.get(target)
        if known is None:
            return self.refusal(HTTPStatus.NOT_FOUND, "there is no such page")
        return self._answer(HTTPStatus.OK, *known, "no-cache")

    def refusal(self, status: HTTPStatus, text: str) -> Answer:
        """Refuse with a text."""
        return self._answer(status, TYPES[".txt"], f"{text}\n".encode(), "no-store")

    def _answer(self, status: HTTPStatus, kind: str, body: bytes, caching: str) -> Answer:
        headers = (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Cache-Control", caching),
            *self._more,
            ("Connection", "close"),
        )
        return Answer(status, headers, body)

    def _read(self, folder: Traversable, path: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                self._read(entry, f"{path}{entry.name}/")
                continue
            kind = TYPES.get(f".{entry.name.rpartition('.')[2]}")
            if kind is not None and len(self._files) < MAX_FILES:
                self._files[path + entry.name] = (kind, entry.read_bytes())
