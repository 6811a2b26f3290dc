"""A broadcast: many wait, one tells all, nobody is queued for."""

import asyncio


class Pulse:
    """Wake every present waiter; late ones wait for the next."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def send(self) -> None:
        """Wake whoever waits now."""
        if self._waiters:
            waiters, self._waiters = self._waiters, set()
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def next(self) -> "asyncio.Future[None]":
        """Return a future of the next pulse after this call; cancel it to wait no more.

        A task that runs ``wait`` begins to wait only when it first runs, too late for a pulse
        that comes before that.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        waiter.add_done_callback(self._waiters.discard)
        return waiter

    async def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the next pulse; False when ``timeout_s`` passed first."""
        waiter = self.next()
        try:
            if timeout_s is None:
                await waiter
            else:
                async with asyncio.timeout(timeout_s):
                    await waiter
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(waiter)
        return True

    def __len__(self) -> int:
        return len(self._waiters)
