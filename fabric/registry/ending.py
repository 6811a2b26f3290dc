"""Closes and releases asked for by owners, and their resumption after a restart."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial

from fabric.core.ids import OwnerId, SessionId
from fabric.core.model import Caller, CloseOutcome, CloseReceipt, CloseResult, ReleaseReceipt
from fabric.registry.books import Books
from fabric.registry.calls import Ticket
from fabric.registry.closing import Closings
from fabric.registry.hands import Hands
from fabric.registry.instructions import Change
from fabric.registry.owners import OwnerState

BY_OWNER = "requested by the owner"


class Endings:
    """Ends what owners ask to end, under their request ids."""

    def __init__(self, books: Books, closings: Closings, hands: Hands) -> None:
        self._books = books
        self._closings = closings
        self._hands = hands

    async def close(self, ticket: Ticket, caller: Caller, session_id: SessionId) -> CloseResult:
        """Close a session, or join the close in flight. Raises: as ``Registry.close``."""
        books = self._books
        first, instructions = books.table.begin_close(caller, session_id, BY_OWNER)
        books.commit([*instructions, books.calls.begun(ticket)])
        return await self._await_close(ticket, session_id, first=first)

    async def release(self, ticket: Ticket, caller: Caller) -> ReleaseReceipt:
        """Dispose of an owner, or try again what failed of it. Raises: OwnerNotLiveError."""
        books = self._books
        owner = books.table.owners.find(caller.owner_id)
        if owner is None or owner.state is OwnerState.LIVE or owner.epoch != caller.epoch:
            books.table.owners.authorise(caller)
        books.write([books.calls.begun(ticket)])
        receipt = await self._hands.dispose(caller.owner_id, "it was released")
        books.write([books.calls.settled(ticket, receipt)])
        return receipt

    def resume(self, begun: Iterable[Ticket]) -> None:
        """Go on with what the journal says had begun."""
        books = self._books
        for ticket in begun:
            if ticket.kind == "close":
                session_id = SessionId(ticket.args["session_id"])
                work = partial(self._await_close, ticket, session_id, first=True)
                books.calls.resume(ticket, work)
            else:
                caller = Caller(OwnerId(ticket.scope), int(ticket.args["epoch"]))
                books.calls.resume(ticket, partial(self.release, ticket, caller))
        unfinished = books.table.unfinished(books.clock.monotonic())
        self._hands.perform(books.commit(unfinished))

    async def _await_close(
        self, ticket: Ticket, session_id: SessionId, *, first: bool
    ) -> CloseResult:
        outcome = CloseOutcome.CLOSED if first else CloseOutcome.ALREADY_CLOSING
        calls = self._books.calls

        def rows(receipt: CloseReceipt | None) -> Sequence[Change]:
            return [calls.settled(ticket, CloseResult(session_id, outcome, receipt))]

        attempt = self._closings.start(session_id, BY_OWNER, rows if first else None)
        receipt = await asyncio.shield(attempt)
        result = CloseResult(session_id, outcome, receipt)
        if calls.is_begun(ticket):  # joined: the rows of another call were written
            self._books.write([calls.settled(ticket, result)])
        return result
