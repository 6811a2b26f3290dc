"""Mutating calls under their request ids: joined while they run, answered alike afterwards.

A call runs in a task of its own, so a caller that goes away does not take it along,
unless the call is *revocable*: then the last caller that leaves cancels it and waits for
its rollback. A repeat that arrives during such a rollback waits for its end and starts
anew. A call that failed had no effect that lasts, so its id may be tried again; an answer
is kept, in the journal too.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from fabric.core.clock import Clock
from fabric.core.errors import FabricError, OutcomeUnknownError, RegistryUnavailableError
from fabric.core.ids import RequestId
from fabric.core.plain import to_plain
from fabric.core.repeat import Repeats
from fabric.registry.instructions import Change, Drop, Kind, Put

T = TypeVar("T")
RESUMABLE = ("close", "release")


@dataclass(slots=True, eq=False)
class Call:
    """One call: running, or settled with an answer or an error."""

    task: "asyncio.Task[Any] | None" = None
    answer: Any = None
    error: FabricError | None = None
    callers: int = 0
    delivered: bool = False
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Ticket:
    """A call's place: scope (an owner, or who acquires), request id, digest, kind, arguments."""

    scope: str
    request_id: RequestId
    digest: bytes
    kind: str
    args: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The key of its row."""
        return f"{self.scope}\n{self.request_id}"

    def row(self, answer: object, settled_at: float | None) -> Put:
        """Return the row to write; ``settled_at`` None says that the call runs."""
        body = {
            "digest": self.digest.hex(),
            "kind": self.kind,
            "args": self.args,
            "answer": None if settled_at is None else to_plain(answer),
            "settled_at": settled_at,
        }
        return Put(Kind.REQUEST, self.key, body)


def ticket_of(key: str, body: dict[str, Any]) -> Ticket:
    """Build a ticket from a row of the journal."""
    scope, _, request_id = key.partition("\n")
    digest = bytes.fromhex(body["digest"])
    return Ticket(scope, RequestId(request_id), digest, body["kind"], body["args"])


class Calls:
    """All calls, by scope and request id."""

    def __init__(
        self,
        *,
        retention_s: float,
        max_entries: int,
        clock: Clock,
        write: Callable[[list[Change]], None],
    ) -> None:
        self._retention_s = retention_s
        self._max_entries = max_entries
        self._clock = clock
        self._write = write
        self._scopes: dict[str, Repeats[Call]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._begun: set[str] = set()
        self._rows: OrderedDict[str, float] = OrderedDict()
        self._stopping = False

    async def run(
        self,
        ticket: Ticket,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        revocable: bool = False,
        undo: Callable[[T], Coroutine[Any, Any, None]] | None = None,
    ) -> T:
        """Run ``work`` once for this ticket, or join it, or repeat its answer.

        ``undo`` takes back the answer of a revocable call that ended just as its only
        caller went away. Raises: RequestIdConflictError, QueueFullError, what ``work`` raises.
        """
        repeats = self._scope(ticket.scope)
        while True:
            now = self._clock.monotonic()
            call = repeats.find(ticket.request_id, ticket.digest, now)
            if call is None:
                call = self._start(ticket, work)
            if not call.revoked:
                return cast(T, await self._join(ticket, call, revocable, undo))
            if call.task is not None:
                await asyncio.wait({call.task})

    def begun(self, ticket: Ticket) -> Put:
        """Return the row that says that a call has begun, to be written with its first step."""
        self._begun.add(ticket.key)
        return ticket.row(None, None)

    def settled(self, ticket: Ticket, answer: object) -> Put:
        """Return the row of a call's answer, to be written with its last step."""
        self._begun.discard(ticket.key)
        wall = self._clock.wall()
        self._note(ticket, wall)
        return ticket.row(answer, wall)

    def is_begun(self, ticket: Ticket) -> bool:
        """Tell whether a call's beginning is in the journal and its answer is not."""
        return ticket.key in self._begun

    def resume(self, ticket: Ticket, work: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Run a call again that the journal says had begun."""
        self._begun.add(ticket.key)
        self._start(ticket, work)

    def restore(self, ticket: Ticket, answer: object, settled_at: float) -> None:
        """Put back an answered call; ``settled_at`` is a wall time."""
        self._note(ticket, settled_at)
        self._restore(ticket, Call(answer=answer), settled_at)

    def unknown(self, ticket: Ticket) -> None:
        """Put back a call whose outcome cannot be known; it is never run again."""
        error = OutcomeUnknownError(
            f"the registry stopped during this {ticket.kind} and cannot tell whether its command"
            " ran; it is not run again under this request id"
        )
        wall = self._clock.wall()
        self._note(ticket, wall)
        self._restore(ticket, Call(error=error), wall)

    def tick(self) -> list[Change]:
        """Forget answers whose retention has passed, and their rows."""
        now, wall = self._clock.monotonic(), self._clock.wall()
        for scope, repeats in list(self._scopes.items()):
            repeats.expire(now)
            if not len(repeats):
                del self._scopes[scope]
        out: list[Change] = []
        while self._rows and wall - next(iter(self._rows.values())) >= self._retention_s:
            out.append(Drop(Kind.REQUEST, self._rows.popitem(last=False)[0]))
        return out

    async def stop(self) -> None:
        """Cancel what runs and wait for it; closes and releases are resumed at the next start."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    def _start(self, ticket: Ticket, work: Callable[[], Coroutine[Any, Any, Any]]) -> Call:
        call = Call()
        now = self._clock.monotonic()
        self._scope(ticket.scope).reserve(ticket.request_id, ticket.digest, call, now)
        task = asyncio.get_running_loop().create_task(self._perform(ticket, call, work))
        call.task = task
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return call

    async def _perform(
        self, ticket: Ticket, call: Call, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        repeats = self._scope(ticket.scope)
        try:
            answer = await work()
        except BaseException:
            repeats.forget(ticket.request_id)
            resumable = self._stopping and ticket.kind in RESUMABLE
            if ticket.key in self._begun and not resumable:
                self._begun.discard(ticket.key)
                self._write([Drop(Kind.REQUEST, ticket.key)])
            raise
        call.answer = answer
        repeats.settle(ticket.request_id, self._clock.monotonic())
        return answer

    async def _join(
        self,
        ticket: Ticket,
        call: Call,
        revocable: bool,
        undo: Callable[[T], Coroutine[Any, Any, None]] | None,
    ) -> Any:
        task = call.task
        if task is None:
            if call.error is not None:
                raise call.error
            return call.answer
        call.callers += 1
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            call.callers -= 1
            if revocable and call.callers == 0:
                await self._revoke(ticket, call, task, undo)
            raise
        call.callers -= 1
        if task.cancelled():
            raise RegistryUnavailableError("the registry is stopping; try again in a moment")
        call.delivered = True
        return task.result()

    async def _revoke(
        self,
        ticket: Ticket,
        call: Call,
        task: "asyncio.Task[Any]",
        undo: Callable[[Any], Coroutine[Any, Any, None]] | None,
    ) -> None:
        """Cancel a call nobody waits for; the wait for its rollback may be cancelled too."""
        if not task.done():
            call.revoked = True
            task.cancel()
            await asyncio.wait({task})
        elif undo is not None and not (call.delivered or task.cancelled() or task.exception()):
            self._scope(ticket.scope).forget(ticket.request_id)
            self._rows.pop(ticket.key, None)
            self._write([Drop(Kind.REQUEST, ticket.key)])
            undoing = asyncio.get_running_loop().create_task(undo(task.result()))
            self._tasks.add(undoing)
            undoing.add_done_callback(self._ended)
            await asyncio.wait({undoing})

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # seen: whoever joined has it, and a call without callers may fail

    def _note(self, ticket: Ticket, settled_at: float) -> None:
        self._rows[ticket.key] = settled_at
        self._rows.move_to_end(ticket.key)

    def _restore(self, ticket: Ticket, call: Call, settled_at: float) -> None:
        age = max(0.0, self._clock.wall() - settled_at)
        repeats = self._scope(ticket.scope)
        at = self._clock.monotonic() - age
        repeats.reserve(ticket.request_id, ticket.digest, call, at)
        repeats.settle(ticket.request_id, at)

    def _scope(self, scope: str) -> Repeats[Call]:
        found = self._scopes.get(scope)
        if found is None:
            found = Repeats(retention_s=self._retention_s, max_entries=self._max_entries)
            self._scopes[scope] = found
        return found
