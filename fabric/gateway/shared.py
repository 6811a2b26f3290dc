"""SharedTerminalService, and the finding of an owner's one shared terminal.

The first call makes the terminal, whichever it is. It is an ordinary session with a name
no other may have, so the registry lets there be one; at one gateway the first callers share
the making, which goes on when one of them leaves.
"""

import asyncio
import contextlib
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fabric.api.v1 import shared_terminal_service_pb2 as pb
from fabric.core.context import from_peer
from fabric.core.errors import (
    DrainingError,
    InvalidRequestError,
    NameTakenError,
    SessionLostError,
    SessionNotFoundError,
    UnsupportedError,
)
from fabric.core.ids import OwnerId, RequestId, SessionId, new_request_id, parse_request_id
from fabric.core.model import Caller, OpenRequest, SignalName, WaitReason
from fabric.core.shared import SHARED_NAME, SharedPage, SharedResult, SharedSend, ViewStart
from fabric.gateway.calls import Access, Call, Kind, Route, Routes
from fabric.gateway.lingering import Lingering
from fabric.gateway.pauses import with_pauses
from fabric.gateway.ports import RegistryPort, SessionsPort, ViewsPort
from fabric.wire import shared as wire

T = TypeVar("T")
MAX_KNOWN = 65_536
OTHER_OPEN_S = 0.05
OTHER_OPENS = 1200
VIEW_BYTES = 16
NO_WEB = "set web.listen, or call another gateway"
Write = Callable[[pb.SharedTerminalServiceViewResponse], Awaitable[None]]
_Work = Callable[[SessionId], Awaitable[T]]


class SharedTerminals:
    """The shared terminals of all owners, as one gateway knows them."""

    def __init__(self, registry: RegistryPort, sessions: SessionsPort) -> None:
        self._registry = registry
        self._sessions = sessions
        self._known: OrderedDict[OwnerId, SessionId] = OrderedDict()
        self._making: dict[OwnerId, asyncio.Task[SessionId]] = {}
        self._fresh: set[SessionId] = set()

    async def send(self, caller: Caller, request: SharedSend) -> SharedResult:
        """Queue a model's send."""
        return await self._used(caller, lambda at: self._sessions.shared_send(caller, at, request))

    async def signal(self, caller: Caller, name: SignalName, request_id: RequestId) -> SharedResult:
        """Queue a signal."""
        return await self._used(
            caller, lambda at: self._sessions.shared_signal(caller, at, name, request_id)
        )

    async def read(self, caller: Caller, offset: int, count: int) -> SharedPage:
        """Read the history."""
        return await self._used(
            caller, lambda at: self._sessions.shared_read(caller, at, offset, count)
        )

    async def reset(self, caller: Caller, request_id: RequestId) -> SharedResult:
        """Queue a reset; one that made the terminal has its first generation to give."""

        async def work(at: SessionId) -> SharedResult:
            return await self._sessions.shared_reset(caller, at, request_id)

        session_id = await self.find(caller)
        if session_id in self._fresh:
            self._fresh.discard(session_id)
            page = await self._sessions.shared_read(caller, session_id, 0, 1)
            return SharedResult(page.state, WaitReason.PROMPT, 0)
        return await self._used(caller, work)

    async def find(self, caller: Caller) -> SessionId:
        """Return the owner's shared terminal, made if there is none."""
        owner_id = caller.owner_id
        known = self._known.get(owner_id)
        if known is not None:
            return known
        task = self._making.get(owner_id)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._make(caller))
            self._making[owner_id] = task
            task.add_done_callback(lambda done: self._made(owner_id, done))
        return await asyncio.shield(task)

    def _made(self, owner_id: OwnerId, task: "asyncio.Task[SessionId]") -> None:
        self._making.pop(owner_id, None)
        if not task.cancelled() and task.exception() is None:
            self._known[owner_id] = task.result()
            while len(self._known) > MAX_KNOWN:
                self._fresh.discard(self._known.popitem(last=False)[1])

    async def _make(self, caller: Caller) -> SessionId:
        for _ in range(OTHER_OPENS):
            for info in await self._registry.list(caller):
                if info.name == SHARED_NAME:
                    return info.session_id
            request = OpenRequest(new_request_id(), "shell", name=SHARED_NAME, shared=True)
            try:
                result = await self._registry.open(caller, request)
            except NameTakenError:  # another gateway is making it
                await asyncio.sleep(OTHER_OPEN_S)
                continue
            self._fresh.add(result.info.session_id)
            return result.info.session_id
        raise NameTakenError("the shared terminal is still being made by another gateway")

    async def _used(self, caller: Caller, work: _Work[T]) -> T:
        session_id = await self.find(caller)
        self._fresh.discard(session_id)
        try:
            return await work(session_id)
        except SessionLostError:
            self.forget(caller.owner_id)
            raise
        except SessionNotFoundError:  # it was closed; the next one is made
            self.forget(caller.owner_id)
        return await work(await self.find(caller))

    def forget(self, owner_id: OwnerId) -> None:
        """Look an owner's terminal up anew the next time."""
        self._known.pop(owner_id, None)


