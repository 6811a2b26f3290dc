"""The gateway's verbs over real workers of a node in this process."""

import asyncio

import pytest

from fabric.actors.sessions import Sessions
from fabric.core.context import from_peer
from fabric.core.errors import (
    CapacityReachedError,
    ForeignSessionError,
    GatewayUnavailableError,
    OutcomeUnknownError,
    SendActiveError,
    SessionLostError,
    SessionNotFoundError,
    TaskNotFoundError,
)
from fabric.core.ids import new_request_id
from fabric.core.model import (
    Caller,
    Outcome,
    SendRequest,
    SignalName,
    TaskOutput,
    TaskState,
    WaitCondition,
)
from tests.support.eventually import eventually
from tests.support.local_node import HOST, local_node
from tests.support.local_worker import CALLER, spec_for


class Book:
    """What the verbs need of a registry, over one node."""

    def __init__(self, node):
        self.node = node
        self.located = 0
        self.tasks = {}
        self.reserved = []
        self.full = False
        self.fault = None

    async def locate(self, session_id):
        self.located += 1
        if self.fault is not None:
            raise self.fault
        return await self.node.locate(session_id)

    async def reserve_task(self, caller, session_id, label):
        if self.full:
            raise CapacityReachedError("ten tasks run")
        self.reserved.append(label)
        return f"tsk_{len(self.reserved)}"

    async def attach_task(self, task_id, record):
        self.reserved.pop()
        self.tasks[record.task_id] = record
        return record

    async def forget_task(self, task_id):
        self.reserved.pop()

    async def task_record(self, caller, task_id):
        if task_id not in self.tasks:
            raise TaskNotFoundError("no such task")
        return self.tasks[task_id]

    async def stop_task(self, task_id):
        return self.tasks[task_id]

    async def task_output(self, caller, task_id, cursor, wait_s):
        return TaskOutput("kept", self.tasks[task_id], cursor)


class World:
    """A node with one open shell, and the verbs of its gateway."""

    def __init__(self, local):
        self.local = local
        self.book = Book(local.node)
        self.sessions = Sessions(HOST, self.book, readopt_s=20.0)
        self.id = None

    async def open(self):
        self.id = (await self.local.node.open(spec_for())).info.session_id

    async def send(self, text, request_id=None, caller=CALLER):
        request = SendRequest(request_id or new_request_id(), text.encode())
        return await self.sessions.send(caller, self.id, request)

    async def crash(self):
        await self.local.slots.crash(self.local.slot_of(self.id))


@pytest.fixture
async def world():
    async with local_node(warm_sessions=0) as local:
        world = World(local)
        await world.open()
        yield world
        await world.sessions.close()


async def test_many_sends_ask_once_where_the_session_is(world):
    for number in range(3):
        assert f"n{number}" in (await world.send(f"echo n{number}")).viewport
    assert world.book.located == 1


async def test_every_reading_verb_answers(world):
    await world.send("echo hi")
    verbs = world.sessions
    assert "hi" in (await verbs.read(CALLER, world.id, 0, 10)).text
    assert "hi" in (await verbs.tail(CALLER, world.id, "me", 10)).text
    assert b"hi" in (await verbs.read_bytes(CALLER, world.id, 0, 4096, 0.0)).data
    assert any("hi" in line for line in (await verbs.snapshot(CALLER, world.id)).lines)
    assert (await verbs.resize(CALLER, world.id, 30, 90)).rows == 30
    status = await verbs.status(CALLER, world.id)
    assert (status.host, status.cols) == (HOST, 90)
    found = await verbs.wait_for(
        CALLER, world.id, WaitCondition(pattern="hi", since_offset=0), 20.0
    )
    assert found.matched == "pattern"


async def test_following_goes_on_in_the_next_worker_without_gap_or_repetition(world):
    seen = bytearray()
    offset = 0

    async def follow():
        nonlocal offset
        async for page in world.sessions.follow(CALLER, world.id, 0):
            assert page.offset == offset
            offset = page.next_offset
            seen.extend(page.data)

    work = asyncio.create_task(follow())
    await world.send("echo one")
    await eventually(lambda: seen.count(b"one\r\n") == 2)  # as typed and as printed
    await world.crash()
    await eventually(lambda: adopted(world), within=10)
    await world.send("echo two")
    await eventually(lambda: seen.count(b"two\r\n") == 2, within=10)
    assert seen.count(b"one\r\n") == 2
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


async def adopted(world):
    return (await world.sessions.status(CALLER, world.id)).adoption == 2


async def test_a_signal_reaches_the_foreground_program(world):
    work = asyncio.create_task(world.send("sleep 1000"))

    async def delivered():
        status = await world.sessions.status(CALLER, world.id)
        return status.busy

    await eventually(delivered)
    await world.sessions.signal(CALLER, world.id, SignalName.SIGINT, new_request_id())
    assert (await work).status.is_running


async def test_a_cancelled_send_frees_the_session(world):
    work = asyncio.create_task(world.send("sleep 1000"))
    await eventually(lambda: busy(world))
    with pytest.raises(SendActiveError):
        await world.send("echo hi")
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await eventually(lambda: idle(world))
    assert "hi" in (await world.send("echo hi")).viewport


async def busy(world):
    return (await world.sessions.status(CALLER, world.id)).busy


async def idle(world):
    return not await busy(world)


