"""Calls of tools: JSON arguments in, text and structured value out.

``Surface`` carries a call of a model through: check the arguments, call the verb, render
the answer within its bound. What goes wrong is an answer too (``is_error``), so that the
model can read it; only what a model can do nothing about (no owner any more, a registry
that is away) is raised, for the harness to see to.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fabric.core.errors import (
    FabricError,
    InvalidRequestError,
    OwnerNotLiveError,
    UnauthenticatedError,
    UnknownToolError,
)
from fabric.core.ids import (
    RequestId,
    SessionId,
    TaskId,
    parse_session_id,
    parse_task_id,
)
from fabric.core.model import (
    OpenRequest,
    SendRequest,
    SignalName,
    TaskState,
    WaitCondition,
)
from fabric.core.settings import PtySettings, TaskSettings
from fabric.core.shared import SharedSend
from fabric.tools import render, shared
from fabric.tools.bound import TRUNCATED
from fabric.tools.cards import Shown as Shown
from fabric.tools.cards import card_of as card_of
from fabric.tools.policy import mark_of
from fabric.tools.ptys import Ptys
from fabric.tools.schema import check
from fabric.tools.shapes import session_value, status_value, task_value
from fabric.tools.table import Card, Surface, Tool, tools_of
from fabric.tools.verbs import Verbs as Verbs

MILLISECONDS = 1000.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gives: one text, its value as plain data, and how to show it.

    ``shows_output`` tells that the text belongs on the card as the terminal's output.
    """

    text: str
    value: dict[str, Any]
    is_error: bool = False
    card: Card | None = None
    title: str = ""
    description: str = ""
    shows_output: bool = False


