"""Time as a value that tests can hold still."""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds for measuring (``monotonic``) and for people (``wall``)."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        ...

    def wall(self) -> float:
        """Return seconds since 1970 UTC."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic()

    def wall(self) -> float:
        """Return seconds since 1970 UTC."""
        return time.time()


class ManualClock:
    """A clock for tests: it moves only when told."""

    def __init__(self, now: float = 1000.0) -> None:
        self._now = now

    def monotonic(self) -> float:
        """Return the held time."""
        return self._now

    def wall(self) -> float:
        """Return the held time."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move forward by ``seconds``."""
        self._now += seconds
