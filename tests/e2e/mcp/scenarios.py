"""What an MCP client does, with the SDK's own client: run in the environment of the extra.

    .venv-mcp/bin/python -m tests.e2e.mcp.scenarios SCENARIO TRANSPORT ERA [URL]

TRANSPORT is ``stdio`` (the server is started from this interpreter) or ``http`` (URL says
where it is); ERA is ``legacy`` (handshake) or ``auto`` (the newest both know). Prints the
facts as one JSON object; the tests judge them.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

LIMIT_S = 60.0


class Told:
    """What the server said without being asked."""

    def __init__(self):
        self.messages = []
        self.notifications = []
        self.changed = asyncio.Event()

    async def message(self, params):
        self.messages.append([params.level, params.data])
        self.changed.set()

    async def notification(self, message):
        self.notifications.append(type(message).__name__)
        self.changed.set()

    async def until(self, true):
        while not true():
            self.changed.clear()
            await self.changed.wait()


def server():
    environ = {key: value for key, value in os.environ.items() if key.startswith("FABRIC_")}
    arguments = ["-m", "fabric.cli", "mcp", "--mode", "danger-full-access"]
    return StdioServerParameters(command=sys.executable, args=arguments, env=environ)


@asynccontextmanager
async def connected(transport, era, url, told=None, headers=None):
    told = told or Told()
    options = {"logging_callback": told.message, "message_handler": told.notification, "mode": era}
    if transport == "stdio":
        async with Client(server(), **options) as client:
            yield client
        return
    given = {"Authorization": f"Bearer {os.environ['TOKEN']}"} if "TOKEN" in os.environ else {}
    async with (
        httpx2.AsyncClient(headers=given | (headers or {}), timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), **options) as client,
    ):
        yield client


def facts_of(result):
    return {
        "text": result.content[0].text,
        "blocks": len(result.content),
        "value": result.structured_content,
        "error": result.is_error,
        "card": (result.meta or {}).get("pty-fabric/card"),
    }


async def drive(transport, era, url):
    """Open, send, read, close, as a model would; the client checks values by their schemas."""
    facts = {}
    async with connected(transport, era, url) as client:
        facts["era"] = client.protocol_version
        facts["instructions"] = client.instructions
        tools = (await client.list_tools()).tools
        facts["tools"] = {
            tool.name: {
                "read_only": tool.annotations.read_only_hint,
                "destructive": tool.annotations.destructive_hint,
                "closed": tool.input_schema["additionalProperties"] is False,
                "value": tool.output_schema is not None,
            }
            for tool in tools
        }
        opened = await client.call_tool("terminal_open", {"type": "shell", "name": "main"})
        facts["opened"] = facts_of(opened)
        session = {"sessionId": opened.structured_content["sessionId"]}
        progress = []

        async def on_progress(done, total, message):
            progress.append([done, message])

        sent = await client.call_tool(
            "terminal_send",
            session | {"text": "echo $((6*7)); sleep 2.3"},
            progress_callback=on_progress,
        )
        facts["sent"] = facts_of(sent)
        facts["progress"] = progress
        for name in ("read", "list", "close"):
            given = {} if name == "list" else session
            facts[name] = facts_of(await client.call_tool(f"terminal_{name}", given))
        facts["wrong"] = facts_of(await client.call_tool("terminal_send", {"text": 1, "bogus": 2}))
        facts["unknown"] = facts_of(await client.call_tool("nonsense", {}))
    return facts


async def cancel(transport, era, url):
    """Give up a send that waits; the shell must be free and know of the interrupt."""
    async with connected(transport, era, url) as client:
        opened = await client.call_tool("terminal_open", {"type": "shell"})
        session = {"sessionId": opened.structured_content["sessionId"]}
        waiting = asyncio.Event()

        async def on_progress(done, total, message):
            waiting.set()

        call = asyncio.create_task(
            client.call_tool(
                "terminal_send", session | {"text": "sleep 1000"}, progress_callback=on_progress
            )
        )
        await waiting.wait()
        call.cancel()
        await asyncio.wait({call})
        looks = 0
        while True:
            looks += 1
            free = await client.call_tool("terminal_send", session | {"text": "echo s=$?"})
            if not free.is_error:
                return {"cancelled": call.cancelled(), "text": free.content[0].text, "looks": looks}


async def notice(transport, era, url):
    """Be told of the end of a background send, and read what it was."""
    told = Told()
    async with connected(transport, era, url, told) as client:
        opened = await client.call_tool("terminal_open", {"type": "shell"})
        session = {"sessionId": opened.structured_content["sessionId"]}
        started = await client.call_tool(
            "terminal_send",
            session | {"text": "sleep 1; echo end-$((4*4))", "run_in_background": True},
        )
        task_id = started.structured_content["taskId"]
        uri = f"fabric://tasks/{task_id}"
        if era == "legacy":
            await client.subscribe_resource(uri)
            await told.until(
                lambda: told.messages and "ResourceUpdatedNotification" in told.notifications
            )
            updated = True
        else:
            async with client.listen(resource_subscriptions=[uri]) as stream:
                event = await anext(aiter(stream))
                updated = event.uri == uri
        listed = [str(item.uri) for item in (await client.list_resources()).resources]
        read = await client.read_resource(uri)
        output = await client.call_tool("task_output", {"task_id": task_id})
        try:
            await client.read_resource("fabric://tasks/tsk_nonsense")
            missing = ""
        except MCPError as error:
            missing = error.message
        return {
            "task": task_id,
            "messages": told.messages,
            "updated": updated,
            "listed": uri in listed,
            "record": json.loads(read.contents[0].text),
            "output": output.content[0].text,
            "missing": missing,
        }


async def away(transport, era, url):
    """Call while no gateway answers."""
    async with connected(transport, era, url) as client:
        called = facts_of(await client.call_tool("terminal_list", {}))
        try:
            await client.list_tools()
            listed = ""
        except MCPError as error:
            listed = error.message
        return {"called": called, "listed": listed}


async def owners(transport, era, url):
    """Two connections, and two that name the same agent."""
    facts = {}
    async with connected(transport, era, url) as one, connected(transport, era, url) as two:
        await one.call_tool("terminal_open", {"type": "shell"})
        facts["two_sees"] = (await two.call_tool("terminal_list", {})).content[0].text
    named = {"Fabric-Agent": "alice"}
    async with connected(transport, era, url, headers=named) as one:
        opened = await one.call_tool("terminal_open", {"type": "shell"})
    facts["session"] = opened.structured_content["sessionId"]
    async with connected(transport, era, url, headers=named) as two:
        facts["alice_sees"] = (await two.call_tool("terminal_list", {})).content[0].text
    return facts


def main():
    name, transport, era, *rest = sys.argv[1:]
    scenario = globals()[name]

    async def body():
        async with asyncio.timeout(LIMIT_S):
            return await scenario(transport, era, rest[0] if rest else "")

    sys.stdout.write(json.dumps(asyncio.run(body())))


if __name__ == "__main__":
    main()
