"""The session worker: one slot, at most one session, served over the session channel.

``SessionWorker`` lives in an event loop; ``SessionActor`` gives it a loop and a thread of
its own, started by the constructor, so that a process that was restarted re-adopts its
shell and binds its socket without being asked. Neither knows Ray.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import uvloop

from fabric.core import log
from fabric.core.attach import AttachStart, WriteRequest
from fabric.core.clock import Clock, SystemClock
from fabric.core.errors import (
    FabricError,
    ForeignSessionError,
    OwnerNotLiveError,
    RegistryUnavailableError,
    SessionClosingError,
    SessionNotFoundError,
    SessionStateError,
    UnsupportedError,
)
from fabric.core.model import Caller, OpenSpec, SendRequest, SharedLife, SignalName, WaitCondition
from fabric.core.plain import from_plain, to_plain
from fabric.core.settings import WorkerSettings
from fabric.core.tracing import Tracer
from workers import launching
from workers.channel import Args, ChannelServer
from workers.peer import private_dir
from workers.pulse import Pulse
from workers.sandbox.probe import NodeConfinement
from workers.session import Session
from workers.shared_calls import SharedCalls
from workers.sharing import Sharing
from workers.shim.client import ShimClient
from workers.slot import SlotConfig
from workers.tasking import Tasking
from workers.text.cursors import token_of

T = TypeVar("T")
MAX_EVENTS = 256
STOP_TIMEOUT_S = 10.0
_log = logging.getLogger(__name__)


class SessionWorker:
    """Serve one slot; every method runs in one event loop."""

    def __init__(
        self,
        config: SlotConfig,
        settings: WorkerSettings,
        clock: Clock | None = None,
        tracer: Tracer | None = None,
        counted: Callable[[Session], None] | None = None,
    ) -> None:
        self._counted = counted
        self.config = config
        self.settings = settings
        self.clock = clock or SystemClock()
        self.session: Session | None = None
        self.tasking: Tasking | None = None
        self.sharing: Sharing | None = None
        self.shim: ShimClient | None = None
        self._epoch = 0
        self._events: list[dict[str, Any]] = []
        self._seq = 0
        self._told = Pulse()
        self._opening = False
        self._confinement: NodeConfinement | None = None
        shared = SharedCalls(self._shared)
        self._server = ChannelServer(
            config.channel_path,
            config.key,
            {name: getattr(self, f"on_{name}") for name in _METHODS} | shared.handlers,
            {"follow": self.on_follow, "attach": self.on_attach, "events": self.on_events}
            | shared.streams,
            tracer=tracer,
            host=config.host,
        )

    async def start(self) -> None:
        """Start a shim, or adopt the shell that the slot's shim holds, then serve."""
        log.node.set(self.config.host)
        private_dir(self.config.channel_path.parent)
        if self.config.shim_path.exists():
            with contextlib.suppress(FabricError, OSError):
                await self._adopt()
        if self.shim is None:
            self.shim = await self._launch_shim()
        await self._server.start()

    async def stop(self) -> None:
        """Stop serving; a shell stays with its shim until the orphan grace ends."""
        await self._server.close()
        if self.sharing is not None:
            self.sharing.close()
        if self.session is not None:
            self.session.abandon()
        if self.shim is not None:
            self.shim.close()

    async def _launch_shim(self) -> ShimClient:
        return await ShimClient.launch(
            node_dir=self.config.channel_path.parent.parent,
            slot_id=self.config.slot_id,
            key=self.config.key,
            orphan_grace_s=self.settings.teardown.orphan_grace_s,
        )

    async def _adopt(self) -> None:
        shim = await ShimClient.connect(socket=self.config.shim_path, key=self.config.key)
        self.shim = shim
        spawned = await shim.adopt()
        if spawned is None:
            return
        session = launching.adopt(spawned, shim, self.settings, self.clock, self._notify)
        self._publish(session)
        session.replay()
        session.start()
        if self.sharing is not None:
            self.sharing.recover()
        self._notify("session_readopted", {"adoption": shim.adoption})

    def _publish(self, session: Session) -> None:
        self.session = session
        self.tasking = Tasking(session, self._notify)
        self._epoch = max(self._epoch, session.spec.epoch)
        log.session.set(session.spec.session_id)
        if self._counted is not None:
            session.counts.changed = partial(self._counted, session)
        if session.spec.shared is not None and self.sharing is None:
            self.sharing = Sharing(
                session, self.settings.shared, self.clock, self._notify, self._renew
            )

    async def on_open(self, args: Args) -> Any:
        """Start the session of this slot. Raises: SpawnFailedError, StartupTimeoutError, …"""
        spec = from_plain(OpenSpec, args["spec"])
        if self.session is not None or self._opening or self.shim is None:
            raise SessionStateError("the slot is taken")
        self._opening = True
        try:
            held = args.get("confinement")
            self._confinement = None if held is None else from_plain(NodeConfinement, held)
            result = await launching.open_session(
                spec,
                self.config,
                self.shim,
                self.settings,
                self.clock,
                self._notify,
                self._publish,
                self._confinement,
            )
        except BaseException:
            self.session = self.tasking = self.sharing = None
            raise
        finally:
            self._opening = False
        if self.session is not None:
            self.session.log.serve_until = args.get("until")
        return to_plain(result)

    async def _renew(self) -> Session:
        """Put a new shell in the place of the shared terminal's present one.

        The old one stays readable until the new one is there. Raises: CleanupIncompleteError
        and what opening a session raises.
        """
        old, until = self.session, None
        if old is None or old.spec.shared is None:
            raise SessionNotFoundError("no shared terminal is here")
        until = old.log.serve_until
        old.notify = _silent  # its end is no news: it is replaced
        await old.close("reset")
        if self.shim is not None:
            with contextlib.suppress(FabricError):
                await self.shim.quit()
        self.shim = await self._launch_shim()
        life = SharedLife(old.spec.shared.generation + 1, old.info().adoption - 1)
        result = await launching.open_session(
            replace(old.spec, shared=life, epoch=self._epoch),
            self.config,
            self.shim,
            self.settings,
            self.clock,
            self._notify,
            self._publish,
            self._confinement,
        )
        _log.info("shared terminal reset", extra={"generation": life.generation})
        old.abandon()
        session = self._session({"session_id": result.info.session_id})
        session.log.serve_until = until
        return session

    async def on_close(self, args: Args) -> Any:
        """Tear the session down. Raises: CleanupIncompleteError."""
        session = self._session(args)
        if self.sharing is not None:
            self.sharing.dispose(SessionClosingError("the shared terminal is being closed"))
        return to_plain(await session.close(args.get("reason", "close")))

    async def on_shutdown(self, args: Args) -> Any:
        """End the slot: whatever lives in it, its shim, and the worker's socket."""
        if self.session is not None and not self.session.is_over:
            await self.session.close("shutdown")
        if self.session is not None:
            self.session.abandon()
        if self.shim is not None:
            await self.shim.quit()
        return None

    async def on_ping(self, args: Args) -> Any:
        """Say who is here."""
        session = self.session
        return {
            "slot_id": self.config.slot_id,
            "session": None if session is None else to_plain(session.info()),
            "spec": None if session is None else to_plain(session.spec),
            "next_offset": 0 if session is None else session.log.next_offset,
        }

    async def on_fence(self, args: Args) -> Any:
        """Refuse callers with an epoch below this one from now on."""
        self._session(args)
        self._epoch = max(self._epoch, int(args["epoch"]))
        return None

    async def on_keep(self, args: Args) -> Any:
        """Serve the session until a time of the monotonic clock (None: for ever), as told."""
        session = self._session(args)
        self._epoch = max(self._epoch, int(args["epoch"]))
        session.log.serve_until = args["until"]
        return None

    async def on_status(self, args: Args) -> Any:
        """Describe the session."""
        return to_plain(self._owned(args).info())

    async def on_send(self, args: Args) -> Any:
        """Write and wait for the verdict."""
        session = self._unshared(args)
        return to_plain(await session.sending.send(from_plain(SendRequest, args["request"])))

    async def on_read(self, args: Args) -> Any:
        """Read a page of scrollback."""
        return to_plain(self._owned(args).observing.read(args["offset"], args["count"]))

    async def on_signal(self, args: Args) -> Any:
        """Signal the foreground process group."""
        session = self._unshared(args)
        return to_plain(await session.signal_once(SignalName(args["name"]), args["request_id"]))

    async def on_snapshot(self, args: Args) -> Any:
        """Show the screen."""
        return to_plain(self._owned(args).observing.snapshot())

    async def on_resize(self, args: Args) -> Any:
        """Change the terminal's size."""
        return to_plain(self._unshared(args).resize(args["rows"], args["cols"]))

    async def on_tail(self, args: Args) -> Any:
        """Return whole lines that are new to a consumer."""
        observing = self._owned(args).observing
        request_id = args.get("request_id")
        token = token_of(request_id) if request_id else 0
        return to_plain(observing.tail(args["consumer"], args["lines"], token))

    async def on_write(self, args: Args) -> Any:
        """Write beside sends."""
        writing = self._unshared(args).writing
        return to_plain(await writing.write(from_plain(WriteRequest, args["request"])))

    async def on_read_bytes(self, args: Args) -> Any:
        """Read raw bytes."""
        observing = self._owned(args).observing
        return to_plain(
            await observing.read_bytes(args["offset"], args["max_bytes"], args["wait_s"])
        )

    async def on_wait_for(self, args: Args) -> Any:
        """Wait for a condition beside the PTY."""
        observing = self._owned(args).observing
        condition = from_plain(WaitCondition, args["condition"])
        return to_plain(await observing.wait_for(condition, args["timeout_s"]))

    async def on_start_task(self, args: Args) -> Any:
        """Start a background send."""
        self._unshared(args)
        request = from_plain(SendRequest, args["request"])
        known_only = bool(args.get("known_only"))
        return to_plain(self._tasks().start(request, known_only=known_only))

    async def on_task_output(self, args: Args) -> Any:
        """Return a task's new output, waiting for its end."""
        self._owned(args)
        output = await self._tasks().output(args["task_id"], args["cursor"], args["wait_s"])
        return to_plain(output)

    async def on_kill_task(self, args: Args) -> Any:
        """Interrupt a task."""
        self._owned(args)
        return to_plain(self._tasks().kill(args["task_id"]))

    async def on_follow(self, args: Args) -> AsyncIterator[Any]:
        """Stream raw bytes."""
        async for page in self._owned(args).observing.follow(args["offset"]):
            yield to_plain(page)

    async def on_attach(self, args: Args) -> AsyncIterator[Any]:
        """Stream the screen, and the bytes from there."""
        session = self._owned(args)
        start = from_plain(AttachStart, args["start"])
        async with contextlib.aclosing(session.attaching.attach(start)) as events:
            async for event in events:
                yield to_plain(event)

    async def on_events(self, args: Args) -> AsyncIterator[Any]:
        """Stream what happens here, from after ``since``; older ones are let go of."""
        since = int(args["since"])
        while True:
            self._events = [event for event in self._events if event["seq"] > since]
            if not self._events:
                await self._told.wait()
            for event in list(self._events):
                yield event
                since = event["seq"]

    def _notify(self, kind: str, facts: dict[str, Any]) -> None:
        self._seq += 1
        self._events.append({"seq": self._seq, "kind": kind, "at": self.clock.wall(), **facts})
        del self._events[:-MAX_EVENTS]
        self._told.send()

    def _session(self, args: Args) -> Session:
        session = self.session
        if session is None or session.spec.session_id != args["session_id"]:
            raise SessionNotFoundError(
                f"no session {args['session_id']} is here", session_id=args["session_id"]
            )
        return session

    def _owned(self, args: Args) -> Session:
        session = self._session(args)
        caller = from_plain(Caller, args["caller"])
        if caller.owner_id != session.spec.owner_id:
            raise ForeignSessionError(
                f"session {session.spec.session_id} belongs to another owner",
                session_id=session.spec.session_id,
            )
        until = session.log.serve_until
        if until is not None and time.monotonic() > until:
            raise RegistryUnavailableError(
                "this node has had no word from the registry for too long; its sessions rest"
                " until it has, so that nobody uses what may have been given up elsewhere",
                session_id=session.spec.session_id,
                host=self.config.host,
            )
        if caller.epoch < self._epoch:
            raise OwnerNotLiveError(
                "the owner was acquired again since; use the newer owner token",
                owner_id=caller.owner_id,
            )
        self._epoch = caller.epoch
        return session

    def _shared(self, args: Args) -> Sharing | None:
        self._owned(args)
        return self.sharing

    def _unshared(self, args: Args) -> Session:
        session = self._owned(args)
        if session.spec.shared is not None:
            raise UnsupportedError(
                "this is the shared terminal, which a person may be using; it takes input and"
                " signals by shared_terminal_send and shared_terminal_signal only",
                session_id=session.spec.session_id,
            )
        return session

    def _tasks(self) -> Tasking:
        if self.tasking is None:
            raise SessionNotFoundError("no session is here")
        return self.tasking


