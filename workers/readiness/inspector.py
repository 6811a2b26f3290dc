"""What readiness asks of the operating system."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Wait:
    """A thread asleep in a call that waits for input of this session's terminal.

    ``switches`` counts how often the thread went to sleep by itself, so an equal count
    means the same sleep. ``event_loop``: it waits for whatever comes first (epoll).
    """

    pid: int
    tid: int
    switches: int
    event_loop: bool = False


@dataclass(frozen=True, slots=True)
class Probe:
    """One look at the foreground of a terminal.

    ``supported`` is False where exact waits cannot be seen: another platform or
    architecture, or processes this user may not inspect. ``busy`` tells that some thread
    of the foreground group was running. ``polls`` are waits with a timeout too short to
    count by themselves. ``line_editor`` tells that a reader in raw mode
    edits lines itself. ``cost_s`` is what the look cost.
    """

    supported: bool
    foreground_pgid: int | None
    waits: tuple[Wait, ...] = ()
    unread: int = 0
    canonical: bool | None = None
    echo: bool | None = None
    busy: bool = False
    line_editor: bool = False
    cost_s: float = 0.0
    polls: tuple[Wait, ...] = ()


class Inspector(Protocol):
    """Looks at one session's terminal; never blocks, never raises."""

    def probe(self, shell_pgid: int | None = None) -> Probe:
        """Look at the foreground group and the input queue now; at most ``shell_pgid``'s
        leader, where that group is in front and its leader waits.
        """
        ...

    def foreground(self) -> int | None:
        """Return the foreground process group, None when there is none."""
        ...

    def unread(self) -> int:
        """Return a lower bound of the input bytes nobody has read; 0 means none at all."""
        ...

    def name(self, pid: int) -> str | None:
        """Return the name of the program a process runs, None where it cannot be known."""
        ...

    def cwd(self, pid: int) -> str | None:
        """Return a process's working directory, None where it cannot be known."""
        ...
