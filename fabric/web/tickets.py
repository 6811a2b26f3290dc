"""Who may look at what in a browser: tickets to come in, passes to come back.

Theory
    A browser has no credential of ours. The owner asks for a *ticket*, a link carries it
    to the page, the page shows it in its first frame: it counts once and for seconds. On
    the way in the view gets a *pass*, good once too: with it the same page may come back
    when its connection is lost, and gets the next one. A pass counts while its view is
    connected and for a while after. Both are 256 bits by chance, of which only the SHA-256
    is kept, and both stand for a ``Grant``: one owner in one epoch, one kind of view.

    A pass also keeps what a controller needs to get its place back (``proof``), and by
    which view it was last held, so that a page that comes back before its old connection
    is known to be lost takes that one's place.

    A ticket begins with the name of the gateway that made it, since nobody else knows it.

Pure: times are arguments, in seconds of one monotonic clock.
"""

import hashlib
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum

from fabric.core.errors import LimitReachedError
from fabric.core.ids import SessionId
from fabric.core.model import Caller

SECRET_BYTES = 32
NAME_BYTES = 4


class Kind(StrEnum):
    """What a view shows."""

    SHARED = "shared"
    SESSION = "session"
    OVERVIEW = "overview"


@dataclass(frozen=True, slots=True)
class Grant:
    """What a ticket or a pass stands for."""

    caller: Caller
    kind: Kind
    session_id: SessionId | None = None
    readonly: bool = True


class Tickets:
    """The tickets of one gateway."""

    def __init__(self, ttl_s: float, per_owner: int, total: int) -> None:
        self.name = secrets.token_hex(NAME_BYTES)
        self._ttl_s = ttl_s
        self._per_owner = per_owner
        self._total = total
        self._known: OrderedDict[bytes, tuple[Grant, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def mint(self, grant: Grant, at: float) -> str:
        """Make a ticket. Raises: LimitReachedError when too many wait to be used."""
        self._forget(at)
        owner = grant.caller.owner_id
        mine = sum(known.caller.owner_id == owner for known, _ in self._known.values())
        if mine >= self._per_owner or len(self._known) >= self._total:
            raise LimitReachedError(
                "too many tickets wait to be used; try again in some seconds",
                limit=self._per_owner if mine >= self._per_owner else self._total,
            )
        ticket = f"{self.name}.{secrets.token_urlsafe(SECRET_BYTES)}"
        self._known[digest(ticket)] = (grant, at + self._ttl_s)
        return ticket

    def redeem(self, ticket: str, at: float) -> Grant | None:
        """Use a ticket up; None for one that does not count (any more)."""
        self._forget(at)
        known = self._known.pop(digest(ticket), None)
        return None if known is None else known[0]

    def _forget(self, at: float) -> None:
        while self._known:
            key, (_, until) = next(iter(self._known.items()))
            if at < until:
                return
            del self._known[key]


@dataclass(slots=True)
class Held:
    """One view's right to come back; ``left_at`` is when its connection was lost."""

    grant: Grant
    view: str
    proof: str = ""
    left_at: float | None = None


class Passes:
    """The passes of one gateway."""

    def __init__(self, return_s: float, total: int) -> None:
        self._return_s = return_s
        self._total = total
        self._held: OrderedDict[bytes, Held] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def issue(self, grant: Grant, view: str, proof: str) -> str:
        """Give a view its pass; the longest gone makes room when there are too many."""
        made = secrets.token_urlsafe(SECRET_BYTES)
        while len(self._held) >= self._total:
            gone = [key for key, held in self._held.items() if held.left_at is not None]
            del self._held[gone[0] if gone else next(iter(self._held))]
        self._held[digest(made)] = Held(grant, view, proof)
        return made

    def left(self, view: str, at: float) -> None:
        """Note that a view's connection is gone."""
        for key, held in list(self._held.items()):
            if held.view == view and held.left_at is None:
                held.left_at = at
                self._held.move_to_end(key)

    def renounce(self, view: str) -> None:
        """Forget what a view's controller left with: its generation is over."""
        for held in self._held.values():
            if held.view == view:
                held.proof = ""

    def take(self, given: str, at: float) -> Held | None:
        """Use a pass up; None for one that does not count (any more)."""
        held = self._held.pop(digest(given), None)
        if held is None or (held.left_at is not None and at >= held.left_at + self._return_s):
            return None
        return held

    def withdraw(self, view: str) -> None:
        """Forget a view that must not come back."""
        for key, held in list(self._held.items()):
            if held.view == view:
                del self._held[key]


def digest(secret: str) -> bytes:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
