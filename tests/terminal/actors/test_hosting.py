"""Objects served by name from a thread of their own, and calls that can be aborted."""

import asyncio
import threading

import pytest
import uvloop

from fabric.actors.hosting import Hosted
from fabric.core.errors import (
    CancelledCallError,
    InternalError,
    InvalidRequestError,
    NameTakenError,
)
from tests.support.eventually import eventually

# The first loop of a process makes a pipe that the library keeps.
uvloop.new_event_loop().close()


class Worker:
    def __init__(self, log):
        self.log = log

    async def add(self, a, b):
        return a + b

    async def hang(self):
        self.log.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.log.append("rolled back")

    async def refuse(self):
        raise NameTakenError("taken", name="x")

    async def break_down(self):
        raise ZeroDivisionError

    async def secret(self):
        return "never"


class Host(Hosted):
    methods = frozenset(("add", "hang", "refuse", "break_down"))

    def __init__(self, start=None):
        self.log = []
        self.start = start
        super().__init__()

    async def make(self):
        if self.start is not None:
            await self.start()
        return Worker(self.log)


@pytest.fixture
def host():
    made = []

    def make(start=None):
        made.append(Host(start))
        return made[-1]

    yield make
    for item in made:
        item.end()


async def test_a_call_runs_in_the_host_s_own_thread(host):
    assert await host().invoke("1", "add", (1, 2)) == 3
    assert threading.current_thread().name != "hosted"


async def test_our_own_errors_come_through_as_they_are(host):
    with pytest.raises(NameTakenError) as caught:
        await host().invoke("1", "refuse", ())
    assert caught.value.metadata == {"name": "x"}


async def test_anything_else_is_an_internal_error_that_tells_nothing(host):
    with pytest.raises(InternalError, match="break_down failed inside"):
        await host().invoke("1", "break_down", ())


@pytest.mark.parametrize("name", ["secret", "nothing", "__init__"])
async def test_only_the_named_methods_can_be_called(host, name):
    with pytest.raises(InvalidRequestError):
        await host().invoke("1", name, ())


async def test_an_abort_returns_when_the_call_has_been_rolled_back(host):
    served = host()
    call = asyncio.create_task(served.invoke("1", "hang", ()))
    await eventually(lambda: served.log)
    await served.abort("1")
    assert served.log == ["began", "rolled back"]
    with pytest.raises(CancelledCallError):
        await call


async def test_an_abort_that_overtakes_its_call_keeps_it_from_beginning(host):
    served = host()
    await served.abort("1")
    with pytest.raises(CancelledCallError):
        await served.invoke("1", "hang", ())
    assert served.log == []
    assert await served.invoke("2", "add", (1, 1)) == 2


async def test_an_abort_of_an_ended_call_does_nothing(host):
    served = host()
    await served.invoke("1", "add", (1, 1))
    await served.abort("1")


async def test_aborting_a_call_that_waits_for_the_start_does_not_abort_the_start(host):
    go = threading.Event()

    async def start():
        await asyncio.to_thread(go.wait)

    served = host(start)
    call = asyncio.create_task(served.invoke("1", "add", (1, 2)))
    await eventually(lambda: served._calls)
    await served.abort("1")
    with pytest.raises(CancelledCallError):
        await call
    go.set()
    assert await served.ready()
    assert await served.invoke("2", "add", (1, 2)) == 3


async def test_a_start_that_fails_is_told_to_every_caller(host):
    async def start():
        raise InvalidRequestError("the folder is too long")

    served = host(start)
    with pytest.raises(InvalidRequestError, match="too long"):
        await served.ready()
    with pytest.raises(InvalidRequestError, match="too long"):
        await served.invoke("1", "add", (1, 2))


async def test_a_start_that_breaks_is_an_internal_error_with_its_cause(host):
    async def start():
        raise RuntimeError("no disk")

    with pytest.raises(InternalError, match="no disk"):
        await host(start).ready()
