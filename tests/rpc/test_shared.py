"""The shared terminal through the whole product in one process."""

import asyncio
import json

import psutil
import pytest

from fabric.core.errors import (
    CapacityReachedError,
    InvalidRequestError,
    NotControllerError,
    SandboxModeLockedError,
    SandboxUnavailableError,
    UnsupportedError,
)
from fabric.core.ids import new_request_id
from fabric.core.model import EventKind, SandboxMode, WaitReason
from fabric.core.shared import SHARED_NAME, Person, PersonRequest, ViewKind
from fabric.wire import shared as wire
from fabric.wire.methods import METHODS
from tests.support.eventually import eventually
from tests.support.local_fabric import local_fabric


@pytest.fixture
async def fabric():
    async with local_fabric(node__warm_sessions="2") as fabric:
        yield fabric


@pytest.fixture
async def client(fabric):
    async with fabric.client() as client:
        yield client


def _sharing(fabric):
    return next(w.sharing for w in fabric.slots.workers.values() if w.sharing is not None)


async def test_the_first_calls_make_one_terminal(client):
    results = await asyncio.gather(*(client.shared.send(f"echo {n}") for n in range(3)))
    assert {result.state.generation for result in results} == {1}
    listed = [info for info in await client.list() if info.name == SHARED_NAME]
    assert len(listed) == 1
    assert (await client.shared.send("echo $$")).output.splitlines()[1] == str(listed[0].pid)


async def test_owners_never_share_a_terminal(fabric, client):
    async with fabric.client("another") as other:
        await client.shared.send("X=mine")
        result = await other.shared.send("echo [$X]")
        assert "[]" in result.output.splitlines()


async def test_a_first_reset_makes_the_first_generation_only(client):
    first = await client.shared.reset()
    assert (first.state.generation, first.wait_reason) == (1, WaitReason.PROMPT)
    second = await client.shared.reset()
    assert second.state.generation == 2
    assert "ok" in (await client.shared.send("echo ok")).output
    info = next(info for info in await client.list() if info.name == SHARED_NAME)
    assert info.status.is_running


async def test_a_closed_terminal_is_made_anew(client):
    await client.shared.send("echo one")
    info = next(info for info in await client.list() if info.name == SHARED_NAME)
    await client.session(info.session_id).close()
    assert (await client.shared.send("echo two")).state.generation == 1


async def test_the_tools_give_one_json_each(client):
    sent = await client.call_tool("shared_terminal_send", {"text": "seq 1 60"})
    value = json.loads(sent.text)
    assert value == sent.value
    assert (value["waitReason"], value["queueStatus"], value["holder"]) == ("prompt", "ready", None)
    assert value["output"].splitlines()[-2] == "60"
    read = await client.call_tool("shared_terminal_read", {"count": 2})
    page = json.loads(read.text)
    assert page["lineEnd"] == page["totalLines"] == page["lineBegin"] + 2
    waiting = await client.call_tool("shared_terminal_send", {"text": "cat"})
    assert waiting.value["waitReason"] == "stdin_read"
    done = await client.call_tool("shared_terminal_signal", {"signal": "SIGINT"})
    assert done.value["waitReason"] == "prompt"
    assert done.value["processGroupId"] > 0
    reset = await client.call_tool("shared_terminal_reset")
    assert (reset.value["generation"], reset.card) == (2, "generic/delete")


async def test_wrong_arguments_make_no_terminal(client):
    for name, arguments in (
        ("shared_terminal_send", {"text": "x", "session": "ses_x"}),
        ("shared_terminal_read", {"offset": -1}),
        ("shared_terminal_read", {"count": 0}),
        ("shared_terminal_signal", {"signal": "SIGUSR1"}),
    ):
        answer = await client.call_tool(name, arguments)
        assert answer.is_error, name
        if "session" in arguments:
            assert "session: unexpected property" in answer.text
    with pytest.raises(InvalidRequestError):
        await client.shared.read(-1)
    assert await client.list() == ()


async def test_a_tool_result_is_bounded_as_a_whole():
    bound = local_fabric(worker__shared__max_tool_output_bytes="1024")
    async with bound as fabric, fabric.client() as client:
        answer = await client.call_tool("shared_terminal_send", {"text": "seq 1 2000"})
        assert len(answer.text.encode()) <= 1024
        assert answer.value["truncated"]
        assert answer.value["output"].splitlines()[-2] == "2000"


async def test_no_caller_names_a_session(client):
    message = wire.read_message(0, 1, "ses_aaaaaaaaaaaaaaaa")
    with pytest.raises(InvalidRequestError, match="no call names"):
        await client.calls.read_only(METHODS["SharedTerminalService.Read"], message)


async def test_its_name_is_kept_and_ordinary_verbs_are_refused(client):
    with pytest.raises(InvalidRequestError, match="kept"):
        await client.open("shell", name=SHARED_NAME)
    await client.shared.send("echo here")
    info = next(info for info in await client.list() if info.name == SHARED_NAME)
    with pytest.raises(UnsupportedError):
        await client.session(info.session_id).send("echo no")


