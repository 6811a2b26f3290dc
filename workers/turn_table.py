"""Where the queue of a shared terminal can go: every move, as a table.

The machine (``workers.turns``) may only make moves that stand here, and a test holds
that each of them happens. ``python -m workers.turn_table`` draws the table into
``workers/README.md``.

A move is named by the stimulus that causes it. What happens to operations that wait is
not in the table: a move to READY grants the next one in the same step, which is the move
called GRANT.
"""

import sys
from enum import Enum
from pathlib import Path

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- turns: begin -->", "<!-- turns: end -->"


class Phase(Enum):
    """What the terminal's one slot is used for."""

    READY = "ready"  # nothing holds it
    WRITING = "writing"  # a model's text or signal is on its way
    RUNNING = "running"  # delivered; evidence of its end is awaited
    HUMAN = "human"  # a person holds it, without a deadline
    STOPPING = "stopping"  # to be interrupted once the write under way is over
    INTERRUPTING = "interrupting"  # an interrupt is being delivered
    RECOVERING = "recovering"  # interrupted; the prompt has to come back
    RESETTING = "resetting"  # the tree is ended and a new shell starts
    BLOCKED = "blocked"  # recovery failed; only a reset helps
    EXITED = "exited"  # the shell ended by itself; only a reset helps
    DISPOSED = "disposed"  # over for good


class Stimulus(Enum):
    """What makes the slot move."""

    GRANT = "grant"
    WROTE = "wrote"
    WRITE_FAILED = "write failed"
    REFUSED = "refused, nothing written"
    PROMPT = "prompt"
    STDIN_READ = "stdin read"
    TAKE_OVER = "take over"
    TIMEOUT = "timeout"
    CANCEL = "cancel"
    GRACE_OVER = "controller gone"
    INTERRUPTED = "interrupted"
    NOT_INTERRUPTED = "not interrupted"
    NOT_RECOVERED = "not recovered"
    RESTARTED = "restarted"
    NOT_RESTARTED = "not restarted"
    EXIT = "exit"
    DISPOSE = "dispose"


Moves = dict[tuple[Phase, Stimulus], frozenset[Phase]]
_P, _S = Phase, Stimulus
HELD = (
    _P.WRITING, _P.RUNNING, _P.HUMAN, _P.STOPPING, _P.INTERRUPTING, _P.RECOVERING,
)  # fmt: skip


def _table() -> Moves:
    moves: dict[tuple[Phase, Stimulus], set[Phase]] = {
        (_P.READY, _S.GRANT): {_P.WRITING, _P.HUMAN, _P.RESETTING, _P.INTERRUPTING},
        (_P.BLOCKED, _S.GRANT): {_P.RESETTING},
        (_P.EXITED, _S.GRANT): {_P.RESETTING},
        (_P.WRITING, _S.WROTE): {_P.RUNNING, _P.READY},
        (_P.WRITING, _S.REFUSED): {_P.READY},
        (_P.WRITING, _S.TIMEOUT): {_P.STOPPING},
        (_P.WRITING, _S.CANCEL): {_P.STOPPING},
        (_P.RUNNING, _S.PROMPT): {_P.READY},
        (_P.RUNNING, _S.STDIN_READ): {_P.READY},
        (_P.RUNNING, _S.TAKE_OVER): {_P.HUMAN},
        (_P.RUNNING, _S.TIMEOUT): {_P.INTERRUPTING},
        (_P.RUNNING, _S.CANCEL): {_P.INTERRUPTING},
        (_P.HUMAN, _S.PROMPT): {_P.READY},
        (_P.HUMAN, _S.WROTE): {_P.READY},
        (_P.HUMAN, _S.CANCEL): {_P.INTERRUPTING, _P.STOPPING},
        (_P.HUMAN, _S.GRACE_OVER): {_P.INTERRUPTING, _P.STOPPING},
        (_P.STOPPING, _S.WROTE): {_P.INTERRUPTING},
        (_P.STOPPING, _S.REFUSED): {_P.READY},
        (_P.INTERRUPTING, _S.INTERRUPTED): {_P.RECOVERING},
        (_P.INTERRUPTING, _S.NOT_INTERRUPTED): {_P.BLOCKED},
        (_P.RECOVERING, _S.PROMPT): {_P.READY},
        (_P.RECOVERING, _S.NOT_RECOVERED): {_P.BLOCKED},
        (_P.RESETTING, _S.RESTARTED): {_P.READY},
        (_P.RESETTING, _S.NOT_RESTARTED): {_P.BLOCKED},
        (_P.READY, _S.EXIT): {_P.EXITED},
        (_P.BLOCKED, _S.EXIT): {_P.EXITED},
    }
    for phase in (_P.WRITING, _P.HUMAN, _P.STOPPING):
        moves[phase, _S.WRITE_FAILED] = {_P.BLOCKED}
    for phase in HELD:
        moves[phase, _S.EXIT] = {_P.EXITED}
    for phase in Phase:
        if phase is not _P.DISPOSED:
            moves[phase, _S.DISPOSE] = {_P.DISPOSED}
    return {key: frozenset(value) for key, value in moves.items()}


MOVES: Moves = _table()


def diagram() -> str:
    """Draw the table as a Mermaid state diagram; DISPOSED can follow on everything."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for (phase, stimulus), goals in MOVES.items():
        if stimulus is Stimulus.DISPOSE:
            continue
        for goal in sorted(goals, key=lambda item: item.value):
            arrows.setdefault((phase.value, goal.value), []).append(stimulus.value)
    rows = [f"    {a} --> {b}: {' / '.join(names)}" for (a, b), names in arrows.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", "    [*] --> ready", *rows, "```"])


def drawn(text: str) -> str:
    """Return a page with the diagram between its two marks replaced. Raises: ValueError."""
    before, found, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError("the page has no marks for the diagram")
    return f"{before}{BEGIN}\n{diagram()}\n{END}{after}"


def main() -> int:
    """Write the diagram into the room's README."""
    text = README.read_text(encoding="utf-8")
    README.write_text(drawn(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
