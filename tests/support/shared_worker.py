"""A shared terminal through its worker's channel, with the verbs of a model and a person."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

from fabric.core.ids import new_request_id
from fabric.core.model import SharedLife
from fabric.core.plain import from_plain, to_plain
from fabric.core.settings import SharedSettings, WorkerSettings
from fabric.core.shared import (
    Person,
    PersonRequest,
    SharedPage,
    SharedResult,
    SharedSend,
    ViewEvent,
    ViewKind,
    ViewStart,
)
from tests.support.eventually import eventually
from tests.support.local_worker import worker_in


class View:
    """One view: collects its events, acts as a person."""

    def __init__(self, shared, name, **start):
        self.shared, self.name = shared, name
        self.events = []
        self.generation = None
        self.lease = 0
        self._start = ViewStart(name, **start)
        self._task = None

    async def __aenter__(self):
        self._task = asyncio.create_task(self._collect())
        await eventually(lambda: self.events)
        return self

    async def __aexit__(self, *exc):
        await self.drop()

    async def drop(self):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _collect(self):
        args = self.shared.args(start=to_plain(self._start))
        async for raw in self.shared.client.stream("shared_view", args):
            event = from_plain(ViewEvent, raw)
            self.events.append(event)
            self.generation = event.generation

    @property
    def running(self):
        """The task that reads the view; it ends with it."""
        return self._task

    @property
    def attached(self):
        return self.events[0]

    @property
    def status(self):
        return [e.status for e in self.events if e.kind is ViewKind.STATUS][-1]

    @property
    def shown(self):
        return b"".join(e.screen.data for e in self.events if e.kind is ViewKind.SCREEN)

    async def ask(self, kind, **facts):
        facts.setdefault("generation", self.generation)
        facts.setdefault("request_id", new_request_id())
        request = PersonRequest(self.name, kind, **facts)
        args = self.shared.args(request=to_plain(request))
        self.lease = await self.shared.client.call("shared_person", args)
        return self.lease

    async def take_over(self):
        await eventually(lambda: self.status.takeover is not None)
        return await self.ask(Person.TAKE_OVER, target=self.status.takeover)

    async def type(self, text):
        return await self.ask(Person.TYPE, lease=self.lease, data=text.encode())


class Shared:
    """The terminal."""

    def __init__(self, terminal):
        self.terminal = terminal
        self.client = terminal.client
        self.worker = terminal.worker

    def args(self, **more):
        return self.terminal.args(**more)

    @property
    def turns(self):
        return self.worker.sharing.turns

    @property
    def told(self):
        return [event for event in self.worker._events if event["kind"] == "human_handback"]

    async def send(self, text, *, submit=True, request_id=None):
        request = SharedSend(request_id or new_request_id(), text.encode(), submit)
        raw = await self.client.call("shared_send", self.args(request=to_plain(request)))
        return from_plain(SharedResult, raw)

    async def signal(self, name):
        args = self.args(name=name, request_id=new_request_id())
        return from_plain(SharedResult, await self.client.call("shared_signal", args))

    async def reset(self):
        args = self.args(request_id=new_request_id())
        return from_plain(SharedResult, await self.client.call("shared_reset", args))

    async def read(self, offset=0, count=500):
        raw = await self.client.call("shared_read", self.args(offset=offset, count=count))
        return from_plain(SharedPage, raw)

    def view(self, name="view", **start):
        return View(self, name, **start)

    async def holds(self, phase):
        await eventually(lambda: self.turns.phase is phase)


@asynccontextmanager
async def shared_in(folder, config=None, **settings):
    """A started shared terminal."""
    made = replace(WorkerSettings(), shared=SharedSettings(**settings))
    async with worker_in(folder, made, config) as terminal:
        await terminal.open(shared=SharedLife())
        yield Shared(terminal)
