"""One ordered stream an owner: from a cursor, acknowledged, bounded, with a typed end."""

import asyncio

import pytest

from fabric.api.v1 import event_service_pb2 as pb
from fabric.client import FabricClient
from fabric.core.errors import InvalidRequestError, OwnerNotLiveError
from fabric.core.model import Caller, EventKind
from fabric.gateway.server import Gateway
from tests.support.eventually import eventually
from tests.support.fake_fabric import HOST
from tests.support.raw_calls import RawCaller


def _caller(client: FabricClient) -> Caller:
    return Caller(client.owner.owner_id, client.owner.epoch)


async def _some(stream, count: int):
    got = []
    async for event in stream:
        got.append(event)
        if len(got) == count:
            return got
    return got


async def test_events_come_in_order_without_asking(client, fabric):
    fabric.announce(_caller(client), EventKind.LEASE_EXPIRING, "before")
    waiting = asyncio.create_task(_some(client.events(), 3))
    await eventually(lambda: fabric.asked_for_news >= 2)
    fabric.announce(_caller(client), EventKind.HUMAN_HANDBACK, "while waiting")
    fabric.announce(_caller(client), EventKind.SESSION_LOST, "and again")
    assert [(event.sequence, event.detail) for event in await waiting] == [
        (1, "before"), (2, "while waiting"), (3, "and again"),
    ]  # fmt: skip


async def test_a_stream_is_taken_up_from_a_cursor(client, fabric):
    for number in range(1, 6):
        fabric.announce(_caller(client), EventKind.LEASE_EXPIRING, str(number))
    assert [event.sequence for event in await _some(client.events(3), 2)] == [4, 5]
    with pytest.raises(InvalidRequestError):
        await _some(client.events(77), 1)


async def test_what_was_acknowledged_is_not_told_again(client, fabric):
    for number in range(1, 4):
        fabric.announce(_caller(client), EventKind.LEASE_EXPIRING, str(number))
    stream = client.events()
    await _some(stream, 2)
    await stream.acknowledge()
    assert [event.sequence for event in await _some(client.events(), 1)] == [3]


async def test_what_was_dropped_is_said(client, fabric):
    for number in range(130):
        fabric.announce(_caller(client), EventKind.LEASE_EXPIRING, str(number))
    stream = client.events(0)
    got = await _some(stream, 100)
    assert stream.dropped == 30
    assert [event.sequence for event in got] == list(range(31, 131))


async def test_a_stream_goes_on_at_another_gateway_without_loss_or_repetition(
    gateway, fabric, settings
):
    other = Gateway(settings, fabric, fabric, host=HOST)
    await other.start()
    async with FabricClient.connect((gateway.address, other.address), agent="me") as client:
        fabric.announce(_caller(client), EventKind.LEASE_EXPIRING, "1")
        stream = client.events()
        events = aiter(stream)
        assert (await anext(events)).sequence == 1
        following = asyncio.create_task(anext(events))
        await eventually(lambda: fabric.asked_for_news >= 2)
        await gateway.stop()
        fabric.announce(_caller(client), EventKind.LEASE_EXPIRING, "2")
        assert (await following).sequence == 2
        await events.aclose()
    await other.stop()


async def test_a_registry_that_was_away_does_not_end_a_stream(client, fabric):
    waiting = asyncio.create_task(_some(client.events(), 1))
    await eventually(lambda: fabric.asked_for_news >= 2)
    fabric.away = 3
    fabric.announce(_caller(client), EventKind.LEASE_EXPIRING, "1")
    assert (await waiting)[0].sequence == 1


async def test_many_streams_ask_one_question(gateway, fabric):
    async with RawCaller(gateway.address) as raw:
        await raw.acquire()
        streams = [
            raw.start("EventService.FollowEvents", pb.FollowEventsRequest(), timeout=None)
            for _ in range(50)
        ]
        await eventually(lambda: gateway.active_calls == 50)
        await eventually(lambda: fabric.asked_for_news == 2)
        owner = next(iter(fabric.owners.values())).grant
        fabric.announce(Caller(owner.owner_id, owner.epoch), EventKind.HUMAN_HANDBACK)
        for stream in streams:
            assert (await stream.read()).event.sequence == 1
        assert fabric.asked_for_news == 3
        for stream in streams:
            stream.cancel()
        await eventually(lambda: gateway.active_calls == 0)
        assert not fabric.feed._waiting


async def test_a_fenced_reader_is_told(gateway, fabric, client):
    stream = client.events()
    waiting = asyncio.create_task(_some(stream, 1))
    await eventually(lambda: fabric.asked_for_news >= 2)
    async with FabricClient.connect(gateway.address, agent="me", keep=True):
        fabric.feed.note(client.owner.owner_id)
        with pytest.raises(OwnerNotLiveError):
            await waiting


async def test_a_quiet_stream_shows_that_it_lives_and_asks_nobody(gateway, fabric, monkeypatch):
    monkeypatch.setattr("fabric.gateway.events.KEEP_ALIVE_S", 0.02)
    reads = 0
    real = fabric.read_events

    async def counted(*arguments: object) -> object:
        nonlocal reads
        reads += 1
        return await real(*arguments)

    monkeypatch.setattr(fabric, "read_events", counted)
    async with RawCaller(gateway.address) as raw:
        await raw.acquire()
        stream = raw.start("EventService.FollowEvents", pb.FollowEventsRequest(), timeout=None)
        for _ in range(5):
            assert (await stream.read()).WhichOneof("item") == "keep_alive"
        stream.cancel()
    assert reads == 1