async def test_live_terminals_are_counted_and_ended_ones_are_not():
    single = local_fabric(worker__shared__max_sessions="1")
    async with single as fabric, fabric.client("one") as one, fabric.client("two") as two:
        await one.shared.send("echo first")
        with pytest.raises(CapacityReachedError, match="terminal capacity reached"):
            await two.shared.send("echo second")
        assert (await one.shared.send("exit")).wait_reason is WaitReason.SESSION_EXIT
        await one.list()
        assert (await two.shared.send("echo second")).wait_reason is WaitReason.PROMPT


async def test_the_mode_is_locked_while_it_lives(client):
    await client.shared.send("echo here")
    with pytest.raises(SandboxModeLockedError):
        await client.set_mode(SandboxMode.READ_ONLY)


class Watcher:
    """A person's terminal over gRPC."""

    def __init__(self, client, **options):
        self.client, self.events, self.view = client, [], ""
        self._task = asyncio.create_task(self._collect(options))

    async def _collect(self, options):
        async for event, view in self.client.shared.view(**options):
            self.view = view or self.view
            self.events.append(event)

    async def __aenter__(self):
        await eventually(lambda: any(e.kind is ViewKind.STATUS for e in self.events), within=20)
        return self

    async def __aexit__(self, *exc):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    @property
    def status(self):
        return [e.status for e in self.events if e.status is not None][-1]

    @property
    def shown(self):
        return b"".join(e.screen.data for e in self.events if e.screen is not None)

    async def act(self, kind, **facts):
        generation = self.events[-1].generation
        request = PersonRequest(self.view, kind, generation, new_request_id(), **facts)
        return await self.client.shared.act(request)


async def test_a_person_watches_takes_over_and_hands_back(fabric, client):
    async with Watcher(client) as person, Watcher(client, readonly=True) as reader:
        assert person.events[0].controller
        assert (reader.events[0].reason, reader.view) == ("readonly", "")
        task = asyncio.create_task(client.shared.send("sleep 0.4; cat"))
        await eventually(lambda: person.status.takeover is not None)
        lease = await person.act(Person.TAKE_OVER, target=person.status.takeover)
        assert (await task).wait_reason is WaitReason.HUMAN_HANDOFF
        page = await client.shared.read()
        assert (page.state.holder, page.state.queue_status) == ("human", "busy")
        sharing = _sharing(fabric)
        await eventually(lambda: sharing.session.parts.inspector.probe().waits)
        await person.act(Person.TYPE, lease=lease, data="secret 🎉\r\x04".encode())
        await eventually(lambda: person.status.queue_status == "ready")
        await eventually(lambda: reader.shown.count("secret 🎉".encode()) == 2)
        with pytest.raises(NotControllerError):
            await reader.act(Person.BEGIN, data=b"x")
        async for event in client.events():
            if event.kind is EventKind.HUMAN_HANDBACK:
                break
        facts = json.loads(event.detail)
        assert (facts["generation"], facts["waitReason"]) == (1, "prompt")
        assert "secret" not in event.detail
        await client.shared.reset()
        await eventually(lambda: person.events[-1].kind is ViewKind.RESET)


async def test_the_first_view_makes_the_terminal(client):
    async with Watcher(client) as person:
        await person.act(Person.BEGIN, data=b"echo typed\r")
        await eventually(lambda: b"typed\r\n" in person.shown.replace(b"echo typed", b""))
    assert [info.name for info in await client.list()] == [SHARED_NAME]


async def test_the_end_of_an_owner_ends_its_terminal_and_no_other(fabric):
    async with fabric.client("one") as one, fabric.client("two") as two:
        await one.shared.send("sleep 300 &")
        pid = int((await one.shared.send("echo $!")).output.splitlines()[1])
        await two.shared.send("X=kept")
        waiting = asyncio.create_task(one.shared.send("sleep 60"))
        queued = asyncio.create_task(one.shared.send("echo never"))
        await eventually(lambda: any(s.turns.waiting for s in _all_sharings(fabric)))
        await one.release()
        ended = await asyncio.gather(waiting, queued, return_exceptions=True)
        assert all(isinstance(end, Exception) for end in ended), ended
        assert not psutil.pid_exists(pid)
        assert "kept" in (await two.shared.send("echo $X")).output


async def test_where_nothing_confines_a_confined_terminal_is_refused_and_nothing_runs(fabric):
    """Never without the confinement that was asked for."""
    async with fabric.client("confined", mode=SandboxMode.READ_ONLY) as client:
        with pytest.raises(SandboxUnavailableError):
            await client.shared.send("echo free")
        assert await client.list() == ()
        assert not _all_sharings(fabric)


def _all_sharings(fabric):
    return [w.sharing for w in fabric.slots.workers.values() if w.sharing is not None]
