"""A timer finer than the event loop's.

An event loop rounds a delay to its millisecond; the first look at a program comes half a
millisecond after its last output. On Linux a timer descriptor wakes the loop exactly;
elsewhere the loop's own timer has to do.
"""

import asyncio
import contextlib
import ctypes
import os
import struct
import sys
import time
from collections.abc import Callable

_CLOCK_MONOTONIC = 1
_TFD_FLAGS = 0o4000 | 0o2000000  # TFD_NONBLOCK | TFD_CLOEXEC
_COARSE_S = 0.02  # from here on the loop's own timer is fine enough


def _library() -> ctypes.CDLL | None:
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    return library if hasattr(library, "timerfd_create") else None


_LIBC = _library()


class Alarm:
    """Calls ``callback`` once at a time of ``time.monotonic``; setting it again moves it.

    Output moves the time many times in a send, nearly always to later. So the descriptor is
    left as it is then, and set again only if it expires too early.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self.callback = callback
        self._loop = loop
        self._handle: asyncio.Handle | None = None
        self._at: float | None = None
        self._expires_at: float | None = None
        self._fd = -1
        if _LIBC is not None:
            self._fd = _LIBC.timerfd_create(_CLOCK_MONOTONIC, _TFD_FLAGS)
        if self._fd >= 0:
            loop.add_reader(self._fd, self._expired)

    def set(self, at: float) -> None:
        """Call back at ``at``, or as soon as possible when it has passed."""
        self.cancel()
        delay = at - time.monotonic()
        if delay <= 0:
            self._handle = self._loop.call_soon(self._fire)
        elif self._fd < 0 or delay >= _COARSE_S:
            self._handle = self._loop.call_later(delay, self._fire)
        else:
            self._at = at
            if self._expires_at is None or self._expires_at > at:
                self._arm(at, delay)

    def cancel(self) -> None:
        """Forget the time that was set."""
        self._at = None
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def close(self) -> None:
        """Release the timer. May be repeated."""
        self.cancel()
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _arm(self, at: float, delay: float) -> None:
        self._expires_at = at
        nanoseconds = int(delay * 1e9)
        value = struct.pack("<qqqq", 0, 0, nanoseconds // 10**9, nanoseconds % 10**9)
        if _LIBC is not None:
            _LIBC.timerfd_settime(self._fd, 0, value, None)

    def _expired(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._fd, 8)
            self._expires_at = None
            at, self._at = self._at, None
            if at is not None:
                self.set(at)

    def _fire(self) -> None:
        self._handle = None
        self.callback()
