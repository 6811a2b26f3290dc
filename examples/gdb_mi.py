"""A debugger driven through ``client.pty``: gdb's machine interface over a session's bytes.

    fabric up -d
    python -m examples.gdb_mi ./program

Everything gdb-specific is here: the fabric passes bytes. The shell of the session turns the
terminal's echo off and becomes gdb, so every line that arrives was printed by gdb or by the
program being debugged; MI lines are told from the program's by their first characters.
"""

import asyncio
import re
import shlex
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from fabric.client import FabricClient
from fabric.client.stream import PtyStream

_RECORD = re.compile(r"(?P<token>\d*)(?P<kind>[\^*=])(?P<name>[\w-]+)(?P<rest>.*)")
_STREAM = ("~", "@", "&")
_PROMPT = "(gdb)"
TIMEOUT_S = 20.0


class GdbError(Exception):
    """gdb answered ``^error``."""


@dataclass
class Record:
    """One result (``^``) or asynchronous record (``*``, ``=``)."""

    kind: str
    name: str
    values: dict[str, Any] = field(default_factory=dict)


class Gdb:
    """One gdb on one program. Use it in ``async with``."""

    def __init__(self, client: FabricClient, program: str) -> None:
        self._client = client
        self._program = program
        self._stack = AsyncExitStack()
        self._answers: dict[str, asyncio.Future[Record]] = {}
        self._token = 0
        self._stream: PtyStream | None = None
        self.stops: asyncio.Queue[Record] = asyncio.Queue()
        self.running = asyncio.Event()
        self.printed: list[str] = []
        self.ended = asyncio.Event()

    async def __aenter__(self) -> Self:
        """Open the session and wait for gdb's prompt."""
        pty, owner = self._client.pty, self._client
        command = f"stty -echo; exec gdb -q -nx -i=mi2 {shlex.quote(self._program)}"
        opened = await pty.open(owner, command)
        self._stack.push_async_callback(pty.close, owner, opened.session_id)
        self._stream = await self._stack.enter_async_context(pty.stream(owner, opened.session_id))
        reading = asyncio.create_task(self._read(self._stream))
        self._stack.push_async_callback(_cancelled, reading)
        await self.command("-gdb-set confirm off")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End gdb and what it debugs."""
        await self._stack.aclose()

    @property
    def stream(self) -> PtyStream:
        """The session's bytes."""
        assert self._stream is not None  # noqa: S101  (inside the block)
        return self._stream

    async def command(self, text: str) -> Record:
        """Run an MI command and return its result. Raises: GdbError, TimeoutError."""
        self._token += 1
        token = str(self._token)
        answer = self._answers[token] = asyncio.get_running_loop().create_future()
        await self.stream.writeline(token + text)
        async with asyncio.timeout(TIMEOUT_S):
            record = await answer
        if record.name == "error":
            raise GdbError(record.values.get("msg", ""))
        return record

    async def stopped(self) -> Record:
        """Return the next ``*stopped`` record."""
        async with asyncio.timeout(TIMEOUT_S):
            return await self.stops.get()

    async def interrupt(self) -> None:
        """Stop the program as a person would: it has the terminal, so Ctrl-C reaches it."""
        await self.stream.keys("Ctrl-C")

    async def _read(self, stream: PtyStream) -> None:
        async for line in stream:
            self._take(line.decode("utf-8", "replace").rstrip("\r\n"))
        self.ended.set()

    def _take(self, line: str) -> None:
        if line.startswith(_STREAM) or line.strip() == _PROMPT:
            return
        match = _RECORD.fullmatch(line)
        if match is None:
            self.printed.append(line)
            return
        record = Record(match["kind"], match["name"], _results(match["rest"].lstrip(",")))
        if record.kind == "^":
            answer = self._answers.pop(match["token"], None)
            if answer is not None and not answer.done():
                answer.set_result(record)
        elif record.kind == "*":
            if record.name == "stopped":
                self.running.clear()
                self.stops.put_nowait(record)
            elif record.name == "running":
                self.running.set()


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait({task})


# -- values of MI ------------------------------------------------------------------------

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\([0-7]{3}|.)")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b"}


def _results(text: str) -> dict[str, Any]:
    found, _ = _members(text, 0, "")
    return found


def _members(text: str, at: int, closing: str) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while at < len(text) and text[at] != closing:
        equals = text.find("=", at)
        if equals < 0:
            return found, len(text)
        name = text[at:equals]
        found[name], at = _value(text, equals + 1)
        if at < len(text) and text[at] == ",":
            at += 1
    return found, at + 1


def _value(text: str, at: int) -> tuple[Any, int]:
    if text[at : at + 1] == "{":
        return _members(text, at + 1, "}")
    if text[at : at + 1] == "[":
        return _list(text, at + 1)
    match = _STRING.match(text, at)
    if match is None:
        return text[at:], len(text)
    return _ESCAPED.sub(_escape, match[1]), match.end()


def _list(text: str, at: int) -> tuple[list[Any], int]:
    found = []
    while at < len(text) and text[at] != "]":
        if text[at] not in '"{[':  # a list of named values keeps only the values
            at = text.index("=", at) + 1
        value, at = _value(text, at)
        found.append(value)
        if at < len(text) and text[at] == ",":
            at += 1
    return found, at + 1


def _escape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if len(code) == 3 else _PLAIN.get(code, code)


async def main(program: str) -> None:
    """Stop in ``main`` and say where that is."""
    async with FabricClient.connect(agent="gdb-example") as client, Gdb(client, program) as gdb:
        await gdb.command("-break-insert main")
        await gdb.command("-exec-run")
        stop = await gdb.stopped()
        sys.stdout.write(f"{stop.values['reason']} in {stop.values['frame']['func']}\n")
        await gdb.command("-gdb-exit")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
