"""Signal a terminal's foreground process group, and no other.

Between the question which group that is and the signal, the group may end and its number may
be given to a stranger; numbers go round within seconds on a busy machine. So the number is
pinned first: a pidfd of the group's leader stands for the process that had the number when it
was opened. The terminal is then asked again. If it still names the same group, the descriptor
stands for that group's leader, and the kernel (6.9 or newer) signals the group of exactly this
process: a group that ended meanwhile gets nothing, and neither does its number's next owner.

Where the leader has gone before its group, or the kernel or the system lacks this, asking twice
is what is left: a number must then be freed and given out again within the microseconds between
the second answer and the signal.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable

_TO_THE_GROUP = 1 << 2  # PIDFD_SIGNAL_PROCESS_GROUP


def deliver(group: int, number: int, foreground: Callable[[], int | None]) -> bool:
    """Signal ``group`` if ``foreground`` still names it; False when it names another by now.

    Raises: ProcessLookupError when the group has ended, PermissionError.
    """
    leader = _open(group)
    try:
        if foreground() != group:
            return False
        if leader is None or not _by_descriptor(leader, number):
            os.killpg(group, number)
        return True
    finally:
        if leader is not None:
            os.close(leader)


def _open(pid: int) -> int | None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return os.pidfd_open(pid)
    return None


def _by_descriptor(leader: int, number: int) -> bool:
    """Signal the group of a leader; False where this kernel cannot."""
    if sys.platform != "linux":
        return False
    try:
        signal.pidfd_send_signal(leader, number, None, _TO_THE_GROUP)
    except (ProcessLookupError, PermissionError):
        raise
    except OSError:
        return False
    return True
