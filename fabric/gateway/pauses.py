"""A stream that says now and then that it lives."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

T = TypeVar("T")
KEEP_ALIVE_S = 15.0


async def with_pauses(
    items: AsyncIterator[T], pause_s: float | None = None
) -> AsyncGenerator[T | None, None]:
    """Yield the items, and None whenever none came for ``pause_s`` seconds; closes ``items``."""
    pending: asyncio.Task[T] | None = None
    try:
        while True:
            if pending is None:
                pending = asyncio.ensure_future(_next(items))
            done, _ = await asyncio.wait({pending}, timeout=pause_s or KEEP_ALIVE_S)
            if not done:
                yield None
                continue
            finished, pending = pending, None
            try:
                item = finished.result()
            except StopAsyncIteration:
                return
            yield item
    finally:
        if pending is not None:
            pending.cancel()
            await asyncio.wait({pending})
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)
