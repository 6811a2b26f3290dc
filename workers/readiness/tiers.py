"""When a send is over: which evidence settles it, and when to look for evidence.

One machine a send, and one for start-up. Events go in with their times, instructions come
out; there is no clock here and nothing is read. Evidence, strongest first:

EXIT      the top-level process ended.
MARKER    a prompt mark came after this send began, the printable text after it equals the
          prompt, the foreground group is the shell's, no input is unread, and the shell
          really sleeps on the terminal. Where sleepers cannot be seen (``supported``
          False) the prompt must stand for ``MARKER_QUIET_S`` instead.
SYSCALL   some thread of the foreground group sleeps waiting for this terminal's input.
          The proof takes two looks: at the first one the thread sleeps with switch
          count *n* and nothing is unread; then everything written so far is drained; at
          the second one it sleeps with the same *n*. It wrote nothing in between, so its
          output is complete, and it has taken all that was typed. The sleep must be
          *new*: its thread has gone to sleep since the look before the write. An old
          sleep counts when nothing was written that could have ended it, or when
          ``UNMOVED_S`` after the write the input queue is empty and the thread has
          still not stirred (the terminal itself ate the input: an erase, a flow control).
          While another thread of the group runs (a pipeline's far end) the verdict waits
          up to ``BUSY_GRACE_S`` for it, so that what it is about to print is not missed.
SILENCE   nothing came for ``idle_silence_s`` (longer when a mark came without its prompt).
          A guess, and labelled so. During start-up it needs some output first. A background
          send uses it only where no exact tier exists, after ``background_silence_s``.
TERMIOS   as SILENCE but after ``handoff_grace_s``: the terminal hides what is typed, line
          by line, as for a password, and the asking program cannot be inspected (sudo, su).
DEADLINE  the time is up. It says nothing about the program.

Looking costs something, so looks come when output pauses: ``first_probe_s`` after the last
output or the write, then at distances that grow by ``BACKOFF`` up to ``poll_interval_s``,
or further, so that a long wait costs no more than ``MAX_LOAD`` of a core. Output begins
this anew, so nothing is looked at while output flows. A prompt in place is looked at at
once.

Rejected: settling on the mark alone (multi-line text prints a prompt for each line, and a
program could print what it read from its parent's memory); treating a short bounded wait
as a wait for input (a program that polls for a key while it works).
"""

from dataclasses import replace

