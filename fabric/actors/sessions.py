"""A session's verbs, wherever it runs: over its channel here, through its gateway elsewhere.

A send costs no registry call: where a session is and who owns it never change, so the
location is asked for once. When a worker dies it is started again and re-adopts its
shell; then each verb is treated by what it may have done:

- what only looks, or may be repeated, is asked once more;
- a send whose outcome nobody can know ends with the outcome ``unknown``, is never run
  again, and says the same under the same request id;
- anything else raises OutcomeUnknownError.

A call that was lost before it was written is simply made to the new worker.
"""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from typing import Any, TypeVar

from fabric.actors.channels import Channels, Locations
from fabric.actors.ports import PeerDialer, TaskBook, Verbs
from fabric.actors.shared import SharedVerbs
from fabric.core import tracing
from fabric.core.attach import (
    AttachEvent,
    AttachKind,
    AttachStart,
    WriteReceipt,
    WriteRequest,
)
from fabric.core.context import from_peer
from fabric.core.errors import (
    CapacityReachedError,
    CursorExpiredError,
    DeadlineError,
    GatewayUnavailableError,
    OutcomeUnknownError,
    RegistryUnavailableError,
    SessionLostError,
    SessionNotFoundError,
    TaskNotFoundError,
)
from fabric.core.ids import HostName, RequestId, SessionId, TaskId, new_request_id
from fabric.core.model import (
    BytesPage,
    Caller,
    Outcome,
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
    TaskState,
    WaitCondition,
    WaitReason,
    WaitResult,
)
from fabric.core.plain import from_plain, to_plain
from fabric.core.repeat import digest_of
from workers.dial import ChannelClient, ChannelClosedError
from workers.tasks import CONSUME, label_of

T = TypeVar("T")
READOPT_S = 15.0
QUICK_S = 10.0
WAIT_MARGIN_S = 10.0
SILENT_S = 1.5  # how long the registry may take to say whether a silent gateway's node lives
REPORT_S = 2.0  # how long a worker's report of an end may take
MAX_UNKNOWN = 4096
MAX_REPEATS = 4  # workers that may die under one call that may be repeated
_SHOWN = (AttachKind.CHUNK, AttachKind.SNAPSHOT)
_ACTIVE = (TaskState.RUNNING, TaskState.STOPPING)


