"""What a session has learned of its programs from one send to the next."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from workers.readiness.alarm import Alarm
from workers.text.marks import Mark, MarkKind

MAX_PROMPTS = 16
_NUMBERS = re.compile(rb"[0-9]+")


@dataclass(slots=True)
class Memory:
    """What a session has learned of its programs; one object, handed to every machine.

    ``shell_pgid`` is the shell's process group, shown by its first prompt. ``mark`` is the
    latest mark ever and ``text`` what stands after it; ``line`` the unfinished line of
    the terminal, raw. ``reader`` is the thread last proved to wait, ``prompts`` the lines
    at which it did. ``alarm`` is the session's timer, made once because a descriptor and
    its place in the event loop cost more than a look.
    """

    def close(self) -> None:
        """Release the timer."""
        if self.alarm is not None:
            self.alarm.close()
            self.alarm = None

    shell_pgid: int | None = None
    mark: MarkKind | None = None
    text: str | None = None
    line: bytes = b""
    reader: int | None = None
    prompts: set[bytes] = field(default_factory=set)
    alarm: Alarm | None = None

    def learn(self, reader: int) -> None:
        """Remember that ``reader`` waits at the present line."""
        if reader != self.reader or len(self.prompts) >= MAX_PROMPTS:
            self.prompts.clear()
        self.reader = reader
        if self.line:
            self.prompts.add(_uncounted(self.line))

    def is_known(self, reader: int) -> bool:
        """Tell whether ``reader`` was proved to wait at a line like the present one."""
        return reader == self.reader and _uncounted(self.line) in self.prompts

    def output(self, marks: Sequence[Mark], text_since_mark: str | None, line: bytes) -> None:
        """Take note of output, whether or not a send is under way."""
        if marks:
            self.mark = marks[-1].kind
        self.text = text_since_mark
        self.line = line


def _uncounted(line: bytes) -> bytes:
    """Take the numbers out of a prompt that counts its inputs."""
    return _NUMBERS.sub(b"0", line)
