"""The slots of a node, alive: starts and ends workers as ``workers.slots`` says.

A slot's worker is watched over its channel. When a blank slot's worker dies the slot is
ended and replaced. When a session's worker dies the session is not lost: its shell lives
with its shim. The pool waits for the worker to come back (Ray starts it again), else
starts a new one for the same slot, again and again while the shim lives; only when
nothing holds the shell any more is the session given up.
"""

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from fabric.core.clock import Clock
from fabric.core.errors import (
    FabricError,
    SpawnFailedError,
    StartupTimeoutError,
)
from fabric.core.ids import HostName, SessionId, SlotId
from fabric.core.model import CloseReceipt, OpenSpec, SessionInfo
from fabric.core.plain import from_plain
from fabric.core.settings import NodeSettings
from workers import slot as files
from workers.dial import ChannelClient, ChannelClosedError
from workers.ending import Shims, shim_lives
from workers.held import Held, SlotFactory
from workers.slot import SlotConfig, SlotRecord
from workers.slots import Destroy, Grant, Instruction, Refuse, Slots, SlotState, Start

PING_TIMEOUT_S = 5.0
GONE_TIMEOUT_S = 5.0
FIRST_RETRY_S = 0.02
LAST_RETRY_S = 0.25
# While its shim lives, a session is worth another attempt to get it a worker.
AGAIN_S = 1.0
ADOPT_ATTEMPTS = 3
OnEvent = Callable[[SessionId, dict[str, Any]], None]
_log = logging.getLogger(__name__)


