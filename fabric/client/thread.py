"""An event loop in a thread of its own, for callers without one."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeVar

import uvloop

from fabric.core.errors import InvalidRequestError

# Longer than a cancelled call waits for the terminal to be free.
ENDED_S = 5.0
T = TypeVar("T")


class LoopThread:
    """An event loop in a thread; ``run`` gives it a coroutine and waits for the result."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="fabric-client-sync", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and return its result; Ctrl-C cancels it first.

        Raises: what the coroutine raises; InvalidRequestError when the thread has ended.
        """
        if self._loop.is_closed():
            coroutine.close()
            raise InvalidRequestError("the client was stopped; start it and look the session up")
        ended = threading.Event()

        async def body() -> T:
            try:
                return await coroutine
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(body(), self._loop)
        try:
            return future.result()
        except (KeyboardInterrupt, SystemExit):
            future.cancel()  # done at once as a future; what it cancels takes a moment
            ended.wait(ENDED_S)
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Yield what an asynchronous iterator yields; leaving early closes it."""
        done = object()

        async def step() -> Any:
            return await anext(items, done)

        async def end() -> None:
            close: Callable[[], Awaitable[None]] | None = getattr(items, "aclose", None)
            if close is not None:
                await close()

        try:
            while (item := self.run(step())) is not done:
                yield item
        finally:
            self.run(end())

    def close(self) -> None:
        """End what still runs, the loop and the thread."""
        self.run(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _finish(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_asyncgens()
