"""What is refused, and that the refusal says why and leaks nothing."""

import asyncio
import logging

import grpc
import pytest

from fabric.api.v1 import fabric_service_pb2, terminal_service_pb2
from fabric.client import FabricClient
from fabric.core.errors import (
    ForeignSessionError,
    InputTooLargeError,
    InternalError,
    InvalidRequestError,
    LimitReachedError,
    OwnerNotLiveError,
    RequestIdConflictError,
    SessionNotFoundError,
    UnauthenticatedError,
    UnsupportedError,
)
from fabric.core.ids import RequestId, new_session_id
from fabric.core.settings import GatewaySettings
from tests.support.eventually import eventually
from tests.support.raw_calls import RawCaller

UNKNOWN_FIELD = b"\xf8\x3f\x01"  # field 1023, varint 1


@pytest.fixture
async def raw(gateway):
    async with RawCaller(gateway.address) as raw:
        yield raw


async def test_an_owner_is_needed_for_sessions(raw):
    with pytest.raises(UnauthenticatedError, match="acquire an owner first"):
        await raw.call("TerminalService.List", terminal_service_pb2.ListRequest())
    raw.owner_token = "made.up.token"
    with pytest.raises(UnauthenticatedError, match="not valid"):
        await raw.call("TerminalService.List", terminal_service_pb2.ListRequest())


async def test_who_calls_is_asked_before_what_is_asked(raw):
    for message in (terminal_service_pb2.SendRequest(), b"\xff\xff garbage"):
        with pytest.raises(UnauthenticatedError):
            await raw.call("TerminalService.Send", message)


async def test_foreign_and_unknown_sessions_are_told_apart(gateway, client):
    shell = await client.open()
    async with FabricClient.connect(gateway.address, agent="other") as other:
        with pytest.raises(ForeignSessionError):
            await other.session(shell.id).send("echo theirs")
        with pytest.raises(ForeignSessionError):
            await other.session(shell.id).close()
        with pytest.raises(SessionNotFoundError):
            await other.session(new_session_id()).read()
    assert "mine" in (await shell.send("echo mine")).viewport


async def test_a_released_owner_is_not_live(gateway):
    async with FabricClient.connect(gateway.address, agent="me", keep=True) as client:
        shell = await client.open()
        await client.release()
        with pytest.raises((OwnerNotLiveError, SessionNotFoundError)):
            await shell.send("echo late")
        with pytest.raises(OwnerNotLiveError):
            await client.list()


async def test_bad_ids_and_numbers_are_named(client):
    shell = await client.open()
    with pytest.raises(InvalidRequestError, match="wrong form"):
        client.session("pty-1")
    with pytest.raises(InvalidRequestError, match="count must be a positive safe integer"):
        await shell.read(count=0)
    with pytest.raises(InvalidRequestError, match="offset must be a non-negative safe integer"):
        await shell.read(offset=-1)
    with pytest.raises(InvalidRequestError, match="signal must be one of"):
        await shell.signal("SIGSEGV")
    with pytest.raises(InvalidRequestError, match="timeout must be greater"):
        await shell.send("echo", timeout_s=0)
    with pytest.raises(InvalidRequestError, match="rows must be"):
        await shell.resize(0, 10)
    with pytest.raises(InvalidRequestError, match="no program type"):
        await client.open("cobol")
    with pytest.raises(InvalidRequestError, match="request_id"):
        await shell.send("echo", request_id=RequestId("two words"))
    with pytest.raises(InvalidRequestError, match="not valid Unicode"):
        await client.open(cwd="/\udcff")
    with pytest.raises(InvalidRequestError, match="valid Unicode"):
        await shell.send("\udcff")


async def test_arguments_are_closed(raw):
    await raw.acquire()
    message = terminal_service_pb2.ListRequest().SerializeToString() + UNKNOWN_FIELD
    with pytest.raises(InvalidRequestError, match="unknown field 1023 in ListRequest"):
        await raw.call("TerminalService.List", message)


async def test_a_request_that_is_no_message_is_refused(raw):
    await raw.acquire()
    with pytest.raises(InvalidRequestError, match="cannot be parsed"):
        await raw.call("TerminalService.Send", b"\xff\xff\xff")