class Caller:
    """Carry the calls of one owner through."""

    def __init__(
        self,
        verbs: Verbs,
        *,
        surfaces: frozenset[Surface],
        tasks: TaskSettings,
        max_result_bytes: int,
        ptys: PtySettings | None = None,
        max_shared_bytes: int | None = None,
    ) -> None:
        self._max_shared = max_shared_bytes or max_result_bytes
        self._verbs = verbs
        self._ptys = Ptys(verbs, ptys or PtySettings())
        self._tasks = tasks
        self._max = max_result_bytes
        self.tools = tools_of(surfaces, background=tasks.enabled)
        self._by_name = {tool.name: tool for tool in self.tools}

    async def call(self, name: str, arguments: Any, request_id: RequestId) -> Answer:
        """Answer a call; a failure is an answer with ``is_error``.

        Raises: OwnerNotLiveError, UnauthenticatedError, and what may be tried again as it is.
        """
        tool = self._by_name.get(name)
        shown = Shown()
        try:
            if tool is None:
                raise UnknownToolError(f'unknown tool "{name}"')
            handler: _Handler = getattr(self, f"_{name}")
            args = check(tool.params, arguments, unexpected_of(tool))
            shown = card_of(tool, args)
            text, value = await handler(args, request_id)
        except (OwnerNotLiveError, UnauthenticatedError):
            raise
        except FabricError as error:
            if error.retryable:
                raise
            mark = mark_of(tool.surface) if tool else TRUNCATED
            return Answer(
                render.failed(error, self._max, mark),
                {"error": {**error.metadata, "reason": error.reason, "message": error.message}},
                is_error=True,
                card=shown.card or (tool.card if tool else None),
                title=shown.title,
                description=shown.description,
            )
        return Answer(
            text,
            value,
            card=shown.card,
            title=shown.title,
            description=shown.description,
            shows_output=shown.card is Card.TERMINAL,
        )

    async def _terminal_open(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        if not args["type"]:
            raise InvalidRequestError("type must be a non-empty string")
        result = await self._verbs.open(
            OpenRequest(request_id, args["type"], name=args["name"], cwd=args["cwd"])
        )
        value = session_value(result.info) | {"motd": result.motd}
        return render.opened(result, self._max), value

    async def _terminal_send(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        session_id = parse_session_id(args["sessionId"])
        background = bool(args.get("run_in_background"))
        request = SendRequest(
            request_id,
            args["text"].encode("utf-8", "replace"),
            submit=args["submit"],
            background=background,
        )
        if background:
            record = await self._verbs.start_task(session_id, request)
            return render.started(record, self._max), {
                "kind": "background",
                "taskId": record.task_id,
            }
        result = await self._verbs.send(session_id, request)
        value: dict[str, Any] = {
            "kind": "foreground",
            "viewport": result.viewport,
            "waitReason": result.wait_reason.value,
            "sessionStatus": status_value(result),
            "truncated": result.truncated,
            "evidence": result.evidence.value,
            "promptKind": result.prompt_kind.value,
            "outcome": result.outcome.value,
        }
        if result.exit_code is not None:
            value["exitCode"] = result.exit_code
        return render.sent(result, self._max), value

    async def _terminal_read(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        session_id = parse_session_id(args["sessionId"])
        page = await self._verbs.read(session_id, int(args["offset"]), int(args["count"]))
        return render.page(page, self._max), {
            "text": page.text,
            "totalLines": page.total_lines,
            "lineBegin": page.line_begin,
            "lineEnd": page.line_end,
            "truncated": page.truncated,
            "droppedLines": page.dropped_lines,
            "droppedBytes": page.dropped_bytes,
        }

    async def _terminal_signal(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        session_id = parse_session_id(args["sessionId"])
        name = SignalName(args["signal"])
        done = await self._verbs.signal(session_id, name, request_id)
        text = render.signalled(name, done, self._max)
        return text, {"delivered": True, "targetPgid": done.target_pgid}

    async def _terminal_wait(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        session_id = parse_session_id(args["sessionId"])
        quiet = args["quiet_ms"]
        condition = WaitCondition(
            pattern=args["pattern"],
            quiet_s=None if quiet is None else quiet / MILLISECONDS,
            ready=args["ready"],
            exit=args["exit"],
            since_offset=args["since_offset"],
        )
        timeout_s = self._wait_s(args["timeout_ms"])
        result = await self._verbs.wait_for(session_id, condition, timeout_s)
        return render.waited(result, self._max), {
            "matched": result.matched,
            "text": result.text,
            "nextOffset": result.next_offset,
            "truncated": result.truncated,
            "sessionStatus": status_value(result),
        } | ({} if result.match_text is None else {"matchText": result.match_text})

    async def _terminal_close(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        session_id = parse_session_id(args["sessionId"])
        result = await self._verbs.close(session_id, request_id)
        value = {"sessionId": session_id, "outcome": result.outcome.value}
        return render.closed(result, self._max), value

    async def _terminal_list(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        sessions = await self._verbs.list()
        text = render.listed(sessions, self._max)
        return text, {"sessions": [session_value(info) for info in sessions]}

    async def _task_output(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        task_id = _task_id(args)
        wait_s = 0.0
        if args["wait"]:
            default = self._tasks.wait_timeout_s * MILLISECONDS
            wait_s = self._wait_s(default if args["timeout_ms"] is None else args["timeout_ms"])
        output = await self._verbs.task_output(task_id, -1, wait_s)
        text = render.task_output(output, self._max)
        return text, {
            "text": output.text,
            "truncated": output.truncated,
            "task": task_value(output.record),
        }

    async def _task_list(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        records = await self._verbs.list_tasks()
        text = render.task_list(records, self._max)
        return text, {"tasks": [task_value(record) for record in records]}

    async def _task_kill(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        record = await self._verbs.kill_task(_task_id(args), request_id)
        stopping = record.state is TaskState.STOPPING
        outcome = "cancellation-requested" if stopping else "already-finished"
        text = render.task_killed(record, self._max)
        return text, {"outcome": outcome, "task": task_value(record)}

    async def _shared_terminal_send(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        data = args["text"].encode("utf-8", "replace")
        result = await self._verbs.shared_send(SharedSend(request_id, data, args["submit"]))
        return shared.bounded(shared.result_value(result), self._max_shared)

    async def _shared_terminal_read(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        page = await self._verbs.shared_read(int(args["offset"]), int(args["count"]))
        return shared.bounded(shared.page_value(page), self._max_shared)

    async def _shared_terminal_signal(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        result = await self._verbs.shared_signal(SignalName(args["signal"]), request_id)
        return shared.bounded(shared.result_value(result, with_group=True), self._max_shared)

    async def _shared_terminal_reset(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        result = await self._verbs.shared_reset(request_id)
        return shared.bounded(shared.result_value(result), self._max_shared)

    async def _pty_open(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        opened = await self._ptys.open(
            args["command"], request_id, cwd=args["cwd"], env=args["env"]
        )
        value: dict[str, Any] = {"sessionId": opened.session_id}
        if opened.pid is not None:
            value["pid"] = opened.pid
        value["status"] = status_value(opened)
        value["initialOutput"] = opened.initial_output
        return render.as_json(value, "initialOutput", self._max), value

    async def _pty_send(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        session_id = _pty_id(args)
        data = args["data"].encode("utf-8", "replace")
        sent = await self._ptys.send(session_id, data, request_id, submit=args["submit"])
        value = {"delta": sent.delta, "status": status_value(sent)}
        return render.as_json(value, "delta", self._max), value

    async def _pty_tail(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        lines = None if args["lines"] is None else int(args["lines"])
        page = await self._ptys.tail(_pty_id(args), request_id, lines=lines)
        value = {"text": page.text, "lines": page.lines, "truncated": page.truncated}
        return render.tailed(page, self._max), value

    async def _pty_close(self, args: dict[str, Any], request_id: RequestId) -> "_Made":
        value = {"closed": await self._ptys.close(_pty_id(args), request_id)}
        return render.as_json(value, "", self._max), value

    def _wait_s(self, timeout_ms: float) -> float:
        if timeout_ms <= 0:
            raise InvalidRequestError(
                "invalid wait timeout: expected a positive number of milliseconds, "
                f"got {timeout_ms:g}"
            )
        return min(timeout_ms / MILLISECONDS, self._tasks.max_wait_timeout_s)


_Made = tuple[str, dict[str, Any]]
_Handler = Callable[[dict[str, Any], RequestId], Awaitable[_Made]]


def _task_id(args: dict[str, Any]) -> TaskId:
    if not args["task_id"]:
        raise InvalidRequestError('invalid task_id: expected a non-empty string, got ""')
    return parse_task_id(args["task_id"])


def _pty_id(args: dict[str, Any]) -> SessionId:
    if not args["id"]:
        raise InvalidRequestError("id must be a non-empty string")
    return parse_session_id(args["id"])


def unexpected_of(tool: Tool) -> str:
    """Say in which words a tool's family refuses a property it does not know."""
    shared = tool.surface is Surface.SHARED
    return "{name}: unexpected property" if shared else 'unknown property "{name}"'
