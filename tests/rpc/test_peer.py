"""One gateway calling another for its caller."""

import pytest

from fabric.api.v1 import terminal_service_pb2
from fabric.client.peer import PeerSessions
from fabric.core.attach import AttachStart, WriteRequest
from fabric.core.errors import (
    ForeignSessionError,
    InvalidRequestError,
    OwnerNotLiveError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from fabric.core.ids import OwnerId, RequestId, new_owner_id, new_request_id
from fabric.core.model import Caller, SendRequest, SignalName, TaskState, WaitCondition
from fabric.wire.metadata import peer_headers
from tests.support.fake_fabric import KEYS, PGID
from tests.support.raw_calls import RawCaller


@pytest.fixture
async def peer(gateway):
    peer = PeerSessions(gateway.address, KEYS.peer_key)
    yield peer
    await peer.close()


@pytest.fixture
def caller(client) -> Caller:
    return Caller(client.owner.owner_id, client.owner.epoch)


async def test_every_verb_of_a_session_is_forwarded(peer, client, caller, fabric):
    shell = await client.open()
    fabric.forwarded.clear()
    sent = await peer.send(caller, shell.id, SendRequest(new_request_id(), b"echo far"))
    assert "far" in sent.viewport
    assert "far" in (await peer.read(caller, shell.id, 0, 10)).text
    delivered = await peer.signal(caller, shell.id, SignalName.SIGINT, new_request_id())
    assert delivered.target_pgid == PGID
    assert (await peer.status(caller, shell.id)).session_id == shell.id
    assert (await peer.resize(caller, shell.id, 5, 6)).rows == 5
    assert (await peer.snapshot(caller, shell.id)).cols == 6
    assert "far" in (await peer.tail(caller, shell.id, "c", 10)).text
    assert b"far" in (await peer.read_bytes(caller, shell.id, 0, 100, 0.0)).data
    waited = await peer.wait_for(caller, shell.id, WaitCondition("far", since_offset=0), 5.0)
    assert waited.matched == "pattern"
    stream = peer.follow(caller, shell.id, 0)
    assert b"far" in (await anext(stream)).data
    await stream.aclose()
    receipt = await peer.write(caller, shell.id, WriteRequest(new_request_id(), b"typed"))
    assert receipt.written_bytes == 5
    attached = peer.attach(caller, shell.id, AttachStart(rows=5, cols=6))
    assert (await anext(attached)).data == b"shown"
    await attached.aclose()
    task = await peer.start_task(
        caller, shell.id, SendRequest(new_request_id(), b"sleep 1000", background=True)
    )
    await peer.kill_task(caller, task.task_id, new_request_id())
    output = await peer.task_output(caller, task.task_id, 0, 5.0)
    assert output.record.state is TaskState.KILLED
    assert fabric.forwarded
    assert all(fabric.forwarded), "the sessions know that they must not forward again"
    await shell.read()
    assert fabric.forwarded[-1] is False


async def test_errors_of_the_other_side_keep_their_class(peer, client, caller):
    shell = await client.open()
    with pytest.raises(ForeignSessionError):
        await peer.read(Caller(new_owner_id(), 1), shell.id, 0, 1)
    with pytest.raises(OwnerNotLiveError):
        await peer.read(Caller(caller.owner_id, caller.epoch + 1), shell.id, 0, 1)


async def test_a_wrong_key_opens_nothing(gateway, client, caller):
    shell = await client.open()
    stranger = PeerSessions(gateway.address, "q" * 48)
    with pytest.raises(UnauthenticatedError, match="peer key"):
        await stranger.read(caller, shell.id, 0, 1)
    await stranger.close()


async def test_a_peer_may_only_reach_sessions(gateway, caller):
    headers = peer_headers(KEYS.peer_key, caller)
    async with RawCaller(gateway.address) as raw:
        with pytest.raises(PermissionDeniedError):
            await raw.call(
                "TerminalService.Open",
                terminal_service_pb2.OpenRequest(request_id=RequestId("r"), type="shell"),
                headers=headers,
            )
        for owner, epoch in (("nobody", "1"), (caller.owner_id, "x"), (caller.owner_id, "-1")):
            bad = (headers[0], ("fabric-peer-owner", OwnerId(owner)), ("fabric-peer-epoch", epoch))
            with pytest.raises(InvalidRequestError):
                await raw.call(
                    "TerminalService.Status", terminal_service_pb2.StatusRequest(), headers=bad
                )
