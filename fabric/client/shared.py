"""The owner's shared terminal as an object of the asynchronous client."""

from collections.abc import AsyncIterator, Callable

from fabric.api.v1 import shared_terminal_service_pb2 as pb
from fabric.client.calls import Calls
from fabric.core.errors import InvalidRequestError
from fabric.core.ids import RequestId, SessionId, new_request_id
from fabric.core.model import SignalName
from fabric.core.shared import (
    PersonRequest,
    SharedPage,
    SharedResult,
    SharedSend,
    ViewEvent,
    ViewTicket,
)
from fabric.wire import shared as wire
from fabric.wire.methods import METHODS

WAIT_S = 600.0
_SEND = METHODS["SharedTerminalService.Send"]
_READ = METHODS["SharedTerminalService.Read"]
_SIGNAL = METHODS["SharedTerminalService.Signal"]
_VIEW = METHODS["SharedTerminalService.View"]
_ACT = METHODS["SharedTerminalService.Act"]
_RESET = METHODS["SharedTerminalService.Reset"]
_TICKET = METHODS["SharedTerminalService.CreateViewTicket"]


async def send(
    calls: Calls, request: SharedSend, wait_s: float, at: SessionId | None = None
) -> SharedResult:
    """Queue a send; ``at`` is for a gateway that passes a call on."""
    message = wire.send_message(request, at)
    answer: pb.SharedTerminalServiceSendResponse
    answer = await calls.ask_and_mean_it(_SEND, message, wait_s)
    return wire.outcome_of(answer.outcome)


async def read(
    calls: Calls, offset: int, count: int | None, at: SessionId | None = None
) -> SharedPage:
    """Read the screen and a page of history."""
    return wire.page_of(await calls.read_only(_READ, wire.read_message(offset, count, at)))


async def signal(
    calls: Calls,
    name: SignalName,
    request_id: RequestId,
    wait_s: float,
    at: SessionId | None = None,
) -> SharedResult:
    """Queue a signal."""
    message = wire.signal_message(name, request_id, at)
    answer: pb.SharedTerminalServiceSignalResponse
    answer = await calls.ask_and_mean_it(_SIGNAL, message, wait_s)
    return wire.outcome_of(answer.outcome)


async def reset(
    calls: Calls, request_id: RequestId, wait_s: float, at: SessionId | None = None
) -> SharedResult:
    """Queue a reset."""
    message = wire.reset_message(request_id, at)
    answer: pb.SharedTerminalServiceResetResponse
    answer = await calls.ask_and_mean_it(_RESET, message, wait_s)
    return wire.outcome_of(answer.outcome)


async def view(
    calls: Calls, readonly: bool, resume: str, at: SessionId | None = None
) -> AsyncIterator[tuple[ViewEvent, str]]:
    """Stream the events of a view, the first with the name under which a controller acts."""
    request = wire.view_message(readonly, resume, at)
    async for message in calls.link.stream(_VIEW, request, calls.headers):
        event = wire.view_event_of(message)
        if event is not None:
            yield event


async def act(calls: Calls, request: PersonRequest, at: SessionId | None = None) -> int:
    """Do what a person asks for."""
    answer: pb.SharedTerminalServiceActResponse
    answer = await calls.ask(_ACT, wire.act_message(request, at))
    return answer.lease


async def view_ticket(
    calls: Calls, session_id: SessionId | None, *, overview: bool, readonly: bool
) -> ViewTicket:
    """Make a link for a browser."""
    message = wire.ticket_request(session_id, overview=overview, readonly=readonly)
    return wire.ticket_of(await calls.ask(_TICKET, message))


class SharedTerminal:
    """The one terminal an owner's model shares with a person; made by the first call.

    ``wait_s`` bounds the wait for a turn and the operation together, in seconds.
    """

    def __init__(self, calls: Callable[[], Calls]) -> None:
        self._calls = calls

    async def send(
        self,
        text: str | bytes = "",
        *,
        submit: bool = True,
        wait_s: float = WAIT_S,
        request_id: RequestId | None = None,
    ) -> SharedResult:
        """Type text and wait. Raises: QueueFullError, QueueBlockedError, SessionExitedError, …"""
        try:
            data = text if isinstance(text, bytes) else text.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequestError("text must be valid Unicode; send bytes instead") from error
        request = SharedSend(request_id or new_request_id(), data, submit)
        return await send(self._calls(), request, wait_s)

    async def read(self, offset: int = 0, count: int | None = None) -> SharedPage:
        """Return the screen and a page of the history above it; never waits for a turn."""
        return await read(self._calls(), offset, count)

    async def signal(
        self,
        name: SignalName | str,
        *,
        wait_s: float = WAIT_S,
        request_id: RequestId | None = None,
    ) -> SharedResult:
        """Signal the foreground group. Raises: SignalRefusedError, InvalidRequestError."""
        try:
            known = SignalName(name)
        except ValueError as error:
            names = ", ".join(SignalName)
            raise InvalidRequestError(f"signal must be one of {names}", field="signal") from error
        return await signal(self._calls(), known, request_id or new_request_id(), wait_s)

    async def reset(
        self, *, wait_s: float = WAIT_S, request_id: RequestId | None = None
    ) -> SharedResult:
        """End the whole tree and start the next generation of the shell."""
        return await reset(self._calls(), request_id or new_request_id(), wait_s)

    async def view(
        self, *, readonly: bool = False, resume: str = ""
    ) -> AsyncIterator[tuple[ViewEvent, str]]:
        """Stream the screen and the state of the queue, as a person's terminal shows it.

        The first event says whether this view controls, and then under which name it acts
        and with which proof it may come back. The last event is ``RESET``.
        """
        async for event in view(self._calls(), readonly, resume):
            yield event

    async def act(self, request: PersonRequest) -> int:
        """Do what the person at the controlling view asks for; returns the lease.

        Raises: NotControllerError, StaleGenerationError, SessionStateError, InputTooLargeError.
        """
        return await act(self._calls(), request)
