"""What goes into the machine of a send, and what comes out of it.

Times are those of one clock, in seconds; the machine never reads one itself.
"""

from dataclasses import dataclass

from fabric.core.model import Evidence, PromptKind, WaitReason
from workers.readiness.inspector import Probe
from workers.terminal.dialects import Prompts
from workers.text.marks import Mark


@dataclass(frozen=True, slots=True)
class Start:
    """What is known when a send begins.

    ``before`` is the look before the write. ``can_wake`` tells that the input could end a
    reader's wait; ``writes`` that there is any.
    """

    at: float
    before: Probe | None = None
    can_wake: bool = True
    writes: bool = True
    background: bool = False
    startup: bool = False
    timeout_s: float | None = None
    prompts: Prompts | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why the send is over and what that rests on; ``exit_code`` is the shell's last status."""

    wait_reason: WaitReason
    evidence: Evidence = Evidence.NONE
    prompt_kind: PromptKind = PromptKind.NONE
    exit_code: int | None = None
    canonical: bool | None = None
    echo: bool | None = None
    foreground_pgid: int | None = None


@dataclass(frozen=True, slots=True)
class Wrote:
    """Every byte of the send has been taken by the terminal."""

    at: float


@dataclass(frozen=True, slots=True)
class Output:
    """Output arrived; ``marks`` in it, and the printable text after the latest mark ever.

    ``line`` holds the raw bytes since the last line end.
    """

    at: float
    marks: tuple[Mark, ...] = ()
    text_since_mark: str | None = None
    line: bytes = b""


@dataclass(frozen=True, slots=True)
class Probed:
    """A look was taken, then the output was drained; ``drained``: until nothing was left."""

    at: float
    probe: Probe
    drained: bool = True


@dataclass(frozen=True, slots=True)
class Exited:
    """The top-level process ended and its output is drained."""

    at: float


@dataclass(frozen=True, slots=True)
class Tick:
    """The time asked for by ``TickAt`` has come."""

    at: float


Event = Wrote | Output | Probed | Exited | Tick


@dataclass(frozen=True, slots=True)
class ProbeAt:
    """Look at this time (at once if it has passed); replaces an earlier one."""

    at: float


@dataclass(frozen=True, slots=True)
class TickAt:
    """Send a Tick at this time; replaces an earlier one."""

    at: float


@dataclass(frozen=True, slots=True)
class Settle:
    """The send is over."""

    verdict: Verdict


Instruction = ProbeAt | TickAt | Settle
