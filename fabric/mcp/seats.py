"""Which owner a request belongs to.

Over standard input and output there is one connection and one owner. Over HTTP a seat is
found by the session id of the protocol's handshake era; where a request names its agent
(header ``Fabric-Agent``), by credential and agent; and in the later era, which has no
sessions, by the credential alone. A seat nobody has used for ``idle_s`` is given up with its
terminals: a client that went away without a word must not hold them for ever.
"""

import asyncio
import contextlib
import hashlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fabric.client.client import FabricClient
from fabric.mcp.notices import Audience
from fabric.mcp.seat import Seat

LONGEST_LOOK_S = 30.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks: the credential, the agent it names, the protocol session it belongs to."""

    token: str | None = None
    agent: str | None = None
    session: str | None = None

    @property
    def key(self) -> str:
        """What finds the seat again; holds no credential."""
        digest = hashlib.sha256((self.token or "").encode()).hexdigest()[:32]
        if self.agent is None and self.session is not None:
            return f"session {self.session} {digest}"
        return f"agent {self.agent or ''} {digest}"


@dataclass(slots=True)
class Place:
    """A seat, who hears of it, and when it was last used."""

    seat: Seat
    audience: Audience
    used_at: float = 0.0


class Seats:
    """Every owner of this server. ``connect`` makes a client for a visitor."""

    def __init__(
        self,
        connect: Callable[[Visitor], FabricClient],
        idle_s: float | None = None,
        *,
        keep: bool = False,
    ) -> None:
        self._connect = connect
        self._idle_s = idle_s
        self._keep = keep
        self._places: dict[str, Place] = {}
        self._users: Counter[str] = Counter()

    def place(self, visitor: Visitor) -> Place:
        """Return the place of a visitor, made when there is none."""
        found = self._places.get(visitor.key)
        if found is None:
            audience = Audience()
            seat = Seat(lambda: self._connect(visitor), audience.tell)
            found = self._places[visitor.key] = Place(seat, audience)
        found.used_at = time.monotonic()
        return found

    @contextlib.contextmanager
    def using(self, visitor: Visitor) -> Iterator[None]:
        """Keep a visitor's seat from being idle while a request of it runs."""
        key = visitor.key
        self._users[key] += 1
        try:
            yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key]
            if key in self._places:
                self._places[key].used_at = time.monotonic()

    async def give_up(self, visitor: Visitor) -> None:
        """Release a visitor's owner with its terminals."""
        place = self._places.pop(visitor.key, None)
        if place is not None:
            place.audience.listen.close()
            await place.seat.close(keep=False)

    async def sweep(self) -> None:
        """Give up idle seats, for as long as it is not cancelled."""
        if self._idle_s is None:
            return
        while True:
            await asyncio.sleep(min(self._idle_s / 2, LONGEST_LOOK_S))
            before = time.monotonic() - self._idle_s
            for key, place in list(self._places.items()):
                if key not in self._users and place.used_at < before:
                    del self._places[key]
                    place.audience.listen.close()
                    await place.seat.close(keep=False)
                    _log.info("idle owner released")

    async def close(self) -> None:
        """Let every owner go; those of named agents are left to their leases."""
        places, self._places = list(self._places.values()), {}
        await asyncio.gather(*(place.seat.close(keep=self._keep) for place in places))
