"""Opening a session: reserve, choose a node, start, publish, or take everything back.

What is reported when an open fails, in this order: the caller's own cancellation; what
ended its owner (or the registry) meanwhile; a rollback that failed, naming the first
error; the node's error. Whatever is reported, nothing is left but what could not be
removed, and that stays on the books as the owner's activity.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fabric.core.errors import (
    CapacityReachedError,
    CleanupIncompleteError,
    DrainingError,
    FabricError,
    InternalError,
    InvalidRequestError,
    NodeNotFoundError,
    OwnerNotLiveError,
    PtyExhaustedError,
    SandboxUnavailableError,
    SpawnFailedError,
    StartupTimeoutError,
    UnsupportedError,
)
from fabric.core.ids import HostName, OwnerId, SessionId, new_session_id
from fabric.core.model import Caller, OpenRequest, OpenResult, OpenSpec
from fabric.core.policy import parse as parse_policies
from fabric.core.settings import RegistrySettings, SharedSettings, ShellSettings
from fabric.core.shared import SHARED_NAME
from fabric.registry.books import Books
from fabric.registry.calls import Ticket
from fabric.registry.closing import Closings
from fabric.registry.placement import Wish, candidates
from fabric.registry.ports import NodesPort
from fabric.registry.request import check, programs_of, spec_of
from fabric.registry.session import Session
from fabric.registry.view import View
from fabric.registry.waiting import seen, to_the_end

_log = logging.getLogger(__name__)
_FULL = (CapacityReachedError, PtyExhaustedError, DrainingError, NodeNotFoundError)
# A node that answers with one of these has nothing of the session.
_NOTHING_LEFT = (
    *_FULL,
    InvalidRequestError,
    SandboxUnavailableError,
    SpawnFailedError,
    StartupTimeoutError,
    UnsupportedError,
)


@dataclass(slots=True, eq=False)
class Opening:
    """One open in flight. ``why`` is set when its owner ended; ``call`` is the node's work."""

    session_id: SessionId
    owner_id: OwnerId
    task: "asyncio.Task[OpenResult]"
    aborted: "asyncio.Future[None]"
    deadline: float
    why: str = ""
    host: HostName | None = None
    call: "asyncio.Task[OpenResult] | None" = None
    asked: bool = False
    refusals: dict[HostName, FabricError] = field(default_factory=dict)


