"""Calls whose caller may come back.

A caller that gives a call up says so (``CancelCall``). A call whose RPC was merely broken
off (a lost connection, a proxy, a deadline) may be about to be repeated under its request
id, here or at another gateway, so its work goes on for a moment: the repeat joins it by
the request id where it is carried out, and the end of this wait is then only one caller
fewer. Nobody coming back within the grace is a cancellation like any other.

    running --RPC broken off--> detached --grace over | CancelCall--> cancelled, awaited
    running --CancelCall--> given up --RPC broken off--> cancelled, awaited

``CancelCall`` alone never ends a call: another caller may have joined it here, and which
of two RPCs with one id was meant cannot be told before one of them breaks off. It waits
for the end of what it gave up, so that its caller finds the terminal free afterwards.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

from fabric.gateway.calls import Call

# How long CancelCall waits for the call's end; longer than a prompt takes after an interrupt.
GIVEN_UP_S = 1.5
T = TypeVar("T")
Key = tuple[str | None, str]


class _Entry:
    __slots__ = ("detached", "ended", "given_up")

    def __init__(self) -> None:
        self.given_up = False
        self.ended = asyncio.Event()
        self.detached: asyncio.Future[None] | None = None


class Lingering:
    """The running calls of one gateway that may linger, by owner and request id."""

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._entries: dict[Key, list[_Entry]] = {}

    def __len__(self) -> int:
        return sum(len(entries) for entries in self._entries.values())

    async def run(self, call: Call, request_id: str, work: Coroutine[Any, Any, T]) -> T:
        """Await ``work``; cancelling waits for a repeat first, then for the work's own end."""
        key, entry = (call.owner_id, request_id), _Entry()
        self._entries.setdefault(key, []).append(entry)
        task = asyncio.get_running_loop().create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not (task.done() or entry.given_up or call.ending is not None):
                await self._linger(entry, task)
            task.cancel()
            await until_done(task)
            raise
        finally:
            entries = self._entries[key]
            entries.remove(entry)
            entry.ended.set()
            if not entries:
                del self._entries[key]

    async def give_up(self, owner_id: str | None, request_id: str) -> bool:
        """Take the word of a call's caller that it does not come back; False if none runs.

        Return when the call has ended, or after ``GIVEN_UP_S``.
        """
        entries = self._entries.get((owner_id, request_id), [])
        detached = next((entry for entry in entries if entry.detached is not None), None)
        if detached is not None and detached.detached is not None:
            if not detached.detached.done():
                detached.detached.set_result(None)
        else:
            for entry in entries:
                entry.given_up = True
        gone = [detached] if detached is not None else entries
        if not gone:
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GIVEN_UP_S):
                for entry in tuple(gone):
                    await entry.ended.wait()
        return True

    async def _linger(self, entry: _Entry, task: "asyncio.Task[Any]") -> None:
        entry.detached = asyncio.get_running_loop().create_future()
        try:
            await asyncio.wait(
                {task, entry.detached},
                timeout=self._grace_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
        except asyncio.CancelledError:
            return  # told again to end: no time is left to wait for anybody
        finally:
            entry.detached.cancel()


async def until_done(task: "asyncio.Task[Any]") -> None:
    """Await the end of a task whatever it is and however often this is cancelled."""
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue
    if not task.cancelled():
        task.exception()


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await short work that must not be cut: cancelling waits for its end."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await until_done(task)
        raise
