"""A TCP proxy that breaks connections, by a seed.

What a network can do to a call over TCP: the connection breaks *before* the request
arrives, *during* the call, or *after* it while the answer is under way; either direction
is delayed. TCP does not duplicate; a duplicate is a caller that repeats its request id.
"""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from tests.support.eventually import pause

CHUNK_BYTES = 65_536


@dataclass(frozen=True)
class Rates:
    """Chances for one piece of data that passes, and the longest waits in seconds."""

    before: float = 0.06
    during: float = 0.06
    after: float = 0.06
    delay: float = 0.1
    longest_delay_s: float = 0.1
    during_s: float = 0.05


class FaultProxy:
    """Listens on loopback and passes bytes on to ``target`` until it is told otherwise."""

    def __init__(self, target: str, seed: int, rates: Rates | None = None) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._random = random.Random(seed)
        self._rates = rates or Rates()
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self.faults: Counter[str] = Counter()
        self.active = True
        self.address = ""

    async def __aenter__(self) -> "FaultProxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for link in list(self._links):
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.get_running_loop().create_task(self._link(reader, writer))
        self._links.add(link)
        link.add_done_callback(self._links.discard)

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            far_reader, far_writer = await asyncio.open_connection(*self._target)
            ends.append(far_writer)
            there = asyncio.create_task(self._pass(reader, far_writer, towards_server=True))
            back = asyncio.create_task(self._pass(far_reader, writer, towards_server=False))
            try:
                await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                there.cancel()
                back.cancel()
                await asyncio.gather(there, back, return_exceptions=True)
        except OSError:
            pass
        finally:
            for end in ends:
                end.transport.abort()
                with suppress(OSError):
                    await end.wait_closed()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, towards_server: bool
    ) -> None:
        """Pass bytes on; returning breaks the connection both ways."""
        rates, chance = self._rates, self._random.random
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                if self.active and chance() < rates.delay:
                    self.faults["delay"] += 1
                    await pause(chance() * rates.longest_delay_s, "a slow network is the fault")
                if self.active and chance() < (rates.before if towards_server else rates.after):
                    self.faults["before" if towards_server else "after"] += 1
                    return
                writer.write(data)
                await writer.drain()
                if self.active and towards_server and chance() < rates.during:
                    self.faults["during"] += 1
                    await pause(chance() * rates.during_s, "the call is under way when it breaks")
                    return
