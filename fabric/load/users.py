"""The users of one client process: their loops, their windows of counts, their end.

A user belongs to an owner, which has a connection's worth of client and some sessions. All
sessions are open before the clock starts. ``stop`` lets running turns end within the grace;
then owners are released, whatever came before, and what could not be released is counted.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from fabric.client.client import FabricClient
from fabric.client.link import Tls
from fabric.core.errors import FabricError, SessionExitedError, SessionLostError
from fabric.core.errors import SessionNotFoundError as NotFoundError
from fabric.load.plan import Plan
from fabric.load.scenarios import MADE, Scenario, WrongAnswer, reason_of
from fabric.load.schedule import Pauses, arrivals, user_start
from fabric.load.tally import Window

RELEASES_AT_ONCE = 8
AFTER_ERROR_S = 0.5
_GONE = (SessionExitedError, SessionLostError, NotFoundError)


@dataclass(frozen=True, slots=True)
class Share:
    """One process's share of a plan: its owners and users by their numbers in the whole.

    ``rate`` and ``turns`` are this share's; ``scenarios`` are of the users in their order.
    """

    first_owner: int
    owners: int
    scenarios: tuple[str, ...]
    rate: float
    turns: int


@dataclass(frozen=True, slots=True)
class Target:
    """Where the fabric is and who calls it; the token is a secret."""

    gateways: tuple[str, ...]
    token: str | None = None
    tls: Tls | None = None
    insecure: bool = False


class Users:
    """Drive one share. Make and use it inside one running event loop."""

    def __init__(self, plan: Plan, share: Share, target: Target, run: str) -> None:
        self._plan = plan
        self._share = share
        self._target = target
        self._run = run
        self._clients: list[FabricClient] = []
        self._users: list[tuple[int, Scenario]] = []
        self._began = 0.0
        self._window = Window(0.0, counted=False)
        self._stopping = asyncio.Event()
        self._left = share.turns
        self._busy = 0
        self._arrived: asyncio.Queue[float] = asyncio.Queue()

    # -- the windows ----------------------------------------------------------------------

    def cut(self) -> Window:
        """Return what was counted since the last cut."""
        window, self._window = self._window, self._new_window()
        window.in_work, window.waiting = self._busy, self._arrived.qsize()
        return window

    def _new_window(self) -> Window:
        now = time.monotonic() - self._began if self._began else 0.0
        return Window(now, counted=bool(self._began) and now >= self._plan.warmup_s)

    def _current(self) -> Window:
        return self._window

    # -- life -----------------------------------------------------------------------------

    async def prepare(self, said: Callable[[str], None]) -> int:
        """Connect the owners and open the sessions; return how many are open."""
        gate = asyncio.Semaphore(self._plan.open_at_once)
        made = 0

        async def one_owner(number: int) -> None:
            nonlocal made
            client = self._client(number)
            async with gate:
                try:
                    await client.start()
                except FabricError as error:
                    self._window.error("acquire", reason_of(error))
                    return
            self._clients.append(client)
            first = (number - self._share.first_owner) * self._plan.sessions
            for index in range(first, first + self._plan.sessions):
                if self._stopping.is_set():
                    return
                kind = MADE[self._share.scenarios[index]]
                user = (self._share.first_owner * self._plan.sessions) + index
                scenario = kind(client, self._plan, self._current, user)
                async with gate:
                    with contextlib.suppress(FabricError, WrongAnswer):
                        await self._begin(scenario)
                self._users.append((number, scenario))
                made += not scenario.gone
                said(f"{made} sessions")

        numbers = range(self._share.first_owner, self._share.first_owner + self._share.owners)
        await asyncio.gather(*(one_owner(number) for number in numbers))
        return made

    def _client(self, number: int) -> FabricClient:
        # Owners use the gateways in turn, and the others when theirs is away.
        addresses = self._target.gateways
        turn = number % len(addresses)
        return FabricClient.connect(
            (*addresses[turn:], *addresses[:turn]),
            token=self._target.token,
            agent=f"load-{self._run}-{number}",
            mode=self._plan.mode or None,
            lease_s=self._plan.lease_s,
            tls=self._target.tls,
            insecure=self._target.insecure,
        )

    async def _begin(self, scenario: Scenario) -> None:
        try:
            await scenario.begin()
        except (FabricError, WrongAnswer) as error:
            self._window.error("open", reason_of(error))
            raise

    def stop(self) -> None:
        """Begin no more turns; may be repeated."""
        self._stopping.set()

    async def run(self, began: float) -> None:
        """Run from ``began`` (monotonic clock) until the plan's end or ``stop``."""
        self._began = began
        self._window = Window(0.0, counted=not self._plan.warmup_s)
        plan, share = self._plan, self._share
        if not self._users:
            return
        loops = self._open_loops() if share.rate else self._closed_loops()
        tasks = [asyncio.ensure_future(loop) for loop in loops]
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            every = asyncio.ensure_future(asyncio.wait(tasks))
            limit = max(0.0, began + plan.duration_s - time.monotonic())
            await asyncio.wait({stop, every}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if stop.done():  # told to: what waits is dropped, what runs may end
                while not self._arrived.empty():
                    self._arrived.get_nowait()
            self._stopping.set()
            await asyncio.wait(tasks, timeout=plan.grace_s)
            for task in tasks:
                task.cancel()
            await every
            for task in tasks:
                fault = None if task.cancelled() else task.exception()
                if fault is not None:
                    self._window.error("client", reason_of(fault))
            for _ in range(self._arrived.qsize()):
                self._window.error("turn", "NEVER_BEGUN")
        finally:
            stop.cancel()

    async def end(self) -> tuple[int, int]:
        """Release every owner; return how many sessions and owners were left behind."""
        gate = asyncio.Semaphore(RELEASES_AT_ONCE)
        sessions = owners = 0

        async def one(client: FabricClient) -> None:
            nonlocal sessions, owners
            async with gate:
                try:
                    receipt = await client.release()
                    sessions += len(receipt.failed)
                except FabricError as error:
                    self._window.error("release", reason_of(error))
                    owners += 1
                finally:
                    client.keep = True
                    await client.stop()

        for _, scenario in self._users:
            with contextlib.suppress(FabricError):
                await scenario.end()
        await asyncio.gather(*(one(client) for client in self._clients))
        return sessions, owners

    # -- loops ----------------------------------------------------------------------------

    def _closed_loops(self) -> list[asyncio.Future[None]]:
        loops = (self._closed(owner, scenario) for owner, scenario in self._users)
        return [asyncio.ensure_future(loop) for loop in loops]

    async def _closed(self, owner: int, scenario: Scenario) -> None:
        plan = self._plan
        pauses = Pauses(plan.think_s, plan.seed * 100_003 + scenario.number)
        spread = plan.pace_s or plan.think_s
        intended = self._began + user_start(scenario.number, plan.users, plan.ramp_s, spread)
        while await self._until(intended) and self._may_begin():
            went_well = await self._turn(owner, scenario, intended)
            now = time.monotonic()
            if plan.pace_s:
                intended += plan.pace_s
            else:
                intended = now + (pauses.next() if plan.think_s else 0.0)
            if not went_well and intended < now + AFTER_ERROR_S:
                intended = now + AFTER_ERROR_S  # a fabric that refuses at once is not hammered

    def _open_loops(self) -> list[asyncio.Future[None]]:
        loops: list[asyncio.Future[None]] = [asyncio.ensure_future(self._arrive())]
        for owner, scenario in self._users:
            loops.append(asyncio.ensure_future(self._serve(owner, scenario)))
        return loops

    async def _arrive(self) -> None:
        plan = self._plan
        seed = plan.seed * 1009 + self._share.first_owner
        schedule = arrivals(
            self._share.rate, plan.duration_s, ramp_s=plan.ramp_s, spacing=plan.spacing, seed=seed
        )
        for at in schedule:
            intended = self._began + at
            if not await self._until(intended) or not self._may_begin():
                return
            if self._arrived.qsize() >= plan.backlog:
                self._window.error("turn", "BACKLOG_FULL")
                continue
            self._arrived.put_nowait(intended)

    async def _serve(self, owner: int, scenario: Scenario) -> None:
        async for intended in self._arrivals():
            await self._turn(owner, scenario, intended)

    async def _arrivals(self) -> AsyncIterator[float]:
        stop = asyncio.ensure_future(self._stopping.wait())
        try:
            while not (self._stopping.is_set() and self._arrived.empty()):
                if self._arrived.empty():
                    coming = asyncio.ensure_future(self._arrived.get())
                    await asyncio.wait({coming, stop}, return_when=asyncio.FIRST_COMPLETED)
                    if not coming.done():
                        coming.cancel()
                        return
                    yield coming.result()
                else:
                    yield self._arrived.get_nowait()
        finally:
            stop.cancel()

    def _may_begin(self) -> bool:
        if not self._share.turns:
            return True
        self._left -= 1
        return self._left >= 0

    async def _until(self, at: float) -> bool:
        """Wait for a time; False when the run is over."""
        while not self._stopping.is_set():
            left = at - time.monotonic()
            if left <= 0:
                # Even a user without think time lets the others run.
                return not self._stopping.is_set()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._stopping.wait()
        return False

    async def _turn(self, owner: int, scenario: Scenario, intended: float) -> bool:
        began = time.monotonic()
        self._busy += 1
        try:
            if scenario.gone:
                await self._begin(scenario)
            await scenario.turn()
        except (FabricError, WrongAnswer, TimeoutError, StopAsyncIteration) as error:
            if isinstance(error, _GONE) or reason_of(error) == "ATTACH_ENDED":
                scenario.forget()
            self._window.error("turn", reason_of(error))
            return False
        except asyncio.CancelledError:
            self._window.error("turn", "UNFINISHED")
            raise
        else:
            ended = time.monotonic()
            self._window.turn(owner, ended - intended, ended - began)
            return True
        finally:
            self._busy -= 1
