"""A session's bytes, page by page, across gateways that come and go."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable

from fabric.client.calls import Calls
from fabric.core.errors import FabricError
from fabric.core.ids import SessionId
from fabric.core.model import BytesPage

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
# Some half a minute without anybody that answers: longer than a gateway takes to come back.
MAX_FAILURES = 18


async def follow(
    calls: Callable[[], Calls], session_id: SessionId, offset: int | None
) -> AsyncIterator[BytesPage]:
    """Yield pages that hang together: no byte twice, and a missing one shows as a gap.

    Raises: what the session raises; GatewayUnavailableError, RegistryUnavailableError or
    DrainingError once nobody has answered for a while.
    """
    failures = 0
    while True:
        try:
            async for page in calls().follow(session_id, offset):
                failures, offset = 0, page.next_offset
                if page.data or page.ended:
                    yield page
                if page.ended:
                    return
        except FabricError as error:
            failures += 1
            if not error.worth_repeating or failures > MAX_FAILURES:
                raise
            pause = min(FIRST_PAUSE_S * 2.0**failures, LONGEST_PAUSE_S)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311
        else:
            return
