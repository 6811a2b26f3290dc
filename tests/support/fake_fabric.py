"""The registry and the sessions of a fabric in one process, faithful to what callers can see.

It keeps the rules a gateway relies on: owners with leases and epochs, foreign callers,
request ids, names, one active send, closing, tasks. Tests that look inside it say so.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

from fabric.core.attach import (
    AttachEvent,
    AttachKind,
    AttachStart,
    WriteReceipt,
    WriteRequest,
)
from fabric.core.census import Census
from fabric.core.clock import Clock, SystemClock
from fabric.core.context import from_peer
from fabric.core.errors import (
    CursorExpiredError,
    ForeignSessionError,
    InvalidRequestError,
    NameTakenError,
    OwnerNotLiveError,
    RegistryUnavailableError,
    RequestIdConflictError,
    SandboxModeLockedError,
    SessionNotFoundError,
    SignalRefusedError,
    TaskNotFoundError,
)
from fabric.core.ids import (
    AgentId,
    HostName,
    OwnerId,
    Principal,
    RequestId,
    SessionId,
    TaskId,
    new_owner_id,
    new_session_id,
    new_task_id,
)
from fabric.core.model import (
    BytesPage,
    Caller,
    CloseOutcome,
    CloseReceipt,
    CloseResult,
    Confinement,
    EventKind,
    EventPage,
    ExitStatus,
    GatewayKeys,
    Location,
    NewsPage,
    NodeState,
    OpenRequest,
    OpenResult,
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
    TaskState,
    WaitCondition,
    WaitReason,
    WaitResult,
)
from fabric.core.repeat import Repeats, digest_of
from fabric.registry.events import Events
from fabric.registry.feed import Feed
from fabric.registry.instructions import Announce
from tests.support.fake_terminal import PROMPT, FakeTerminal

KEYS = GatewayKeys(token_keys=("k" * 48,), peer_key="p" * 48)
HOST = HostName("node-a")
PGID = 4242
TYPES = ("shell", "python")


@dataclass
class FakeOwner:
    grant: OwnerGrant
    live: bool = True
    repeats: Repeats[asyncio.Future[Any]] = field(
        default_factory=lambda: Repeats(retention_s=600.0, max_entries=1024)
    )


@dataclass
class FakeSession:
    info: SessionInfo
    terminal: FakeTerminal


@dataclass
class FakeTask:
    record: TaskRecord
    start: int
    terminal: FakeTerminal
    work: asyncio.Task[None]


class FakeFabric:
    """Implements both ports of the gateway."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or SystemClock()
        self.keys = KEYS
        self.gateways: dict[str, str] = {}
        self.owners: dict[OwnerId, FakeOwner] = {}
        self.sessions: dict[SessionId, FakeSession] = {}
        self._tasks: dict[TaskId, FakeTask] = {}
        self.away = 0  # how many calls of the registry fail before it is back
        self.joins = 0
        self.asked_for_news = 0
        self.events = Events(max_events=100)
        self.feed = Feed(self.clock.wall())
        self.sends: list[SendRequest] = []
        self.forwarded: list[bool] = []
        self.clean_up_held: asyncio.Event | None = None
        self.broken: Exception | None = None
        self.max_lease_s = 3600.0

    def _reach(self) -> None:
        if self.away:
            self.away -= 1
            raise RegistryUnavailableError("the registry is away")

    def _owner(self, caller: Caller) -> FakeOwner:
        owner = self.owners.get(caller.owner_id)
        if owner is None or not owner.live or owner.grant.epoch != caller.epoch:
            raise OwnerNotLiveError("the owner is not live under this epoch")
        return owner

    def _session(self, caller: Caller, session_id: SessionId) -> FakeSession:
        self.forwarded.append(from_peer.get())
        session = self.sessions.get(session_id)
        if session is None:
            raise SessionNotFoundError(f"unknown session {session_id}", session_id=session_id)
        if session.info.owner_id != caller.owner_id:
            raise ForeignSessionError(f"session {session_id} belongs to another owner")
        self._owner(caller)
        return session

    async def _once(
        self, owner: FakeOwner, request_id: RequestId, content: object, work: Any
    ) -> Any:
        digest = digest_of(content)
        try:
            known = owner.repeats.find(request_id, digest, self.clock.monotonic())
        except RequestIdConflictError:
            work.close()
            raise
        if known is not None:
            work.close()
            return await asyncio.shield(known)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        owner.repeats.reserve(request_id, digest, future, self.clock.monotonic())
        try:
            result = await work
        except BaseException as error:
            owner.repeats.forget(request_id)
            if not future.done():
                future.set_exception(error if isinstance(error, Exception) else OwnerNotLiveError())
                future.exception()
            raise
        future.set_result(result)
        owner.repeats.settle(request_id, self.clock.monotonic())
        return result

    # -- registry ------------------------------------------------------------------------

    async def join(self, host: HostName, address: str) -> GatewayKeys:
        self.joins += 1
        self.gateways[address] = host
        return self.keys

    async def leave(self, host: HostName, address: str) -> None:
        self.gateways.pop(address, None)

    async def acquire(
        self,
        principal: Principal,
        agent: AgentId,
        mode: SandboxMode | None,
        lease_s: float | None,
        request_id: RequestId,
    ) -> OwnerGrant:
        self._reach()
        lease = min(lease_s or 120.0, self.max_lease_s)
        for owner in self.owners.values():
            grant = owner.grant
            if owner.live and (grant.principal, grant.agent) == (principal, agent):
                owner.grant = replace(
                    grant,
                    epoch=grant.epoch + 1,
                    mode=mode or grant.mode,
                    lease_s=lease,
                    expires_at=self.clock.wall() + lease,
                )
                return owner.grant
        grant = OwnerGrant(
            new_owner_id(),
            1,
            principal,
            agent,
            mode or SandboxMode.READ_ONLY,
            lease,
            self.clock.wall() + lease,
        )
        self.owners[grant.owner_id] = FakeOwner(grant)
        return grant

    async def renew(self, caller: Caller, lease_s: float | None) -> OwnerGrant:
        self._reach()
        owner = self._owner(caller)
        lease = min(lease_s or owner.grant.lease_s, self.max_lease_s)
        owner.grant = replace(owner.grant, lease_s=lease, expires_at=self.clock.wall() + lease)
        return owner.grant

    async def release(self, caller: Caller, request_id: RequestId) -> ReleaseReceipt:
        self._reach()
        owner = self._owner(caller)
        owner.live = False
        mine = [item for item in self.sessions.values() if item.info.owner_id == caller.owner_id]
        for session in mine:
            self._end(session)
        return ReleaseReceipt(tuple(item.info.session_id for item in mine))

    async def set_mode(
        self, caller: Caller, mode: SandboxMode, request_id: RequestId
    ) -> OwnerGrant:
        owner = self._owner(caller)
        if mode != owner.grant.mode and await self.list(caller):
            raise SandboxModeLockedError("close the sessions first")
        owner.grant = replace(owner.grant, mode=mode)
        return owner.grant

    async def open(self, caller: Caller, request: OpenRequest) -> OpenResult:
        self._reach()
        owner = self._owner(caller)
        result: OpenResult = await self._once(
            owner,
            request.request_id,
            replace(request, timeout_s=None),
            self._open(caller, owner, request),
        )
        return result

    async def _open(self, caller: Caller, owner: FakeOwner, request: OpenRequest) -> OpenResult:
        if request.type not in TYPES:
            raise InvalidRequestError(f"no program type {request.type!r}", field="type")
        names = [item.name for item in await self.list(caller)]
        if request.name and request.name in names:
            raise NameTakenError(f"the name {request.name!r} is taken")
        info = SessionInfo(
            new_session_id(),
            caller.owner_id,
            request.type,
            FakeTerminal().status,
            name=request.name,
            pid=PGID,
            host=HOST,
            cwd=request.cwd or "/",
            confinement=Confinement(owner.grant.mode),
            rows=request.rows or 40,
            cols=request.cols or 160,
            created_at=self.clock.wall(),
            last_activity_at=self.clock.wall(),
        )
        terminal = FakeTerminal(info.rows, info.cols, clean_up_held=self.clean_up_held)
        self.sessions[info.session_id] = FakeSession(info, terminal)
        return OpenResult(info, PROMPT, WaitReason.STDIN_READ, next_offset=terminal.end)

    async def close(
        self, caller: Caller, session_id: SessionId, request_id: RequestId
    ) -> CloseResult:
        owner = self._owner(caller)
        result: CloseResult = await self._once(
            owner, request_id, ("close", session_id), self._close(caller, session_id)
        )
        return result

    async def _close(self, caller: Caller, session_id: SessionId) -> CloseResult:
        session = self._session(caller, session_id)
        self._end(session)
        receipt = CloseReceipt(session.terminal.exit, elapsed_s=0.01)
        return CloseResult(session_id, CloseOutcome.CLOSED, receipt)

    def _end(self, session: FakeSession) -> None:
        session.terminal.finish(ExitStatus(signal="SIGHUP"))
        del self.sessions[session.info.session_id]

    async def list(self, caller: Caller) -> tuple[SessionInfo, ...]:
        self._owner(caller)
        return tuple(
            self._info(item)
            for item in self.sessions.values()
            if item.info.owner_id == caller.owner_id
        )

    def _info(self, session: FakeSession) -> SessionInfo:
        terminal = session.terminal
        return replace(
            session.info,
            status=terminal.status,
            busy=terminal.busy,
            rows=terminal.rows,
            cols=terminal.cols,
        )

    async def locate(self, session_id: SessionId) -> Location:
        session = self.sessions.get(session_id)
        if session is None:
            raise SessionNotFoundError(f"unknown session {session_id}")
        return Location(session_id, session.info.owner_id, HOST, "", "")

    async def nodes(self) -> tuple[NodeState, ...]:
        self._reach()
        return (NodeState(HOST, True, sessions=len(self.sessions), max_sessions=64),)

    async def census(self) -> Census:
        self._reach()
        return Census(len(self.owners), (("published", len(self.sessions)),), ())

    async def list_tasks(self, caller: Caller) -> tuple[TaskRecord, ...]:
        self._owner(caller)
        return tuple(
            item.record for item in self._tasks.values() if item.record.owner_id == caller.owner_id
        )

    def announce(self, caller: Caller, kind: EventKind, detail: str | None = None) -> None:
        self.events.append(Announce(caller.owner_id, kind, detail=detail), self.clock.wall())
        self.feed.note(caller.owner_id)

    async def read_events(
        self, caller: Caller, cursor: int | None = None, limit: int = 100, wait_s: float = 0.0
    ) -> EventPage:
        self._reach()
        self._owner(caller)
        return self.events.read(caller.owner_id, cursor, limit)

    async def acknowledge_events(self, caller: Caller, sequence: int) -> None:
        self._owner(caller)
        self.events.acknowledge(caller.owner_id, sequence)

    async def news(self, version: int | None, wait_s: float) -> NewsPage:
        self._reach()
        self.asked_for_news += 1
        return await self.feed.after(version, wait_s)

    # -- sessions ------------------------------------------------------------------------

    async def send(self, caller: Caller, session_id: SessionId, request: SendRequest) -> SendResult:
        if self.broken is not None:
            raise self.broken
        session = self._session(caller, session_id)
        owner = self._owner(caller)
        content = (session_id, request.data, request.submit)

        async def work() -> SendResult:
            self.sends.append(request)
            return await session.terminal.send(request)

        result: SendResult = await self._once(owner, request.request_id, content, work())
        return result

    async def read(
        self, caller: Caller, session_id: SessionId, offset: int, count: int
    ) -> ReadPage:
        return self._session(caller, session_id).terminal.read(offset, count)

    async def signal(
        self, caller: Caller, session_id: SessionId, name: SignalName, request_id: RequestId
    ) -> SignalDelivered:
        terminal = self._session(caller, session_id).terminal
        if name is SignalName.SIGKILL and not terminal.busy:
            raise SignalRefusedError("refusing to SIGKILL the shell; close the session instead")
        terminal.interrupted.set()
        return SignalDelivered(PGID)

    async def status(self, caller: Caller, session_id: SessionId) -> SessionInfo:
        return self._info(self._session(caller, session_id))

    async def snapshot(self, caller: Caller, session_id: SessionId) -> ScreenSnapshot:
        return self._session(caller, session_id).terminal.snapshot()

    async def resize(
        self, caller: Caller, session_id: SessionId, rows: int, cols: int
    ) -> SessionInfo:
        session = self._session(caller, session_id)
        session.terminal.rows, session.terminal.cols = rows, cols
        return self._info(session)

    async def tail(
        self,
        caller: Caller,
        session_id: SessionId,
        consumer: str,
        lines: int,
        request_id: RequestId | None = None,
    ) -> TailPage:
        return self._session(caller, session_id).terminal.tail(consumer, lines)

    async def write(
        self, caller: Caller, session_id: SessionId, request: WriteRequest
    ) -> WriteReceipt:
        terminal = self._session(caller, session_id).terminal
        offset = terminal.end
        if request.keys:
            raise InvalidRequestError(f"no key is named {request.keys[0]!r}")
        terminal.print(request.data.decode())
        return WriteReceipt(len(request.data), offset)

    async def attach(
        self, caller: Caller, session_id: SessionId, start: AttachStart
    ) -> AsyncIterator[AttachEvent]:
        terminal = self._session(caller, session_id).terminal
        offset = terminal.end if start.offset is None else start.offset
        if start.snapshot:
            rows, cols = start.rows or terminal.rows, start.cols or terminal.cols
            yield AttachEvent(AttachKind.SNAPSHOT, offset, offset, b"shown", rows, cols)
        async for page in self.follow(caller, session_id, offset):
            if page.offset > offset:
                yield AttachEvent(AttachKind.GAP, offset, page.offset)
            offset = page.next_offset
            if page.data:
                yield AttachEvent(AttachKind.CHUNK, page.offset, offset, page.data)
            if page.ended:
                yield AttachEvent(AttachKind.END, offset, offset, status=terminal.status)

    async def read_bytes(
        self, caller: Caller, session_id: SessionId, offset: int, max_bytes: int, wait_s: float
    ) -> BytesPage:
        terminal = self._session(caller, session_id).terminal
        return await terminal.read_bytes(offset, max_bytes, wait_s)

    async def follow(
        self, caller: Caller, session_id: SessionId, offset: int | None
    ) -> AsyncIterator[BytesPage]:
        terminal = self._session(caller, session_id).terminal
        position = terminal.end if offset is None else offset
        if offset is None:
            yield BytesPage(position, b"", position, terminal.oldest)
        while True:
            position = max(position, terminal.oldest)
            try:
                page = await terminal.read_bytes(position, 65_536, 3600.0)
            except CursorExpiredError:
                continue
            yield page
            position = page.next_offset
            if page.ended:
                return

    async def wait_for(
        self, caller: Caller, session_id: SessionId, condition: WaitCondition, timeout_s: float
    ) -> WaitResult:
        terminal = self._session(caller, session_id).terminal
        since = terminal.end if condition.since_offset is None else condition.since_offset
        matched, found = "timeout", None
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    text = terminal.text(since)
                    if condition.pattern and (match := re.search(condition.pattern, text)):
                        matched, found = "pattern", match.group()
                        break
                    if condition.exit and terminal.exit is not None:
                        matched = "exit"
                        break
                    if condition.ready and not terminal.busy:
                        matched = "ready"
                        break
                    await terminal.changed.wait()
        except TimeoutError:
            pass
        return WaitResult(matched, terminal.text(since), terminal.status, found, terminal.end)

    async def start_task(
        self, caller: Caller, session_id: SessionId, request: SendRequest
    ) -> TaskRecord:
        session = self._session(caller, session_id)
        owner = self._owner(caller)
        content = (session_id, request.data, request.submit, "background")

        async def work() -> TaskRecord:
            terminal = session.terminal
            terminal.reserve()
            record = TaskRecord(
                new_task_id(),
                caller.owner_id,
                session_id,
                f"{session_id}: {request.data.decode()}",
                TaskState.RUNNING,
                started_at=self.clock.wall(),
            )
            running = asyncio.create_task(self._settle(record.task_id, terminal, request))
            self._tasks[record.task_id] = FakeTask(record, terminal.end, terminal, running)
            return record

        result: TaskRecord = await self._once(owner, request.request_id, content, work())
        return result

    async def _settle(self, task_id: TaskId, terminal: FakeTerminal, request: SendRequest) -> None:
        result = await terminal.run(request)
        task = self._tasks[task_id]
        killed = task.record.state is TaskState.STOPPING
        state = TaskState.KILLED if killed else TaskState.COMPLETED
        task.record = replace(
            task.record,
            state=state,
            detail=f"wait: {result.wait_reason}",
            finished_at=self.clock.wall(),
        )

    def _task(self, caller: Caller, task_id: TaskId) -> FakeTask:
        task = self._tasks.get(task_id)
        if task is None:
            raise TaskNotFoundError(f"unknown task {task_id}")
        if task.record.owner_id != caller.owner_id:
            raise ForeignSessionError(f"task {task_id} belongs to another owner")
        return task

    async def task_output(
        self, caller: Caller, task_id: TaskId, cursor: int, wait_s: float
    ) -> TaskOutput:
        task = self._task(caller, task_id)
        if wait_s:
            await asyncio.wait({task.work}, timeout=wait_s)
        text = task.terminal.text(task.start)[cursor:]
        return TaskOutput(text, task.record, cursor + len(text))

    async def kill_task(self, caller: Caller, task_id: TaskId, request_id: RequestId) -> TaskRecord:
        task = self._task(caller, task_id)
        if task.record.state is TaskState.RUNNING:
            task.record = replace(task.record, state=TaskState.STOPPING)
            task.terminal.interrupted.set()
        return task.record