def _silent(kind: str, facts: dict[str, Any]) -> None:
    """Tell nobody."""


_METHODS = (
    "open", "close", "shutdown", "ping", "fence", "keep", "status", "send", "read", "signal",
    "snapshot", "resize", "tail", "read_bytes", "wait_for", "start_task", "task_output",
    "kill_task", "write",
)  # fmt: skip


class SessionActor:
    """A session worker with a loop and a thread of its own. Raises: what ``start`` raises."""

    def __init__(
        self,
        config: SlotConfig,
        settings: WorkerSettings,
        tracer: Tracer | None = None,
        counted: Callable[[Session], None] | None = None,
    ) -> None:
        self._tracer = tracer
        self._counted = counted
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="session", daemon=True)
        self._thread.start()
        self.worker = self.run(self._make(config, settings))

    async def _make(self, config: SlotConfig, settings: WorkerSettings) -> SessionWorker:
        worker = SessionWorker(config, settings, tracer=self._tracer, counted=self._counted)
        await worker.start()
        return worker

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the worker's loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def call(self, method: str, args: Args) -> Any:
        """Make a call of the channel from another thread (the control path)."""
        handler: Callable[[Args], Coroutine[Any, Any, Any]] = getattr(self.worker, f"on_{method}")
        return self.run(handler(args))

    def stop(self) -> None:
        """Stop serving and end the thread."""
        with contextlib.suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self.worker.stop(), self._loop).result(STOP_TIMEOUT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(STOP_TIMEOUT_S)
        self._loop.close()
