"""The byte surface's four verbs, once: the ``pty_*`` tools and ``client.pty`` both call these.

A command runs in a session of the configured type as if it had been typed right after
start-up. Variables are typed before it, one ``export`` line each, in order, because the
session's program, not the fabric, decides what its children inherit; only a shell
understands them, so every other type refuses them. Values are quoted for any POSIX shell:
what is no line end, tab or printable character goes through ``printf``, so that a line
editor never sees it.

A tail's cursor belongs to the session and the consumer, not to who asks: the tools and
the facade move the same one. Tails are exact without a retry: a session is one event loop,
so nothing is printed between finding out how much there is and reading it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from fabric.core.errors import InvalidRequestError, SessionNotFoundError
from fabric.core.ids import RequestId, SessionId
from fabric.core.model import (
    CloseResult,
    OpenRequest,
    OpenResult,
    SendRequest,
    SendResult,
    SessionStatus,
    TailPage,
)
from fabric.core.settings import PtySettings

SHELL_TYPES = frozenset({"shell", "sh", "bash", "dash", "zsh"})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_PRIVATE = "FABRIC_"


class PtyVerbs(Protocol):
    """What the byte surface calls, bound to one owner."""

    async def open(self, request: OpenRequest) -> OpenResult:
        """Open a session."""
        ...

    async def send(self, session_id: SessionId, request: SendRequest) -> SendResult:
        """Send and wait."""
        ...

    async def tail(
        self, session_id: SessionId, consumer: str, lines: int | None, request_id: RequestId
    ) -> TailPage:
        """Return new lines."""
        ...

    async def close(self, session_id: SessionId, request_id: RequestId) -> CloseResult:
        """Close a session."""
        ...


@dataclass(frozen=True, slots=True)
class PtyOpened:
    """An opened session and what it and its command printed until they settled."""

    session_id: SessionId
    pid: int | None
    status: SessionStatus
    initial_output: str
    next_offset: int = 0


@dataclass(frozen=True, slots=True)
class PtySent:
    """What was printed while a write settled."""

    delta: str
    status: SessionStatus
    first_offset: int = 0
    next_offset: int = 0


def quoted(value: str) -> str:
    """Quote a value for a POSIX shell."""
    pieces, at = [], 0
    for match in _UNSAFE.finditer(value):
        if match.start() > at:
            pieces.append(_single(value[at : match.start()]))
        pieces.append(f"\"$(printf '\\{ord(match[0]):03o}')\"")
        at = match.end()
    if at < len(value) or not pieces:
        pieces.append(_single(value[at:]))
    return "".join(pieces)


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def exports(env: Mapping[str, str]) -> str:
    """Give the lines that export some variables. Raises: InvalidRequestError."""
    lines = []
    for name, value in env.items():
        if not _NAME.fullmatch(name) or name.startswith(_PRIVATE):
            raise InvalidRequestError(
                f"env: {name[:40]!r} is no name a shell can export", field="env"
            )
        if "\0" in value:
            raise InvalidRequestError(
                f"env: {name[:40]} must not contain a NUL character", field="env"
            )
        lines.append(f"export {name}={quoted(value)}\n")
    return "".join(lines)


class Ptys:
    """The four verbs of one owner."""

    def __init__(self, verbs: PtyVerbs, settings: PtySettings) -> None:
        self._verbs = verbs
        self._settings = settings

    async def open(
        self,
        command: str,
        request_id: RequestId,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
        term: str | None = None,
        rows: int | None = None,
        cols: int | None = None,
        timeout_s: float | None = None,
    ) -> PtyOpened:
        """Open a session and run ``command`` in it.

        Raises: InvalidRequestError for a blank command, or for variables where the session
        is no shell; what an open raises.
        """
        if not command.strip():
            raise InvalidRequestError("command must be a non-empty string", field="command")
        kind = self._settings.backend_type
        if env and kind not in SHELL_TYPES:
            raise InvalidRequestError(
                f"env needs a shell to export it, and sessions here are of type {kind!r}",
                field="env",
            )
        request = OpenRequest(
            request_id,
            kind,
            name=name,
            cwd=cwd,
            rows=rows,
            cols=cols,
            term=term,
            command=exports(env or {}) + command,
            timeout_s=timeout_s,
        )
        result = await self._verbs.open(request)
        info = result.info
        return PtyOpened(info.session_id, info.pid, info.status, result.motd, result.next_offset)

    async def send(
        self,
        session_id: SessionId,
        data: bytes,
        request_id: RequestId,
        *,
        submit: bool = True,
        timeout_s: float | None = None,
    ) -> PtySent:
        """Write ``data``, and Enter with ``submit``; return what was printed until it settled.

        The cursor of tails does not move. Raises: what a send raises.
        """
        request = SendRequest(request_id, data, submit=submit, timeout_s=timeout_s)
        result = await self._verbs.send(session_id, request)
        return PtySent(result.viewport, result.status, result.first_offset, result.next_offset)

    async def tail(
        self,
        session_id: SessionId,
        request_id: RequestId,
        *,
        lines: int | None = None,
        consumer: str = "",
    ) -> TailPage:
        """Return the whole lines that are new to the consumer, the newest ``lines``."""
        count = self._settings.tail_lines if lines is None else lines
        return await self._verbs.tail(session_id, consumer, count, request_id)

    async def close(self, session_id: SessionId, request_id: RequestId) -> bool:
        """End a session and its processes; False when it was gone already.

        Raises: ForeignSessionError, CleanupIncompleteError.
        """
        try:
            await self._verbs.close(session_id, request_id)
        except SessionNotFoundError:
            return False
        return True
