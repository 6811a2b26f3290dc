"""What a user does in one turn. Every turn checks what came back: a fast wrong answer is an error.

A scenario opens what it needs in ``begin`` and does one round in ``turn``. It reports calls
and errors of its own to the window; the turn itself is timed by whoever runs it.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from fabric.client.attach import Attachment
from fabric.client.client import FabricClient
from fabric.client.session import Session, Task
from fabric.core.errors import FabricError
from fabric.core.model import Outcome, SendResult, TaskState, WaitReason
from fabric.load.plan import Plan
from fabric.load.tally import Window

POLL_WAIT_S = 1.0
KEY_LIMIT_S = 30.0
BUILD_TIMEOUT_S = 120.0
TASK_MARGIN_S = 60.0


class WrongAnswer(Exception):  # noqa: N818  (a finding, reported by its reason)
    """The fabric answered in time and without an error, but not what it should have."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Scenario:
    """One user: a session of its own, driven turn by turn."""

    program = "shell"

    def __init__(
        self, client: FabricClient, plan: Plan, window: Callable[[], Window], number: int
    ) -> None:
        self.client = client
        self.plan = plan
        self.number = number
        self.turns = 0
        self._window = window
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The session; ``begin`` opens it."""
        if self._session is None:
            raise WrongAnswer("NO_SESSION")
        return self._session

    async def begin(self) -> None:
        """Open the session, or another one when it was lost. Raises: FabricError."""
        with self.timed("open"):
            self._session = await self.client.open(self.program)

    async def turn(self) -> None:
        """Do one round. Raises: FabricError, WrongAnswer."""
        raise NotImplementedError

    async def end(self) -> None:
        """Let go of what does not end with the owner."""

    @property
    def gone(self) -> bool:
        """Tell whether there is no session to go on with."""
        return self._session is None

    def forget(self) -> None:
        """Take the session as lost; the next turn opens another one."""
        self._session = None

    def timed(self, name: str) -> "_Timed":
        """Time a call; only one that goes well is counted as such."""
        return _Timed(self._window, name)

    async def send(self, text: str, expected: str, timeout_s: float | None = None) -> SendResult:
        """Send and check verdict, outcome and output. Raises: FabricError, WrongAnswer."""
        with self.timed("send"):
            result = await self.session.send(text, timeout_s=timeout_s)
        self._window().output_bytes += result.next_offset - result.first_offset
        if result.outcome is not Outcome.COMPLETED:
            raise WrongAnswer(f"OUTCOME_{result.outcome.upper()}")
        if result.wait_reason is not WaitReason.STDIN_READ:
            raise WrongAnswer(f"VERDICT_{result.wait_reason.upper()}")
        if expected not in result.viewport:
            raise WrongAnswer("WRONG_OUTPUT")
        return result

    def _next(self) -> int:
        self.turns += 1
        return self.number * 1_000_000 + self.turns


class _Timed:
    def __init__(self, window: Callable[[], Window], name: str) -> None:
        self._window = window
        self._name = name

    def __enter__(self) -> None:
        self._began = time.perf_counter()

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        if kind is None:
            self._window().call(self._name, time.perf_counter() - self._began)


class Echo(Scenario):
    """``echo`` in a shell."""

    async def turn(self) -> None:
        """Send one line and see it again."""
        number = self._next()
        await self.send(f"echo turn-$(({number}))", f"\nturn-{number}")


class Repl(Scenario):
    """An expression in a Python REPL."""

    program = "python"

    async def turn(self) -> None:
        """Compute and compare."""
        number = self._next()
        await self.send(f"{number} * 3", str(number * 3))


class Build(Scenario):
    """A command with bulk output, as builds have."""

    async def turn(self) -> None:
        """Print many lines and see the last."""
        number, lines = self._next(), self.plan.build_lines
        text = f"seq -f 'cc -O2 -c obj_%.0f.c' {lines}; echo built-$(({number}))"
        await self.send(text, f"\nbuilt-{number}", BUILD_TIMEOUT_S)


class LongTask(Scenario):
    """A background task with pollers that read its output as it comes."""

    async def turn(self) -> None:
        """Start a task, poll it to its end, check its last line."""
        number = self._next()
        nap = self.plan.task_s / 4
        step = f"echo step-$step; sleep {nap:.3f}"
        text = f"for step in 1 2 3 4; do {step}; done; echo done-$(({number}))"
        with self.timed("task_start"):
            task = await self.session.send_background(text)
        pollers = [Task(self.client, task.record) for _ in range(self.plan.pollers)]
        reading = [asyncio.ensure_future(self._poll(item)) for item in (task, *pollers)]
        try:
            texts = await asyncio.gather(*reading)
        finally:
            for item in reading:
                item.cancel()
            await asyncio.wait(reading)
        if task.record.state is not TaskState.COMPLETED:
            raise WrongAnswer(f"TASK_{task.record.state.upper()}")
        if any(f"\ndone-{number}" not in text for text in texts):
            raise WrongAnswer("WRONG_OUTPUT")

    async def _poll(self, task: Task) -> str:
        text = ""
        async with asyncio.timeout(self.plan.task_s + TASK_MARGIN_S):
            while True:
                with self.timed("task_poll"):
                    output = await task.output(POLL_WAIT_S)
                text += output.text
                self._window().output_bytes += len(output.text.encode())
                if not task.is_running:
                    return text


class Churn(Scenario):
    """Open, use once, close."""

    async def begin(self) -> None:
        """Open nothing: every turn does."""

    @property
    def gone(self) -> bool:
        """Never: there is nothing to lose between turns."""
        return False

    async def turn(self) -> None:
        """Open a session, see that it works, close it."""
        await super().begin()
        number = self._next()
        try:
            await self.send(f"echo turn-$(({number}))", f"\nturn-{number}")
        finally:
            session, self._session = self.session, None
            with self.timed("close"):
                await session.close()


class Human(Scenario):
    """A person at an attached terminal: types a line, waits to see what comes."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._attachment: Attachment | None = None
        self._seen = bytearray()

    async def begin(self) -> None:
        """Open a session and attach to it."""
        await self.end()
        await super().begin()
        self._attachment = self.session.attach(rows=24, cols=80)
        await self._attachment.__aenter__()

    async def turn(self) -> None:
        """Type and see; every key is one message, as a terminal sends them."""
        number, attached = self._next(), self._attachment
        if attached is None:
            raise WrongAnswer("NO_SESSION")
        wanted = f"turn-{number}".encode()
        self._seen.clear()
        for char in f"echo turn-$(({number}))\r".encode():
            await attached.write(bytes([char]))
        with self.timed("seen"):
            async with asyncio.timeout(KEY_LIMIT_S):
                while wanted not in self._seen:
                    event = await anext(attached)
                    self._seen += event.data
                    self._window().output_bytes += len(event.data)

    async def end(self) -> None:
        """Detach."""
        attached, self._attachment = self._attachment, None
        if attached is not None:
            await attached.__aexit__(None, None, None)


MADE: dict[str, type[Scenario]] = {
    "echo": Echo, "repl": Repl, "build": Build, "task": LongTask, "churn": Churn, "human": Human,
}  # fmt: skip


def reason_of(error: BaseException) -> str:
    """Name a failure for the counts."""
    if isinstance(error, FabricError | WrongAnswer):
        return error.reason
    if isinstance(error, TimeoutError):
        return "TIMEOUT"
    if isinstance(error, StopAsyncIteration):
        return "ATTACH_ENDED"
    return type(error).__name__
