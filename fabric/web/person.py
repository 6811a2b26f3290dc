"""What the person at the controlling view does, in the order they do it.

A begin, a take-over and input go one after the other, since each leans on the former;
keys that wait are joined. An interrupt overtakes them and drops what waits: it must be
possible also while a program reads nothing. A begin asks for the lease first and types
its bytes under it then, so that bytes which are refused do not leave a lease that the
page knows nothing of.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from fabric.core.errors import (
    FabricError,
    InputTooLargeError,
    NotControllerError,
    QueueFullError,
    SessionStateError,
)
from fabric.core.ids import SessionId, new_request_id
from fabric.core.model import Caller
from fabric.core.shared import Person, PersonRequest, SharedStatus
from fabric.gateway.ports import SessionsPort
from fabric.web import frames

MAX_WAITING = 64
_Step = frames.Begin | frames.TakeOver | frames.Input


class Controller:
    """The acting half of the controlling view of one generation."""

    def __init__(
        self,
        sessions: SessionsPort,
        caller: Caller,
        session_id: SessionId,
        view: str,
        generation: int,
        max_bytes: int,
        send: Callable[[str], Awaitable[None]],
    ) -> None:
        self._sessions = sessions
        self._caller = caller
        self._session_id = session_id
        self._view = view
        self._generation = generation
        self._max_bytes = max_bytes
        self._send = send
        self._steps: deque[_Step] = deque()
        self._bytes = 0
        self._more = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._resetting = False
        self._cancelled = 0
        self._granted = 0
        self.lease = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def was_granted(self) -> bool:
        """Tell whether this connection was ever told of a lease."""
        return self._granted > 0

    async def run(self) -> None:
        """Do what waits, one step after the other."""
        while True:
            while not self._steps:
                self._more.clear()
                await self._more.wait()
            step = self._steps.popleft()
            if isinstance(step, frames.Input):
                self._bytes -= len(step.data)
            await self._do(step)

    async def push(self, step: _Step) -> None:
        """Queue a step."""
        data = b"" if isinstance(step, frames.TakeOver) else step.data
        last = self._steps[-1] if self._steps else None
        if self._bytes + len(data) > self._max_bytes:
            text = "terminal input exceeds maxInputBytes"
            await self._refuse(InputTooLargeError(text, max_bytes=self._max_bytes))
            return
        if isinstance(step, frames.Input) and isinstance(last, frames.Input):
            self._steps[-1] = frames.Input(last.data + data)
        elif len(self._steps) >= MAX_WAITING:
            await self._refuse(QueueFullError("too much waits to be done", limit=MAX_WAITING))
            return
        else:
            self._steps.append(step)
        if isinstance(step, frames.Input):
            self._bytes += len(data)
        self._more.set()

    def cancel(self) -> None:
        """Interrupt the program of the lease, now."""
        self._steps.clear()
        self._bytes = 0
        self._spawn(self._cancel())

    def reset(self) -> None:
        """Begin a reset."""
        self._spawn(self._reset())

    async def told(self, status: SharedStatus) -> None:
        """Compare the lease with what the terminal says of it."""
        if status.lease and status.lease != self.lease and status.lease > self._granted:
            await self._grant(status.lease)
        elif self.lease and status.last_lease >= self.lease and status.lease != self.lease:
            await self._revoked(self._why(status))

    async def close(self) -> None:
        """End what is on its way from here; what the terminal has accepted goes on there."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.failed.cancel()

    # -- inside ---------------------------------------------------------------------------

    async def _do(self, step: _Step) -> None:
        try:
            if isinstance(step, frames.Begin):
                await self._grant(await self._act(Person.BEGIN))
                if step.data:
                    await self._act(Person.TYPE, lease=self.lease, data=step.data)
            elif isinstance(step, frames.TakeOver):
                await self._grant(await self._act(Person.TAKE_OVER, target=step.target))
            elif not self.lease:
                raise NotControllerError("human lease is closed")
            else:
                await self._act(Person.TYPE, lease=self.lease, data=step.data)
        except FabricError as error:
            await self._refuse(error)
            if isinstance(step, frames.Begin | frames.TakeOver) and not self.lease:
                await self._revoked("refused")

    async def _cancel(self) -> None:
        self._cancelled = self.lease
        try:
            if not self.lease:
                raise NotControllerError("human lease is closed")
            await self._act(Person.INTERRUPT, lease=self.lease)
        except FabricError as error:
            await self._refuse(error)

    async def _reset(self) -> None:
        try:
            if self._resetting:
                raise SessionStateError("a reset is on its way")
            self._resetting = True
            try:
                await self._sessions.shared_reset(self._caller, self._session_id, new_request_id())
            finally:
                self._resetting = False
        except FabricError as error:
            await self._refuse(error)

    async def _act(self, kind: Person, **facts: Any) -> int:
        request = PersonRequest(self._view, kind, self._generation, new_request_id(), **facts)
        return await self._sessions.shared_act(self._caller, self._session_id, request)

    async def _grant(self, lease: int) -> None:
        if lease > self._granted:
            self.lease = self._granted = lease
            await self._send(frames.render("human.granted", self._generation, lease=lease))

    async def _revoked(self, reason: str) -> None:
        self.lease = 0
        await self._send(frames.render("human.revoked", self._generation, reason=reason))

    def _why(self, status: SharedStatus) -> str:
        if status.exited:
            return "session_exit"
        if status.queue_status == "blocked":
            return "blocked"
        return "cancelled" if self._cancelled == self.lease else "prompt"

    async def _refuse(self, error: FabricError) -> None:
        await self._send(frames.fault(self._generation, error.reason, error.message))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.failed.done():
            self.failed.set_exception(error)
