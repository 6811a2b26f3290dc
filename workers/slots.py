"""The warm pool of a node as a pure machine: stimuli in, instructions out.

A *slot* is a session worker with an idle shim. It is

    starting ──ready──▶ warm ──claim──▶ held ──freed──▶ gone
        │                 │
        └─failed──▶ gone  └─died──▶ gone

``held`` covers everything from the grant to the end of the slot: opening, a live session,
closing. The machine knows no clock, no process and no socket; the node performs what it
is told to and reports what came of it.

Rules, in order of weight:

1. never more than ``max_slots`` slots in all, never more than ``max_starting`` starting;
2. an opener gets the oldest warm slot at once, else waits in line for the next one that
   becomes ready, whoever it was started for;
3. while openers wait, slots are started for them without regard to any backoff: they wait
   for an answer, and each failed start refuses one of them, so a broken node says so
   instead of hanging;
4. the pool is refilled in the background up to ``warm``, a moment after a slot was taken,
   so that starting a worker (half a second of processor time) does not slow down the very
   open that took it; after a failure it waits, twice as long each time, since a node that
   cannot start workers must not burn its processor.

Rejected: starting one slot for each opener (a burst of 64 opens would start 64 processes
at once), and a separate queue for cold opens (a warm slot that becomes ready first must
go to whoever waits longest).
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from fabric.core.ids import SlotId, new_slot_id

MAX_SERVED = 1024  # owners whose last turn is remembered
REFILL_DELAY_S = 0.2
FIRST_BACKOFF_S = 0.5
LAST_BACKOFF_S = 30.0


class SlotState(StrEnum):
    """Where a slot is in its life."""

    STARTING = "starting"
    WARM = "warm"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class Start:
    """Start a worker for a new blank slot; answer with ``ready`` or ``failed``."""

    slot_id: SlotId


@dataclass(frozen=True, slots=True)
class Destroy:
    """End a blank slot; the machine has forgotten it already."""

    slot_id: SlotId


@dataclass(frozen=True, slots=True)
class Grant:
    """Give the slot to the opener with this ticket."""

    ticket: int
    slot_id: SlotId


@dataclass(frozen=True, slots=True)
class Refuse:
    """Tell the opener with this ticket that it gets none, and why."""

    ticket: int
    message: str


Instruction = Start | Destroy | Grant | Refuse


class Slots:
    """Which slots there are and what to do next. Every stimulus returns instructions."""

    def __init__(
        self,
        *,
        warm: int,
        max_starting: int,
        max_slots: int,
        new_id: Callable[[], SlotId] = new_slot_id,
    ) -> None:
        self._target = warm
        self._max_starting = max_starting
        self._max_slots = max_slots
        self._new_id = new_id
        self._slots: OrderedDict[SlotId, SlotState] = OrderedDict()
        self._waiting: OrderedDict[int, str] = OrderedDict()
        self._served: OrderedDict[str, int] = OrderedDict()
        self._grants = 0
        self._failures = 0
        self._not_before = 0.0
        self._draining = False

    def count(self, state: SlotState) -> int:
        """Count the slots in ``state``."""
        return sum(1 for item in self._slots.values() if item is state)

    def state_of(self, slot_id: SlotId) -> SlotState | None:
        """Return the state of a slot, None when it is gone."""
        return self._slots.get(slot_id)

    @property
    def waiting(self) -> int:
        """How many openers wait for a slot."""
        return len(self._waiting)

    @property
    def refill_at(self) -> float | None:
        """When a ``tick`` is worth its while, by the clock of the stimuli; None for never."""
        short = self._target - self.count(SlotState.STARTING) - self.count(SlotState.WARM)
        room = self._max_slots - len(self._slots)
        return None if self._draining or min(short, room) <= 0 else self._not_before

    def claim(self, ticket: int, now: float, owner: str = "") -> list[Instruction]:
        """An opener wants a slot; who waits is served by owners in turn."""
        if self._draining:
            return [Refuse(ticket, "the node is draining")]
        self._waiting[ticket] = owner
        self._not_before = max(self._not_before, now + REFILL_DELAY_S)
        return self._settle(now)

    def abandon(self, ticket: int, now: float) -> list[Instruction]:
        """An opener that still waits gives up; what was started for it joins the pool."""
        self._waiting.pop(ticket, None)
        return self._settle(now)

    def ready(self, slot_id: SlotId, now: float) -> list[Instruction]:
        """A start succeeded."""
        if self._slots.get(slot_id) is not SlotState.STARTING:
            return [Destroy(slot_id)]
        self._failures = 0
        if self._draining:
            del self._slots[slot_id]
            return [Destroy(slot_id)]
        self._slots[slot_id] = SlotState.WARM
        self._slots.move_to_end(slot_id)
        return self._settle(now)

    def failed(self, slot_id: SlotId, message: str, now: float) -> list[Instruction]:
        """A start failed; the opener that waits longest is refused."""
        self._slots.pop(slot_id, None)
        pause = min(LAST_BACKOFF_S, FIRST_BACKOFF_S * 2**self._failures)
        self._failures = min(self._failures + 1, 16)
        self._not_before = now + pause
        refused: list[Instruction] = []
        if self._waiting:
            ticket, _ = self._waiting.popitem(last=False)
            refused.append(Refuse(ticket, message))
        return refused + self._settle(now)

    def gone(self, slot_id: SlotId, now: float) -> list[Instruction]:
        """A warm slot died, or a held one has been ended."""
        self._slots.pop(slot_id, None)
        return self._settle(now)

    def adopt(self, slot_id: SlotId, state: SlotState) -> None:
        """Count a slot found after a restart of the node."""
        self._slots[slot_id] = state

    def tick(self, now: float) -> list[Instruction]:
        """Time has passed: refill when a backoff is over."""
        return self._settle(now)

    def drain(self) -> list[Instruction]:
        """Take no new work: end the warm slots, refuse who waits. Held slots stay."""
        self._draining = True
        out: list[Instruction] = [Refuse(t, "the node is draining") for t in self._waiting]
        self._waiting.clear()
        for slot_id in [key for key, state in self._slots.items() if state is SlotState.WARM]:
            del self._slots[slot_id]
            out.append(Destroy(slot_id))
        return out

    def resume(self, now: float) -> list[Instruction]:
        """Take work again after a drain, and fill up."""
        self._draining = False
        return self.tick(now)

    def _settle(self, now: float) -> list[Instruction]:
        out: list[Instruction] = []
        for slot_id in [key for key, state in self._slots.items() if state is SlotState.WARM]:
            if not self._waiting:
                break
            self._slots[slot_id] = SlotState.HELD
            out.append(Grant(self._next(), slot_id))
        for _ in range(self._wanted(now)):
            fresh = self._new_id()
            self._slots[fresh] = SlotState.STARTING
            out.append(Start(fresh))
        return out

    def _next(self) -> int:
        """Take the opener whose owner was served longest ago, the oldest of its own."""
        ticket = min(self._waiting, key=lambda item: self._served.get(self._waiting[item], 0))
        owner = self._waiting.pop(ticket)
        self._grants += 1
        self._served[owner] = self._grants
        self._served.move_to_end(owner)
        while len(self._served) > MAX_SERVED:
            self._served.popitem(last=False)
        return ticket

    def _wanted(self, now: float) -> int:
        if self._draining:
            return 0
        starting = self.count(SlotState.STARTING)
        wanted = len(self._waiting)
        if now >= self._not_before:
            wanted += self._target
        wanted -= starting + self.count(SlotState.WARM)
        room = min(self._max_starting - starting, self._max_slots - len(self._slots))
        return max(0, min(wanted, room))
