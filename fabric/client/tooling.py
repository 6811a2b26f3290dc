"""The fabric as a set of tools: what a harness needs that knows nothing of terminals."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fabric.api.v1 import tool_service_pb2 as pb
from fabric.client.calls import Calls
from fabric.core.ids import RequestId
from fabric.wire import fields
from fabric.wire.methods import METHODS

_LIST = METHODS["ToolService.ListTools"]
_CALL = METHODS["ToolService.CallTool"]
_STREAM = METHODS["ToolService.CallToolStream"]


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """One tool as a model may be shown it; ``parameters`` is its closed JSON Schema.

    ``value`` is the schema of the value beside the text, empty from an older server.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    surface: str
    card: str
    read_only: bool
    destructive: bool
    value: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a call gave: the text for the model, the value, and how to show it.

    ``shows_output``: the text belongs on the card, as the terminal's output.
    """

    text: str
    value: dict[str, Any]
    is_error: bool = False
    card: str = ""
    title: str = ""
    description: str = ""
    shows_output: bool = False


async def list_tools(calls: Calls, surfaces: Sequence[str]) -> tuple[tuple[ToolInfo, ...], str]:
    """Return the tools of some families (none: all) and the guidance for a model."""
    message = await calls.read_only(_LIST, pb.ListToolsRequest(surfaces=surfaces))
    tools = tuple(
        ToolInfo(
            tool.name,
            tool.description,
            json.loads(tool.parameters_json),
            tool.surface,
            tool.card,
            tool.read_only,
            tool.destructive,
            json.loads(tool.value_json or "{}"),
        )
        for tool in message.tools
    )
    return tools, message.guidance


async def call_tool(
    calls: Calls, name: str, arguments: Mapping[str, Any], request_id: RequestId, wait_s: float
) -> ToolAnswer:
    """Carry one call through; a failed call is an answer too."""
    request = _request(name, arguments, request_id)
    return _answer(await calls.ask_and_mean_it(_CALL, request, wait_s))


async def stream_tool(
    calls: Calls, name: str, arguments: Mapping[str, Any], request_id: RequestId
) -> AsyncIterator[float | ToolAnswer]:
    """Yield the seconds waited while the call waits, and at last its answer.

    Leaving it earlier interrupts the call; a stream that breaks leaves the call a moment for
    a repeat with its request id.
    """
    request = pb.CallToolStreamRequest(call=_request(name, arguments, request_id))
    try:
        async for message in calls.link.stream(_STREAM, request, calls.headers):
            event: pb.CallToolStreamResponse = message
            if event.WhichOneof("event") == "progress":
                yield event.progress.elapsed_ms / 1000
            else:
                yield _answer(event.answer)
                return
    except (asyncio.CancelledError, GeneratorExit):
        calls.give_up(request_id)
        raise


@fields.built
def _request(name: str, arguments: Mapping[str, Any], request_id: RequestId) -> pb.CallToolRequest:
    return pb.CallToolRequest(
        request_id=request_id, name=name, arguments_json=json.dumps(dict(arguments))
    )


def _answer(message: pb.CallToolResponse) -> ToolAnswer:
    return ToolAnswer(
        message.text,
        json.loads(message.value_json),
        message.is_error,
        message.card,
        message.title,
        message.description,
        message.shows_output,
    )
