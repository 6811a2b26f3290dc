"""The fabric's tools as an MCP server.

Nothing here knows what a tool does: names, schemas and answers come from the gateway. What
goes wrong inside a call is an answer the model can read, and so is a gateway that is away;
only what is no call at all (a list that cannot be had) is an error of the protocol.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from fabric.client.tooling import ToolAnswer, ToolInfo
from fabric.core.errors import FabricError
from fabric.core.model import TaskRecord
from fabric.core.plain import to_plain
from fabric.mcp.notices import MAX_NOTICE_BYTES, TASKS_URI
from fabric.mcp.seats import Place, Seats, Visitor
from fabric.tools import render

NAME = "pty-fabric"
META = "pty-fabric/card"
NOT_FOUND = -32002  # resource not found, of the protocol
FAILED = -32603  # internal error, of JSON-RPC
WhoAsks = Callable[[Any], Visitor]


def build(
    seats: Seats, who: WhoAsks, *, version: str, guidance: str, surfaces: Sequence[str] = ()
) -> Any:
    """Make the server. ``who`` tells the visitor from a request's context."""
    handlers = Handlers(seats, who, tuple(surfaces))
    server: Any = Server(
        NAME,
        version=version,
        title="Terminals",
        instructions=guidance,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=handlers.subscribe,
        on_unsubscribe_resource=handlers.unsubscribe,
        on_subscriptions_listen=handlers.listen,
    )
    # Registered by name: the constructor's argument warns that later versions have no logging.
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, handlers.set_level)
    return server


class Handlers:
    """One method for each request of the protocol."""

    def __init__(self, seats: Seats, who: WhoAsks, surfaces: tuple[str, ...]) -> None:
        self._seats = seats
        self._who = who
        self._surfaces = surfaces

    def _place(self, context: Any) -> Place:
        visitor = self._who(context)
        place = self._seats.place(visitor)
        place.audience.join(visitor.session or "", context.session)
        return place

    async def list_tools(self, context: Any, params: Any) -> Any:
        """List the tools the gateway offers."""
        place = self._place(context)
        try:
            tools = await place.seat.tools(self._surfaces)
        except FabricError as error:
            raise _protocol_error(error) from error
        return types.ListToolsResult(tools=[_tool(tool) for tool in tools])

    async def call_tool(self, context: Any, params: Any) -> Any:
        """Carry a call through, with progress while it waits."""
        place = self._place(context)

        async def progress(waited_s: float) -> None:
            await context.session.report_progress(waited_s, None, f"waiting for {waited_s:.0f} s")

        try:
            answer = await place.seat.call(params.name, params.arguments or {}, progress)
        except FabricError as error:
            facts = {**error.metadata, "reason": error.reason, "message": error.message}
            text = render.failed(error, MAX_NOTICE_BYTES)
            answer = ToolAnswer(text, {"error": facts}, is_error=True)
        return _result(answer)

    async def list_resources(self, context: Any, params: Any) -> Any:
        """List the owner's background tasks."""
        rows = await self._tasks(context)
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=f"{TASKS_URI}{row.task_id}",
                    name=row.task_id,
                    title=row.label,
                    description=f"background task, {row.state.value}",
                    mime_type="application/json",
                )
                for row in rows
            ]
        )

    async def list_templates(self, context: Any, params: Any) -> Any:
        """Say how a task is addressed."""
        template = types.ResourceTemplate(
            uri_template=TASKS_URI + "{task_id}",
            name="task",
            title="Background task",
            description="State of a background task; an update says that it has ended.",
            mime_type="application/json",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, context: Any, params: Any) -> Any:
        """Return a task's record and, once it has ended, its notice; its output stays unread."""
        uri = str(params.uri)
        for row in await self._tasks(context):
            if f"{TASKS_URI}{row.task_id}" == uri:
                content = types.TextResourceContents(
                    uri=uri, mime_type="application/json", text=_task_text(row)
                )
                return types.ReadResourceResult(contents=[content])
        raise MCPError(NOT_FOUND, f"no such resource: {uri}")

    async def subscribe(self, context: Any, params: Any) -> Any:
        """Tell this connection when a task ends."""
        self._place(context).audience.subscribed.add(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(self, context: Any, params: Any) -> Any:
        """Do not tell any more."""
        self._place(context).audience.subscribed.discard(str(params.uri))
        return types.EmptyResult()

    async def listen(self, context: Any, params: Any) -> Any:
        """Serve a stream of updates (the era without sessions)."""
        place = self._place(context)
        try:
            async with place.seat.client():  # events flow only to an owner that is there
                pass
        except FabricError as error:
            raise _protocol_error(error) from error
        return await place.audience.listen(context, params)

    async def set_level(self, context: Any, params: Any) -> Any:
        """Choose which messages are sent."""
        self._place(context).audience.level = params.level
        return types.EmptyResult()

    async def _tasks(self, context: Any) -> tuple[TaskRecord, ...]:
        place = self._place(context)
        try:
            async with place.seat.client() as client:
                return await client.tasks()
        except FabricError as error:
            raise _protocol_error(error) from error


def _protocol_error(error: FabricError) -> Exception:
    failure: Exception = MCPError(FAILED, error.message, {"reason": error.reason, **error.metadata})
    return failure


def _tool(tool: ToolInfo) -> Any:
    hints = types.ToolAnnotations(
        read_only_hint=tool.read_only,
        destructive_hint=tool.destructive,
        idempotent_hint=tool.read_only,
        open_world_hint=not tool.read_only,
    )
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.parameters,
        output_schema=tool.value or None,
        annotations=hints,
    )


def _result(answer: ToolAnswer) -> Any:
    card = {
        "card": answer.card,
        "title": answer.title,
        "description": answer.description,
        "showsOutput": answer.shows_output,
    }
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=answer.text)],
        structured_content=answer.value,
        is_error=answer.is_error,
        _meta={META: card},
    )


def _task_text(row: TaskRecord) -> str:
    facts = to_plain(replace(row))
    facts["notice"] = render.notice(row, MAX_NOTICE_BYTES) if row.finished_at else None
    return json.dumps(facts, ensure_ascii=False)