class SharedTerminalService:
    """Drive the one shared terminal of an owner."""

    name = "SharedTerminalService"

    def __init__(
        self,
        terminals: SharedTerminals,
        registry: RegistryPort,
        sessions: SessionsPort,
        lingering: Lingering,
        views: ViewsPort | None,
    ) -> None:
        self._terminals = terminals
        self._registry = registry
        self._views = views
        self._sessions = sessions
        self._lingering = lingering

    def routes(self) -> Routes:
        """Return the handlers by the names of their RPCs."""
        return {
            "Send": Route(self.send, Access.DATA, Kind.WORK),
            "Read": Route(self.read, Access.DATA, Kind.QUICK),
            "Signal": Route(self.signal, Access.DATA, Kind.WORK),
            "Reset": Route(self.reset, Access.DATA, Kind.WORK),
            "View": Route(self.view, Access.DATA, Kind.WAIT),
            "Act": Route(self.act, Access.DATA, Kind.WORK),
            "CreateViewTicket": Route(self.create_view_ticket, Access.OWNER, Kind.QUICK),
        }

    async def send(
        self, call: Call, message: pb.SharedTerminalServiceSendRequest
    ) -> pb.SharedTerminalServiceSendResponse:
        """Queue a model's send."""
        request, at = wire.send_of(message), _forwarded(message.session_id)
        if at is not None:
            work = self._sessions.shared_send(call.caller, at, request)
        else:
            work = self._terminals.send(call.caller, request)
        result = await self._lingering.run(call, request.request_id, work)
        return pb.SharedTerminalServiceSendResponse(outcome=wire.outcome_message(result))

    async def read(
        self, call: Call, message: pb.SharedTerminalServiceReadRequest
    ) -> pb.SharedTerminalServiceReadResponse:
        """Read the history."""
        (offset, count), at = wire.read_of(message), _forwarded(message.session_id)
        if at is not None:
            page = await self._sessions.shared_read(call.caller, at, offset, count)
        else:
            page = await self._terminals.read(call.caller, offset, count)
        return wire.page_message(page)

    async def signal(
        self, call: Call, message: pb.SharedTerminalServiceSignalRequest
    ) -> pb.SharedTerminalServiceSignalResponse:
        """Queue a signal."""
        (name, request_id), at = wire.signal_of(message), _forwarded(message.session_id)
        if at is not None:
            work = self._sessions.shared_signal(call.caller, at, name, request_id)
        else:
            work = self._terminals.signal(call.caller, name, request_id)
        result = await self._lingering.run(call, request_id, work)
        return pb.SharedTerminalServiceSignalResponse(outcome=wire.outcome_message(result))

    async def reset(
        self, call: Call, message: pb.SharedTerminalServiceResetRequest
    ) -> pb.SharedTerminalServiceResetResponse:
        """Queue a reset."""
        request_id = parse_request_id(message.request_id)
        at = _forwarded(message.session_id)
        if at is not None:
            work = self._sessions.shared_reset(call.caller, at, request_id)
        else:
            work = self._terminals.reset(call.caller, request_id)
        result = await self._lingering.run(call, request_id, work)
        return pb.SharedTerminalServiceResetResponse(outcome=wire.outcome_message(result))

    async def view(
        self, call: Call, message: pb.SharedTerminalServiceViewRequest, write: Write
    ) -> None:
        """Show the terminal to one view until its generation ends, or this gateway does."""
        at = _forwarded(message.session_id) or await self._terminals.find(call.caller)
        start = ViewStart(secrets.token_urlsafe(VIEW_BYTES), message.readonly, message.resume)
        generation = 0
        try:
            events = with_pauses(self._sessions.shared_view(call.caller, at, start))
            async with contextlib.aclosing(events) as paced:
                async for event in paced:
                    if event is None:
                        alive = pb.SharedTerminalServiceViewResponse(generation=generation)
                        alive.keep_alive.SetInParent()
                        await write(alive)
                        continue
                    generation = event.generation
                    await write(wire.view_event_message(event, start.view))
        except asyncio.CancelledError:
            if not isinstance(call.ending, DrainingError):
                raise
            call.task.uncancel()
            end = pb.SharedTerminalServiceViewResponse(generation=generation)
            end.end.reason = wire.DRAINING
            await write(end)

    async def act(
        self, call: Call, message: pb.SharedTerminalServiceActRequest
    ) -> pb.SharedTerminalServiceActResponse:
        """Do what the person at the controlling view asks for."""
        request = wire.act_of(message)
        at = _forwarded(message.session_id) or await self._terminals.find(call.caller)
        lease = await self._sessions.shared_act(call.caller, at, request)
        return pb.SharedTerminalServiceActResponse(lease=lease)

    async def create_view_ticket(
        self, call: Call, message: pb.CreateViewTicketRequest
    ) -> pb.CreateViewTicketResponse:
        """Make a link for a browser; the list also says whether the owner lives."""
        session_id, overview = wire.ticket_target(message)
        listed = await self._registry.list(call.caller)
        info = next((info for info in listed if info.session_id == session_id), None)
        if session_id is not None and info is None:
            raise SessionNotFoundError("the owner has no such session", session_id=session_id)
        if self._views is None:
            raise UnsupportedError("this gateway has no web server", hint=NO_WEB)
        if overview:
            ticket = self._views.mint_overview(call.caller)
        else:
            ticket = self._views.mint(call.caller, info, readonly=message.readonly)
        return wire.ticket_message(ticket)


def _forwarded(text: str) -> SessionId | None:
    """Return the session another gateway names; nobody else may name one, and it must."""
    at = wire.forwarded(text)
    if (at is not None) != from_peer.get():
        raise InvalidRequestError(
            "an owner has one shared terminal, which no call names", field="session_id"
        )
    return at
