"""When a signal has been taken by a program that was waiting for input.

A signal and the next input reach a program on different ways. A shell that was asleep at
its prompt throws away what it reads until it has handled an interrupt, so a text typed
right after one could lose its beginning. Whoever signals therefore waits until every
reader that was asleep has woken and somebody sleeps on the terminal again.
"""

import asyncio
import time

from workers.readiness.inspector import Inspector, Probe

TAKEN_WITHIN_S = 0.1  # a program that ignores the signal never wakes
_FIRST_S = 0.0005
_LAST_S = 0.01


async def until_taken(
    inspector: Inspector, before: Probe, *, within_s: float = TAKEN_WITHIN_S
) -> bool:
    """Wait for the readers seen ``before`` the signal to have handled it.

    Returns at once when nobody was waiting; False when the time ran out.
    """
    old = {wait.tid: wait.switches for wait in (*before.waits, *before.polls)}
    if not old:
        return True
    deadline = time.monotonic() + within_s
    pause_s = _FIRST_S
    while time.monotonic() < deadline:
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 2, _LAST_S)
        probe = inspector.probe()
        asleep = (*probe.waits, *probe.polls)
        if asleep and all(wait.switches > old.get(wait.tid, -1) for wait in asleep):
            return True
    return False
