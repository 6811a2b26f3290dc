"""The byte surface of the synchronous twin: an attach, the pty facade and its stream."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self

from fabric.client.attach import Attachment
from fabric.client.ptys import Owner, PtyFacade
from fabric.client.stream import DEFAULT_LIMIT_BYTES, PtyStream
from fabric.client.thread import LoopThread
from fabric.core.attach import AttachEvent
from fabric.core.ids import RequestId
from fabric.core.model import TailPage
from fabric.tools.ptys import PtyOpened, PtySent


class AttachmentSync:
    """A person's view of a terminal, in ``with``; iterate over it for the events.

    One thread may read while others type.
    """

    def __init__(self, loop: LoopThread, attachment: Attachment) -> None:
        self._loop = loop
        self._attachment = attachment

    def __enter__(self) -> Self:
        """Begin to attach."""
        self._loop.run(self._attachment.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Break the attach off; the session goes on."""
        self._loop.run(self._attachment.__aexit__(kind, error, trace))

    def __iter__(self) -> Iterator[AttachEvent]:
        """Yield the events as they come. Raises: what ended the attach; DrainingError."""
        return self._loop.iterate(self._attachment)

    def write(self, data: bytes) -> None:
        """Type bytes. Raises: GatewayUnavailableError once the attach has ended."""
        self._loop.run(self._attachment.write(data))

    def keys(self, *names: str) -> None:
        """Press named keys: ``Enter``, ``Ctrl-C``, ``Up``, ``F5``, …"""
        self._loop.run(self._attachment.keys(*names))

    def eof(self) -> None:
        """Send the terminal's end-of-file character."""
        self._loop.run(self._attachment.eof())

    def resize(self, rows: int, cols: int) -> None:
        """Give the terminal another size."""
        self._loop.run(self._attachment.resize(rows, cols))

    def detach(self) -> None:
        """Let what was typed be taken, then end; the last event follows."""
        self._loop.run(self._attachment.detach())


class PtyStreamSync:
    """A reader and writer of one session's bytes, in ``with``; see ``PtyStream``."""

    def __init__(self, loop: LoopThread, stream: PtyStream) -> None:
        self._loop = loop
        self._stream = stream

    def __enter__(self) -> Self:
        """Begin to read ahead."""
        self._loop.run(self._stream.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop reading; the session goes on."""
        self._loop.run(self._stream.aclose())

    @property
    def offset(self) -> int:
        """The offset of the next byte a read returns."""
        return self._stream.offset

    def at_eof(self) -> bool:
        """Tell whether every byte was read and none can come."""
        return self._stream.at_eof()

    def read(self, max_bytes: int = 65_536) -> bytes:
        """Return what is there, waiting for the first byte; empty at the end."""
        return self._loop.run(self._stream.read(max_bytes))

    def readexactly(self, count: int) -> bytes:
        """Return ``count`` bytes. Raises: asyncio.IncompleteReadError, and what read raises."""
        return self._loop.run(self._stream.readexactly(count))

    def readuntil(self, separator: bytes = b"\n") -> bytes:
        """Return up to and with a separator. Raises: asyncio.IncompleteReadError."""
        return self._loop.run(self._stream.readuntil(separator))

    def readline(self) -> bytes:
        """Return the next line, its end included; what is there at the end of the bytes."""
        return self._loop.run(self._stream.readline())

    def __iter__(self) -> Iterator[bytes]:
        """Yield line by line."""
        while line := self.readline():
            yield line

    def write(self, data: bytes, *, request_id: RequestId | None = None) -> int:
        """Put bytes into the terminal; return how many it took."""
        return self._loop.run(self._stream.write(data, request_id=request_id))

    def writeline(self, text: str | bytes) -> None:
        """Type a line and Enter."""
        self._loop.run(self._stream.writeline(text))

    def keys(self, *names: str) -> None:
        """Press named keys."""
        self._loop.run(self._stream.keys(*names))

    def eof(self) -> None:
        """Send the terminal's end-of-file character."""
        self._loop.run(self._stream.eof())

    def resize(self, rows: int, cols: int) -> None:
        """Change the terminal's size."""
        self._loop.run(self._stream.resize(rows, cols))


class PtyFacadeSync:
    """``client.pty`` without ``await``; an owner is whatever has an ``owner_token``."""

    def __init__(self, loop: LoopThread, facade: PtyFacade) -> None:
        self._loop = loop
        self._facade = facade

    def open(
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
        """Open a session and run ``command`` in it. See ``PtyFacade.open``."""
        return self._loop.run(
            self._facade.open(
                owner,
                command,
                cwd=cwd,
                env=env,
                name=name,
                term=term,
                rows=rows,
                cols=cols,
                timeout_s=timeout_s,
                request_id=request_id,
            )
        )

    def send(
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
        return self._loop.run(
            self._facade.send(
                owner, session_id, data, submit=submit, timeout_s=timeout_s, request_id=request_id
            )
        )

    def tail(
        self,
        owner: Owner,
        session_id: str,
        lines: int | None = None,
        *,
        consumer: str = "",
        request_id: RequestId | None = None,
    ) -> TailPage:
        """Return the whole lines that are new since the consumer's last tail."""
        return self._loop.run(
            self._facade.tail(owner, session_id, lines, consumer=consumer, request_id=request_id)
        )

    def close(self, owner: Owner, session_id: str, *, request_id: RequestId | None = None) -> bool:
        """End a session and its processes; False when it was gone already."""
        return self._loop.run(self._facade.close(owner, session_id, request_id=request_id))

    def dispose(self, owner: Owner | None = None) -> None:
        """Close every session opened here, or only those of ``owner``."""
        self._loop.run(self._facade.dispose(owner))

    def stream(
        self,
        owner: Owner,
        session_id: str,
        *,
        offset: int = 0,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
    ) -> PtyStreamSync:
        """Return a reader and writer of the session's bytes, from ``offset`` on."""
        made = self._facade.stream(owner, session_id, offset=offset, limit_bytes=limit_bytes)
        return PtyStreamSync(self._loop, made)
