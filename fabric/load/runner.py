"""A load run: client processes, one clock for all, one tally, and a graceful end.

The clients are processes of their own even when there is one, so that what the run measures
is never this process's printing, and a terminal's Ctrl-C reaches only this process. The first
``stop`` lets running turns end and owners be released; ``kill`` ends the clients at once,
and then their owners end with their leases (``lease_s``).
"""

import asyncio
import contextlib
import json
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from fabric.core.errors import InternalError
from fabric.load.plan import Plan
from fabric.load.processes import Watcher
from fabric.load.schedule import mixed, share_out
from fabric.load.tally import Tally, Window
from fabric.load.users import Share, Target

HEAD_START_S = 0.3
END_MARGIN_S = 150.0
SETUP_LIMIT_S = 600.0
LAST_LOOK_S = 0.2  # before the end, while all sessions are there
LINE_BYTES = 1 << 24
ERROR_BYTES = 4000


@dataclass(slots=True)
class Outcome:
    """What a run came to beside its tally."""

    tally: Tally
    sessions: int = 0
    began_at: float = 0.0
    elapsed_s: float = 0.0
    interrupted: bool = False
    sessions_left: int = 0
    owners_left: int = 0
    busy: float = 0.0
    failures: list[str] = field(default_factory=list)


def shares(plan: Plan) -> list[Share]:
    """Divide a plan among its processes, owners kept whole."""
    owners = share_out(plan.owners, plan.processes)
    names = mixed(plan.scenarios, plan.users)
    turns = share_out(plan.turns, plan.processes)
    made, first = [], 0
    for index, count in enumerate(owners):
        of_these = names[first * plan.sessions : (first + count) * plan.sessions]
        rate = plan.rate * count / plan.owners
        made.append(Share(first, count, tuple(of_these), rate, turns[index]))
        first += count
    return made


