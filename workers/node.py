"""One node: capacity, opening and closing sessions, finding them again after a restart.

Three rules keep the machine clean:

- a slot's file is written before anything of the slot exists and removed after all of it
  is gone (``workers.slot``);
- whatever was started for an open that failed or was cancelled is ended before the open
  returns;
- a node that starts again asks every slot of its files what it holds: published sessions
  are adopted with the worker that is there, or a new one; the rest is ended.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from fabric.core.clock import Clock, SystemClock
from fabric.core.errors import (
    CapacityReachedError,
    DrainingError,
    FabricError,
    OutcomeUnknownError,
    PtyExhaustedError,
    SessionLostError,
    SessionNotFoundError,
)
from fabric.core.ids import HostName, SessionId
from fabric.core.model import (
    CloseReceipt,
    Location,
    NodeState,
    OpenResult,
    OpenSpec,
    SessionInfo,
)
from fabric.core.plain import from_plain, to_plain
from fabric.core.settings import NodeSettings, WorkerSettings
from workers import slot as files
from workers.capacity import UNKNOWN, Capacity, read_capacity
from workers.ending import ShimEnder, Shims, refuse_survivors
from workers.held import Held, SlotFactory
from workers.pool import OnEvent, Pool
from workers.prepare import cgroups_of
from workers.sandbox.probe import NodeConfinement
from workers.slot import SlotRecord
from workers.slots import SlotState
from workers.word import Word

OPEN_MARGIN_S = 5.0
MAX_LOST = 1024
Running = tuple[Location, SessionInfo, OpenSpec]


class Node:
    """The node of one machine. Every method runs in one event loop.

    ``facts`` is what the machine is (system, architecture, sandbox kinds); ``state`` adds
    what is left of it. ``on_event`` is told what the workers tell, as plain data.
    ``confinement`` is what a probe found here; without it every worker probes by itself.
    """

    def __init__(
        self,
        host: HostName,
        node_dir: Path,
        settings: NodeSettings,
        worker: WorkerSettings,
        factory: SlotFactory,
        *,
        facts: NodeState | None = None,
        clock: Clock | None = None,
        capacity: Callable[[], Capacity] = read_capacity,
        shims: Shims | None = None,
        on_event: OnEvent = lambda session_id, event: None,
        confinement: NodeConfinement | None = None,
    ) -> None:
        self.host = host
        self.node_dir = node_dir
        self.settings = settings
        self._worker = worker
        self._facts = facts or NodeState(host=host, alive=True)
        self._capacity = capacity
        self._sessions: dict[SessionId, Held] = {}
        self._lost: dict[SessionId, None] = {}
        self._opening = 0
        self._on_event = on_event
        self._confinement = None if confinement is None else to_plain(confinement)
        self._draining = False
        self._word = Word()
        self._sweeper: asyncio.Task[None] | None = None
        self._pool = Pool(
            host,
            node_dir,
            settings,
            factory,
            shims or ShimEnder(worker.teardown, cgroups_of(confinement)),
            clock or SystemClock(),
            self._on_lost,
            on_event,
        )

    async def start(self) -> None:
        """Adopt what lives on this node, end what does not, and fill the pool.

        Raises: InvalidRequestError when the node's folder cannot hold sockets.
        """
        files.prepare(self.node_dir)
        found = list(files.records(self.node_dir))
        for held in await asyncio.gather(*(self._pool.adopt(record) for record in found)):
            if held is not None and held.spec is not None:
                self._sessions[held.spec.session_id] = held
        for record in found:
            session_id = files.session_of(record)
            if session_id is not None and record.opened and session_id not in self._sessions:
                self._remember_lost(session_id)
        if self._drained_file.exists():
            self._draining = True
            self._pool.drain()
        self._pool.tick()
        self._sweeper = asyncio.get_running_loop().create_task(self._sweep())

    async def stop(self) -> None:
        """Stop without ending anything: sessions stay with their workers and shims."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        await self._pool.stop()

    async def drain(self) -> None:
        """Take no new sessions and give up the warm slots; sessions stay.

        It holds until ``resume``, also for a node that starts again on this folder.
        """
        self._draining = True
        self._drained_file.touch(mode=0o600)
        self._pool.drain()

    async def resume(self) -> None:
        """Take new sessions again, in workers that are all new."""
        await self._pool.settled()
        self._drained_file.unlink(missing_ok=True)
        self._draining = False
        self._pool.resume()

    @property
    def _drained_file(self) -> Path:
        return self.node_dir / "draining"

    async def end_all(self, reason: str) -> dict[SessionId, CloseReceipt | FabricError]:
        """Take no new sessions, close every one there is, and say how each ended."""
        self._draining = True
        self._pool.drain()
        ids = list(self._sessions)
        ends = await asyncio.gather(*(self._end(item, reason) for item in ids))
        await self._pool.settled()
        return dict(zip(ids, ends, strict=True))

    async def _end(self, session_id: SessionId, reason: str) -> CloseReceipt | FabricError:
        try:
            return await self.close(session_id, reason)
        except FabricError as error:
            return error

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self.settings.sweep_interval_s)
            self._pool.tick()

    async def open(self, spec: OpenSpec) -> OpenResult:
        """Open a session in a slot; cancelling removes what was started before it returns.

        Raises: DrainingError, CapacityReachedError, PtyExhaustedError, StartupTimeoutError,
        SpawnFailedError, SessionLostError (the worker died under the open).
        """
        self._check_room()
        self._opening += 1
        try:
            held = await self._pool.claim(spec.owner_id)
            try:
                self._note(SlotRecord(held.config, spec))
                result = await self._open_in(held, spec)
                self._note(SlotRecord(held.config, spec, opened=True))
            except BaseException:
                await self._pool.finish(held)
                raise
            held.spec, held.info = spec, result.info
            self._sessions[spec.session_id] = held
        finally:
            self._opening -= 1
        if not held.is_connected:
            self._pool.recover(held)
        return result

    async def _open_in(self, held: Held, spec: OpenSpec) -> OpenResult:
        teardown = self._worker.teardown
        limit = spec.startup_timeout_s or self._worker.readiness.startup_timeout_s
        limit += OPEN_MARGIN_S + teardown.grace_s + teardown.shell_grace_s
        try:
            if held.channel is None:
                raise SessionLostError("its worker is gone")
            args = {"spec": to_plain(spec), "confinement": self._confinement}
            args["until"] = self._word.until
            raw = await held.channel.call("open", args, limit)
        except (OutcomeUnknownError, SessionLostError) as error:
            raise SessionLostError(
                "the session's worker died while the session was being opened",
                session_id=spec.session_id,
            ) from error
        result = from_plain(OpenResult, raw)
        return replace(result, info=replace(result.info, host=self.host))

    def _note(self, record: SlotRecord) -> None:
        """Write a slot down: what is on no disk would be found by nobody after a restart."""
        try:
            files.save(record)
        except OSError as error:
            raise CapacityReachedError(
                f"node {self.host} cannot write into its folder: {error.strerror or error};"
                " make room there or use another node",
                host=self.host,
                errno=error.errno,
            ) from error

    def _check_room(self) -> None:
        """Refuse before anything is started, with the numbers."""
        if self._draining:
            raise DrainingError(f"node {self.host} takes no new sessions", host=self.host)
        settings, left = self.settings, self._capacity()
        used = len(self._sessions) + self._opening
        if used >= settings.max_sessions:
            raise CapacityReachedError(
                f"node {self.host} has {used} of {settings.max_sessions} sessions;"
                " close one or use another node",
                host=self.host,
                sessions=used,
                max_sessions=settings.max_sessions,
            )
        if UNKNOWN < left.ptys < settings.min_free_ptys:
            raise PtyExhaustedError(
                f"node {self.host} has {left.ptys} pseudo-terminals left"
                f" and keeps {settings.min_free_ptys} free",
                host=self.host,
                ptys_free=left.ptys,
                min_free_ptys=settings.min_free_ptys,
            )
        for noun, free, least in (
            ("memory_bytes", left.memory_bytes, settings.min_free_memory_bytes),
            ("fds", left.fds, settings.min_free_fds),
        ):
            if UNKNOWN < free < least:
                raise CapacityReachedError(
                    f"node {self.host} has {free} {noun} left and keeps {least} free",
                    **{"host": self.host, f"{noun}_free": free, f"min_free_{noun}": least},
                )

    async def close(self, session_id: SessionId, reason: str) -> CloseReceipt:
        """Tear a session down; closes at the same time share one teardown.

        Raises: SessionNotFoundError, SessionLostError, CleanupIncompleteError (then the
        session stays, and closing may be tried again).
        """
        held = self._find(session_id)
        if held.closing is None:
            held.closing = self._pool.spawn(self._close(held, session_id, reason))
        receipt = await asyncio.shield(held.closing)
        if receipt is None:
            raise self._missing(session_id)
        return receipt

    async def _close(self, held: Held, session_id: SessionId, reason: str) -> CloseReceipt | None:
        try:
            receipt = await self._close_by_worker(held, session_id, reason)
            left = await self._pool.discard(held, is_over=receipt is not None)
        except BaseException:
            held.closing = None
            raise
        if self._sessions.pop(session_id, None) is not None and not (receipt or left):
            self._remember_lost(session_id)
        return receipt or left

    async def _close_by_worker(
        self, held: Held, session_id: SessionId, reason: str
    ) -> CloseReceipt | None:
        """Close through the worker; None when it cannot be asked and the shim must do it."""
        if held.channel is None or not held.is_connected:
            return None
        try:
            raw = await held.channel.call("close", {"session_id": session_id, "reason": reason})
        except (OutcomeUnknownError, SessionNotFoundError):
            return None
        receipt = from_plain(CloseReceipt, raw)
        refuse_survivors(receipt)
        return receipt

    async def fence(self, session_id: SessionId, epoch: int) -> None:
        """Refuse callers of an epoch below ``epoch`` from now on.

        Raises: SessionNotFoundError, SessionLostError.
        """
        held = self._find(session_id)
        if held.channel is None:
            raise self._missing(session_id)
        await held.channel.call("fence", {"session_id": session_id, "epoch": epoch})

    async def keep(
        self, epochs: dict[SessionId, int], asked_at: float, word_s: float | None
    ) -> None:
        """Take the registry's word that these sessions are live, as ``workers.word`` says."""
        await self._word.give(self._sessions.values(), epochs, asked_at, word_s)

    async def sessions(self) -> tuple[Running, ...]:
        """List what runs here, as the workers see it now or as they last said."""
        live = list(self._sessions.values())
        await asyncio.gather(*(self._pool.refresh(held) for held in live))
        return tuple(
            (held.config.location(held.spec), replace(held.info, host=self.host), held.spec)
            for held in live
            if held.spec is not None and held.info is not None
        )

    async def locate(self, session_id: SessionId) -> Location:
        """Say how a gateway reaches a session. Raises: SessionNotFoundError, SessionLostError."""
        held = self._find(session_id)
        if held.spec is None:
            raise self._missing(session_id)
        return held.config.location(held.spec)

    async def state(self) -> NodeState:
        """Say what is left of this machine."""
        left = self._capacity()
        return replace(
            self._facts,
            host=self.host,
            alive=True,
            sessions=len(self._sessions) + self._opening,
            max_sessions=self.settings.max_sessions,
            warm=self._pool.slots.count(SlotState.WARM),
            ptys_free=left.ptys,
            memory_free_bytes=left.memory_bytes,
            fds_free=left.fds,
            draining=self._draining,
            node_dir=str(self.node_dir),
            asked_at=time.monotonic(),
        )

    def _find(self, session_id: SessionId) -> Held:
        held = self._sessions.get(session_id)
        if held is None:
            raise self._missing(session_id)
        return held

    def _missing(self, session_id: SessionId) -> SessionNotFoundError:
        if session_id in self._lost:
            return SessionLostError(
                f"session {session_id} was lost: its shell ended without being closed",
                session_id=session_id,
            )
        return SessionNotFoundError(
            f"no session {session_id} on {self.host}", session_id=session_id
        )

    def _on_lost(self, held: Held) -> None:
        for session_id in [key for key, value in self._sessions.items() if value is held]:
            del self._sessions[session_id]
            self._remember_lost(session_id)
            self._on_event(session_id, {"kind": "session_lost"})

    def _remember_lost(self, session_id: SessionId) -> None:
        self._lost[session_id] = None
        while len(self._lost) > MAX_LOST:
            del self._lost[next(iter(self._lost))]
