"""The commands about sessions."""

import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

from fabric.cli import render
from fabric.cli.connect import connected
from fabric.cli.context import Context, run_interruptible
from fabric.cli.parser import variables_of
from fabric.client.client import FabricClient
from fabric.client.session import Session
from fabric.core.errors import (
    FabricError,
    InternalError,
    InvalidRequestError,
    SessionNotFoundError,
)
from fabric.core.model import CloseResult, SandboxMode

T = TypeVar("T")
_ID_PREFIX = "ses_"
_STDIN = "-"


def call(
    context: Context,
    waiting_for: str,
    body: Callable[[FabricClient], Awaitable[T]],
    mode: SandboxMode | None = None,
) -> T:
    """Run a command's body as this agent's owner, until it ends or Ctrl-C ends it."""

    async def work() -> T:
        async with connected(context, mode) as client:
            return await body(client)

    return run_interruptible(work, context.output, waiting_for)


async def resolve(client: FabricClient, text: str) -> Session:
    """Find a session by id or name. Raises: SessionNotFoundError, InvalidRequestError."""
    if text.startswith(_ID_PREFIX):
        return client.session(text)
    for info in await client.list():
        if info.name == text:
            return client.session(info.session_id)
    raise SessionNotFoundError(f"this agent has no session named {text!r}")


def open_session(context: Context) -> int:
    """Open a session."""
    given = context.arguments
    env = dict(variables_of(given.env))

    async def body(client: FabricClient) -> None:
        session = await client.open(
            given.type,
            name=given.name,
            cwd=given.cwd,
            env=env,
            os=given.os,
            host=given.host,
            rows=given.rows,
            cols=given.cols,
            term=given.term,
            command=given.run,
            timeout_s=given.timeout,
        )
        result = session.opened
        if result is None:
            raise InternalError("the session was opened without a result")
        context.output.result(result, render.opened(result), session.id)

    mode = SandboxMode(given.mode) if given.mode else None
    call(context, "the open to be rolled back", body, mode)
    return 0


def send(context: Context) -> int:
    """Send text and print what came of it."""
    given = context.arguments
    words = given.text
    text = sys.stdin.read() if words == [_STDIN] else " ".join(words)
    submit = not given.no_submit
    if submit and words == [_STDIN]:
        text = text.removesuffix("\n")

    async def body(client: FabricClient) -> None:
        session = await resolve(client, given.session)
        if given.background:
            task = await session.send_background(text, submit=submit)
            context.output.result(task.record, render.task_line(task.record), task.id)
            return
        result = await session.send(text, submit=submit, timeout_s=given.timeout)
        context.output.result(result, render.sent(result), result.viewport.rstrip("\n"))

    call(context, "the program to be interrupted", body)
    return 0


def read(context: Context) -> int:
    """Print a page of scrollback."""
    given = context.arguments

    async def body(client: FabricClient) -> None:
        session = await resolve(client, given.session)
        result = await session.read(given.offset, given.count)
        context.output.result(result, render.page(result), result.text.rstrip("\n"))

    call(context, "the call to end", body)
    return 0


def signal(context: Context) -> int:
    """Signal the foreground process group."""
    given = context.arguments

    async def body(client: FabricClient) -> None:
        session = await resolve(client, given.session)
        result = await session.signal(given.signal)
        text = render.signalled(given.signal, result)
        context.output.result(result, text, str(result.target_pgid))

    call(context, "the call to end", body)
    return 0


def close(context: Context) -> int:
    """Close sessions; goes on after an error and reports the first one."""
    given = context.arguments
    if bool(given.session) == given.all:
        raise InvalidRequestError("name the sessions to close, or give --all, not both")

    async def body(client: FabricClient) -> list[CloseResult]:
        if given.all:
            chosen = [client.session(info.session_id) for info in await client.list()]
        else:
            chosen = [await resolve(client, text) for text in given.session]
        results: list[CloseResult] = []
        first: FabricError | None = None
        for session in chosen:
            try:
                results.append(await session.close())
            except FabricError as error:
                first = first or error.with_metadata(session_id=session.id)
                context.output.note(f"not closed: {session.id}: {error.message}")
        _print_closed(context, results, many=len(chosen) != 1)
        if first is not None:
            raise first
        return results

    call(context, "the sessions' processes to end", body)
    return 0


def _print_closed(context: Context, results: list[CloseResult], *, many: bool) -> None:
    if not results and not many:
        return
    text = "\n".join(map(render.closed, results)) or "(no terminal sessions)"
    brief = "\n".join(result.session_id for result in results)
    context.output.result(results if many else results[0], text, brief)


def list_sessions(context: Context) -> int:
    """List this agent's sessions."""

    async def body(client: FabricClient) -> None:
        rows = await client.list()
        brief = "\n".join(info.session_id for info in rows)
        context.output.result(list(rows), render.sessions(rows), brief)

    call(context, "the call to end", body)
    return 0


def nodes(context: Context) -> int:
    """List the nodes."""

    async def body(client: FabricClient) -> None:
        # The folder of a node is nobody's business outside it.
        rows = [replace(row, node_dir="") for row in await client.nodes()]
        context.output.result(rows, render.nodes(rows), "\n".join(row.host for row in rows))

    call(context, "the call to end", body)
    return 0
