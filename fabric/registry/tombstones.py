"""What is remembered of ids that are gone.

Theory: an id that is gone answers why. Tombstones are kept for ``retention_s`` and at
most ``max_entries`` of them, the oldest first to go; an id without one was never known,
as far as anyone can tell. They also keep ids from being used twice and tell a session
that was closed on purpose from one that a node may bring back.
"""

from collections import OrderedDict
from dataclasses import dataclass

from fabric.core.ids import OwnerId
from fabric.registry.instructions import Drop, Instruction, Kind, Put


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Why an id is gone. ``lost`` means by accident; ``revision`` is the table's at that time."""

    owner_id: OwnerId
    why: str
    lost: bool
    buried_at: float
    revision: int


class Tombstones:
    """The tombstones of sessions and of owners, by id."""

    def __init__(self, *, retention_s: float, max_entries: int) -> None:
        self._retention_s = retention_s
        self._max_entries = max_entries
        self._stones: OrderedDict[str, Tombstone] = OrderedDict()

    def __len__(self) -> int:
        return len(self._stones)

    def get(self, key: str) -> Tombstone | None:
        """Return the tombstone of an id, if there is one."""
        return self._stones.get(key)

    def bury(self, key: str, stone: Tombstone) -> list[Instruction]:
        """Remember that an id is gone."""
        out = self._expire(stone.buried_at)
        self._stones[key] = stone
        self._stones.move_to_end(key)
        out.append(
            Put(
                Kind.TOMBSTONE,
                key,
                {"owner_id": stone.owner_id, "why": stone.why, "lost": stone.lost},
            )
        )
        while len(self._stones) > self._max_entries:
            out.append(self._drop_oldest())
        return out

    def lift(self, key: str) -> list[Instruction]:
        """Forget a tombstone because its id lives again."""
        if self._stones.pop(key, None) is None:
            return []
        return [Drop(Kind.TOMBSTONE, key)]

    def tick(self, now: float) -> list[Instruction]:
        """Drop what is older than the retention."""
        return self._expire(now)

    def restore(self, key: str, body: dict[str, object], now: float) -> None:
        """Put back a row of the journal; its retention starts afresh."""
        self._stones[key] = Tombstone(
            OwnerId(str(body["owner_id"])), str(body["why"]), bool(body["lost"]), now, 0
        )

    def _expire(self, now: float) -> list[Instruction]:
        out: list[Instruction] = []
        while self._stones:
            oldest = next(iter(self._stones.values()))
            if now - oldest.buried_at < self._retention_s:
                break
            out.append(self._drop_oldest())
        return out

    def _drop_oldest(self) -> Instruction:
        key, _ = self._stones.popitem(last=False)
        return Drop(Kind.TOMBSTONE, key)
