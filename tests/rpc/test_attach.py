"""Attach, input and tails over real gRPC, before the whole product in one process."""

import asyncio
import random

import pytest

from fabric.api.v1 import pty_service_pb2 as pb
from fabric.client.peer import PeerSessions
from fabric.core.attach import AttachKind, AttachStart, WriteRequest
from fabric.core.errors import (
    CursorExpiredError,
    DrainingError,
    ForeignSessionError,
    InvalidRequestError,
    SessionExitedError,
)
from fabric.core.ids import new_request_id
from fabric.core.model import Caller
from fabric.wire.metadata import caller_headers
from fabric.wire.methods import METHODS
from tests.support.eventually import eventually
from tests.support.local_fabric import local_fabric


@pytest.fixture
async def fabric():
    async with local_fabric() as fabric:
        yield fabric


@pytest.fixture
async def client(fabric):
    async with fabric.client() as client:
        yield client


async def until(attached, text, pieces=None):
    """Collect events until ``text`` was printed."""
    seen = [] if pieces is None else pieces
    async for event in attached:
        seen.append(event)
        if text in b"".join(item.data for item in seen):
            return seen
    raise AssertionError(f"ended before {text!r}")


async def test_a_person_attaches_types_resizes_and_detaches(client):
    shell = await client.open(term="xterm-256color")
    async with shell.attach(rows=20, cols=70) as attached:
        first = await anext(attached)
        assert (first.kind, first.rows, first.cols) == (AttachKind.SNAPSHOT, 20, 70)
        await attached.write(b"echo typed-$((6*7))")
        await attached.keys("Enter")
        await until(attached, b"typed-42")
        await attached.resize(11, 22)
        await attached.write(b"stty size\r")
        assert any(e.kind is AttachKind.RESIZED for e in await until(attached, b"11 22"))
        await attached.keys("Nonsense")
        async for event in attached:
            if event.kind is AttachKind.REFUSED:
                assert event.detail.startswith("INVALID_REQUEST: no key")
                break
        await attached.write(b"echo last\r")
        await attached.detach()
        assert [e async for e in attached][-1].kind is AttachKind.END
    assert "last" in (await shell.send("")).viewport or "last" in (await shell.read()).text
    assert (await shell.status()).cols == 22


async def test_the_end_of_the_session_ends_the_attach_with_its_status(client):
    shell = await client.open()
    async with shell.attach() as attached:
        await attached.write(b"exit 7\r")
        events = [event async for event in attached]
    assert events[-1].kind is AttachKind.END
    assert events[-1].status.exit.exit_code == 7
    with pytest.raises(SessionExitedError):
        await shell.write(b"x")


async def test_input_through_write_and_keys_and_the_send_that_is_told(client):
    shell = await client.open()
    sending = asyncio.create_task(shell.send("read -p 'name? ' N; sleep 1000"))
    assert (await sending).prompt_kind == "line"
    sending = asyncio.create_task(shell.send("bob", timeout_s=20))
    await eventually(lambda: busy(shell))
    await shell.keys("Ctrl-C")
    result = await sending
    assert result.other_input
    assert await shell.write("echo hi\r") == 8
    await shell.send("cat")
    await shell.eof()
    assert not (await shell.send("echo over")).other_input


async def busy(shell):
    info = await shell.status()
    return info.busy and "sleep" in (await shell.read()).text


async def test_a_foreign_owner_can_neither_attach_nor_type(fabric, client):
    shell = await client.open()
    async with fabric.client("somebody-else") as other:
        theirs = other.session(shell.id)
        with pytest.raises(ForeignSessionError):
            await theirs.write(b"x")
        async with theirs.attach() as attached:
            with pytest.raises(ForeignSessionError):
                await anext(attached)


async def drained(stream):
    while await stream.read() is not None:
        pass


async def test_messages_out_of_order_are_refused(client):
    shell = await client.open()
    method = METHODS["PtyService.Attach"]
    headers = caller_headers(None, client.owner_token)
    start = pb.AttachRequest(start=pb.AttachStart(session_id=shell.id))
    odd = [
        [pb.AttachRequest(ack=pb.AttachAck(next_offset=1))],
        [start, start],
        [start, pb.AttachRequest()],
        [start, pb.AttachRequest(input=pb.Input())],
        [start, pb.AttachRequest(resize=pb.AttachSize(rows=0, cols=1))],
        [pb.AttachRequest(start=pb.AttachStart(session_id=shell.id, window_bytes=1))],
        [pb.AttachRequest(start=pb.AttachStart(session_id=shell.id, snapshot=True, offset=1))],
    ]
    for messages in odd:
        stream = client.calls.link.duplex(method, headers)
        for message in messages:
            await stream.write(message)
        with pytest.raises(InvalidRequestError):
            await drained(stream)


