"""The private marks a controlled shell puts into its output.

A mark is ``ESC ] 133 ; <K> ; <nonce> [; <status> [; <cwd>]]`` ended by BEL or ``ESC \\``.
K is ``D`` (a prompt follows), ``P`` (a continuation prompt follows) or ``C`` (a command
starts). ``status`` is the decimal exit code of the last command, ``cwd`` the working
directory, percent-encoded. The nonce is a secret of the session: a sequence with any
other one is an ordinary control string, removed and otherwise ignored, so no program
can forge readiness by printing what it has read about marks.

A status outside 0-255, or one that is no number, makes the whole sequence no mark: half
a mark is worth less than none.
"""

from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

MARK_PREFIX = "133;"
MAX_STATUS = 255


class MarkKind(StrEnum):
    """What the shell does next."""

    PROMPT = "D"
    CONTINUATION = "P"
    COMMAND = "C"


_KINDS = {kind.value: kind for kind in MarkKind}


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark of our own shell; ``status`` and ``cwd`` are None where it carried none."""

    kind: MarkKind
    status: int | None = None
    cwd: str | None = None


def parse_mark(body: str, nonce: str) -> Mark | None:
    """Read the body of an OSC (what stands between ``ESC ]`` and its end).

    Returns None for everything that is not a mark with this nonce.
    """
    fields = body.split(";", 4)
    if len(fields) < 3 or fields[0] != "133" or not nonce or fields[2] != nonce:
        return None
    kind = _KINDS.get(fields[1])
    if kind is None:
        return None
    status: int | None = None
    if len(fields) > 3 and fields[3]:
        digits = fields[3]
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 3:
            return None
        status = int(digits)
        if status > MAX_STATUS:
            return None
    cwd = unquote(fields[4], errors="replace") if len(fields) > 4 and fields[4] else None
    return Mark(kind, status, cwd)
