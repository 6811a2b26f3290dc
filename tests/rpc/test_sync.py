"""The synchronous twin, as a program without an event loop uses it."""

import asyncio
import signal
import threading
from collections.abc import Iterator

import pytest
import uvloop

from fabric.client import (
    FabricClient,
    FabricClientSync,
    Session,
    SessionSync,
    Task,
    TaskSync,
)
from fabric.client.attach import Attachment
from fabric.client.ptys import PtyFacade
from fabric.client.stream import PtyStream
from fabric.client.sync_bytes import AttachmentSync, PtyFacadeSync, PtyStreamSync
from fabric.core.attach import AttachKind
from fabric.core.errors import GatewayUnavailableError, InvalidRequestError, SendActiveError
from fabric.core.model import TaskState
from fabric.core.settings import GatewaySettings
from fabric.gateway.server import Gateway
from tests.support.fake_fabric import HOST, FakeFabric


@pytest.fixture
def address() -> Iterator[str]:
    """A gateway on a loop of its own, in another thread."""
    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="gateway")
    thread.start()

    async def make() -> Gateway:
        fabric = FakeFabric()
        gateway = Gateway(GatewaySettings("127.0.0.1:0"), fabric, fabric, host=HOST)
        await gateway.start()
        return gateway

    gateway = asyncio.run_coroutine_threadsafe(make(), loop).result(10)
    yield gateway.address
    asyncio.run_coroutine_threadsafe(gateway.stop(0), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_the_same_verbs_without_await(address):
    with FabricClientSync.connect(address, agent="me") as fabric:
        assert fabric.server.api_major == 1
        shell = fabric.open("shell", name="main")
        assert shell.opened.motd == "$ "
        assert "hi\n" in shell.send("echo hi").viewport
        assert "hi" in shell.read().text
        assert "hi" in shell.tail().text
        assert b"hi" in shell.read_bytes().data
        assert shell.snapshot().rows == 40
        assert shell.resize(10, 20).cols == 20
        assert shell.status().busy is False
        assert shell.wait_for("hi", since_offset=0).matched == "pattern"
        assert [item.session_id for item in fabric.list()] == [shell.id]
        assert fabric.session(shell.id).read().total_lines > 0
        task = shell.send_background("sleep 1000")
        with pytest.raises(SendActiveError):
            shell.send("echo no")
        assert task.is_running
        task.kill()
        assert task.output(wait_s=5).record.state is TaskState.KILLED
        assert fabric.task(task.record).id == fabric.tasks()[0].task_id
        shell.signal("SIGINT")
        pages = shell.follow(0)
        assert b"hi" in next(pages).data
        pages.close()
        shell.send("exit 0")
        assert list(shell.follow(0))[-1].ended
        shell.close()
        assert [node.host for node in fabric.nodes()] == [HOST]
        assert fabric.renew().epoch == fabric.owner.epoch == 1
        assert fabric.set_mode("workspace-write").mode == "workspace-write"
        assert fabric.owner_token


def test_the_byte_surface_without_await(address):
    with FabricClientSync.connect(address, agent="bytes") as fabric:
        shell = fabric.open("shell")
        assert shell.write("echo typed\r") == 11
        assert shell.wait_for("echo typed", since_offset=0, timeout_s=5).matched == "pattern"
        with pytest.raises(InvalidRequestError, match="no key"):  # the fake has none
            shell.keys("Enter")
        with shell.attach(snapshot=False, offset=0) as view:
            events = iter(view)
            view.write(b"echo seen\r")
            seen = b""
            while b"echo seen" not in seen:
                seen += next(events).data
            view.detach()
            assert list(events)[-1].kind is AttachKind.END
        with fabric.pty.stream(fabric, shell.id) as stream:
            assert stream.readuntil(b"typed")
            stream.writeline("echo more")
            assert stream.readuntil(b"more")
            assert stream.offset > 0
        opened = fabric.pty.open(fabric, "echo hi")
        assert "again" in fabric.pty.send(fabric, opened.session_id, "echo again").delta
        assert "again" in fabric.pty.tail(fabric, opened.session_id).text
        assert fabric.pty.close(fabric, opened.session_id)
        assert not fabric.pty.close(fabric, opened.session_id)


def test_every_verb_of_the_client_has_its_twin():
    pairs = [(FabricClient, FabricClientSync), (Session, SessionSync), (Task, TaskSync)]
    pairs += [(PtyFacade, PtyFacadeSync), (PtyStream, PtyStreamSync), (Attachment, AttachmentSync)]
    missing = {
        f"{one.__name__}.{name}"
        for one, twin in pairs
        for name in vars(one)
        if not name.startswith("_") and not hasattr(twin, name)
    }
    # These are for the client itself.
    inside = {"FabricClient.addresses", "FabricClient.bearer", "FabricClient.calls"}
    assert missing == inside | {"PtyStream.aclose"}


def test_ctrl_c_waits_until_the_call_has_ended(address):
    with FabricClientSync.connect(address, agent="me") as fabric:
        shell = fabric.open("shell")
        loop, interrupted = fabric._loop, []

        async def waits() -> None:
            try:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0)
                interrupted.append(True)
                raise

        with pytest.raises(KeyboardInterrupt):
            loop.run(waits())
        assert interrupted
        assert "hi" in shell.send("echo hi").viewport


def test_many_clients_in_many_threads(address):
    faults: list[Exception] = []

    def work(number: int) -> None:
        try:
            with FabricClientSync.connect(address, agent=f"agent-{number}") as fabric:
                shell = fabric.open()
                for turn in range(20):
                    assert f"{number}-{turn}" in shell.send(f"echo {number}-{turn}").viewport
        except Exception as error:  # noqa: BLE001  (reported below)
            faults.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_a_session_of_a_stopped_client_says_so(address):
    with FabricClientSync.connect(address, agent="stopped") as client:
        session = client.open("shell")
    with pytest.raises(InvalidRequestError, match="was stopped"):
        session.send("echo hi")


def test_a_client_that_cannot_connect_leaves_no_thread():
    with pytest.raises(GatewayUnavailableError), FabricClientSync.connect("127.0.0.1:1"):
        pass
    assert "fabric-client-sync" not in {thread.name for thread in threading.enumerate()}


def test_verbs_before_connecting_are_a_clear_error():
    client = FabricClientSync.connect("127.0.0.1:1")
    client.stop()
    with pytest.raises(InvalidRequestError, match="not connected"):
        client.open()
    with pytest.raises(InvalidRequestError, match="not connected"):
        client.list()
