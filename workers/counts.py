"""What one session has done, for whoever exports it. Counting never waits and never speaks.

``changed`` is called once when something was counted for the first time since ``take``, so
that an exporter needs no clock that wakes an idle worker for nothing.
"""

from collections import Counter
from collections.abc import Callable

from fabric.core.model import Evidence, SendResult, WaitReason


class Counts:
    """The counters of one session."""

    __slots__ = ("_told", "changed", "sends")

    def __init__(self) -> None:
        self.sends: Counter[tuple[WaitReason, Evidence]] = Counter()
        self.changed: Callable[[], None] | None = None
        self._told = False

    def sent(self, result: SendResult) -> None:
        """Count a send that has settled, a background one too."""
        self.sends[result.wait_reason, result.evidence] += 1
        if self.changed is not None and not self._told:
            self._told = True
            self.changed()

    def take(self) -> Counter[tuple[WaitReason, Evidence]]:
        """Return the counts so far, and tell of the next change again."""
        self._told = False
        return Counter(self.sends)
