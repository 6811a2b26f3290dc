"""Runs the machine of one send against a real terminal.

The order that makes the verdicts true: drain what was written before the send, look,
write (the caller does), then look again whenever the machine asks, and drain after every
look, so that the output of whoever was asleep at the look has been delivered before the
machine judges it.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence

from fabric.core.settings import ReadinessSettings
from workers.readiness.alarm import Alarm
from workers.readiness.events import (
    Event,
    Exited,
    Output,
    ProbeAt,
    Probed,
    Settle,
    Start,
    Tick,
    TickAt,
    Verdict,
    Wrote,
)
from workers.readiness.inspector import Inspector
from workers.readiness.memory import Memory
from workers.readiness.termios_view import wakes_reader
from workers.readiness.tiers import Tiers
from workers.terminal.dialects import Dialect
from workers.terminal.master import READ_BUDGET_BYTES, Master
from workers.text.marks import Mark

MAX_LOOKS_AT_ONCE = 4  # then the loop gets its turn


class SendWatch:
    """Watches one send until its verdict; create it right before the write.

    ``verdict`` resolves once. ``memory`` is one object for the life of a session; between
    sends tell it about output (``Memory.output``), during a send tell the watch.
    """

    def __init__(
        self,
        *,
        master: Master,
        inspector: Inspector,
        dialect: Dialect,
        settings: ReadinessSettings,
        data: bytes,
        memory: Memory,
        timeout_s: float | None = None,
        background: bool = False,
        startup: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.verdict: asyncio.Future[Verdict] = self._loop.create_future()
        self._master = master
        self._inspector = inspector
        self.memory = memory
        self._looking = False
        self._next_look: float | None = None
        if memory.alarm is None:
            memory.alarm = Alarm(self._loop, self._look)
        self._alarm = memory.alarm
        self._alarm.callback = self._look
        self._ticker: asyncio.TimerHandle | None = None
        self._tick_at = 0.0
        before = None if startup else inspector.probe(memory.shell_pgid)
        view = master.line_view()
        self._tiers = Tiers(
            settings,
            Start(
                at=time.monotonic(),
                before=before,
                can_wake=view is None or wakes_reader(data, view),
                writes=bool(data) or startup,
                background=background,
                startup=startup,
                timeout_s=timeout_s,
                prompts=dialect.prompts,
            ),
            self.memory,
        )
        self._obey(self._tiers.begin())

    def wrote(self) -> None:
        """Tell that every byte is written; a verdict on input is possible from now on."""
        self._feed(Wrote(time.monotonic()))

    def output(self, marks: Sequence[Mark], text_since_mark: str | None) -> None:
        """Tell about output, after it went into the transcript."""
        line = self._master.line
        if self.verdict.done():
            self.memory.output(marks, text_since_mark, line)
        else:
            self._feed(Output(time.monotonic(), tuple(marks), text_since_mark, line))

    def exited(self) -> None:
        """Tell that the top-level process ended and its output is drained."""
        self._feed(Exited(time.monotonic()))

    def close(self) -> None:
        """Stop watching; an open verdict is cancelled."""
        if self._alarm.callback == self._look:
            self._alarm.cancel()
        self._next_look = None
        if self._ticker is not None:
            self._ticker.cancel()
            self._ticker = None
        if not self.verdict.done():
            self.verdict.cancel()

    def _feed(self, event: Event) -> None:
        if not self.verdict.done():
            self._obey(self._tiers.feed(event))

    def _obey(self, instructions: Iterable[ProbeAt | TickAt | Settle]) -> None:
        for instruction in instructions:
            match instruction:
                case ProbeAt(at):
                    self._next_look = at
                    if not self._looking:
                        self._alarm.set(at)
                case TickAt(at):
                    self._set_ticker(at)
                case Settle(verdict):
                    self.verdict.set_result(verdict)
                    self.close()

    def _look(self) -> None:
        """Look as often as the machine wants it now, draining in between."""
        self._looking = True
        try:
            for _ in range(MAX_LOOKS_AT_ONCE):
                self._next_look = None
                probe = self._inspector.probe(self.memory.shell_pgid)
                drained = self._master.drain() < READ_BUDGET_BYTES
                self._feed(Probed(time.monotonic(), probe, drained))
                if self._next_look is None or self._next_look > time.monotonic():
                    break
        except Exception as error:  # noqa: BLE001  (a watch that cannot look must not hang)
            if not self.verdict.done():
                self.verdict.set_exception(error)
            self.close()
        finally:
            self._looking = False
        if self._next_look is not None and not self.verdict.done():
            self._alarm.set(self._next_look)

    def _set_ticker(self, at: float) -> None:
        """Tick at ``at``; an earlier tick may stay, the machine asks again then."""
        if self._ticker is not None:
            if self._tick_at <= at:
                return
            self._ticker.cancel()
        self._tick_at = at
        delay = max(0.0, at - time.monotonic())
        self._ticker = self._loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._ticker = None
        self._feed(Tick(time.monotonic()))
