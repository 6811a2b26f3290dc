"""Bounded waits for what others do."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fabric.core.errors import DeadlineError

T = TypeVar("T")
RELEASE_S = 1.0  # what a call gets to end after it was cancelled


async def within(limit_s: float, what: str, call: Coroutine[Any, Any, T]) -> T:
    """Await ``call`` for at most ``limit_s`` seconds, even when it ignores its cancellation.

    Raises: DeadlineError when the time is over, what ``call`` raises.
    """
    task = asyncio.get_running_loop().create_task(call)
    task.add_done_callback(seen)
    try:
        await asyncio.wait({task}, timeout=limit_s)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=RELEASE_S)
        raise
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=RELEASE_S)
        raise DeadlineError(f"{what} did not answer within {limit_s:g} s")
    if task.cancelled():
        raise DeadlineError(f"{what} gave up its answer")
    return task.result()


async def to_the_end(call: Coroutine[Any, Any, T]) -> tuple[T, bool]:
    """Await ``call`` through cancellations; the flag tells whether there was one.

    Only for calls that bound themselves.
    """
    task = asyncio.get_running_loop().create_task(call)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    return task.result(), cancelled


def seen(task: "asyncio.Task[Any]") -> None:
    """Take note of a task's error, so that nobody complains that it was never looked at."""
    if not task.cancelled():
        task.exception()
