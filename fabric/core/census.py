"""How many there are of what, as the registry counts them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Census:
    """Live owners, and sessions and kept tasks by the name of their state."""

    owners: int = 0
    sessions: tuple[tuple[str, int], ...] = ()
    tasks: tuple[tuple[str, int], ...] = ()
