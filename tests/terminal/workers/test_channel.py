"""The session channel over a real unix socket."""

import asyncio
import stat
from collections.abc import AsyncIterator

import pytest

from fabric.core.errors import (
    CancelledCallError,
    DeadlineError,
    InternalError,
    OutcomeUnknownError,
    SendActiveError,
)
from workers.channel import DISCONNECTED, ChannelServer
from workers.dial import ChannelClient, ChannelClosedError


class Host:
    """Handlers that the tests steer."""

    def __init__(self):
        self.entered = asyncio.Event()
        self.cancelled = asyncio.get_running_loop().create_future()
        self.produced = 0

    async def echo(self, args):
        return args

    async def refuse(self, args):
        raise SendActiveError("busy", session_id="ses_x")

    async def crash(self, args):
        raise ZeroDivisionError("secret detail")

    async def hang(self, args):
        self.entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as error:
            self.cancelled.set_result(error.args)
            raise

    async def count(self, args) -> AsyncIterator[int]:
        try:
            for number in range(args["n"]):
                self.produced += 1
                yield number
        finally:
            self.entered.set()


@pytest.fixture
async def host(tmp_path):
    host = Host()
    server = ChannelServer(
        tmp_path / "c.s",
        "key",
        {"echo": host.echo, "refuse": host.refuse, "crash": host.crash, "hang": host.hang},
        {"count": host.count},
    )
    await server.start()
    host.server = server
    yield host
    await server.close()
    assert not (tmp_path / "c.s").exists()


@pytest.fixture
async def client(host):
    client = await ChannelClient.connect(host.server.path, "key")
    yield client
    client.close()
    await client.closed


async def test_many_calls_share_one_connection(host, client):
    answers = await asyncio.gather(*(client.call("echo", {"n": n}) for n in range(100)))
    assert answers == [{"n": n} for n in range(100)]
    assert stat.S_IMODE(host.server.path.stat().st_mode) == 0o600


async def test_errors_arrive_as_themselves_and_inner_details_stay_inside(client):
    with pytest.raises(SendActiveError) as caught:
        await client.call("refuse")
    assert caught.value.metadata == {"session_id": "ses_x"}
    with pytest.raises(InternalError) as hidden:
        await client.call("crash")
    assert "secret" not in hidden.value.message


async def test_cancelling_the_coroutine_cancels_the_call_there(host, client):
    task = asyncio.create_task(client.call("hang"))
    await host.entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await host.cancelled == ()
    assert await client.call("echo", {"alive": True}) == {"alive": True}


async def test_a_timeout_cancels_the_call_there(host, client):
    with pytest.raises(DeadlineError):
        await client.call("hang", timeout_s=0.05)
    assert await host.cancelled == ()


async def test_a_lost_connection_is_told_apart_from_a_cancel(host, client):
    task = asyncio.create_task(client.call("hang"))
    await host.entered.wait()
    client.close()
    assert await host.cancelled == (DISCONNECTED,)
    with pytest.raises(OutcomeUnknownError):
        await task


async def test_calls_in_flight_fail_when_the_worker_goes(host, client):
    task = asyncio.create_task(client.call("hang"))
    await host.entered.wait()
    await host.server.close()
    with pytest.raises((OutcomeUnknownError, CancelledCallError)):
        await task
    with pytest.raises(ChannelClosedError):
        await client.call("echo")


async def test_a_stream_is_whole_and_never_runs_ahead_of_its_reader(host, client):
    seen = []
    async for number in client.stream("count", {"n": 500}):
        seen.append(number)
        assert host.produced - len(seen) <= 70
    assert seen == list(range(500))


async def test_leaving_a_stream_ends_it_there(host, client):
    items = client.stream("count", {"n": 10_000_000})
    assert await anext(items) == 0
    await items.aclose()
    await host.entered.wait()
    assert host.produced < 100


async def test_a_wrong_key_gets_nothing(host):
    with pytest.raises(ChannelClosedError):
        await ChannelClient.connect(host.server.path, "other")
    assert not host.server.connections


async def test_nobody_there_is_a_clear_error(tmp_path):
    with pytest.raises(ChannelClosedError):
        await ChannelClient.connect(tmp_path / "none.s", "key")


async def test_sockets_bound_at_once_are_private_and_leave_the_mask_of_the_process(tmp_path):
    servers = [ChannelServer(tmp_path / f"{n}.s", "key", {}) for n in range(8)]
    await asyncio.gather(*(server.start() for server in servers))
    modes = {stat.S_IMODE(server.path.stat().st_mode) for server in servers}
    await asyncio.gather(*(server.close() for server in servers))
    (tmp_path / "plain").touch()
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "plain").stat().st_mode) == 0o644
