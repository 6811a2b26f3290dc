"""Wait for a condition, never for a time: the only place in the tests that sleeps."""

import asyncio
import inspect
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")
POLL_S = 0.01


def time_factor() -> float:
    """How much slower than a developer's machine this one is (FABRIC_TEST_TIME_FACTOR)."""
    return float(os.environ.get("FABRIC_TEST_TIME_FACTOR", "1"))


def scaled(seconds: float) -> float:
    """A time limit fit for this machine."""
    return seconds * time_factor()


async def eventually(
    condition: Callable[[], T | Awaitable[T]], within: float = 5.0, what: str = ""
) -> T:
    """Return the first truthy value of ``condition`` (plain or async) before ``within`` seconds."""
    deadline = time.monotonic() + scaled(within)
    while True:
        value: Any = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(_late(condition, within, what, value))
        await asyncio.sleep(POLL_S)


def eventually_sync(condition: Callable[[], T], within: float = 5.0, what: str = "") -> T:
    """Return the first truthy value of ``condition`` before ``within`` seconds."""
    deadline = time.monotonic() + scaled(within)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(_late(condition, within, what, value))
        time.sleep(POLL_S)


async def pause(seconds: float, because: str) -> None:
    """Let time itself pass, where time is the input of the test and not a guess at an event."""
    assert because, "say why the time itself matters"
    await asyncio.sleep(scaled(seconds))


def _late(condition: object, within: float, what: str, last: object) -> str:
    name = what or getattr(condition, "__qualname__", repr(condition))
    return f"not within {scaled(within):g} s: {name} (last value: {last!r})"