class Pool:
    """Slots with their workers. Every method runs in one event loop."""

    def __init__(
        self,
        host: HostName,
        node_dir: Path,
        settings: NodeSettings,
        factory: SlotFactory,
        shims: Shims,
        clock: Clock,
        on_lost: Callable[[Held], None],
        on_event: OnEvent,
    ) -> None:
        self._host = host
        self._node_dir = node_dir
        self._settings = settings
        self._factory = factory
        self._shims = shims
        self._clock = clock
        self._on_lost = on_lost
        self._on_event = on_event
        self.slots = Slots(
            warm=min(settings.warm_sessions, settings.max_sessions),
            max_starting=settings.max_starting,
            max_slots=settings.max_sessions,
        )
        self._held: dict[SlotId, Held] = {}
        self._unfinished: dict[SlotId, Held] = {}
        self._tickets: dict[int, asyncio.Future[Held]] = {}
        self._next_ticket = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._followers: set[asyncio.Task[None]] = set()
        self._refill: asyncio.TimerHandle | None = None
        self._stopped = False

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run work that ``stop`` and ``settled`` know about."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def settled(self) -> None:
        """Wait until no work of the pool is under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def stop(self) -> None:
        """Let go of every slot without ending any."""
        self._stopped = True
        if self._refill is not None:
            self._refill.cancel()
        for task in [*self._tasks, *self._followers]:
            task.cancel()
        await asyncio.gather(*self._followers, return_exceptions=True)
        await self.settled()
        for held in self._held.values():
            held.is_ending = True
            if held.channel is not None:
                held.channel.close()
                await held.channel.closed

    def tick(self) -> None:
        """Refill the pool and try again to end what could not be ended."""
        self._perform(self.slots.tick(self._clock.monotonic()))
        for held in list(self._unfinished.values()):
            del self._unfinished[held.config.slot_id]
            self.spawn(self.discard(held))

    def drain(self) -> None:
        """Give up the warm slots and start no more."""
        self._perform(self.slots.drain())

    def resume(self) -> None:
        """Start warm slots again after a drain."""
        self._perform(self.slots.resume(self._clock.monotonic()))

    async def claim(self, owner: str = "") -> Held:
        """Take a warm slot, or wait for the next one that comes up.

        Raises: StartupTimeoutError, SpawnFailedError.
        """
        ticket = next(self._next_ticket)
        answer: asyncio.Future[Held] = asyncio.get_running_loop().create_future()
        self._tickets[ticket] = answer
        self._perform(self.slots.claim(ticket, self._clock.monotonic(), owner))
        limit = self._settings.start_timeout_s
        try:
            async with asyncio.timeout(limit):
                return await answer
        except TimeoutError as error:
            raise StartupTimeoutError(
                f"no session worker came up on {self._host} within {limit:g} s", host=self._host
            ) from error
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                self.spawn(self.discard(answer.result()))
            raise
        finally:
            del self._tickets[ticket]
            self._perform(self.slots.abandon(ticket, self._clock.monotonic()))

    async def adopt(self, record: SlotRecord) -> Held | None:
        """Take a slot of an earlier life: a live session is returned, a blank one joins the pool.

        Whatever neither serves a published session nor is a blank slot ready for one is ended.
        """
        held = Held(record.config)
        published = record.spec is not None and record.opened
        # An open that nobody awaits any more may have left anything in its slot.
        half_open = record.spec is not None and not record.opened
        self.slots.adopt(record.config.slot_id, SlotState.HELD if published else SlotState.WARM)
        self._held[record.config.slot_id] = held
        for left in reversed(range(ADOPT_ATTEMPTS if published else 1)):
            try:
                if published:
                    await self._factory.create(record.config)
                await self._connect(held)
                await self._ask(held)
                break
            except FabricError as error:
                _log.warning(
                    "slot not adopted", extra={"slot": record.config.slot_id, "why": str(error)}
                )
                if not left or not shim_lives(record.config):
                    break
                await asyncio.sleep(AGAIN_S)  # a shell must not end for want of a worker
        fit = held.is_connected and (held.spec is not None) == published
        if half_open or not fit:
            await self.finish(held)
            return None
        self._listen(held)
        return held if published else None

    async def discard(self, held: Held, *, is_over: bool = False) -> CloseReceipt | None:
        """End everything of the slot; what cannot be ended is tried again later.

        ``is_over`` says that the session in it was torn down already, with a receipt.
        Raises: CleanupIncompleteError, or what the factory raises.
        """
        held.is_ending = True
        slot_id = held.config.slot_id
        if held.recovery is not None:
            # It may be starting a worker at this moment; nothing may start any more.
            held.recovery.cancel()
            await asyncio.wait({held.recovery})
        try:
            await self._factory.destroy(slot_id)
            if not is_over:  # no worker may hold the shim any more when it is told to end
                await self._await_gone(held)
            receipt, _ = await asyncio.gather(
                self._shims.end(held.config, is_over=is_over), self._await_gone(held)
            )
        except BaseException:
            self._unfinished[slot_id] = held
            raise
        files.remove(held.config)
        self._held.pop(slot_id, None)
        self._perform(self.slots.gone(slot_id, self._clock.monotonic()))
        return receipt

    async def finish(self, held: Held) -> None:
        """Discard the slot though the caller is being cancelled; faults are logged."""
        task = self.spawn(self.discard(held))
        try:
            await asyncio.shield(task)
        except FabricError as error:
            _log.error("slot not ended", extra={"slot": held.config.slot_id, "why": str(error)})

    async def _await_gone(self, held: Held) -> None:
        if held.channel is None:
            return
        try:
            async with asyncio.timeout(GONE_TIMEOUT_S):
                await asyncio.shield(held.channel.closed)
        except TimeoutError:
            held.channel.close()

    def _perform(self, instructions: list[Instruction]) -> None:
        for item in instructions:
            if isinstance(item, Start):
                config = files.new_slot(item.slot_id, self._node_dir, self._host)
                self.spawn(self._start(config))
            elif isinstance(item, Destroy):
                held = self._held.get(item.slot_id)
                if held is not None:
                    self.spawn(self.discard(held))
            elif isinstance(item, Grant):
                self._answer(item.ticket, self._held[item.slot_id])
            else:
                self._refuse(item)
        self._plan_refill()

    def _plan_refill(self) -> None:
        """Tick when the pool may be refilled; the node's sweep would be late for that."""
        at = self.slots.refill_at
        if at is None or self._refill is not None or self._stopped:
            return
        delay = max(0.0, at - self._clock.monotonic())
        self._refill = asyncio.get_running_loop().call_later(delay, self._refill_now)

    def _refill_now(self) -> None:
        self._refill = None
        self._perform(self.slots.tick(self._clock.monotonic()))

    def _answer(self, ticket: int, held: Held) -> None:
        answer = self._tickets.get(ticket)
        if answer is None or answer.done():
            self.spawn(self.discard(held))
        else:
            answer.set_result(held)

    def _refuse(self, item: Refuse) -> None:
        answer = self._tickets.get(item.ticket)
        if answer is not None and not answer.done():
            answer.set_exception(SpawnFailedError(item.message, host=self._host))

    async def _start(self, config: SlotConfig) -> None:
        held = Held(config)
        self._held[config.slot_id] = held
        try:
            files.save(SlotRecord(config))
            async with asyncio.timeout(self._settings.start_timeout_s):
                await self._factory.create(config)
                await self._connect(held)
            self._listen(held)
        except Exception as error:  # noqa: BLE001  (a slot must never stay "starting")
            text = str(error) or f"not up within {self._settings.start_timeout_s:g} s"
            _log.error("slot not started", extra={"slot": config.slot_id, "why": text})
            message = f"no session worker could be started on {self._host}: {text}"
            self._perform(self.slots.failed(config.slot_id, message, self._clock.monotonic()))
            await self.finish(held)
            return
        self._perform(self.slots.ready(config.slot_id, self._clock.monotonic()))

    async def _connect(self, held: Held) -> None:
        held.channel = await ChannelClient.connect(held.config.channel_path, held.config.key)
        held.channel.closed.add_done_callback(lambda _: self._on_closed(held))

    def _on_closed(self, held: Held) -> None:
        if held.is_ending or held.config.slot_id not in self._held:
            return
        state = self.slots.state_of(held.config.slot_id)
        if state is SlotState.WARM:
            _log.warning("blank worker died", extra={"slot": held.config.slot_id})
            self.spawn(self.discard(held))
        elif held.info is not None and held.recovery is None:
            _log.warning("session worker died", extra={"slot": held.config.slot_id})
            self.recover(held)

    def recover(self, held: Held) -> None:
        """Find the worker of a session again, or start a new one for it, in the background."""
        if held.recovery is None and not held.is_ending:
            held.recovery = self.spawn(self._recover(held))

    async def _recover(self, held: Held) -> None:
        while not await self._found_again(held):
            if held.is_ending or held.is_connected or not shim_lives(held.config):
                break
            _log.warning("no worker for a shell yet", extra={"slot": held.config.slot_id})
            await asyncio.sleep(AGAIN_S)
        held.recovery = None
        if held.is_ending or (held.is_connected and held.spec is not None):
            return
        _log.error("session lost", extra={"slot": held.config.slot_id})
        self._on_lost(held)
        await self.finish(held)

    async def _found_again(self, held: Held) -> bool:
        for attempt in (self._reconnect, self._recreate):
            with contextlib.suppress(FabricError, TimeoutError):
                async with asyncio.timeout(self._settings.start_timeout_s):
                    await attempt(held)
                    await self._ask(held)
                self._listen(held)
                return True
        return False

    async def _reconnect(self, held: Held) -> None:
        """Connect to the worker that comes back by itself, or to one the factory makes."""
        pause = FIRST_RETRY_S
        while True:
            with contextlib.suppress(ChannelClosedError):
                await self._connect(held)
                return
            with contextlib.suppress(FabricError):
                await self._factory.create(held.config)
                await self._connect(held)
                return
            await asyncio.sleep(pause)
            pause = min(LAST_RETRY_S, pause * 2)

    async def _recreate(self, held: Held) -> None:
        await self._factory.destroy(held.config.slot_id)
        await self._factory.create(held.config)
        await self._connect(held)

    async def _ask(self, held: Held) -> None:
        """Learn from the worker what it holds. Raises: FabricError."""
        if held.channel is None:
            return
        raw = await held.channel.call("ping", {}, PING_TIMEOUT_S)
        session, spec = raw["session"], raw["spec"]
        held.info = None if session is None else from_plain(SessionInfo, session)
        held.spec = None if spec is None else from_plain(OpenSpec, spec)

    def _listen(self, held: Held) -> None:
        if held.channel is not None:
            work = self._follow(held, held.channel)
            task = asyncio.get_running_loop().create_task(work)
            self._followers.add(task)
            task.add_done_callback(self._followers.discard)

    async def _follow(self, held: Held, channel: ChannelClient) -> None:
        """Hand on what the worker tells, until its channel ends."""
        with contextlib.suppress(FabricError):
            async for event in channel.stream("events", {"since": 0}):
                if held.spec is not None:
                    self._on_event(held.spec.session_id, event)

    async def refresh(self, held: Held) -> None:
        """Bring what is known of a session up to date, as far as its worker answers."""
        if not held.is_connected:
            return
        before = held.info, held.spec
        with contextlib.suppress(FabricError):
            await self._ask(held)
        if held.info is None or held.spec is None:
            held.info, held.spec = before