async def test_errors_of_the_worker_come_through(world):
    with pytest.raises(ForeignSessionError):
        await world.send("echo hi", caller=Caller("own_bbbbbbbbbbbbbbbb", 1))


async def test_a_read_after_the_worker_died_waits_for_its_successor(world):
    await world.send("echo hi")
    await world.crash()
    assert "hi" in (await world.sessions.read(CALLER, world.id, 0, 10)).text


async def test_a_send_in_flight_is_unknown_once_and_for_all(world):
    request_id = new_request_id()
    work = asyncio.create_task(world.send("sleep 1", request_id))
    await eventually(lambda: busy(world))
    await world.crash()
    result = await work
    assert result.outcome is Outcome.UNKNOWN
    assert result.status.is_running
    assert await world.send("sleep 1", request_id) is result


async def test_a_signal_in_flight_is_never_repeated(world):
    channel = await world.sessions._channel(world.id)

    async def cut(method, args=None, timeout_s=None):
        raise OutcomeUnknownError("went away")

    channel.call = cut
    with pytest.raises(OutcomeUnknownError):
        await world.sessions.signal(CALLER, world.id, SignalName.SIGINT, new_request_id())
    channel.close()


async def test_a_session_that_was_closed_is_not_found(world):
    await world.send("echo hi")
    await world.local.node.close(world.id, "test")
    with pytest.raises(SessionNotFoundError):
        await world.send("echo hi")


async def test_a_worker_that_does_not_come_back_is_waited_for_unless_the_registry_knows(world):
    world.sessions._readopt_s = 0.2
    await world.send("echo hi")
    world.local.slots.gate.clear()
    await world.crash()
    with pytest.raises(GatewayUnavailableError, match="not back yet"):
        await world.send("echo hi")
    world.book.fault = SessionLostError("given up")
    with pytest.raises(SessionLostError, match="given up"):
        await world.send("echo hi")


async def test_a_task_runs_reads_and_settles(world):
    request = SendRequest(new_request_id(), b"echo hi", background=True)
    record = await world.sessions.start_task(CALLER, world.id, request)
    assert record.state is TaskState.RUNNING
    assert not world.book.reserved
    output = await world.sessions.task_output(CALLER, record.task_id, 0, 20.0)
    assert output.record.state is TaskState.COMPLETED
    assert "hi" in output.text
    await eventually(lambda: "task_settled" in [e["kind"] for _, e in world.local.events])


async def test_a_task_that_cannot_start_gives_its_place_back(world):
    work = asyncio.create_task(world.send("sleep 1000"))
    await eventually(lambda: busy(world))
    request = SendRequest(new_request_id(), b"echo hi", background=True)
    with pytest.raises(SendActiveError):
        await world.sessions.start_task(CALLER, world.id, request)
    assert not world.book.reserved
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


async def test_a_task_is_interrupted(world):
    request = SendRequest(new_request_id(), b"sleep 1000", background=True)
    record = await world.sessions.start_task(CALLER, world.id, request)
    stopping = await world.sessions.kill_task(CALLER, record.task_id, new_request_id())
    assert stopping.task_id == record.task_id
    output = await world.sessions.task_output(CALLER, record.task_id, 0, 20.0)
    assert output.record.state is TaskState.KILLED


async def test_another_node_s_session_goes_to_its_gateway_and_is_never_sent_on_twice(world):
    there = world.sessions

    class Dialer:
        async def sessions_on(self, host):
            assert host == HOST
            return there

    here = Sessions("h2", world.book, Dialer())
    request = SendRequest(new_request_id(), b"echo hi")
    assert "hi" in (await here.send(CALLER, world.id, request)).viewport
    assert "hi" in (await here.read(CALLER, world.id, 0, 10)).text
    condition = WaitCondition(pattern="hi", since_offset=0)
    assert (await here.wait_for(CALLER, world.id, condition, 20.0)).matched == "pattern"
    assert (await here.status(CALLER, world.id)).host == HOST
    token = from_peer.set(True)
    try:
        with pytest.raises(GatewayUnavailableError):
            await here.read(CALLER, world.id, 0, 10)
    finally:
        from_peer.reset(token)


async def test_a_wait_misses_nothing_when_its_worker_dies(world):
    condition = WaitCondition(pattern="HIT-42")
    waiting = asyncio.create_task(world.sessions.wait_for(CALLER, world.id, condition, 60.0))
    await world.send("(sleep 0.2; echo HIT-$((6*7))) &")
    await world.crash()
    assert (await waiting).matched == "pattern"
    assert (await world.sessions.status(CALLER, world.id)).adoption == 2


class Silent:
    """A gateway of another node that is cut off."""

    async def sessions_on(self, host):
        return self

    def __getattr__(self, verb):
        async def call(*_):
            raise GatewayUnavailableError("silent")

        return call


async def test_a_silent_node_s_session_is_lost_when_the_registry_says_so(world):
    there = Sessions("elsewhere", world.book, Silent())
    request = SendRequest(new_request_id(), b"echo")
    with pytest.raises(GatewayUnavailableError, match="silent"):
        await there.send(CALLER, world.id, request)
    asked = world.book.located
    world.book.fault = SessionLostError("given up")
    for call in (
        there.send(CALLER, world.id, request),
        there.status(CALLER, world.id),
        there.signal(CALLER, world.id, SignalName.SIGINT, new_request_id()),
    ):
        with pytest.raises(SessionLostError, match="given up"):
            await call
    assert world.book.located > asked
    await there.close()