class Runner:
    """One run. ``said`` gets progress while sessions open, ``seen`` every window."""

    def __init__(
        self,
        plan: Plan,
        target: Target,
        *,
        watcher: Watcher | None = None,
        said: Callable[[str], None] = lambda text: None,
        seen: Callable[[Window], None] = lambda window: None,
    ) -> None:
        self._plan = plan
        self._target = target
        self._watcher = watcher
        self._said = said
        self._seen = seen
        self._clients: list[asyncio.subprocess.Process] = []
        self._ready: dict[int, int] = {}
        self._all_ready = asyncio.Event()
        self._began = 0.0
        self._stopped = False
        self._outcome = Outcome(Tally())

    async def run(self) -> Outcome:
        """Run to the end. Raises: InternalError when no client process could work."""
        run, parts = secrets.token_hex(4), shares(self._plan)
        outcome = self._outcome
        reading: list[asyncio.Task[None]] = []
        watching: asyncio.Task[None] | None = None
        try:
            for number, share in enumerate(parts):
                client = await self._start(run, share)
                self._clients.append(client)
                reading.append(asyncio.create_task(self._read(number, client)))
            async with asyncio.timeout(SETUP_LIMIT_S):
                await self._all_ready.wait()
            if not self._stopped and not all(task.done() for task in reading):
                outcome.sessions = sum(self._ready.values())
                outcome.began_at = time.time() + HEAD_START_S
                self._began = time.monotonic() + HEAD_START_S
                self._tell({"go": self._began})
                watching = asyncio.create_task(self._watch())
            limit = self._plan.duration_s + self._plan.grace_s + END_MARGIN_S
            async with asyncio.timeout(limit):
                await _all(reading)
        except TimeoutError:
            outcome.failures.append("a client process did not end in time and was killed")
        finally:
            if watching is not None:
                watching.cancel()
                await asyncio.wait({watching})
            await self._reap(reading)
        if self._began:
            outcome.elapsed_s = max(0.0, min(self._plan.duration_s, time.monotonic() - self._began))
        outcome.interrupted = self._stopped
        if not self._began and not self._stopped:
            raise InternalError("; ".join(outcome.failures) or "no client process got ready")
        return outcome

    def stop(self) -> None:
        """End gracefully: no new turns, owners released. May be repeated."""
        self._stopped = True
        self._tell({"stop": True})

    def kill(self) -> None:
        """End the client processes at once."""
        for client in self._clients:
            with contextlib.suppress(ProcessLookupError):
                client.kill()

    # -- the clients ----------------------------------------------------------------------

    async def _start(self, run: str, share: Share) -> asyncio.subprocess.Process:
        client = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fabric.load.client",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, limit=LINE_BYTES, start_new_session=True,
        )  # fmt: skip
        orders = {
            "run": run,
            "plan": asdict(self._plan),
            "share": asdict(share),
            "target": asdict(self._target),
        }
        self._write(client, orders)
        return client

    def _tell(self, row: dict[str, Any]) -> None:
        for client in self._clients:
            self._write(client, row)

    @staticmethod
    def _write(client: asyncio.subprocess.Process, row: dict[str, Any]) -> None:
        if client.stdin is not None and not client.stdin.is_closing():
            client.stdin.write(json.dumps(row).encode() + b"\n")

    async def _read(self, number: int, client: asyncio.subprocess.Process) -> None:
        if client.stdout is None or client.stderr is None:
            raise InternalError("unreachable: pipes were asked for")
        errors = asyncio.create_task(_tail(client.stderr))
        done = False
        while line := await client.stdout.readline():
            row = json.loads(line)
            done = done or "done" in row
            self._take(number, row)
        code = await client.wait()
        text = await errors
        if not done:
            reason = text.strip().splitlines()[-1:] or [f"code {code}"]
            self._outcome.failures.append(f"client process {number} ended early: {reason[0]}")
            self._outcome.owners_left += 1
        self._ready.setdefault(number, 0)
        self._note_ready()

    def _take(self, number: int, row: dict[str, Any]) -> None:
        outcome = self._outcome
        if "window" in row:
            window = Window.from_plain(row["window"])
            outcome.tally.take(window)
            self._seen(window)
        elif "setup" in row:
            outcome.tally.setup.merge(Window.from_plain(row["setup"]))
        elif "progress" in row:
            self._said(f"opening: {row['progress']} in client process {number}")
        elif "ready" in row:
            self._ready[number] = row["ready"]
            self._note_ready()
        elif "done" in row:
            facts = row["done"]
            outcome.sessions_left += facts["sessions_left"]
            outcome.owners_left += facts["owners_left"]
            outcome.busy = max(outcome.busy, facts["busy"])
            if facts["failed"]:
                outcome.failures.append(facts["failed"])

    def _note_ready(self) -> None:
        if len(self._ready) == self._plan.processes:
            self._all_ready.set()

    async def _watch(self) -> None:
        """Sample the fabric's processes at even times, from a thread: it blocks."""
        watcher, last = self._watcher, self._began + self._plan.duration_s - LAST_LOOK_S
        await asyncio.sleep(max(0.0, self._began - time.monotonic()))
        while watcher is not None:
            await asyncio.to_thread(watcher.look, self._began)
            left = last - time.monotonic()
            if left <= 0:
                return  # what comes after is owners being released
            await asyncio.sleep(min(self._plan.sample_s, left))

    async def _reap(self, reading: list[asyncio.Task[None]]) -> None:
        for client in self._clients:
            if client.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    client.kill()
        await _all(reading)


async def _all(tasks: list[asyncio.Task[None]]) -> None:
    if tasks:
        await asyncio.wait(tasks)


async def _tail(stream: asyncio.StreamReader) -> str:
    """Read to the end, keeping the newest part."""
    data = b""
    while chunk := await stream.read(65_536):
        data = (data + chunk)[-ERROR_BYTES:]
    return data.decode(errors="replace")
