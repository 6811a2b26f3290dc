"""TerminalService: convert, call, convert."""

from dataclasses import replace

from fabric.api.v1 import terminal_service_pb2 as pb
from fabric.core.errors import InputTooLargeError
from fabric.core.ids import parse_request_id, parse_session_id
from fabric.gateway.calls import Access, Call, Kind, Route, Routes
from fabric.gateway.limits import Limits
from fabric.gateway.lingering import Lingering
from fabric.gateway.ports import RegistryPort, SessionsPort
from fabric.wire import convert, requests


def refuse_large(data: bytes, limits: Limits, principal: str = "") -> None:
    """Refuse input above the limit of one send. Raises: InputTooLargeError."""
    own = limits.policies.of(principal).max_send_bytes or limits.max_send_bytes
    limit = min(own, limits.max_send_bytes)
    if len(data) > limit:
        raise InputTooLargeError(
            f"data has {len(data)} bytes; one send takes at most {limit}", max_bytes=limit
        )


class TerminalService:
    """Open, drive, read and close sessions."""

    name = "TerminalService"

    def __init__(
        self,
        registry: RegistryPort,
        sessions: SessionsPort,
        limits: Limits,
        lingering: Lingering,
    ) -> None:
        self._registry = registry
        self._sessions = sessions
        self._limits = limits
        self._lingering = lingering

    def routes(self) -> Routes:
        """Return the handlers by the names of their RPCs."""
        return {
            "Open": Route(self.open, Access.OWNER, Kind.WORK),
            "Send": Route(self.send, Access.DATA, Kind.WORK),
            "Read": Route(self.read, Access.DATA, Kind.QUICK),
            "Signal": Route(self.signal, Access.DATA, Kind.QUICK),
            "Close": Route(self.close, Access.OWNER, Kind.WORK),
            "List": Route(self.list, Access.OWNER, Kind.QUICK),
            "Status": Route(self.status, Access.DATA, Kind.QUICK),
            "Snapshot": Route(self.snapshot, Access.DATA, Kind.QUICK),
            "Resize": Route(self.resize, Access.DATA, Kind.QUICK),
            "CancelCall": Route(self.cancel_call, Access.DATA, Kind.QUICK),
            "WaitFor": Route(self.wait_for, Access.DATA, Kind.WAIT),
        }

    async def open(self, call: Call, message: pb.OpenRequest) -> pb.OpenResponse:
        """Open a session."""
        request = requests.open_of(message)
        limit = self._limits.open_timeout_s
        timeout_s = call.wait_s(request.timeout_s, limit, self._limits.max_wait_s)
        if request.timeout_s is not None or timeout_s < limit:
            request = replace(request, timeout_s=timeout_s)
        work = self._registry.open(call.caller, request)
        result = await self._lingering.run(call, request.request_id, work)
        return convert.open_message(result)

    async def send(self, call: Call, message: pb.SendRequest) -> pb.SendResponse:
        """Write and wait for a verdict."""
        session_id, request = requests.send_of(message)
        refuse_large(request.data, self._limits, call.identity.principal)
        limit = self._limits.send_timeout_s
        timeout_s = call.wait_s(request.timeout_s, limit, self._limits.max_wait_s)
        if request.timeout_s is not None or timeout_s < limit:
            request = replace(request, timeout_s=timeout_s)
        work = self._sessions.send(call.caller, session_id, request)
        return convert.send_message(await self._lingering.run(call, request.request_id, work))

    async def cancel_call(self, call: Call, message: pb.CancelCallRequest) -> pb.CancelCallResponse:
        """Give up a running send or open."""
        request_id = parse_request_id(message.request_id)
        found = await self._lingering.give_up(call.owner_id, request_id)
        return pb.CancelCallResponse(found=found)

    async def read(self, call: Call, message: pb.ReadRequest) -> pb.ReadResponse:
        """Return a page of lines."""
        session_id, offset, count = requests.read_of(message)
        page = await self._sessions.read(call.caller, session_id, offset, count)
        return convert.read_message(page)

    async def signal(self, call: Call, message: pb.SignalRequest) -> pb.SignalResponse:
        """Signal the foreground group."""
        session_id, name, request_id = requests.signal_of(message)
        delivered = await self._sessions.signal(call.caller, session_id, name, request_id)
        return pb.SignalResponse(target_pgid=delivered.target_pgid)

    async def close(self, call: Call, message: pb.CloseRequest) -> pb.CloseResponse:
        """Close a session."""
        session_id = parse_session_id(message.session_id)
        request_id = parse_request_id(message.request_id)
        result = await self._registry.close(call.caller, session_id, request_id)
        return convert.close_message(result)

    async def list(self, call: Call, message: pb.ListRequest) -> pb.ListResponse:
        """List the owner's sessions."""
        sessions = await self._registry.list(call.caller)
        return pb.ListResponse(sessions=[convert.info_message(item) for item in sessions])

    async def status(self, call: Call, message: pb.StatusRequest) -> pb.StatusResponse:
        """Describe one session."""
        session_id = parse_session_id(message.session_id)
        info = await self._sessions.status(call.caller, session_id)
        return pb.StatusResponse(session=convert.info_message(info))

    async def snapshot(self, call: Call, message: pb.SnapshotRequest) -> pb.SnapshotResponse:
        """Show the screen."""
        session_id = parse_session_id(message.session_id)
        return convert.snapshot_message(await self._sessions.snapshot(call.caller, session_id))

    async def resize(self, call: Call, message: pb.ResizeRequest) -> pb.ResizeResponse:
        """Change the terminal's size."""
        session_id, rows, cols = requests.resize_of(message)
        info = await self._sessions.resize(call.caller, session_id, rows, cols)
        return pb.ResizeResponse(session=convert.info_message(info))

    async def wait_for(self, call: Call, message: pb.WaitForRequest) -> pb.WaitForResponse:
        """Wait for a condition."""
        session_id, condition, wanted = requests.wait_of(message)
        timeout_s = call.wait_s(wanted, self._limits.wait_timeout_s, self._limits.max_wait_s)
        result = await self._sessions.wait_for(call.caller, session_id, condition, timeout_s)
        return convert.wait_message(result)
