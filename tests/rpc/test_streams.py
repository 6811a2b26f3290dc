"""The streams: keep-alive of a lease, and a quiet or broken-off Follow."""

import asyncio

import grpc.aio
import pytest

from fabric.api.v1 import owner_service_pb2, pty_service_pb2
from fabric.client import FabricClient
from fabric.core.errors import OwnerNotLiveError, RegistryUnavailableError
from fabric.core.ids import new_request_id
from fabric.wire.metadata import caller_headers
from fabric.wire.methods import METHODS
from tests.support.eventually import eventually
from tests.support.raw_calls import RawCaller


@pytest.fixture
async def raw(gateway):
    async with RawCaller(gateway.address) as raw:
        await raw.acquire()
        yield raw


def _keep_alive(raw: RawCaller):
    method = METHODS["OwnerService.KeepAlive"]
    stub = raw.channel.stream_stream(
        method.path,
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.response.FromString,
    )
    return stub(metadata=caller_headers(None, raw.owner_token))


async def test_every_message_of_a_keep_alive_extends_the_lease(raw, fabric, gateway):
    call = _keep_alive(raw)
    expiries = []
    for _ in range(3):
        await call.write(owner_service_pb2.KeepAliveRequest())
        answer = await call.read()
        expiries.append(answer.grant.expires_at.ToNanoseconds())
        assert answer.owner_token
    assert expiries == sorted(set(expiries))
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK
    await eventually(lambda: gateway.active_calls == 0)


async def test_a_keep_alive_ends_when_the_owner_was_taken_over(raw, fabric):
    call = _keep_alive(raw)
    await call.write(owner_service_pb2.KeepAliveRequest())
    await call.read()
    await raw.acquire()
    await call.write(owner_service_pb2.KeepAliveRequest())
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call.read()
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_a_drain_ends_a_keep_alive_with_a_reason(raw, gateway):
    call = _keep_alive(raw)
    await call.write(owner_service_pb2.KeepAliveRequest())
    await call.read()
    await gateway.stop(drain_s=10)
    assert await call.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_quiet_stream_says_that_it_lives(raw, monkeypatch):
    monkeypatch.setattr("fabric.gateway.pauses.KEEP_ALIVE_S", 0.02)
    session_id = await raw.open()
    call = raw.start("PtyService.Follow", pty_service_pb2.FollowRequest(session_id=session_id))
    kinds = [(await call.read()).WhichOneof("event") for _ in range(2)]
    assert kinds == ["keep_alive", "keep_alive"]
    call.cancel()


async def test_a_lease_outlives_a_registry_that_was_away(gateway, fabric):
    async with FabricClient.connect(gateway.address, lease_s=0.6) as client:
        fabric.away = 4
        before = client.owner.expires_at
        await eventually(lambda: client.owner.expires_at > before)
        assert fabric.away == 0


async def test_a_cancelled_open_reaches_the_registry(client, fabric, gateway, monkeypatch):
    rolled_back = asyncio.Event()
    entered = asyncio.Event()

    async def slow(*_: object) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            rolled_back.set()

    monkeypatch.setattr(fabric, "open", slow)
    opening = asyncio.create_task(client.open())
    await entered.wait()
    opening.cancel()
    await rolled_back.wait()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await eventually(lambda: gateway.active_calls == 0)


async def test_a_port_that_answers_a_cancel_with_an_error_disturbs_nobody(
    client, fabric, gateway, monkeypatch, caplog
):
    entered = asyncio.Event()

    async def stubborn(*_: object) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RegistryUnavailableError("gone meanwhile") from None

    monkeypatch.setattr(fabric, "list", stubborn)
    listing = asyncio.create_task(client.list())
    await entered.wait()
    listing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listing
    await eventually(lambda: gateway.active_calls == 0)
    monkeypatch.undo()
    assert await client.list() == ()
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_token_of_an_owner_that_is_gone_cannot_be_used_again(gateway):
    async with FabricClient.connect(gateway.address, keep=True) as client:
        token = client.owner_token
        await client.release(request_id=new_request_id())
    with pytest.raises(OwnerNotLiveError):
        async with FabricClient.connect(gateway.address, owner_token=token):
            pass
