"""One question to the registry for all event streams of a gateway.

However many streams wait here, one call to the registry is pending. It answers with the
owners that have news; their streams wake and read for themselves. A stream that registers
before it reads cannot miss anything: what happens after its read wakes it. When the
registry was away, or cannot go back far enough, every stream looks again.
"""

import asyncio
import logging

from fabric.core.errors import FabricError
from fabric.gateway.ports import RegistryPort

ASK_S = 60.0
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
_log = logging.getLogger(__name__)


class Waiter:
    """One stream's place; ``wait`` returns once there may be news since the last wait."""

    def __init__(self, news: "News", owner_id: str) -> None:
        self._news = news
        self._owner_id = owner_id
        self._woken = asyncio.Event()

    async def wait(self, limit_s: float) -> bool:
        """Wait for news, at most ``limit_s`` seconds; tell whether there may be any."""
        try:
            async with asyncio.timeout(limit_s):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True

    def wake(self) -> None:
        """Let the stream look again."""
        self._woken.set()

    async def __aenter__(self) -> "Waiter":
        await self._news.enter(self._owner_id, self)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._news.leave(self._owner_id, self)


class News:
    """Who waits for the news of which owner at this gateway."""

    def __init__(self, registry: RegistryPort) -> None:
        self._registry = registry
        self._waiters: dict[str, set[Waiter]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._version: int | None = None
        self._standing = asyncio.Event()

    def waiter(self, owner_id: str) -> Waiter:
        """Make a stream's place; use it in ``async with``."""
        return Waiter(self, owner_id)

    async def enter(self, owner_id: str, waiter: Waiter) -> None:
        """Register a stream; when this returns, later news wake it."""
        self._waiters.setdefault(owner_id, set()).add(waiter)
        if self._asking is None:
            self._standing.clear()
            self._asking = asyncio.get_running_loop().create_task(self._ask())
        try:
            await self._standing.wait()
        except BaseException:
            self.leave(owner_id, waiter)
            raise

    def leave(self, owner_id: str, waiter: Waiter) -> None:
        """Forget a stream; nothing is asked any more when it was the last."""
        waiters = self._waiters.get(owner_id)
        if waiters is not None:
            waiters.discard(waiter)
            if not waiters:
                del self._waiters[owner_id]
        if not self._waiters and self._asking is not None:
            self._asking.cancel()
            self._asking = None
            self._version = None

    async def _ask(self) -> None:
        pause = FIRST_PAUSE_S
        while True:
            try:
                page = await self._registry.news(self._version, ASK_S)
            except FabricError as error:
                _log.warning("registry not asked for news", extra={"reason": error.reason})
                self._version = None
                self._standing.set()  # streams find out for themselves what is wrong
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                continue
            pause = FIRST_PAUSE_S
            lost = page.missed or (self._version is None and self._standing.is_set())
            self._version = page.version
            self._standing.set()
            for owner_id in list(self._waiters) if lost else page.owners:
                for waiter in self._waiters.get(owner_id, ()):
                    waiter.wake()
