"""Sessions behind another gateway, for a gateway that was called for them.

It has the verbs the gateway asks of sessions, spoken to the other gateway with the
fabric's own key. That gateway trusts the owner and the epoch stated here, serves the call
on its node, and never forwards it again.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

from fabric.client import shared
from fabric.client.attach import Attachment
from fabric.client.calls import Calls
from fabric.client.link import Link, Tls
from fabric.core.attach import AttachEvent, AttachStart, WriteReceipt, WriteRequest
from fabric.core.ids import RequestId, SessionId, TaskId, new_request_id
from fabric.core.model import (
    BytesPage,
    Caller,
    ReadPage,
    ScreenSnapshot,
    SendRequest,
    SendResult,
    SessionInfo,
    SignalDelivered,
    SignalName,
    TailPage,
    TaskOutput,
    TaskRecord,
    WaitCondition,
    WaitResult,
)
from fabric.core.settings import GatewaySettings
from fabric.core.shared import (
    PersonRequest,
    SharedPage,
    SharedResult,
    SharedSend,
    ViewEvent,
    ViewStart,
)
from fabric.wire.metadata import peer_headers

CALL_TIMEOUT_S = 30.0
DEFAULT_WAIT_S = 600.0
# Short: the client behind the other gateway tries again for longer.
REPEAT_S = 1.5


def peer_tls(settings: GatewaySettings) -> Tls | None:
    """Return how a gateway reaches the others: as it is reached itself, None without TLS.

    Where callers come by certificate, gateways show their own to each other. An authority of
    one's own is trusted when ``tls_ca_file`` or ``tls_client_ca_file`` names it.
    """
    if not settings.tls_cert_file:
        return None
    roots = settings.tls_ca_file or settings.tls_client_ca_file or None
    if settings.tls_client_ca_file:
        return Tls(roots, settings.tls_cert_file, settings.tls_key_file)
    return Tls(roots)


class PeerSessions:
    """One other gateway's sessions. Make and use it inside one running event loop."""

    def __init__(self, address: str, peer_key: str, tls: Tls | None = None) -> None:
        self._link = Link((address,), tls, watch=True, repeat_s=REPEAT_S)
        self._peer_key = peer_key

    def _calls(self, caller: Caller) -> Calls:
        return Calls(self._link, peer_headers(self._peer_key, caller), CALL_TIMEOUT_S)

    async def close(self) -> None:
        """Close the connection."""
        await self._link.close()

    async def send(self, caller: Caller, session_id: SessionId, request: SendRequest) -> SendResult:
        """Write and wait for a verdict."""
        wait_s = DEFAULT_WAIT_S if request.timeout_s is None else request.timeout_s
        return await self._calls(caller).send(session_id, request, wait_s)

    async def read(
        self, caller: Caller, session_id: SessionId, offset: int, count: int
    ) -> ReadPage:
        """Read a page of scrollback."""
        return await self._calls(caller).read(session_id, offset, count)

    async def signal(
        self, caller: Caller, session_id: SessionId, name: SignalName, request_id: RequestId
    ) -> SignalDelivered:
        """Signal the foreground process group."""
        return await self._calls(caller).signal(session_id, name, request_id)

    async def status(self, caller: Caller, session_id: SessionId) -> SessionInfo:
        """Describe the session as its worker sees it."""
        return await self._calls(caller).status(session_id)

    async def snapshot(self, caller: Caller, session_id: SessionId) -> ScreenSnapshot:
        """Show the screen."""
        return await self._calls(caller).snapshot(session_id)

    async def resize(
        self, caller: Caller, session_id: SessionId, rows: int, cols: int
    ) -> SessionInfo:
        """Change the terminal's size."""
        return await self._calls(caller).resize(session_id, rows, cols, new_request_id())

    async def tail(
        self,
        caller: Caller,
        session_id: SessionId,
        consumer: str,
        lines: int,
        request_id: RequestId | None = None,
    ) -> TailPage:
        """Return whole lines that are new to this consumer."""
        return await self._calls(caller).tail(session_id, consumer, lines, request_id)

    async def write(
        self, caller: Caller, session_id: SessionId, request: WriteRequest
    ) -> WriteReceipt:
        """Put input into the terminal."""
        return await self._calls(caller).write(session_id, request)

    async def attach(
        self, caller: Caller, session_id: SessionId, start: AttachStart
    ) -> AsyncIterator[AttachEvent]:
        """Stream the screen and the bytes from there; input goes by ``write``."""
        async with Attachment(self._calls(caller), session_id, start) as attached:
            async for event in attached:
                yield event

    async def read_bytes(
        self, caller: Caller, session_id: SessionId, offset: int, max_bytes: int, wait_s: float
    ) -> BytesPage:
        """Read raw bytes, waiting up to ``wait_s`` for the first."""
        return await self._calls(caller).read_bytes(session_id, offset, max_bytes, wait_s)

    def follow(
        self, caller: Caller, session_id: SessionId, offset: int | None
    ) -> AsyncIterator[BytesPage]:
        """Stream raw bytes until the session ends."""
        return self._calls(caller).follow(session_id, offset)

    async def wait_for(
        self, caller: Caller, session_id: SessionId, condition: WaitCondition, timeout_s: float
    ) -> WaitResult:
        """Wait for a condition beside the PTY."""
        return await self._calls(caller).wait_for(session_id, condition, timeout_s, timeout_s)

    async def start_task(
        self, caller: Caller, session_id: SessionId, request: SendRequest
    ) -> TaskRecord:
        """Start a background send."""
        return await self._calls(caller).start_task(session_id, request)

    async def task_output(
        self, caller: Caller, task_id: TaskId, cursor: int, wait_s: float
    ) -> TaskOutput:
        """Return a task's new output, waiting up to ``wait_s`` for its end."""
        return await self._calls(caller).task_output(task_id, cursor, wait_s)

    async def kill_task(self, caller: Caller, task_id: TaskId, request_id: RequestId) -> TaskRecord:
        """Interrupt a task."""
        return await self._calls(caller).kill_task(task_id, request_id)

    async def shared_send(
        self, caller: Caller, session_id: SessionId, request: SharedSend
    ) -> SharedResult:
        """Queue a model's send on a shared terminal."""
        return await shared.send(self._calls(caller), request, DEFAULT_WAIT_S, session_id)

    async def shared_signal(
        self, caller: Caller, session_id: SessionId, name: SignalName, request_id: RequestId
    ) -> SharedResult:
        """Queue a signal on a shared terminal."""
        calls = self._calls(caller)
        return await shared.signal(calls, name, request_id, DEFAULT_WAIT_S, session_id)

    async def shared_reset(
        self, caller: Caller, session_id: SessionId, request_id: RequestId
    ) -> SharedResult:
        """Queue the next generation of a shared terminal."""
        return await shared.reset(self._calls(caller), request_id, DEFAULT_WAIT_S, session_id)

    async def shared_read(
        self, caller: Caller, session_id: SessionId, offset: int, count: int
    ) -> SharedPage:
        """Read the history of a shared terminal."""
        return await shared.read(self._calls(caller), offset, count, session_id)

    async def shared_act(
        self, caller: Caller, session_id: SessionId, request: PersonRequest
    ) -> int:
        """Do what the person at the controlling view asks for; returns the lease."""
        return await shared.act(self._calls(caller), request, session_id)

    async def shared_view(
        self, caller: Caller, session_id: SessionId, start: ViewStart
    ) -> AsyncIterator[ViewEvent]:
        """Stream a shared terminal to one view; the gateway there names the view."""
        events = shared.view(self._calls(caller), start.readonly, start.resume, session_id)
        async for event, view in events:
            yield replace(event, view=view) if view else event
