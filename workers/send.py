"""One send's right to the terminal: written once, settled once, released last.

States: RESERVED (nothing written) -> WRITING -> WAITING -> SETTLED. The slot it holds is
free only when the send is settled *and* neither its write nor its interrupt is still
under way, so neither can ever reach a successor. Rules:

- A cancel while the write is under way waits for it, then asks for the interrupt; a
  failed write suppresses it. That holds too when the deadline has settled the send
  meanwhile: what was typed is not left to run for nobody.
- A cancel before anything was written writes nothing and interrupts nothing: there is
  nothing of this send to interrupt.
- A cancel does not settle by itself: the verdict still comes from readiness, the
  deadline or the exit. It is remembered, so the caller is told.
- A verdict that rests on the program waiting for input is not accepted while the write
  is under way; a deadline or an exit is.

Rejected: settling on cancel at once (the next send would start inside the old program),
and interrupting before the write ended (the rest of the text would be typed after it).
"""

from dataclasses import dataclass
from enum import Enum, auto


class Phase(Enum):
    """Where a send is."""

    RESERVED = auto()
    WRITING = auto()
    WAITING = auto()
    SETTLED = auto()


class Ask(Enum):
    """What the session has to do now."""

    WRITE = auto()
    INTERRUPT = auto()
    SETTLE = auto()
    FAIL = auto()
    RELEASE = auto()


@dataclass(slots=True)
class Send:
    """The machine; every method returns what to do, in order."""

    phase: Phase = Phase.RESERVED
    cancelled: bool = False
    writing: bool = False
    interrupting: bool = False
    asked: bool = False
    released: bool = False

    @property
    def is_settled(self) -> bool:
        """Tell whether the result is fixed."""
        return self.phase is Phase.SETTLED

    def begin(self) -> list[Ask]:
        """Start the write, unless the send was cancelled before."""
        if self.phase is not Phase.RESERVED:
            return []
        self.phase = Phase.WRITING
        self.writing = True
        return [Ask.WRITE]

    def written(self) -> list[Ask]:
        """Take the news that every byte is written."""
        self.writing = False
        if self.phase is Phase.WRITING:
            self.phase = Phase.WAITING
        if self.cancelled and not self.asked:
            return self._interrupt()
        return self._release() if self.is_settled else []

    def write_failed(self) -> list[Ask]:
        """Take the news that the write failed or was withdrawn."""
        self.writing = False
        if self.is_settled:
            return self._release()
        self.phase = Phase.SETTLED
        return [Ask.FAIL, *self._release()]

    def cancel(self) -> list[Ask]:
        """Ask for the end of the send."""
        if self.is_settled or self.cancelled:
            return []
        self.cancelled = True
        if self.phase is Phase.RESERVED:
            self.phase = Phase.SETTLED
            return [Ask.SETTLE, *self._release()]
        return [] if self.writing else self._interrupt()

    def interrupted(self) -> list[Ask]:
        """Take the news that the interrupt was delivered, or cannot be."""
        self.interrupting = False
        return self._release() if self.is_settled else []

    def verdict(self, *, waits_for_input: bool) -> list[Ask]:
        """Take a verdict: of readiness (``waits_for_input``), or deadline or exit."""
        if self.is_settled or (waits_for_input and self.writing):
            return []
        self.phase = Phase.SETTLED
        return [Ask.SETTLE, *self._release()]

    def _interrupt(self) -> list[Ask]:
        self.interrupting = self.asked = True
        return [Ask.INTERRUPT]

    def _release(self) -> list[Ask]:
        if self.released or self.writing or self.interrupting:
            return []
        self.released = True
        return [Ask.RELEASE]
