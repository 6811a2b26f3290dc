"""The front desk: gives out links, lets their bearers in, knows who is in.

``Views`` in ``fabric.gateway.ports`` is what the gateway's RPC asks of it.
"""

import asyncio
import secrets
import time
from dataclasses import dataclass, replace
from typing import Protocol

from fabric.core.errors import LimitReachedError, UnsupportedError
from fabric.core.model import Caller, SessionInfo
from fabric.core.settings import SharedSettings
from fabric.core.settings_web import WebSettings
from fabric.core.shared import SHARED_NAME, ViewTicket
from fabric.web.frames import Hello, Shown
from fabric.web.tickets import Grant, Kind, Passes, Tickets

VIEW_BYTES = 16
SPARE_PASSES = 4  # how many pages may be on their way back for each that is in


class Connection(Protocol):
    """A connection that may have to give way."""

    over: "asyncio.Future[None]"

    def replace(self) -> None:
        """End for a newer connection of the same view."""
        ...


@dataclass(frozen=True, slots=True)
class Guest:
    """A view that was let in: ``proof`` is what a controller left with."""

    grant: Grant
    view: str
    proof: str = ""


class Desk:
    """The front desk of one gateway."""

    def __init__(self, settings: WebSettings, shared: SharedSettings) -> None:
        self.settings = settings
        self._shared = shared
        self._tickets = Tickets(
            settings.ticket_s, settings.max_tickets_per_owner, settings.max_tickets
        )
        self.passes = Passes(settings.return_s, settings.max_views * (1 + SPARE_PASSES))
        self._inside: dict[str, Connection] = {}
        self.url = ""

    @property
    def max_input_bytes(self) -> int:
        """How many bytes one lease may be given."""
        return self._shared.max_input_bytes

    @property
    def count(self) -> int:
        """How many views are in."""
        return len(self._inside)

    def mint(self, caller: Caller, info: SessionInfo | None, *, readonly: bool) -> ViewTicket:
        """Make a link to the shared terminal, or, read-only, to one session.

        Raises: UnsupportedError while no web server listens, LimitReachedError.
        """
        if info is None:
            return self._link(Grant(caller, Kind.SHARED, None, readonly))
        return self._link(_watching(caller, info))

    def mint_overview(self, caller: Caller) -> ViewTicket:
        """Make a link to the list of sessions. Raises: as ``mint``."""
        return self._link(Grant(caller, Kind.OVERVIEW))

    def ticket_for(self, caller: Caller, info: SessionInfo) -> str:
        """Make a ticket to watch one session. Raises: LimitReachedError."""
        return self._tickets.mint(_watching(caller, info), time.monotonic())

    def _link(self, grant: Grant) -> ViewTicket:
        if not self.url:
            raise UnsupportedError(
                "this gateway has no web server",
                hint="set web.listen, or call another gateway",
            )
        ticket = self._tickets.mint(grant, time.monotonic())
        return ViewTicket(ticket, f"{self.url}/#t={ticket}", self.settings.ticket_s)

    async def admit(self, hello: Hello) -> Guest | None:
        """Let the bearer of a ticket or a pass in; None for one that does not count.

        Raises: LimitReachedError.
        """
        now = time.monotonic()
        if self.count >= self.settings.max_views:
            raise LimitReachedError("too many pages are connected to this gateway")
        if hello.ticket:
            grant = self._tickets.redeem(hello.ticket, now)
            if grant is None:
                return None
            grant = replace(grant, readonly=grant.readonly or hello.readonly)
            return Guest(grant, secrets.token_urlsafe(VIEW_BYTES))
        held = self.passes.take(hello.resume, now)
        if held is None:
            return None
        before = self._inside.get(held.view)
        if before is not None:
            before.replace()
            await asyncio.shield(before.over)
        return Guest(held.grant, secrets.token_urlsafe(VIEW_BYTES), held.proof)

    def entered(self, guest: Guest, connection: Connection) -> None:
        """Note that a view is in."""
        self._inside[guest.view] = connection

    def left(self, guest: Guest, *, withdraw: bool) -> None:
        """Note that a view's connection is gone, perhaps for good."""
        self._inside.pop(guest.view, None)
        if withdraw:
            self.passes.withdraw(guest.view)
        else:
            self.passes.left(guest.view, time.monotonic())

    def shown(self, grant: Grant, info: SessionInfo | None) -> Shown:
        """Say what a page is told when it is attached."""
        shared = self._shared
        return Shown(
            kind=grant.kind.value,
            name="" if info is None else info.name or info.session_id,
            program="" if info is None else info.type,
            node="" if info is None else info.host or "",
            rows=shared.rows if info is None else info.rows,
            cols=shared.cols if info is None else info.cols,
            scrollback_lines=shared.scrollback_lines,
            max_input_bytes=shared.max_input_bytes,
            heartbeat_s=self.settings.heartbeat_s,
            grace_s=shared.disconnect_grace_s,
            window_bytes=self.settings.window_bytes,
        )


def _watching(caller: Caller, info: SessionInfo) -> Grant:
    kind = Kind.SHARED if info.name == SHARED_NAME else Kind.SESSION
    return Grant(caller, kind, info.session_id, readonly=True)