class Sessions(SharedVerbs):
    """The verbs of every session of the fabric, for the gateway of ``host``."""

    def __init__(
        self,
        host: HostName,
        registry: TaskBook,
        peers: PeerDialer | None = None,
        *,
        readopt_s: float = READOPT_S,
    ) -> None:
        self._host = host
        self._registry = registry
        self._peers = peers
        self._readopt_s = readopt_s
        self._locations = Locations(registry.locate)
        self._channels = Channels()
        self._unknown: OrderedDict[tuple[SessionId, RequestId], tuple[bytes, SendResult]]
        self._unknown = OrderedDict()

    async def close(self) -> None:
        """Drop every channel; sessions go on."""
        await self._channels.close()

    async def send(self, caller: Caller, session_id: SessionId, request: SendRequest) -> SendResult:
        """Write and wait for a verdict; cancelling the call cancels the send."""
        peer = await self._peer(session_id)
        if peer is not None:
            work = peer.send(caller, session_id, request)
            answer: SendResult = await self._there(session_id, work)
            return answer
        digest = digest_of(request.data, request.submit, request.background)
        known = self._unknown.get((session_id, request.request_id))
        if known is not None and known[0] == digest:
            return known[1]
        args = {"request": to_plain(request)}
        try:
            raw = await self._ask(caller, session_id, "send", args, None, repeat=False)
        except OutcomeUnknownError:
            info = await self.status(caller, session_id)
            result = SendResult("", WaitReason.TIMEOUT, info.status, outcome=Outcome.UNKNOWN)
            self._unknown[(session_id, request.request_id)] = (digest, result)
            while len(self._unknown) > MAX_UNKNOWN:
                self._unknown.popitem(last=False)
            return result
        return from_plain(SendResult, raw)

    async def read(
        self, caller: Caller, session_id: SessionId, offset: int, count: int
    ) -> ReadPage:
        """Read a page of scrollback."""
        args = {"offset": offset, "count": count}
        return await self._look(ReadPage, caller, session_id, "read", args)

    async def signal(
        self, caller: Caller, session_id: SessionId, name: SignalName, request_id: RequestId
    ) -> SignalDelivered:
        """Signal the foreground process group."""
        args = {"name": name.value, "request_id": request_id}
        return await self._do(SignalDelivered, caller, session_id, "signal", args)

    async def status(self, caller: Caller, session_id: SessionId) -> SessionInfo:
        """Describe the session as its worker sees it."""
        return self._here(await self._look(SessionInfo, caller, session_id, "status", {}))

    async def snapshot(self, caller: Caller, session_id: SessionId) -> ScreenSnapshot:
        """Show the screen."""
        return await self._look(ScreenSnapshot, caller, session_id, "snapshot", {})

    async def resize(
        self, caller: Caller, session_id: SessionId, rows: int, cols: int
    ) -> SessionInfo:
        """Change the terminal's size."""
        args = {"rows": rows, "cols": cols}
        return self._here(await self._look(SessionInfo, caller, session_id, "resize", args))

    async def tail(
        self,
        caller: Caller,
        session_id: SessionId,
        consumer: str,
        lines: int,
        request_id: RequestId | None = None,
    ) -> TailPage:
        """Return whole lines that are new to this consumer.

        A worker that dies under the call is asked again under the same id, so its successor
        gives the same lines.
        """
        request_id = request_id or new_request_id()
        args = {"consumer": consumer, "lines": lines, "request_id": request_id}
        return await self._look(TailPage, caller, session_id, "tail", args)

    async def write(
        self, caller: Caller, session_id: SessionId, request: WriteRequest
    ) -> WriteReceipt:
        """Put input into the terminal. Raises: OutcomeUnknownError when a worker died under it."""
        peer = await self._peer(session_id)
        if peer is not None:
            work = peer.write(caller, session_id, request)
            answer: WriteReceipt = await self._there(session_id, work)
            return answer
        args = {"request": to_plain(request)}
        raw = await self._ask(caller, session_id, "write", args, None, repeat=False)
        return from_plain(WriteReceipt, raw)

    async def attach(
        self, caller: Caller, session_id: SessionId, start: AttachStart
    ) -> AsyncIterator[AttachEvent]:
        """Stream the screen and the bytes from there until the session ends.

        A worker that died is followed on in its successor: exactly where bytes were asked
        for, and by the screen as it is now where the screen was.
        """
        peer = await self._peer(session_id)
        if peer is not None:
            async with contextlib.aclosing(peer.attach(caller, session_id, start)) as events:
                async for event in events:
                    yield event
            return
        at: int | None = None
        while True:
            channel = await self._channel(session_id)
            args = self._args(caller, session_id, {"start": to_plain(start)})
            stream: Any = channel.stream("attach", args)
            try:
                async with contextlib.aclosing(stream) as items:
                    async for raw in items:
                        event = from_plain(AttachEvent, raw)
                        if at is not None and event.offset > at and event.kind in _SHOWN:
                            yield AttachEvent(AttachKind.GAP, at, event.offset)
                        at = event.next_offset
                        yield event
                return
            except ChannelClosedError:
                start = AttachStart(
                    None if start.snapshot else at or start.offset,
                    start.snapshot,
                    history=start.history,
                )
            except CursorExpiredError as gap:
                if at is None:
                    raise
                start = AttachStart(int(gap.metadata["oldest_offset"]), snapshot=False)

    async def read_bytes(
        self, caller: Caller, session_id: SessionId, offset: int, max_bytes: int, wait_s: float
    ) -> BytesPage:
        """Read raw bytes, waiting up to ``wait_s`` for the first. Raises: CursorExpiredError."""
        args = {"offset": offset, "max_bytes": max_bytes, "wait_s": wait_s}
        return await self._look(BytesPage, caller, session_id, "read_bytes", args, wait_s)

    async def wait_for(
        self, caller: Caller, session_id: SessionId, condition: WaitCondition, timeout_s: float
    ) -> WaitResult:
        """Wait for a condition beside the PTY; a worker that dies under it loses no match."""
        if condition.since_offset is None and await self._peer(session_id) is None:
            # Where "now" is must be known here: a successor's now would be later.
            channel = await self._channel(session_id)
            with contextlib.suppress(ChannelClosedError, OutcomeUnknownError):
                now = (await channel.call("ping", {}, QUICK_S))["next_offset"]
                condition = replace(condition, since_offset=int(now))
        args = {"condition": to_plain(condition), "timeout_s": timeout_s}
        return await self._look(WaitResult, caller, session_id, "wait_for", args, timeout_s)

    async def follow(
        self, caller: Caller, session_id: SessionId, offset: int | None
    ) -> AsyncIterator[BytesPage]:
        """Stream raw bytes from ``offset`` (None: from now on) until the session ends.

        A worker that died is followed on in its successor, without a gap or a repetition.
        """
        peer = await self._peer(session_id)
        if peer is not None:
            async with contextlib.aclosing(peer.follow(caller, session_id, offset)) as pages:
                async for page in pages:
                    yield page
            return
        while True:
            channel = await self._channel(session_id)
            args = self._args(caller, session_id, {"offset": offset})
            stream: Any = channel.stream("follow", args)
            try:
                async with contextlib.aclosing(stream) as items:
                    async for raw in items:
                        page = from_plain(BytesPage, raw)
                        offset = page.next_offset
                        yield page
                return
            except ChannelClosedError:
                continue  # its successor has the same bytes under the same offsets

    async def start_task(
        self, caller: Caller, session_id: SessionId, request: SendRequest
    ) -> TaskRecord:
        """Start a background send. Raises: SendActiveError, CapacityReachedError."""
        peer = await self._peer(session_id)
        if peer is not None:
            work = peer.start_task(caller, session_id, request)
            answer: TaskRecord = await self._there(session_id, work)
            return answer
        label = label_of(session_id, request.data)
        try:
            reserved = await self._registry.reserve_task(caller, session_id, label)
        except CapacityReachedError:
            # The one too many may be a repeat of the last that found room.
            args = {"request": to_plain(request), "known_only": True}
            with contextlib.suppress(TaskNotFoundError):
                return await self._look(TaskRecord, caller, session_id, "start_task", args)
            raise
        try:
            raw = await self._ask(
                caller, session_id, "start_task", {"request": to_plain(request)}, QUICK_S,
                repeat=False,
            )  # fmt: skip
        except BaseException:
            await asyncio.shield(self._registry.forget_task(reserved))
            raise
        return await self._registry.attach_task(reserved, from_plain(TaskRecord, raw))

    async def task_output(
        self, caller: Caller, task_id: TaskId, cursor: int, wait_s: float
    ) -> TaskOutput:
        """Return a task's new output, waiting up to ``wait_s`` for its end."""
        record = await self._registry.task_record(caller, task_id)
        if record.state in _ACTIVE:
            peer = await self._peer(record.session_id)
            if peer is not None:
                work = peer.task_output(caller, task_id, cursor, wait_s)
                answer: TaskOutput = await self._there(record.session_id, work)
                return answer
            args = {"task_id": task_id, "cursor": cursor, "wait_s": wait_s}
            with contextlib.suppress(SessionNotFoundError):
                output = await self._look(
                    TaskOutput, caller, record.session_id, "task_output", args, wait_s
                )
                if cursor != CONSUME or output.record.state in _ACTIVE:
                    return output
                return await self._registry.task_output(caller, task_id, cursor, REPORT_S)
        return await self._registry.task_output(caller, task_id, cursor, 0.0)

    async def kill_task(self, caller: Caller, task_id: TaskId, request_id: RequestId) -> TaskRecord:
        """Interrupt a task for real and say that it is stopping."""
        record = await self._registry.task_record(caller, task_id)
        if record.state not in _ACTIVE:
            return record
        peer = await self._peer(record.session_id)
        if peer is not None:
            work = peer.kill_task(caller, task_id, request_id)
            answer: TaskRecord = await self._there(record.session_id, work)
            return answer
        args = {"task_id": task_id, "request_id": request_id}
        stopped = await self._do(TaskRecord, caller, record.session_id, "kill_task", args)
        if stopped.state is TaskState.STOPPING:
            return await self._registry.stop_task(task_id)
        return stopped

    # ---- one call ---------------------------------------------------------------------

    def _here(self, info: SessionInfo) -> SessionInfo:
        """Add what a worker does not know; a peer has said it already."""
        return info if info.host else replace(info, host=self._host)

    async def _look(
        self,
        kind: type[T],
        caller: Caller,
        session_id: SessionId,
        method: str,
        args: dict[str, Any],
        wait_s: float = 0.0,
    ) -> T:
        """Make a call that may be repeated, here or at the session's own gateway."""
        peer = await self._peer(session_id)
        if peer is not None:
            values = [WaitCondition(**args["condition"])] if method == "wait_for" else []
            values += [value for key, value in args.items() if key != "condition"]
            work = getattr(peer, method)(caller, session_id, *values)
            found: T = await self._there(session_id, work)
            return found
        limit = wait_s + (WAIT_MARGIN_S if wait_s else QUICK_S)
        return from_plain(kind, await self._ask(caller, session_id, method, args, limit))

    async def _do(
        self,
        kind: type[T],
        caller: Caller,
        session_id: SessionId,
        method: str,
        args: dict[str, Any],
    ) -> T:
        """Make a call that must not be repeated blindly."""
        peer = await self._peer(session_id)
        if peer is not None and method == "signal":
            work = peer.signal(caller, session_id, SignalName(args["name"]), args["request_id"])
            found: T = await self._there(session_id, work)
            return found
        raw = await self._ask(caller, session_id, method, args, QUICK_S, repeat=False)
        return from_plain(kind, raw)

    async def _peer(self, session_id: SessionId) -> Verbs | None:
        """Return the gateway to ask instead, None when the session is on this node."""
        location = await self._locations.find(session_id)
        if location.host == self._host:
            return None
        if self._peers is None or from_peer.get():
            self._locations.forget(session_id)
            raise GatewayUnavailableError(
                f"session {session_id} is on node {location.host}, not on {self._host}",
                host=location.host,
            )
        return await self._peers.sessions_on(location.host)

    async def _there(self, session_id: SessionId, work: Awaitable[Any]) -> Any:
        """Await a call of another node's gateway; one that is silent may have lost the session.

        The registry knows at once of a session that is lost. For one that is not it asks the
        node: one that answers has a gateway that is just starting again, so that repeating
        helps; for one that is silent the caller gets its answer now. Where the session is
        stays known: it never moves.
        Raises: SessionLostError, SessionNotFoundError, DeadlineError (the node is silent).
        """
        try:
            return await work
        except (GatewayUnavailableError, RegistryUnavailableError, DeadlineError) as failure:
            try:
                async with asyncio.timeout(SILENT_S):
                    await self._registry.locate(session_id)
            except (RegistryUnavailableError, DeadlineError, TimeoutError):
                raise DeadlineError(
                    f"the node of session {session_id} does not answer; what was asked for may"
                    " have been done",
                    session_id=session_id,
                ) from failure
            raise
        except (SessionLostError, SessionNotFoundError):
            self._locations.forget(session_id)
            raise

    async def _ask(
        self,
        caller: Caller,
        session_id: SessionId,
        method: str,
        args: dict[str, Any],
        timeout_s: float | None,
        *,
        repeat: bool = True,
    ) -> Any:
        full = self._args(caller, session_id, args)
        for _ in range(MAX_REPEATS):
            try:
                channel = await self._channel(session_id)
                return await self._call(channel, session_id, method, full, timeout_s)
            except ChannelClosedError:
                pass  # lost before it was written
            except OutcomeUnknownError:
                if not repeat:
                    raise
        channel = await self._channel(session_id)
        return await self._call(channel, session_id, method, full, timeout_s)

    async def _call(
        self,
        channel: ChannelClient,
        session_id: SessionId,
        method: str,
        args: dict[str, Any],
        timeout_s: float | None,
    ) -> Any:
        try:
            return await channel.call(method, args, timeout_s)
        except ChannelClosedError:
            raise
        except SessionNotFoundError:
            # The worker has lost the session or is another's; the registry knows more.
            self._locations.forget(session_id)
            await self._registry.locate(session_id)
            raise

    async def _channel(self, session_id: SessionId) -> ChannelClient:
        """Return the channel of a session here, waiting for a worker that is coming back."""
        location = await self._locations.find(session_id)
        try:
            return await self._channels.connect(location)
        except ChannelClosedError:
            self._locations.forget(session_id)
        location = await self._locations.find(session_id)
        try:
            return await self._channels.reconnect(location, self._readopt_s)
        except ChannelClosedError as error:
            self._locations.forget(session_id)
            await self._registry.locate(session_id)  # says so if it is lost
            raise GatewayUnavailableError(
                f"the worker of session {session_id} is not back yet; its shell goes on",
                session_id=session_id,
            ) from error

    def _args(self, caller: Caller, session_id: SessionId, args: dict[str, Any]) -> dict[str, Any]:
        full = {"caller": to_plain(caller), "session_id": session_id, **args}
        parent = tracing.current.get()
        if parent is not None:
            full[tracing.KEY] = parent
        return full
