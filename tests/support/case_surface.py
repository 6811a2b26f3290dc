"""The verbs of a case over a ``FabricClient``."""

import asyncio
from collections.abc import Awaitable
from typing import Any

from fabric.client.client import FabricClient
from fabric.client.session import Task
from fabric.core.errors import FabricError, UnsupportedError
from fabric.core.model import SendResult, SessionStatus
from tests.support.case_runner import StepResult

_TASK_WAIT_S = 30.0


class ClientSurface:
    """Typed errors become results; cancelling a step cancels its call."""

    def __init__(self, client: FabricClient) -> None:
        self._client = client
        self._tasks: dict[str, Task] = {}

    async def open(self, kind: str) -> StepResult:
        return await self._guard(self._open(kind))

    async def send(
        self, session: str, text: str, submit: bool, deadline_s: float | None
    ) -> StepResult:
        work = self._client.session(session).send(text, submit=submit, timeout_s=deadline_s)
        return await self._guard(self._sent(work))

    async def read(self, session: str, offset: int, count: int) -> StepResult:
        async def work() -> StepResult:
            page = await self._client.session(session).read(offset, count)
            return StepResult(
                page.text,
                truncated=page.truncated,
                dropped=page.dropped_lines,
                line_begin=page.line_begin,
                line_end=page.line_end,
            )

        return await self._guard(work())

    async def signal(self, session: str, name: str) -> StepResult:
        async def work() -> StepResult:
            done = await self._client.session(session).signal(name)
            return StepResult(f"delivered {name} to {done.target_pgid}")

        return await self._guard(work())

    async def close(self, session: str) -> StepResult:
        async def work() -> StepResult:
            done = await self._client.session(session).close()
            survivors = done.receipt.survivors if done.receipt else ()
            return StepResult(str(done.outcome), survivors=[item.name for item in survivors])

        return await self._guard(work())

    async def list(self) -> StepResult:
        async def work() -> StepResult:
            return StepResult("\n".join(info.session_id for info in await self._client.list()))

        return await self._guard(work())

    async def start_task(self, session: str, text: str) -> StepResult:
        async def work() -> StepResult:
            task = await self._client.session(session).send_background(text)
            self._tasks[task.id] = task
            return StepResult(f"started {task.id}", ids={"taskId": task.id})

        return await self._guard(work())

    async def task_output(self, task: str, wait: bool) -> StepResult:
        async def work() -> StepResult:
            known = self._tasks[task]
            text = ""
            async with asyncio.timeout(_TASK_WAIT_S):
                while True:
                    text += (await known.output(_TASK_WAIT_S if wait else 0.0)).text
                    if not (wait and known.is_running):
                        return StepResult(text)

        return await self._guard(work())

    async def task_kill(self, task: str) -> StepResult:
        async def work() -> StepResult:
            known = self._tasks[task]
            await known.kill()
            async with asyncio.timeout(_TASK_WAIT_S):
                while known.is_running:
                    await known.output(_TASK_WAIT_S)
            return StepResult(str(known.record.state))

        return await self._guard(work())

    async def kill_service(self, signal: str) -> StepResult:
        raise UnsupportedError("a service in the test's own process cannot be killed")

    async def _open(self, kind: str) -> StepResult:
        session = await self._client.open(kind)
        motd = session.opened.motd if session.opened else ""
        return StepResult(motd, ids={"sessionId": session.id}, status="running")

    async def _sent(self, work: Awaitable[SendResult]) -> StepResult:
        done = await work
        return StepResult(
            done.viewport,
            wait_reason=str(done.wait_reason),
            truncated=done.truncated,
            **_status(done.status),
        )

    @staticmethod
    async def _guard(work: Awaitable[StepResult]) -> StepResult:
        try:
            return await work
        except FabricError as error:
            named = error.metadata.get("survivors", "")
            return StepResult(
                f"{error.reason}: {error.message}",
                error=error.reason,
                survivors=[named] if named else [],
            )


def _status(status: SessionStatus) -> dict[str, Any]:
    if status.exit is None:
        return {"status": "running"}
    return {
        "status": "exited",
        "exit_code": status.exit.exit_code,
        "signal": status.exit.signal,
    }
