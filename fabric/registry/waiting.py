"""Bounded waits for what others do."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fabric.core.errors import DeadlineError, FabricError

_log = logging.getLogger(__name__)
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


def every(interval_s: float, step: Callable[[], Coroutine[Any, Any, None]]) -> "asyncio.Task[None]":
    """Run ``step`` again and again, ``interval_s`` seconds apart, until the task is cancelled."""

    async def loop() -> None:
        while True:
            await asyncio.sleep(interval_s)
            try:
                await step()
            except FabricError as error:
                _log.info("sweep incomplete", extra={"reason": error.message})
            except Exception:  # noqa: BLE001  (the sweep goes on, whatever a node does)
                _log.exception("sweep failed")

    return asyncio.get_running_loop().create_task(loop())


def seen(task: "asyncio.Task[Any]") -> None:
    """Take note of a task's error, so that nobody complains that it was never looked at."""
    if not task.cancelled():
        task.exception()
