"""One call on its way through the gateway: who, until when, and how it may end.

A call ends on its own, by its caller (cancelled, vanished, out of time: gRPC cancels the
task), or by the gateway: evicted by a drain, or overdue where the caller gave no deadline.
All of these cancel the one task the call runs in, so what a port does to clean up is
awaited in that task; ``ending`` says which of them it was.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from fabric.core.errors import DeadlineError, FabricError, UnauthenticatedError
from fabric.core.model import Caller
from fabric.core.settings import GatewaySettings
from fabric.gateway.bearer import Identity
from fabric.wire.methods import Method

DEADLINE_ROUNDING = 1.01  # gRPC rounds a deadline up by as much to keep its header short
NO_OWNER = "this call needs an owner token; acquire an owner first"


class Access(Enum):
    """What a call has to show."""

    PRINCIPAL = "principal"  # a credential
    OWNER = "owner"  # a credential and an owner token
    DATA = "data"  # the same, or the word of another gateway


class Kind(Enum):
    """What a drain does with a call that runs."""

    QUICK = "quick"  # let it finish; it does not count as waiting
    WORK = "work"  # let it finish within the drain's time
    WAIT = "wait"  # end it at once: it changes nothing and another gateway can repeat it


@dataclass(frozen=True, slots=True)
class Route:
    """A handler and what its callers must show."""

    handler: Callable[..., Awaitable[Any]]
    access: Access
    kind: Kind
    while_draining: bool = False


Routes = Mapping[str, Route]


class Call:
    """One running call. Times are in seconds; ``deadline`` is on the loop's clock."""

    __slots__ = (
        "_caller",
        "_loop",
        "_settings",
        "_timer",
        "deadline",
        "ending",
        "identity",
        "method",
        "task",
    )

    def __init__(
        self,
        method: Method,
        identity: Identity,
        caller: Caller | None,
        task: "asyncio.Task[Any]",
        remaining_s: float | None,
        settings: GatewaySettings,
    ) -> None:
        self.method = method
        self.identity = identity
        self.task = task
        self.ending: FabricError | None = None
        self._caller = caller
        self._settings = settings
        self._loop = task.get_loop()
        self._timer: asyncio.TimerHandle | None = None
        self.deadline = None if remaining_s is None else self._loop.time() + remaining_s

    @property
    def caller(self) -> Caller:
        """The owner behind the call. Raises: UnauthenticatedError."""
        if self._caller is None:
            raise UnauthenticatedError(NO_OWNER)
        return self._caller

    @property
    def owner_id(self) -> str | None:
        """The owner's id, None for a call without one."""
        return None if self._caller is None else self._caller.owner_id

    def end(self, error: FabricError) -> None:
        """Cancel the call on the gateway's behalf; it will answer with ``error``."""
        if self.ending is None and not self.task.cancelling():
            self.ending = error
            self.task.cancel()

    def bound(self, seconds: float) -> None:
        """End the call after ``seconds`` where its caller gave no deadline."""
        if self.deadline is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(
            seconds, self.end, DeadlineError(f"the call took longer than {seconds:g} s")
        )

    def unbound(self) -> None:
        """Drop the bound; the call may last."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def wait_s(self, wanted: float | None, default: float, longest: float) -> float:
        """Return how long the call may wait: what is wanted, below the caller's deadline.

        Raises: DeadlineError when the deadline leaves no time to wait and to answer.
        """
        wait = min(default if wanted is None else wanted, longest)
        if self.deadline is None:
            self.bound(wait + self._settings.default_deadline_s)
            return wait
        margin = self._settings.deadline_margin_s
        left = self.deadline - self._loop.time()
        room = left / DEADLINE_ROUNDING - margin
        if room <= 0:
            raise DeadlineError(
                f"the call's deadline leaves no time: {margin:g} s are kept for the answer"
            )
        return min(wait, room)