from fabric.core.model import Evidence, PromptKind, WaitReason
from fabric.core.settings import ReadinessSettings
from workers.readiness.events import (
    Event,
    Exited,
    Instruction,
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
from workers.readiness.inspector import Probe, Wait
from workers.readiness.memory import Memory
from workers.readiness.termios_view import kind_of
from workers.text.marks import MarkKind

__all__ = ["Memory", "Tiers", "Verdict"]

BUSY_GRACE_S = 0.05
UNMOVED_S = 0.1
MARKER_QUIET_S = 0.005
MARKER_RETRY_S = 0.0002
STILL_S = 1.0
BACKOFF = 1.3  # so a look comes at most this much later than the moment it looks for
BURST = 4  # pauses between looks, in looks, while backing off
MAX_LOAD = 0.002  # of a core for looks alone, once backed off; the loop takes as much again


class Tiers:
    """The machine of one send."""

    def __init__(self, settings: ReadinessSettings, start: Start, memory: Memory) -> None:
        self._settings = settings
        self._start = start
        self._memory = memory
        self.verdict: Verdict | None = None
        self._wrote_at: float | None = None
        self._last_output_at: float | None = None
        self._fresh_mark = False
        self._exit_code: int | None = None
        self._delay = settings.first_probe_s
        before = start.before
        seen = before.waits + before.polls if before else ()
        self._baseline = {wait.tid: wait.switches for wait in seen}
        self._candidates: frozenset[Wait] = frozenset()
        self._candidate_at: float | None = None
        self._still: dict[Wait, float] = {}
        self._last: Probe | None = start.before
        timeout = start.timeout_s
        if timeout is None and not start.background:
            timeout = settings.startup_timeout_s if start.startup else settings.timeout_s
        self._deadline = None if timeout is None else start.at + timeout

    def begin(self) -> list[Instruction]:
        """Return the first instruction: when to tick although nothing happens."""
        return [] if self._deadline is None else [TickAt(self._deadline)]

    def feed(self, event: Event) -> list[Instruction]:
        """Take one event; a settled machine ignores everything."""
        if self.verdict is not None:
            return []
        match event:
            case Exited():
                return [self._settle(WaitReason.SESSION_EXIT, Evidence.EXIT)]
            case Wrote(at):
                self._wrote_at = at
                return [*self._look_after(at, 0.0 if self._is_at_prompt() else None), *self._tick()]
            case Output():
                return self._output(event)
            case Probed():
                return self._probed(event)
            case Tick(at):
                return self._ticked(at)

    # -- events ----------------------------------------------------------------

    def _output(self, event: Output) -> list[Instruction]:
        self._last_output_at = event.at
        self._memory.output(event.marks, event.text_since_mark, event.line)
        for mark in event.marks:
            self._fresh_mark = True
            if mark.kind is MarkKind.PROMPT:
                self._exit_code = mark.status
        self._delay = self._settings.first_probe_s
        if self._wrote_at is None:
            return []
        return self._look_after(event.at, 0.0 if self._is_at_prompt() else None)

    def _probed(self, event: Probed) -> list[Instruction]:
        if self._wrote_at is None:
            return []
        probe = self._last = event.probe
        at_prompt = self._is_at_prompt()
        if at_prompt and self._shell_has_terminal(probe) and probe.unread == 0:
            settled = self._judge_prompt(event)
            if settled is not None:
                return [settled]
        settled_or_look = self._judge_waits(event)
        if settled_or_look is not None:
            return [settled_or_look]
        if at_prompt and probe.supported and self._delay <= self._settings.first_probe_s * 8:
            self._delay *= 1.5
            return [ProbeAt(event.at + MARKER_RETRY_S)]
        look = ProbeAt(event.at + max(self._delay, probe.cost_s * BURST))
        slowest = max(self._settings.poll_interval_s, probe.cost_s / MAX_LOAD)
        self._delay = min(self._delay * BACKOFF, slowest)
        return [look, *self._tick()]

    def _ticked(self, at: float) -> list[Instruction]:
        never = float("inf")
        deadline = never if self._deadline is None else self._deadline
        silent_at = self._silent_at() or never
        if at >= min(deadline, silent_at):  # a late tick: what came first counts
            if silent_at < deadline:
                return [self._settle(WaitReason.INFERRED_IDLE, Evidence.SILENCE)]
            return [self._settle(WaitReason.TIMEOUT, Evidence.DEADLINE)]
        if self._is_password_guess(at):
            guess = self._settle(WaitReason.INFERRED_IDLE, Evidence.TERMIOS)
            self.verdict = replace(guess.verdict, prompt_kind=PromptKind.PASSWORD)
            return [Settle(self.verdict)]
        return self._tick()

    # -- the marker tier -------------------------------------------------------

    def _is_at_prompt(self) -> bool:
        """Tell whether the latest mark has exactly its prompt after it, and counts."""
        prompts = self._start.prompts
        if prompts is None or not (self._fresh_mark or not self._start.writes):
            return False
        if self._memory.mark is MarkKind.PROMPT:
            return self._memory.text == prompts.primary
        return (
            self._memory.mark is MarkKind.CONTINUATION and self._memory.text == prompts.continuation
        )

    def _shell_has_terminal(self, probe: Probe) -> bool:
        if self._memory.shell_pgid is None:
            return True  # learned from the first prompt, below
        return probe.foreground_pgid is None or probe.foreground_pgid == self._memory.shell_pgid

    def _judge_prompt(self, event: Probed) -> Settle | None:
        probe = event.probe
        if probe.supported:
            if not probe.waits:
                return None
        elif not self._is_steady(event.at):
            return None
        if self._memory.shell_pgid is None:
            self._memory.shell_pgid = probe.foreground_pgid
        return self._settle(WaitReason.STDIN_READ, Evidence.MARKER)

    def _is_steady(self, at: float) -> bool:
        return self._last_output_at is None or at - self._last_output_at >= MARKER_QUIET_S

    # -- the exact tier --------------------------------------------------------

    def _judge_waits(self, event: Probed) -> Instruction | None:
        probe = event.probe
        sleeps = {*probe.waits, *probe.polls}
        self._still = {wait: at for wait, at in self._still.items() if wait in sleeps}
        accepted = frozenset(
            [wait for wait in probe.waits if self._counts(wait, event.at)]
            + [wait for wait in probe.polls if self._counts(wait, event.at, poll=True)]
        )
        if not accepted or probe.unread:
            self._candidates, self._candidate_at = frozenset(), None
            return None
        proved = bool(accepted & self._candidates)
        self._candidates = accepted if event.drained else frozenset()
        if self._candidate_at is None:
            self._candidate_at = event.at
        if not proved:
            return ProbeAt(event.at)
        waited = event.at - self._candidate_at
        if probe.busy and waited < BUSY_GRACE_S:
            return ProbeAt(event.at + max(self._settings.first_probe_s, waited / 2))
        self._memory.learn(min(wait.tid for wait in accepted))
        return self._settle(WaitReason.STDIN_READ, Evidence.SYSCALL)

    def _counts(self, wait: Wait, at: float, *, poll: bool = False) -> bool:
        """Tell whether a sleep is new, and proves that its thread wants input."""
        since = self._still.setdefault(wait, at)
        if self._is_old(wait) and not self._is_long_written(at):
            return False
        memory = self._memory
        if memory.is_known(wait.tid):
            return True
        if poll:
            return False
        if wait.event_loop and wait.tid == memory.reader and memory.prompts:
            return bool(memory.line) and at - since >= STILL_S
        return True

    def _is_old(self, wait: Wait) -> bool:
        """Tell whether the thread slept before the write, and should not have gone on."""
        before = self._baseline.get(wait.tid)
        return before is not None and wait.switches <= before and self._start.can_wake

    def _is_long_written(self, at: float) -> bool:
        return self._wrote_at is not None and at - self._wrote_at >= UNMOVED_S

    # -- silence and deadlines -------------------------------------------------

    def _quiet_since(self) -> float | None:
        if self._wrote_at is None:
            return None
        if self._last_output_at is None:
            return None if self._start.startup else self._wrote_at
        return max(self._wrote_at, self._last_output_at)

    def _is_blind(self) -> bool:
        return self._last is not None and not self._last.supported

    def _silent_at(self) -> float | None:
        since = self._quiet_since()
        if since is None:
            return None
        if self._start.background:
            return since + self._settings.background_silence_s if self._is_blind() else None
        bound = self._settings.idle_silence_s
        if self._fresh_mark and self._memory.mark is not MarkKind.COMMAND:
            bound += self._settings.handoff_grace_s
        return since + bound

    def _hides_input(self) -> bool:
        last = self._last
        return (
            not self._start.background
            and self._is_blind()
            and last is not None
            and last.canonical is True
            and last.echo is False
            and last.unread == 0
        )

    def _is_password_guess(self, at: float) -> bool:
        since = self._last_output_at
        if since is None or self._wrote_at is None or not self._hides_input():
            return False
        return at - max(since, self._wrote_at) >= self._settings.handoff_grace_s

    def _tick(self) -> list[Instruction]:
        times = [self._deadline, self._silent_at()]
        since = self._quiet_since()
        if since is not None and self._last_output_at is not None and self._hides_input():
            times.append(since + self._settings.handoff_grace_s)
        known = [time for time in times if time is not None]
        return [TickAt(min(known))] if known else []

    # -- results ---------------------------------------------------------------

    def _look_after(self, at: float, delay: float | None) -> list[Instruction]:
        wait = self._delay if delay is None else delay
        return [ProbeAt(at + wait)]

    def _settle(self, reason: WaitReason, evidence: Evidence) -> Settle:
        last = self._last
        self.verdict = Verdict(
            wait_reason=reason,
            evidence=evidence,
            prompt_kind=self._kind(reason),
            exit_code=self._exit_code,
            canonical=last.canonical if last else None,
            echo=last.echo if last else None,
            foreground_pgid=last.foreground_pgid if last else None,
        )
        return Settle(self.verdict)

    def _kind(self, reason: WaitReason) -> PromptKind:
        last = self._last
        if reason is not WaitReason.STDIN_READ or last is None:
            return PromptKind.NONE
        if self._memory.shell_pgid is not None and last.foreground_pgid == self._memory.shell_pgid:
            if self._memory.mark is MarkKind.PROMPT:
                return PromptKind.SHELL
            if self._memory.mark is MarkKind.CONTINUATION:
                return PromptKind.CONTINUATION
        return kind_of(last.canonical, last.echo, line_editor=last.line_editor)