async def test_the_same_id_with_other_content_is_a_conflict(client):
    shell = await client.open()
    first = await shell.send("echo once", request_id=RequestId("r-1"))
    again = await shell.send("echo once", request_id=RequestId("r-1"))
    assert again == first
    assert (await shell.read()).text.count("once") == 2  # echo and output of one run
    with pytest.raises(RequestIdConflictError):
        await shell.send("echo twice", request_id=RequestId("r-1"))


@pytest.mark.parametrize("settings", [GatewaySettings("127.0.0.1:0", max_message_bytes=10_000)])
async def test_a_large_message_is_refused_with_a_reason(client):
    shell = await client.open()
    with pytest.raises(InputTooLargeError, match="at most 10000 fit"):
        await shell.send("x" * 10_001)
    with pytest.raises(LimitReachedError):
        await shell.send("x" * 30_000)
    assert "ok" in (await shell.send("echo ok")).viewport


async def test_a_large_send_is_refused_with_a_reason(client):
    shell = await client.open()
    with pytest.raises(InputTooLargeError, match="one send takes at most"):
        await shell.send(b"x" * 4_194_305)


async def test_something_unforeseen_leaks_nothing(client, fabric, caplog):
    shell = await client.open()
    fabric.broken = RuntimeError("the password is hunter2")
    with caplog.at_level(logging.ERROR), pytest.raises(InternalError) as caught:
        await shell.send("echo")
    assert "hunter2" not in str(caught.value) + str(caught.value.metadata)
    assert "hunter2" in caplog.text
    assert caught.value.metadata == {}
    fabric.broken = None  # its traceback, and the log's, hold the call and its connection
    caplog.clear()


async def test_typed_text_and_tokens_never_reach_the_log(gateway, caplog):
    with caplog.at_level(logging.DEBUG, logger="fabric"):
        async with FabricClient.connect(gateway.address, agent="me") as client:
            shell = await client.open(env={"A": "s3cret-env"})
            await shell.send("echo s3cret-typed")
            with pytest.raises(InvalidRequestError):
                await shell.send("s3cret-bad", timeout_s=-1)
            token = client.owner_token
    rows = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records)
    assert "call ended" in rows
    assert "s3cret" not in rows
    assert token not in rows


async def test_every_call_leaves_one_line(client, caplog):
    shell = await client.open()
    with caplog.at_level(logging.INFO, logger="fabric.gateway.guard"):
        await shell.send("echo hi")
        with pytest.raises(InvalidRequestError):
            await shell.read(count=0)
    lines = [vars(record) for record in caplog.records if record.msg == "call ended"]
    assert [(line["method"], line["code"], line.get("reason")) for line in lines] == [
        ("Send", "OK", None),
        ("Read", "INVALID_ARGUMENT", "INVALID_REQUEST"),
    ]
    assert lines[0]["bytes_in"] > 0
    assert lines[0]["bytes_out"] > 0


@pytest.mark.parametrize("settings", [GatewaySettings("127.0.0.1:0", max_waits_per_owner=3)])
async def test_waits_of_one_owner_are_bounded_and_another_is_not_moved(gateway, client, fabric):
    shell = await client.open()
    waits = [asyncio.create_task(shell.wait_for(exit=True, timeout_s=30)) for _ in range(3)]
    await eventually(lambda: gateway.active_calls == 3)
    with pytest.raises(LimitReachedError, match="3 waiting calls"):
        await shell.send("echo hi")
    await shell.read()
    async with FabricClient.connect(gateway.address, agent="other") as other:
        assert "hi" in (await (await other.open()).send("echo hi")).viewport
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)
    await eventually(lambda: gateway.active_calls == 0)
    assert "hi" in (await shell.send("echo hi")).viewport


async def test_another_protocol_and_unknown_methods(gateway, raw):
    stub = raw.channel.unary_unary("/fabric.api.v1.TerminalService/Frobnicate")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await stub(b"")
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_server_of_another_major_version_is_named(monkeypatch, gateway):
    monkeypatch.setattr("fabric.client.client.API_MAJOR", 2)
    with pytest.raises(UnsupportedError, match="speaks version 1 of the protocol, this client v"):
        async with FabricClient.connect(gateway.address):
            pass


async def test_a_server_says_what_it_is_to_anybody(raw):
    info = await raw.call("FabricService.GetServerInfo", fabric_service_pb2.GetServerInfoRequest())
    assert info.api_major == 1
    assert info.limits.max_send_bytes == 4_194_304
    assert info.principal == "local"
