"""Watches a terminal for one thing only: that its shell is back at its prompt.

A person's turn and a recovery end at the shell's prompt and at nothing less, however long
a program waits for input in between. So nothing is looked at while no mark came: the mark
inside the prompt is the event. Once it stands there with exactly its prompt after it, the
same proof is asked for as for a send: the shell has the terminal, nothing is unread, and
it sleeps on the terminal; where sleepers cannot be seen, the prompt has to stand quietly
for a poll interval.
"""

import asyncio
import time
from collections.abc import Callable

from workers.readiness.inspector import Inspector
from workers.readiness.memory import Memory
from workers.terminal.dialects import Prompts
from workers.terminal.master import Master
from workers.text.marks import MarkKind

FIRST_LOOK_S = 0.0005
BACKOFF = 1.5


class PromptWatch:
    """Calls ``back`` each time a prompt that came after ``arm`` is proved."""

    def __init__(
        self,
        master: Master,
        inspector: Inspector,
        memory: Memory,
        prompts: Prompts | None,
        poll_interval_s: float,
        back: Callable[[], None],
    ) -> None:
        self._master = master
        self._inspector = inspector
        self._memory = memory
        self._prompts = prompts
        self._poll_s = poll_interval_s
        self._back = back
        self._armed = False
        self._fresh = False
        self._last_output = 0.0
        self._delay = FIRST_LOOK_S
        self._timer: asyncio.TimerHandle | None = None

    @property
    def stands(self) -> bool:
        """Tell whether a prompt stands there that came since ``arm``, proved or not."""
        memory = self._memory
        return (
            self._fresh
            and self._prompts is not None
            and memory.mark is MarkKind.PROMPT
            and memory.text == self._prompts.primary
        )

    def arm(self, *, anew: bool = True) -> None:
        """Watch from now on; with ``anew`` False, marks since the last ``arm`` count too."""
        self._armed = True
        if anew:
            self._fresh = False
        self._start()

    def note(self) -> None:
        """Forget the marks so far without watching: a dispatch has begun."""
        self.disarm()
        self._fresh = False

    def disarm(self) -> None:
        """Stop watching."""
        self._armed = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def output(self, kinds: list[MarkKind]) -> None:
        """Take note of output, after it went into the session's memory."""
        self._last_output = time.monotonic()
        if MarkKind.PROMPT in kinds:
            self._fresh = True
        self._start()

    def _start(self) -> None:
        if self._armed and self.stands:
            self._delay = FIRST_LOOK_S
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(FIRST_LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._is_proved():
            self._armed = False
            self._back()
        elif self._armed and self.stands and self._timer is None:
            self._delay = min(self._delay * BACKOFF, self._poll_s)
            self._timer = asyncio.get_running_loop().call_later(self._delay, self._look)

    def _is_proved(self) -> bool:
        memory = self._memory
        probe = self._inspector.probe(memory.shell_pgid)
        self._master.drain()
        if not (self._armed and self.stands) or probe.unread:
            return False
        front = probe.foreground_pgid
        if front is not None and memory.shell_pgid is not None and front != memory.shell_pgid:
            return False
        if probe.supported:
            return bool(probe.waits)
        return time.monotonic() - self._last_output >= self._poll_s