async def test_a_reader_that_acknowledges_nothing_gets_its_window_and_later_a_gap(fabric, client):
    shell = await client.open()
    method = METHODS["PtyService.Attach"]
    stream = client.calls.link.duplex(method, caller_headers(None, client.owner_token))
    start = pb.AttachStart(session_id=shell.id, offset=0, window_bytes=65_536)
    await stream.write(pb.AttachRequest(start=start))
    total, at = 0, 0
    await shell.send("seq 3000000", timeout_s=60)
    async with asyncio.timeout(10):
        while total < 65_536:
            message = await stream.read()
            assert message.chunk.offset == at
            total += len(message.chunk.data)
            at += len(message.chunk.data)
    assert total < 4 * 65_536
    end = (await shell.read_bytes(await newest(shell))).next_offset
    gaps = 0
    while at < end:
        await stream.write(pb.AttachRequest(ack=pb.AttachAck(next_offset=at)))
        message = await stream.read()
        kind = message.WhichOneof("event")
        if kind == "gap":
            assert message.gap.offset == at
            at = message.gap.next_offset
            gaps += 1
        else:
            assert message.chunk.offset == at
            at += len(message.chunk.data)
    assert gaps >= 1
    stream.cancel()


async def newest(shell):
    try:
        return (await shell.read_bytes(0)).next_offset
    except CursorExpiredError as gap:
        page = await shell.read_bytes(int(gap.metadata["oldest_offset"]), 1)
        at = page.next_offset
        while (page := await shell.read_bytes(at, 1 << 20)).data:
            at = page.next_offset
        return at


async def test_random_disconnects_and_resumes_are_byte_exact(client):
    shell = await client.open()
    rng = random.Random(7)
    await shell.send("seq -f line-%.0f 200000", timeout_s=0.1)
    at, got, resumes = 0, bytearray(), 0
    while b"line-200000\r" not in got[-4096:]:
        async with shell.attach(snapshot=False, offset=at) as attached:
            for _ in range(rng.randrange(1, 4)):
                event = await anext(attached)
                assert (event.kind, event.offset) == (AttachKind.CHUNK, at)
                got += event.data
                at = event.next_offset
                if b"line-200000\r" in event.data:
                    break
        resumes += 1
    assert resumes > 3
    lines = bytes(got).split(b"\r\n")
    start = lines.index(b"line-2")
    whole = lines[start : start + 199_999] == [b"line-%d" % n for n in range(2, 200_001)]
    assert whole


async def test_a_drain_ends_an_attach_with_the_place_to_go_on(fabric, client):
    client.keep = True  # nothing is there to release it to afterwards
    shell = await client.open()
    async with shell.attach() as attached:
        first = await anext(attached)
        stopping = asyncio.create_task(fabric.gateway.stop(5.0))
        with pytest.raises(DrainingError) as caught:
            await until(attached, b"nothing printed")
        assert int(caught.value.metadata["next_offset"]) >= first.next_offset
        await stopping


async def test_another_gateway_attaches_and_types_for_its_caller(fabric, client):
    shell = await client.open()
    keys = await fabric.registry.join("elsewhere", "127.0.0.1:1")
    peer = PeerSessions(fabric.address, keys.peer_key)
    caller = Caller(client.owner.owner_id, client.owner.epoch)
    events = peer.attach(caller, shell.id, AttachStart(rows=9, cols=40))
    assert (await anext(events)).rows == 9
    await peer.write(caller, shell.id, WriteRequest(new_request_id(), b"echo far-$((6*7))\r"))
    await until(events, b"far-42")
    await events.aclose()
    await peer.close()


async def test_a_tail_is_repeated_under_its_id_and_never_twice_without(client):
    shell = await client.open()
    await shell.send("echo one")
    request_id = new_request_id()
    first = await client.calls.tail(shell.id, "", None, request_id)
    assert await client.calls.tail(shell.id, "", None, request_id) == first
    assert (await shell.tail()).lines == 0