class Openings:
    """The opens in flight."""

    def __init__(
        self,
        books: Books,
        nodes: NodesPort,
        closings: Closings,
        view: View,
        settings: RegistrySettings,
        shell: ShellSettings,
        shared: SharedSettings,
    ) -> None:
        self._shared = shared
        self._books = books
        self._nodes = nodes
        self._closings = closings
        self._view = view
        self._settings = settings
        self._shell = shell
        self._programs: Mapping[str, tuple[str, ...]] = programs_of(shell)
        self._policies = parse_policies(settings.policies)
        self._openings: dict[SessionId, Opening] = {}

    def check(self, request: OpenRequest) -> None:
        """Refuse a malformed request. Raises: InvalidRequestError, UnsupportedError."""
        check(request, self._programs)

    def _check_shared(self, caller: Caller) -> None:
        """Count the live shared terminals of all other owners, those being made too."""
        live = sum(
            session.name == SHARED_NAME
            and session.owner_id != caller.owner_id
            and (session.info is None or session.info.status.is_running)
            for session in self._books.table.sessions.values()
        )
        limit = self._shared.max_sessions
        if live >= limit:
            raise CapacityReachedError("terminal capacity reached", sessions=live, limit=limit)

    def abort(self, session_id: SessionId, why: str) -> "asyncio.Task[OpenResult] | None":
        """End an open because its owner has ended; return its task, to be awaited."""
        opening = self._openings.get(session_id)
        if opening is None:
            return None
        opening.why = why
        if not opening.aborted.done():
            opening.aborted.set_result(None)
        return opening.task

    def of_owner(self, owner_id: OwnerId) -> "list[asyncio.Task[OpenResult]]":
        """List the opens of an owner that have not settled."""
        return [item.task for item in self._openings.values() if item.owner_id == owner_id]

    async def run(self, ticket: Ticket, caller: Caller, request: OpenRequest) -> OpenResult:
        """Open and publish, in the task of the call. Raises: see the head of this module."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        if task is None:
            raise InternalError("an open needs a task of its own")
        table = self._books.table
        if request.shared:
            self._check_shared(caller)
        session = table.reserve(caller, new_session_id(), request.type, request.name)
        deadline = loop.time() + self._settings.open_timeout_s
        opening = Opening(
            session.session_id, session.owner_id, task, loop.create_future(), deadline
        )
        self._openings[session.session_id] = opening
        try:
            result = await self._start(opening, ticket, session, request)
            self._books.commit(
                [
                    *table.publish(session.session_id, result.info),
                    self._books.calls.settled(ticket, result),
                ]
            )
        except BaseException as error:
            fault, cancelled = await to_the_end(self._roll_back(opening))
            verdict = self._verdict(opening, error, fault, cancelled)
            if verdict is error:
                raise
            raise verdict from error
        finally:
            del self._openings[session.session_id]
        _log.info("session opened", extra={"session": session.session_id, "host": opening.host})
        return result

    async def _start(
        self, opening: Opening, ticket: Ticket, session: Session, request: OpenRequest
    ) -> OpenResult:
        books = self._books
        owner = books.table.owners.find(session.owner_id)
        if owner is None:
            raise books.table.owners.not_live(session.owner_id)
        spec = spec_of(
            request,
            session,
            owner,
            programs=self._programs,
            policy=self._policies.of(owner.principal),
            shell=self._shell,
            settings=self._settings,
            wall=books.clock.wall(),
            shared=self._shared,
        )
        wish = Wish(
            session.mode,
            request.os or None,
            request.host or None,
            network=spec.network,
            switches=spec.run_as is not None,
        )
        begun = [books.calls.begun(ticket)]
        while True:
            host = await self._choose(opening, wish)
            books.commit([*books.table.assign(session.session_id, host), *begun], must=True)
            begun = []
            self._view.take_warm(host)
            try:
                result = await self._on_node(opening, host, spec)
            except _FULL as error:
                _log.info("node refused", extra={"host": host, "reason": error.reason})
                opening.refusals[host] = error
                opening.call = None
                continue
            info = replace(result.info, host=host, owner_id=session.owner_id, name=session.name)
            return replace(result, info=info)

    async def _choose(self, opening: Opening, wish: Wish) -> HostName:
        def pick() -> HostName:
            there = candidates(
                wish, self._view.states(), self._books.table.load, self._view.warm_taken
            )
            left = [host for host in there if host not in opening.refusals]
            if not left:
                raise _refused(opening.refusals)
            return left[0]

        try:
            return pick()
        except FabricError:
            if opening.asked:
                raise
        # What is known of the nodes may be seconds old; ask them once before saying no.
        opening.asked = True
        await self._view.refresh()
        self._check(opening)
        return pick()

    async def _on_node(self, opening: Opening, host: HostName, spec: OpenSpec) -> OpenResult:
        loop = asyncio.get_running_loop()
        opening.host = host
        call = opening.call = loop.create_task(self._nodes.open(host, spec))
        call.add_done_callback(seen)
        watched: set[asyncio.Future[Any]] = {call, opening.aborted}
        await asyncio.wait(
            watched,
            timeout=max(0.0, opening.deadline - loop.time()),
            return_when=asyncio.FIRST_COMPLETED,
        )
        self._check(opening)
        if not call.done():
            raise StartupTimeoutError(
                f"node {host} did not open the session within {self._settings.open_timeout_s:g} s;"
                " it was removed",
                host=host,
            )
        if call.cancelled():
            raise InternalError(f"the open on node {host} was dropped")
        try:
            return call.result()
        except FabricError:
            raise
        except Exception as error:
            _log.exception("open failed", extra={"host": host})
            raise InternalError(f"the open on node {host} failed") from error

    @staticmethod
    def _check(opening: Opening) -> None:
        if opening.aborted.done():
            raise _ended(opening)

    async def _roll_back(self, opening: Opening) -> FabricError | None:
        """Remove what there may be; the error says what could not be removed. Bounded."""
        table, clock = self._books.table, self._books.clock
        session_id, host, call = opening.session_id, opening.host, opening.call
        if host is None:
            self._books.commit(table.withdraw(session_id, clock.monotonic()))
            return None
        self._books.commit(table.abort(session_id))
        if call is not None and not call.done():
            call.cancel()
            await asyncio.wait({call}, timeout=self._settings.close_timeout_s)
        if _may_be_left(call):
            try:
                await self._closings.remove(host, session_id, "open rolled back")
            except FabricError as error:
                now = clock.monotonic()
                self._books.commit(table.rollback_failed(session_id, error.message, now))
                _log.warning("rollback failed", extra={"session": session_id, "host": host})
                return error
        self._books.commit(table.rolled_back(session_id, clock.monotonic()))
        return None

    @staticmethod
    def _verdict(
        opening: Opening, error: BaseException, fault: FabricError | None, cancelled: bool
    ) -> BaseException:
        if cancelled and not isinstance(error, asyncio.CancelledError):
            return asyncio.CancelledError()
        if isinstance(error, asyncio.CancelledError):
            return error
        first: BaseException = _ended(opening) if opening.aborted.done() else error
        if fault is None:
            return first
        return CleanupIncompleteError(
            f"the open failed ({first}) and what it had started could not be removed"
            f" ({fault.message}); it counts as activity until it is gone",
            session_id=opening.session_id,
            host=opening.host,
            cause=getattr(first, "reason", "INTERNAL"),
        )


def _may_be_left(call: "asyncio.Task[OpenResult] | None") -> bool:
    if call is None:
        return False
    if not call.done():
        return True
    if call.cancelled():
        return False
    return not isinstance(call.exception(), _NOTHING_LEFT)


def _ended(opening: Opening) -> OwnerNotLiveError:
    return OwnerNotLiveError(
        f"owner {opening.owner_id} is not live: {opening.why}", owner_id=opening.owner_id
    )


def _refused(refusals: Mapping[HostName, FabricError]) -> FabricError:
    rows = [f"{host}: {error.message}" for host, error in refusals.items()]
    last = list(refusals.values())[-1]
    if all(isinstance(error, DrainingError) for error in refusals.values()):
        return DrainingError("; ".join(rows), nodes=len(refusals))
    return CapacityReachedError(
        f"no node took the session ({'; '.join(rows)})", nodes=len(refusals)
    ).with_metadata(**{f"last_{key}": value for key, value in last.metadata.items()})
