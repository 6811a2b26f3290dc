"""One page's connection: who it is, what it is shown, what it may ask for.

    hello → what the ticket or pass stands for → attached → frames both ways → a close code

Four loops share the connection and the first that ends, ends it: what the terminal shows,
what the page asks for, what its person does, and the heartbeat. Nothing waits in here but
what ``fabric.web.outbox`` and ``fabric.web.person`` bound.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from fabric.core import log
from fabric.core.attach import AttachEvent, AttachKind
from fabric.core.errors import FabricError
from fabric.core.model import SessionInfo
from fabric.core.shared import ViewEvent, ViewKind, ViewStart
from fabric.web import frames
from fabric.web.desk import Desk, Guest
from fabric.web.frames import Close
from fabric.web.outbox import Ending, Outbox, Socket, SocketClosed
from fabric.web.overview import Overview
from fabric.web.person import Controller
from fabric.web.sources import DISPOSED, GENERATION, Sources
from fabric.web.tickets import Kind

AGAIN_S = 0.5
DRAINING = "draining"
INVALID_RESUME = "invalid-resume"
OCCUPIED = "occupied"
GONE = frozenset(
    {"SESSION_NOT_FOUND", "SESSION_CLOSING", "OWNER_NOT_LIVE", "FOREIGN_SESSION", "SESSION_EXITED"}
)
_log = logging.getLogger(__name__)


class Bridge:
    """Serve one connection; ``run`` returns when it is closed."""

    def __init__(self, socket: Socket, desk: Desk, sources: Sources) -> None:
        self._socket = socket
        self._desk = desk
        self._sources = sources
        self._settings = desk.settings
        self._outbox = Outbox(socket, desk.settings.window_bytes, desk.settings.stall_s)
        self._generation = GENERATION
        self._sequence = 0
        self._again = asyncio.Event()
        self._person: Controller | None = None
        self._task: asyncio.Task[Any] | None = None
        self._replaced = False
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Serve until either side ends it, and close with the code that says why."""
        self._task = asyncio.current_task()
        guest: Guest | None = None
        code, why = Close.GOING_AWAY, ""
        try:
            guest = await self._admitted()
            log.owner.set(guest.grant.caller.owner_id)
            self._desk.entered(guest, self)
            await self._serve(guest)
        except Ending as ending:
            code, why = ending.code, ending.why
        except SocketClosed:
            pass
        except asyncio.CancelledError:
            if not self._replaced:
                raise
            code, why = Close.REPLACED, "another connection of this view took over"
        except FabricError as error:
            code = Close.DISPOSED if error.reason in GONE else Close.FAILURE
            why = error.message
        except Exception:  # noqa: BLE001  (the boundary: the details stay in the log)
            _log.exception("view failed")
            code, why = Close.FAILURE, "the server failed inside; its log has the details"
        finally:
            if guest is not None:
                if code is Close.RESET:
                    self._desk.passes.renounce(guest.view)
                self._desk.left(guest, withdraw=code in (Close.DISPOSED, Close.REPLACED))
            if not self.over.done():
                self.over.set_result(None)
        await self._socket.close(code, why)
        facts = {"code": int(code), "kind": "" if guest is None else guest.grant.kind.value}
        _log.info("view closed", extra=facts)

    def replace(self) -> None:
        """End this connection for a newer one of the same view."""
        if self._task is not None and not self.over.done():
            self._replaced = True
            self._task.cancel()

    async def _admitted(self) -> Guest:
        try:
            async with asyncio.timeout(self._settings.hello_s):
                text = await self._socket.recv()
        except TimeoutError:
            raise Ending(Close.VIOLATION, "no hello came in time") from None
        try:
            hello = frames.parse_hello(text)
        except frames.FrameError as error:
            raise Ending(Close.VIOLATION, str(error)) from None
        guest = await self._desk.admit(hello)
        if guest is None:
            raise Ending(Close.REFUSED, "the ticket does not count (any more)")
        return guest

    # -- the loops ------------------------------------------------------------------------

    async def _serve(self, guest: Guest) -> None:
        if guest.grant.kind is Kind.OVERVIEW:
            overview = Overview(self._desk, self._sources, guest, self._outbox)
            await overview.begin()
            await self._first_of(overview.show(), self._listen(overview), self._beat())
            return
        info = await self._sources.find(guest.grant)
        first, events = await self._open(guest, info)
        async with contextlib.aclosing(events):
            person = await self._attach(guest, info, first)
            loops = [self._show(guest, info, events), self._listen(None), self._beat()]
            if person is not None:
                loops += [person.run(), _until(person.failed)]
            try:
                await self._first_of(*loops)
            finally:
                if person is not None:
                    await person.close()

    async def _open(
        self, guest: Guest, info: SessionInfo
    ) -> tuple[ViewEvent, AsyncGenerator[ViewEvent, None]]:
        """Begin the stream; a proof that counts no more makes the claim one like any other."""
        first = None
        for proof in dict.fromkeys((guest.proof, "")):
            start = ViewStart(guest.view, guest.grant.readonly, proof)
            events = self._sources.events(guest.grant.caller, info, start)
            try:
                event = await anext(events)
            except BaseException:
                await events.aclose()
                raise
            if event.reason != INVALID_RESUME:
                break
            first = event
            await events.aclose()
        return (first if event.reason == OCCUPIED and first else event), events

    async def _first_of(self, *loops: Coroutine[Any, Any, None]) -> None:
        tasks = [asyncio.get_running_loop().create_task(loop) for loop in loops]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in sorted(done, key=lambda task: isinstance(task.exception(), SocketClosed)):
            task.result()

    async def _attach(self, guest: Guest, info: SessionInfo, event: ViewEvent) -> Controller | None:
        self._generation = event.generation
        resume = self._desk.passes.issue(guest.grant, guest.view, event.resume)
        shown = self._desk.shown(guest.grant, info)
        told = frames.attached(event.generation, shown, reason=event.reason, resume=resume)
        await self._outbox.send(told)
        _log.info("view opened", extra={"kind": guest.grant.kind.value, "role": event.reason})
        if not event.controller:
            return None
        self._person = Controller(
            self._sources.sessions,
            guest.grant.caller,
            info.session_id,
            event.view or guest.view,
            event.generation,
            shown.max_input_bytes,
            self._outbox.send,
        )
        return self._person

    async def _show(
        self, guest: Guest, info: SessionInfo, events: AsyncGenerator[ViewEvent, None]
    ) -> None:
        loop = asyncio.get_running_loop()
        coming: asyncio.Task[ViewEvent | None] | None = None
        again: asyncio.Task[Any] = loop.create_task(self._again.wait())
        try:
            while True:
                if coming is None:
                    coming = loop.create_task(anext(events, None))
                await asyncio.wait({coming, again}, return_when=asyncio.FIRST_COMPLETED)
                if again.done():
                    self._again.clear()
                    await self._paint_again(guest, info)
                    again = loop.create_task(self._asked_again())
                if coming.done():
                    event, coming = coming.result(), None
                    if event is None:
                        raise Ending(Close.FAILURE, "the stream ended")
                    await self._tell(event)
        finally:
            left = [task for task in (coming, again) if task is not None]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _tell(self, event: ViewEvent) -> None:
        if event.kind is ViewKind.RESET:
            draining = event.reason == DRAINING
            raise Ending(Close.GOING_AWAY if draining else Close.RESET, event.reason)
        if event.status is not None:
            told = frames.status(self._generation, event.status, self._sequence)
            await self._outbox.send(told)
            if self._person is not None:
                await self._person.told(event.status)
            if event.status.queue_status == DISPOSED:
                raise Ending(Close.DISPOSED, "the terminal was closed")
        elif event.screen is not None:
            await self._paint(event.screen)

    async def _paint(self, event: AttachEvent) -> None:
        if event.kind is AttachKind.SNAPSHOT:
            await self._outbox.room()
            self._sequence = event.next_offset
            text = frames.snapshot(
                self._generation,
                event.next_offset,
                event.data,
                rows=event.rows,
                cols=event.cols,
                truncated=event.truncated,
            )
            await self._outbox.show(text, event.next_offset, len(event.data))
        elif event.kind is AttachKind.CHUNK and event.next_offset > self._sequence:
            data = event.data[max(0, self._sequence - event.offset) :]
            await self._outbox.room()
            self._sequence = event.next_offset
            text = frames.output(self._generation, event.next_offset, data)
            await self._outbox.show(text, event.next_offset, len(data))

    async def _paint_again(self, guest: Guest, info: SessionInfo) -> None:
        event = await self._sources.snapshot(guest.grant.caller, info)
        if event is not None and event.next_offset >= self._sequence:
            await self._paint(event)

    async def _asked_again(self) -> None:
        """Wait for the next wish for a snapshot; one made at once waits a moment."""
        await asyncio.sleep(AGAIN_S)
        await self._again.wait()

    async def _listen(self, overview: Overview | None) -> None:
        while True:
            text = await self._socket.recv()
            try:
                frame = frames.parse(text, self._generation)
            except frames.FrameError as error:
                raise Ending(Close.VIOLATION, str(error)) from None
            await self._take(frame, overview)

    async def _take(self, frame: frames.Frame, overview: Overview | None) -> None:
        if isinstance(frame, frames.Heartbeat):
            await self._outbox.send(frames.render("heartbeat", self._generation))
        elif isinstance(frame, frames.Watch):
            if overview is None:
                raise Ending(Close.VIOLATION, "only an overview gives tickets")
            await overview.watch(frame.session)
        elif overview is not None:
            raise Ending(Close.VIOLATION, "an overview shows no terminal")
        elif isinstance(frame, frames.Ack):
            self._outbox.acknowledge(frame.sequence)
        elif isinstance(frame, frames.Again):
            self._again.set()
        elif self._person is None:
            raise Ending(Close.VIOLATION, "this view only reads")
        elif isinstance(frame, frames.Reset):
            self._person.reset()
        elif isinstance(frame, frames.Cancel):
            self._person.cancel()
        else:
            if isinstance(frame, frames.Input) and not self._person.was_granted:
                raise Ending(Close.VIOLATION, "input before a grant")
            await self._person.push(frame)

    async def _beat(self) -> None:
        beat = self._settings.heartbeat_s
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(max(beat / 10, self._outbox.sent_at + beat - loop.time()))
            if loop.time() - self._outbox.sent_at >= beat:
                await self._outbox.send(frames.render("heartbeat", self._generation))


async def _until(done: "asyncio.Future[None]") -> None:
    await asyncio.shield(done)
