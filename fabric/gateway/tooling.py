"""ToolService: a model's calls, carried through by ``fabric.tools``.

The verbs behind a call are the same ports the typed services use, bound to the caller;
waits are held below the call's own deadline, so that running out of time is an answer.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from fabric.api.v1 import tool_service_pb2 as pb
from fabric.core.errors import InvalidRequestError
from fabric.core.ids import RequestId, SessionId, TaskId, parse_request_id
from fabric.core.model import (
    CloseResult,
    OpenRequest,
    OpenResult,
    ReadPage,
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
from fabric.core.shared import SharedPage, SharedResult, SharedSend
from fabric.gateway.calls import Access, Call, Kind, Route, Routes
from fabric.gateway.limits import Limits
from fabric.gateway.lingering import Lingering
from fabric.gateway.meters import Meters
from fabric.gateway.ports import RegistryPort, SessionsPort
from fabric.gateway.shared import SharedTerminals
from fabric.gateway.terminals import refuse_large
from fabric.gateway.transcript import CallRecord
from fabric.tools.surface import Answer
from fabric.tools.surface import Caller as ToolCaller
from fabric.tools.table import Surface, Tool, guidance_of, tools_of

PROGRESS_S = 1.0
Write = Callable[[Any], Awaitable[None]]


class BoundVerbs:
    """The ports, bound to one call."""

    def __init__(
        self,
        call: Call,
        registry: RegistryPort,
        sessions: SessionsPort,
        limits: Limits,
        lingering: Lingering,
        shared: SharedTerminals,
        meters: Meters | None = None,
    ) -> None:
        self._shared = shared
        self._meters = meters
        self._lingering = lingering
        self._call = call
        self._registry = registry
        self._sessions = sessions
        self._limits = limits

    def _wait(self, wanted: float | None, default: float) -> float:
        return self._call.wait_s(wanted, default, self._limits.max_wait_s)

    async def open(self, request: OpenRequest) -> OpenResult:
        """Open a session."""
        limit = self._limits.open_timeout_s
        timeout_s = self._wait(request.timeout_s, limit)
        if timeout_s < limit:  # else a repeat would differ from what it repeats
            request = replace(request, timeout_s=timeout_s)
        work = self._registry.open(self._call.caller, request)
        return await self._lingering.run(self._call, request.request_id, work)

    async def send(self, session_id: SessionId, request: SendRequest) -> SendResult:
        """Send and wait."""
        refuse_large(request.data, self._limits, self._call.identity.principal)
        limit = self._limits.send_timeout_s
        timeout_s = self._wait(request.timeout_s, limit)
        if timeout_s < limit:
            request = replace(request, timeout_s=timeout_s)
        work = self._sessions.send(self._call.caller, session_id, request)
        result = await self._lingering.run(self._call, request.request_id, work)
        if self._meters is not None:
            self._meters.settled(result.wait_reason, result.evidence)
        return result

    async def read(self, session_id: SessionId, offset: int, count: int) -> ReadPage:
        """Read a page."""
        return await self._sessions.read(self._call.caller, session_id, offset, count)

    async def signal(
        self, session_id: SessionId, name: SignalName, request_id: RequestId
    ) -> SignalDelivered:
        """Signal the foreground group."""
        return await self._sessions.signal(self._call.caller, session_id, name, request_id)

    async def wait_for(
        self, session_id: SessionId, condition: WaitCondition, timeout_s: float
    ) -> WaitResult:
        """Wait beside the terminal."""
        bounded = self._wait(timeout_s, self._limits.wait_timeout_s)
        return await self._sessions.wait_for(self._call.caller, session_id, condition, bounded)

    async def tail(
        self, session_id: SessionId, consumer: str, lines: int | None, request_id: RequestId
    ) -> TailPage:
        """Return the lines that are new to a consumer."""
        count = lines or self._limits.pty.tail_lines
        return await self._sessions.tail(self._call.caller, session_id, consumer, count, request_id)

    async def close(self, session_id: SessionId, request_id: RequestId) -> CloseResult:
        """Close a session."""
        return await self._registry.close(self._call.caller, session_id, request_id)

    async def list(self) -> tuple[SessionInfo, ...]:
        """List the sessions."""
        return await self._registry.list(self._call.caller)

    async def start_task(self, session_id: SessionId, request: SendRequest) -> TaskRecord:
        """Start a background send."""
        refuse_large(request.data, self._limits, self._call.identity.principal)
        return await self._sessions.start_task(self._call.caller, session_id, request)

    async def task_output(self, task_id: TaskId, cursor: int, wait_s: float) -> TaskOutput:
        """Read a task."""
        bounded = self._wait(wait_s, 0.0) if wait_s else 0.0
        return await self._sessions.task_output(self._call.caller, task_id, cursor, bounded)

    async def list_tasks(self) -> tuple[TaskRecord, ...]:
        """List the tasks."""
        return await self._registry.list_tasks(self._call.caller)

    async def kill_task(self, task_id: TaskId, request_id: RequestId) -> TaskRecord:
        """Interrupt a task."""
        return await self._sessions.kill_task(self._call.caller, task_id, request_id)

    async def shared_send(self, request: SharedSend) -> SharedResult:
        """Queue a send on the shared terminal."""
        work = self._shared.send(self._call.caller, request)
        return await self._lingering.run(self._call, request.request_id, work)

    async def shared_read(self, offset: int, count: int) -> SharedPage:
        """Read the shared terminal."""
        return await self._shared.read(self._call.caller, offset, count)

    async def shared_signal(self, name: SignalName, request_id: RequestId) -> SharedResult:
        """Queue a signal on the shared terminal."""
        work = self._shared.signal(self._call.caller, name, request_id)
        return await self._lingering.run(self._call, request_id, work)

    async def shared_reset(self, request_id: RequestId) -> SharedResult:
        """Queue a reset of the shared terminal."""
        work = self._shared.reset(self._call.caller, request_id)
        return await self._lingering.run(self._call, request_id, work)


class ToolService:
    """List tools and carry calls through."""

    name = "ToolService"

    def __init__(
        self,
        registry: RegistryPort,
        sessions: SessionsPort,
        limits: Limits,
        lingering: Lingering,
        record: CallRecord | None = None,
        shared: SharedTerminals | None = None,
        meters: Meters | None = None,
    ) -> None:
        self._meters = meters
        self._shared = shared or SharedTerminals(registry, sessions)
        self._lingering = lingering
        self._registry = registry
        self._sessions = sessions
        self._limits = limits
        self._tasks = limits.tasks
        self._record = record

    def routes(self) -> Routes:
        """Return the handlers by the names of their RPCs."""
        return {
            "ListTools": Route(self.list_tools, Access.PRINCIPAL, Kind.QUICK),
            "CallTool": Route(self.call_tool, Access.OWNER, Kind.WORK),
            "CallToolStream": Route(self.call_tool_stream, Access.OWNER, Kind.WORK),
        }

    async def list_tools(self, call: Call, message: pb.ListToolsRequest) -> pb.ListToolsResponse:
        """List the tools of the surfaces asked for."""
        wanted, background = _surfaces(message.surfaces), self._tasks.enabled
        return pb.ListToolsResponse(
            tools=[_tool_message(tool) for tool in tools_of(wanted, background=background)],
            guidance=guidance_of(wanted, background=background),
        )

    async def call_tool(self, call: Call, message: pb.CallToolRequest) -> pb.CallToolResponse:
        """Carry one call through."""
        return _answer_message(await self._answer(call, message))

    async def call_tool_stream(
        self, call: Call, message: pb.CallToolStreamRequest, write: Write
    ) -> None:
        """Carry one call through and say every second that it still waits."""
        started = time.monotonic()
        work = asyncio.ensure_future(self._answer(call, message.call))
        try:
            while not (await asyncio.wait({work}, timeout=PROGRESS_S))[0]:
                elapsed = round((time.monotonic() - started) * 1000)
                progress = pb.ToolProgress(elapsed_ms=elapsed)
                await write(pb.CallToolStreamResponse(progress=progress))
            await write(pb.CallToolStreamResponse(answer=_answer_message(work.result())))
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _answer(self, call: Call, message: pb.CallToolRequest) -> Answer:
        request_id = parse_request_id(message.request_id)
        verbs = BoundVerbs(
            call,
            self._registry,
            self._sessions,
            self._limits,
            self._lingering,
            self._shared,
            self._meters,
        )
        caller = ToolCaller(
            verbs,
            surfaces=frozenset(Surface),
            tasks=self._tasks,
            max_result_bytes=self._limits.max_result_bytes,
            ptys=self._limits.pty,
            max_shared_bytes=self._limits.max_shared_bytes,
        )
        arguments = _arguments(message.arguments_json)
        if self._record is None:
            return await caller.call(message.name, arguments, request_id)
        started = time.monotonic()
        try:
            answer = await caller.call(message.name, arguments, request_id)
        except BaseException:
            self._record.lose(arguments)
            raise
        took_s = time.monotonic() - started
        self._record.add(call.caller.owner_id, message.name, arguments, answer, took_s)
        return answer


def _arguments(text: str) -> Any:
    """Read the arguments; text that is no JSON is left for the check, which refuses it."""
    if not text:
        return {}
    try:
        return json.loads(text)
    except ValueError:
        return text


def _surfaces(names: Any) -> frozenset[Surface]:
    known = {surface.value: surface for surface in Surface}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidRequestError(
            f"unknown surface {unknown[0]!r}; there are: {', '.join(known)}", surface=unknown[0]
        )
    return frozenset(known[name] for name in names) or frozenset(Surface)


def _tool_message(tool: Tool) -> pb.Tool:
    return pb.Tool(
        name=tool.name,
        description=tool.description,
        parameters_json=json.dumps(tool.schema, ensure_ascii=False),
        surface=tool.surface.value,
        card=tool.card.value,
        read_only=tool.read_only,
        destructive=tool.destructive,
        value_json=json.dumps(tool.value_schema),
    )


def _answer_message(answer: Answer) -> pb.CallToolResponse:
    return pb.CallToolResponse(
        text=answer.text.encode("utf-8", "replace").decode(),
        value_json=json.dumps(answer.value, ensure_ascii=False),
        is_error=answer.is_error,
        card=answer.card.value if answer.card else "",
        title=answer.title.encode("utf-8", "replace").decode(),
        description=answer.description,
        shows_output=answer.shows_output,
    )
