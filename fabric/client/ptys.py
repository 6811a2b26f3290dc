"""``client.pty``: the byte surface for programs, with the semantics of the ``pty_*`` tools.

Every call names its owner first: whoever has an owner token, such as this client or
another one over the same fabric. The fabric, not this object, decides what an owner may
touch. Sessions opened here are closed by ``dispose``, and by the client's end unless it
was told to keep what it has.
"""

import asyncio
from collections.abc import Mapping
from typing import Protocol

from fabric.client.calls import Calls
from fabric.client.session import CLOSE_WAIT_S, as_bytes
from fabric.client.stream import DEFAULT_LIMIT_BYTES, PtyStream
from fabric.core.errors import OwnerNotLiveError
from fabric.core.ids import RequestId, SessionId, new_request_id, parse_session_id
from fabric.core.model import (
    CloseResult,
    OpenRequest,
    OpenResult,
    SendRequest,
    SendResult,
    TailPage,
)
from fabric.core.settings import PtySettings
from fabric.tools.ptys import PtyOpened, Ptys, PtySent
from fabric.wire.metadata import caller_headers
from fabric.wire.server import ServerInfo

OPEN_WAIT_S = 60.0


class Owner(Protocol):
    """Who owns a session; a ``FabricClient`` is one."""

    @property
    def owner_token(self) -> str:
        """The owner's present token."""
        ...


class Context(Protocol):
    """What the facade needs of its client."""

    @property
    def calls(self) -> Calls:
        """The verbs below the client."""
        ...

    @property
    def server(self) -> ServerInfo:
        """The server as it introduced itself."""
        ...

    @property
    def bearer(self) -> str | None:
        """The token that names the principal."""
        ...


class _Verbs:
    """The four verbs of one owner over this client's connection."""

    def __init__(self, context: Context, owner: Owner) -> None:
        self._context = context
        self._owner = owner

    @property
    def calls(self) -> Calls:
        """The verbs with the owner's present token."""
        headers = caller_headers(self._context.bearer, self._owner.owner_token)
        return self._context.calls.on_behalf(headers)

    async def open(self, request: OpenRequest) -> OpenResult:
        """Open a session."""
        wait_s = OPEN_WAIT_S if request.timeout_s is None else request.timeout_s
        return await self.calls.open(request, wait_s)

    async def send(self, session_id: SessionId, request: SendRequest) -> SendResult:
        """Send and wait."""
        default = self._context.server.send_timeout_s
        wait_s = default if request.timeout_s is None else request.timeout_s
        return await self.calls.send(session_id, request, wait_s)

    async def tail(
        self, session_id: SessionId, consumer: str, lines: int | None, request_id: RequestId
    ) -> TailPage:
        """Return new lines."""
        return await self.calls.tail(session_id, consumer, lines, request_id)

    async def close(self, session_id: SessionId, request_id: RequestId) -> CloseResult:
        """Close a session."""
        return await self.calls.close(session_id, request_id, CLOSE_WAIT_S)


class PtyFacade:
    """Open, send, tail, close and dispose, and a stream of bytes, for any owner."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._opened: dict[SessionId, Owner] = {}

    def _ptys(self, owner: Owner) -> Ptys:
        server = self._context.server
        settings = PtySettings(server.pty_backend_type, server.pty_tail_lines)
        return Ptys(_Verbs(self._context, owner), settings)

    async def open(
        self,
        owner: Owner,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        name: str | None = None,
        term: str | None = None,
        rows: int | None = None,
        cols: int | None = None,
        timeout_s: float | None = None,
        request_id: RequestId | None = None,
    ) -> PtyOpened:
        """Open a session and run ``command`` in it; cancelling rolls it back.

        ``env`` is exported before the command, in order. ``term`` and size are the
        session's own choice. Raises: InvalidRequestError and what an open raises.
        """
        opened = await self._ptys(owner).open(
            command,
            request_id or new_request_id(),
            cwd=cwd,
            env=env,
            name=name,
            term=term,
            rows=rows,
            cols=cols,
            timeout_s=timeout_s,
        )
        self._opened[opened.session_id] = owner
        return opened

    async def send(
        self,
        owner: Owner,
        session_id: str,
        data: str | bytes,
        *,
        submit: bool = True,
        timeout_s: float | None = None,
        request_id: RequestId | None = None,
    ) -> PtySent:
        """Write, and Enter with ``submit``; return what was printed until it settled."""
        return await self._ptys(owner).send(
            _id(session_id),
            as_bytes(data),
            request_id or new_request_id(),
            submit=submit,
            timeout_s=timeout_s,
        )

    async def tail(
        self,
        owner: Owner,
        session_id: str,
        lines: int | None = None,
        *,
        consumer: str = "",
        request_id: RequestId | None = None,
    ) -> TailPage:
        """Return the whole lines that are new since the consumer's last tail."""
        return await self._ptys(owner).tail(
            _id(session_id), request_id or new_request_id(), lines=lines, consumer=consumer
        )

    async def close(
        self, owner: Owner, session_id: str, *, request_id: RequestId | None = None
    ) -> bool:
        """End a session and its processes; False when it was gone already."""
        known = _id(session_id)
        closed = await self._ptys(owner).close(known, request_id or new_request_id())
        self._opened.pop(known, None)
        return closed

    async def dispose(self, owner: Owner | None = None) -> None:
        """Close every session opened here, or only those of ``owner``.

        Raises: the first error, after every close was tried.
        """
        chosen = [
            (session_id, holder)
            for session_id, holder in self._opened.items()
            if owner is None or holder is owner
        ]
        ends = await asyncio.gather(
            *(self._dispose(holder, session_id) for session_id, holder in chosen),
            return_exceptions=True,
        )
        for end in ends:
            if isinstance(end, BaseException):
                raise end

    async def _dispose(self, owner: Owner, session_id: SessionId) -> None:
        try:
            await self.close(owner, session_id)
        except OwnerNotLiveError:  # its sessions ended with it
            self._opened.pop(session_id, None)

    def stream(
        self,
        owner: Owner,
        session_id: str,
        *,
        offset: int = 0,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
    ) -> PtyStream:
        """Return a reader and writer of the session's bytes, from ``offset`` on.

        It reads ahead up to ``limit_bytes``. Use it in ``async with``.
        """
        verbs = _Verbs(self._context, owner)
        return PtyStream(lambda: verbs.calls, _id(session_id), offset, limit_bytes)


def _id(text: str) -> SessionId:
    return SessionId(parse_session_id(text))
