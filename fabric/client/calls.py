"""The verbs of the fabric over a link, with values in and out.

Below ``FabricClient`` and its sessions, and below a gateway that forwards to another one:
the two differ only in the headers. Deadlines are ``answer_s`` above what a call may wait
on the server, so that running out of time is an ordinary result and not an error.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from fabric.api.v1 import (
    event_service_pb2,
    fabric_service_pb2,
    owner_service_pb2,
    pty_service_pb2,
    task_service_pb2,
    terminal_service_pb2,
)
from fabric.client.link import Duplex, Link
from fabric.core.attach import WriteReceipt, WriteRequest
from fabric.core.errors import DeadlineError, DrainingError, FabricError
from fabric.core.ids import RequestId, SessionId, TaskId, new_request_id
from fabric.core.model import (
    BytesPage,
    CloseResult,
    NodeState,
    OpenRequest,
    OpenResult,
    OwnerEvent,
    OwnerGrant,
    ReadPage,
    ReleaseReceipt,
    SandboxMode,
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
from fabric.wire import attach as wire
from fabric.wire import convert, events, records, requests, scalars
from fabric.wire.metadata import REQUEST_ID, Headers
from fabric.wire.methods import METHODS
from fabric.wire.server import ServerInfo, server_of

ANSWER_S = 10.0
GIVE_UP_S = 2.0
_ACQUIRE = METHODS["OwnerService.Acquire"]
_RENEW = METHODS["OwnerService.Renew"]
_RELEASE = METHODS["OwnerService.Release"]
_SET_MODE = METHODS["OwnerService.SetMode"]
_OPEN = METHODS["TerminalService.Open"]
_SEND = METHODS["TerminalService.Send"]
_READ = METHODS["TerminalService.Read"]
_SIGNAL = METHODS["TerminalService.Signal"]
_CLOSE = METHODS["TerminalService.Close"]
_LIST = METHODS["TerminalService.List"]
_STATUS = METHODS["TerminalService.Status"]
_SNAPSHOT = METHODS["TerminalService.Snapshot"]
_RESIZE = METHODS["TerminalService.Resize"]
_CANCEL = METHODS["TerminalService.CancelCall"]
_EVENTS = METHODS["EventService.FollowEvents"]
_ACKNOWLEDGE = METHODS["EventService.AcknowledgeEvents"]
_WAIT_FOR = METHODS["TerminalService.WaitFor"]
_START = METHODS["TaskService.StartTask"]
_OUTPUT = METHODS["TaskService.TaskOutput"]
_LIST_TASKS = METHODS["TaskService.ListTasks"]
_KILL = METHODS["TaskService.KillTask"]
_READ_BYTES = METHODS["PtyService.ReadBytes"]
_TAIL = METHODS["PtyService.Tail"]
_FOLLOW = METHODS["PtyService.Follow"]
_WRITE = METHODS["PtyService.Write"]
_ATTACH = METHODS["PtyService.Attach"]
_INFO = METHODS["FabricService.GetServerInfo"]
_NODES = METHODS["FabricService.ListNodes"]


@dataclass(frozen=True, slots=True)
class EventItem:
    """One item of an event stream."""

    event: OwnerEvent | None = None
    cursor: int | None = None
    gap: int = 0
    ended: str | None = None


class Calls:
    """The verbs over one link. ``headers`` may be replaced; calls that run keep theirs."""

    def __init__(self, link: Link, headers: Headers, call_timeout_s: float) -> None:
        self.link = link
        self.headers = headers
        self._timeout_s = call_timeout_s

    def on_behalf(self, headers: Headers) -> "Calls":
        """Return the same verbs over the same link with other headers."""
        return Calls(self.link, headers, self._timeout_s)

    async def ask(self, method: Any, request: Any, wait_s: float | None = None) -> Any:
        """Make a call that carries its own request id; ``wait_s`` is how long it may wait."""
        timeout_s = self._timeout_s if wait_s is None else wait_s + ANSWER_S
        return await self.link.unary(method, request, self.headers, timeout_s, repeat=True)

    async def ask_and_mean_it(self, method: Any, request: Any, wait_s: float) -> Any:
        """Make a call that goes on for a moment when it breaks off, and end it when given up.

        Cancelling waits for the call's end at the server (its program is interrupted, its
        open rolled back), for ``GIVE_UP_S`` at most; cancelling again does not.
        """
        try:
            return await self.ask(method, request, wait_s)
        except asyncio.CancelledError:
            await self.give_up(request.request_id)
            raise
        except DeadlineError:
            self.give_up(request.request_id)
            raise

    def give_up(self, request_id: str) -> "asyncio.Future[None]":
        """Say that nobody comes back for a call's answer: it ends now and not after a grace.

        Done when it has ended; whoever does not wait for that need not.
        """
        return asyncio.shield(self.link.in_background(self._give_up(request_id, self.headers)))

    async def _give_up(self, request_id: str, headers: Headers) -> None:
        request = terminal_service_pb2.CancelCallRequest(request_id=request_id)
        try:
            await self.link.unary(_CANCEL, request, headers, GIVE_UP_S, repeat=True)
        except FabricError:
            return  # the server ends the call by itself once its grace is over

    async def read_only(self, method: Any, request: Any, wait_s: float = 0.0) -> Any:
        """Make a call that changes nothing."""
        headers = (*self.headers, (REQUEST_ID, new_request_id()))
        timeout_s = wait_s + (ANSWER_S if wait_s else self._timeout_s)
        return await self.link.unary(method, request, headers, timeout_s, repeat=True)

    async def server_info(self, client_version: str) -> ServerInfo:
        """Ask what the server is."""
        request = fabric_service_pb2.GetServerInfoRequest(client_version=client_version)
        return server_of(await self.read_only(_INFO, request))

    async def nodes(self) -> tuple[NodeState, ...]:
        """List the nodes."""
        message = await self.read_only(_NODES, fabric_service_pb2.ListNodesRequest())
        return tuple(records.node_of(item) for item in message.nodes)

    async def acquire(self, request: records.AcquireRequest) -> tuple[OwnerGrant, str]:
        """Acquire an owner; return it with its token."""
        message = await self.ask(_ACQUIRE, records.acquire_message(request))
        return records.grant_of(message.grant), message.owner_token

    async def renew(self, lease_s: float | None) -> tuple[OwnerGrant, str]:
        """Extend the lease; return the owner with its new token."""
        request = owner_service_pb2.RenewRequest(lease=scalars.duration(lease_s))
        message = await self.read_only(_RENEW, request)
        return records.grant_of(message.grant), message.owner_token

    async def release(self, request_id: RequestId, wait_s: float) -> ReleaseReceipt:
        """Dispose of the owner and wait for the end of its sessions."""
        request = owner_service_pb2.ReleaseRequest(request_id=request_id)
        return records.release_of(await self.ask(_RELEASE, request, wait_s))

    async def set_mode(self, mode: SandboxMode, request_id: RequestId) -> OwnerGrant:
        """Change the owner's mode."""
        number = scalars.SANDBOX_MODE.numbers[mode]
        request = owner_service_pb2.SetModeRequest(request_id=request_id, mode=number)
        return records.grant_of((await self.ask(_SET_MODE, request)).grant)

    async def open(self, request: OpenRequest, wait_s: float) -> OpenResult:
        """Open a session."""
        return convert.open_of(
            await self.ask_and_mean_it(_OPEN, requests.open_message(request), wait_s)
        )

    async def send(self, session_id: SessionId, request: SendRequest, wait_s: float) -> SendResult:
        """Write and wait for a verdict."""
        message = requests.send_message(session_id, request)
        return convert.send_of(await self.ask_and_mean_it(_SEND, message, wait_s))

    async def read(self, session_id: SessionId, offset: int, count: int | None) -> ReadPage:
        """Read a page of lines."""
        request = requests.read_message(session_id, offset, count)
        return convert.read_of(await self.read_only(_READ, request))

    async def signal(
        self, session_id: SessionId, name: SignalName, request_id: RequestId
    ) -> SignalDelivered:
        """Signal the foreground group."""
        message = await self.ask(_SIGNAL, requests.signal_message(session_id, name, request_id))
        return SignalDelivered(message.target_pgid)

    async def close(
        self, session_id: SessionId, request_id: RequestId, wait_s: float
    ) -> CloseResult:
        """Close a session."""
        request = terminal_service_pb2.CloseRequest(request_id=request_id, session_id=session_id)
        return convert.close_of(await self.ask(_CLOSE, request, wait_s))

    async def list(self) -> tuple[SessionInfo, ...]:
        """List the owner's sessions."""
        message = await self.read_only(_LIST, terminal_service_pb2.ListRequest())
        return tuple(convert.info_of(item) for item in message.sessions)

    async def status(self, session_id: SessionId) -> SessionInfo:
        """Describe a session."""
        request = terminal_service_pb2.StatusRequest(session_id=session_id)
        return convert.info_of((await self.read_only(_STATUS, request)).session)

    async def snapshot(self, session_id: SessionId) -> ScreenSnapshot:
        """Show the screen."""
        request = terminal_service_pb2.SnapshotRequest(session_id=session_id)
        return convert.snapshot_of(await self.read_only(_SNAPSHOT, request))

    async def resize(
        self, session_id: SessionId, rows: int, cols: int, request_id: RequestId
    ) -> SessionInfo:
        """Change the terminal's size."""
        request = requests.resize_message(session_id, rows, cols, request_id)
        return convert.info_of((await self.ask(_RESIZE, request)).session)

    async def wait_for(
        self,
        session_id: SessionId,
        condition: WaitCondition,
        timeout_s: float | None,
        wait_s: float,
    ) -> WaitResult:
        """Wait for a condition."""
        request = requests.wait_message(session_id, condition, timeout_s)
        return convert.wait_of(await self.read_only(_WAIT_FOR, request, wait_s))

    async def start_task(self, session_id: SessionId, request: SendRequest) -> TaskRecord:
        """Start a background send."""
        message = await self.ask(_START, requests.start_message(session_id, request))
        return records.task_of(message.task)

    async def task_output(self, task_id: TaskId, cursor: int, wait_s: float) -> TaskOutput:
        """Return a task's new output."""
        request = requests.output_message(task_id, cursor, wait_s or None)
        return records.output_of(await self.read_only(_OUTPUT, request, wait_s))

    async def list_tasks(self) -> tuple[TaskRecord, ...]:
        """List the owner's tasks."""
        message = await self.read_only(_LIST_TASKS, task_service_pb2.ListTasksRequest())
        return tuple(records.task_of(item) for item in message.tasks)

    async def kill_task(self, task_id: TaskId, request_id: RequestId) -> TaskRecord:
        """Interrupt a task."""
        request = task_service_pb2.KillTaskRequest(request_id=request_id, task_id=task_id)
        return records.task_of((await self.ask(_KILL, request)).task)

    async def read_bytes(
        self, session_id: SessionId, offset: int, max_bytes: int | None, wait_s: float
    ) -> BytesPage:
        """Read raw bytes."""
        request = requests.bytes_message(session_id, offset, max_bytes, wait_s or None)
        return convert.bytes_of(await self.read_only(_READ_BYTES, request, wait_s))

    async def tail(
        self,
        session_id: SessionId,
        consumer: str,
        lines: int | None,
        request_id: RequestId | None = None,
    ) -> TailPage:
        """Return new lines; a repeat of the consumer's last request id gives them again."""
        request = requests.tail_message(session_id, consumer, lines, request_id or new_request_id())
        return convert.tail_of(await self.ask(_TAIL, request))

    async def write(self, session_id: SessionId, request: WriteRequest) -> WriteReceipt:
        """Put input into the terminal."""
        message = wire.write_message(session_id, request)
        return wire.receipt_of(await self.ask(_WRITE, message))

    def attach(self) -> Duplex:
        """Begin an attach; its first message is still to be sent."""
        return self.link.duplex(_ATTACH, self.headers)

    async def follow(self, session_id: SessionId, offset: int | None) -> AsyncIterator[BytesPage]:
        """Stream raw bytes; a gap shows as a page that starts later than the last one ended.

        An empty page that has not ended says where a quiet stream stands.

        Raises: DrainingError when the gateway shuts down; ``next_offset`` says where to go on.
        """
        oldest = 0
        request = requests.follow_message(session_id, offset)
        async for message in self.link.stream(_FOLLOW, request, self.headers):
            event: pty_service_pb2.FollowResponse = message
            kind = event.WhichOneof("event")
            if kind == "chunk":
                start, data = event.chunk.offset, event.chunk.data
                yield BytesPage(start, data, start + len(data), oldest)
            elif kind == "gap":
                oldest = event.gap.next_offset
            elif kind == "keep_alive":
                position = event.keep_alive.next_offset
                yield BytesPage(position, b"", position, oldest)
            elif kind == "end":
                position = event.end.next_offset
                if event.end.reason == scalars.DRAINING:
                    raise DrainingError("the gateway is shutting down", next_offset=position)
                yield BytesPage(position, b"", position, oldest, ended=True)
                return

    async def follow_events(self, cursor: int | None) -> AsyncIterator[EventItem]:
        """Stream the owner's events after ``cursor`` (None: after the acknowledged ones).

        Raises: DrainingError when the gateway shuts down.
        """
        request = event_service_pb2.FollowEventsRequest(cursor=cursor)
        async for message in self.link.stream(_EVENTS, request, self.headers):
            kind = message.WhichOneof("item")
            if kind == "event":
                yield EventItem(events.event_of(message.event), message.event.sequence)
            elif kind == "gap":
                yield EventItem(gap=message.gap.dropped)
            elif kind == "end":
                if message.end.reason == events.DRAINING:
                    raise DrainingError("the gateway is shutting down", cursor=message.end.cursor)
                yield EventItem(cursor=message.end.cursor, ended=message.end.detail)
                return

    async def acknowledge_events(self, sequence: int) -> None:
        """Let the server forget the events up to one."""
        request = event_service_pb2.AcknowledgeEventsRequest(sequence=sequence)
        await self.read_only(_ACKNOWLEDGE, request)
