"""The commands about background sends, waits and events."""

import sys

from fabric.cli import render
from fabric.cli.context import Context
from fabric.cli.terminals import call, resolve
from fabric.client.client import FabricClient
from fabric.client.session import Task
from fabric.core.errors import TaskNotFoundError
from fabric.core.ids import parse_task_id


async def _task(client: FabricClient, text: str) -> Task:
    """Find a task of this agent. Raises: TaskNotFoundError, InvalidRequestError."""
    task_id = parse_task_id(text)
    for record in await client.tasks():
        if record.task_id == task_id:
            return client.task(record)
    raise TaskNotFoundError(f"this agent has no task {task_id}", task_id=task_id)


def list_tasks(context: Context) -> int:
    """List this agent's background sends, settled ones too while they are kept."""

    async def body(client: FabricClient) -> None:
        rows = await client.tasks()
        brief = "\n".join(row.task_id for row in rows)
        context.output.result(list(rows), render.tasks(rows), brief)

    call(context, "the call to end", body)
    return 0


def output(context: Context) -> int:
    """Print what a background send has printed, from the beginning."""
    given = context.arguments

    async def body(client: FabricClient) -> None:
        task = await _task(client, given.task)
        longest = client.server.max_wait_s if given.timeout is None else given.timeout
        found = await task.output(longest if given.wait else 0.0)
        context.output.result(found, render.task_output(found), found.text.rstrip("\n"))

    call(context, "the call to end", body)
    return 0


def kill(context: Context) -> int:
    """Interrupt a background send; its program may take a while to end."""
    given = context.arguments

    async def body(client: FabricClient) -> None:
        task = await _task(client, given.task)
        running = task.is_running
        record = await task.kill()
        text = render.killed(record, requested=running)
        context.output.result(record, text, record.state.value)

    call(context, "the call to end", body)
    return 0


def wait(context: Context) -> int:
    """Wait until a condition holds; prints what was printed meanwhile."""
    given = context.arguments

    async def body(client: FabricClient) -> str:
        session = await resolve(client, given.session)
        result = await session.wait_for(
            given.pattern,
            quiet_s=given.quiet_s,
            ready=given.ready,
            exit=given.exit,
            since_offset=given.since,
            timeout_s=given.timeout,
        )
        text = f"{result.text.rstrip(chr(10))}\n[matched: {result.matched}]".lstrip("\n")
        context.output.result(result, text, result.matched)
        return result.matched

    return 8 if call(context, "the call to end", body) == "timeout" else 0


def events(context: Context) -> int:
    """Print this agent's events as they come; one line each."""
    given = context.arguments

    async def body(client: FabricClient) -> None:
        stream = client.events(given.since)
        count = 0
        async for event in stream:
            context.output.result(event, render.event(event), str(event.sequence))
            sys.stdout.flush()
            count += 1
            if given.acknowledge:
                await stream.acknowledge()
            if count == given.count:
                return
        context.output.note(f"the owner has ended: {stream.ended}")

    call(context, "the stream to end", body)
    return 0
