"""``fabric top``: nodes, owners, sessions, rates and latencies, as they are now.

It reads the metrics of gateways and asks nothing of a session. In a terminal it draws over
itself on the alternate screen and gives the terminal back whatever way it ends; ``--once``
prints one view, ``--once --json`` one for scripts.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from functools import partial

from fabric.cli.attach import SIGNALLED, Terminal
from fabric.cli.context import Context
from fabric.cli.output import visible
from fabric.cli.scraped import Scrape, parse
from fabric.cli.top_view import Pair, lines_of, state_of
from fabric.core.errors import GatewayUnavailableError, InvalidRequestError

HTTP_TIMEOUT_S = 5.0
MAX_BYTES = 4_194_304
_QUIT = (b"q", b"Q", b"\x03", b"\x04", b"\x1b")
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
_ENTER, _HOME, _TAIL, _LINE = "\x1b[?1049h\x1b[?25l", "\x1b[H", "\x1b[J", "\x1b[K\r\n"


def addresses_of(context: Context) -> list[str]:
    """Say whose metrics to read: flags, else the local fabric's. Raises: FabricError."""
    named = list(context.arguments.metrics)
    if named:
        return named
    state = context.state
    record = state.record() if state.folder.is_dir() and state.is_up() else None
    if record is None:
        raise GatewayUnavailableError(
            f"no fabric of {state.folder} is up", hint="fabric top --metrics HOST:PORT"
        )
    if not record.metrics:
        raise InvalidRequestError(
            "the local gateway serves no metrics", hint="set metrics.listen, or --metrics"
        )
    return [record.metrics]


def scrape(address: str) -> Scrape | None:
    """Read a gateway's metrics; None when it does not answer. Blocks."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{address}/metrics", timeout=HTTP_TIMEOUT_S) as answer:
            text = answer.read(MAX_BYTES).decode(errors="replace")
    except (OSError, urllib.error.URLError, ValueError):
        return None
    return parse(text, time.monotonic())


async def scrape_all(addresses: list[str]) -> dict[str, Scrape | None]:
    """Read all at once."""
    found = await asyncio.gather(*(asyncio.to_thread(scrape, item) for item in addresses))
    return dict(zip(addresses, found, strict=True))


def paired(
    before: dict[str, Scrape | None], after: dict[str, Scrape | None]
) -> dict[str, Pair | None]:
    """Put two scrapes of each gateway together; one that was not there before starts at nothing."""
    pairs: dict[str, Pair | None] = {}
    for address, latest in after.items():
        earlier = before.get(address)
        pairs[address] = None if latest is None else (earlier or latest, latest)
    return pairs


def top(context: Context) -> int:
    """Show it once, or until the user has seen enough."""
    given = context.arguments
    addresses = addresses_of(context)
    if given.once or context.output.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return asyncio.run(_once(context, addresses))
    terminal = Terminal(sys.stdin.fileno(), sys.stdout.fileno())
    with terminal:
        number = asyncio.run(Screen(terminal, addresses, given.interval).run())
    return 0 if number is None else SIGNALLED + number


async def _once(context: Context, addresses: list[str]) -> int:
    interval = context.arguments.interval
    before = await scrape_all(addresses)
    if not any(before.values()):
        raise GatewayUnavailableError(f"no metrics at {', '.join(addresses)}")
    await asyncio.sleep(interval)
    state = state_of(paired(before, await scrape_all(addresses)))
    text = visible("\n".join(lines_of(state, interval)), keep="\n")
    context.output.result(state | {"seconds": interval}, text, "")
    return 0


class Screen:
    """The live view in a terminal that has been lent to it."""

    def __init__(self, terminal: Terminal, addresses: list[str], interval_s: float) -> None:
        self._terminal = terminal
        self._addresses = addresses
        self._interval_s = interval_s
        self._over = asyncio.Event()
        self._changed = asyncio.Event()
        self._signalled: int | None = None

    async def run(self) -> int | None:
        """Draw until a key or a signal ends it; returns the signal."""
        loop = asyncio.get_running_loop()
        for number in _ENDING:
            loop.add_signal_handler(number, partial(self._end, int(number)))
        loop.add_signal_handler(signal.SIGWINCH, self._changed.set)
        loop.add_signal_handler(signal.SIGTSTP, self._stop)
        loop.add_reader(self._terminal.in_fd, self._key)
        await self._write(_ENTER)
        try:
            await self._draw()
        finally:
            loop.remove_reader(self._terminal.in_fd)
            for each in (*_ENDING, signal.SIGWINCH, signal.SIGTSTP):
                loop.remove_signal_handler(each)
        return self._signalled

    async def _draw(self) -> None:
        before = await scrape_all(self._addresses)
        after = before
        while not self._over.is_set():
            state = state_of(paired(before, after))
            lines = [*lines_of(state, self._interval_s), "", "q ends"]
            rows, cols = self._terminal.size()
            shown = [visible(line)[:cols] for line in lines[:rows]]
            await self._write(_HOME + _LINE.join(shown) + "\x1b[K" + _TAIL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._changed.wait()
            if self._changed.is_set():
                self._changed.clear()  # a key, or another size: only drawn again
                continue
            before, after = after, await scrape_all(self._addresses)

    async def _write(self, text: str) -> None:
        try:
            await self._terminal.write(text.encode())
        except OSError:
            self._end(None)  # the terminal hung up

    def _key(self) -> None:
        try:
            data = os.read(self._terminal.in_fd, 64)
        except OSError:
            data = b""
        if data[:1] in _QUIT or not data:
            self._end(None if data else int(signal.SIGHUP))
        elif data[:1] == b"\x1a":
            self._stop()

    def _end(self, number: int | None) -> None:
        self._signalled = number
        self._over.set()
        self._changed.set()

    def _stop(self) -> None:
        self._terminal.restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._terminal.lend()
        os.write(self._terminal.out_fd, _ENTER.encode())
        self._changed.set()
