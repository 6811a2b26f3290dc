"""The fabric on a real Ray cluster: placement, pools, capacity, deaths and returns."""

import asyncio
import os
import signal
from pathlib import Path

import psutil
import pytest

from fabric.actors.launch import alive_hosts, ensure_fabric
from fabric.actors.names import REGISTRY, node_name
from fabric.actors.sessions import Sessions
from fabric.core.errors import (
    CapacityReachedError,
    FabricError,
    ForeignSessionError,
    GatewayUnavailableError,
    NodeNotFoundError,
    RegistryUnavailableError,
    SessionNotFoundError,
)
from fabric.core.ids import new_request_id
from fabric.core.model import Caller, CloseOutcome, OpenRequest, Outcome, SendRequest, TaskState
from tests.raycluster.conftest import H1, H2, SESSIONS
from tests.support.eventually import eventually


def processes(fabric, title):
    """The processes of this cluster with this title, by what Ray calls them."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("FABRIC_CLUSTER_MARK") == fabric.embedded.mark:
                line = " ".join(process.cmdline())
                if title in line:
                    found.append(process)
        except psutil.Error:
            continue
    return found


def worker_of(fabric, slot_socket):
    """The process that serves a session's socket."""
    for process in processes(fabric, "ray::SessionHost"):
        if any(item.laddr == slot_socket for item in process.net_connections("unix")):
            return process
    raise AssertionError(f"nobody serves {slot_socket}")


async def kill_worker(fabric, session_id):
    place = await fabric.registry.locate(session_id)
    process = worker_of(fabric, place.socket)
    process.send_signal(signal.SIGKILL)
    return process.pid


def test_the_driver_knows_which_host_it_is_on(fabric):
    assert fabric.membership.host == H1


def test_both_nodes_are_there_with_their_labels(fabric):
    hosts = alive_hosts()
    assert {host: node["Labels"]["ptyfabric.os"] for host, node in hosts.items()} == {
        H1: "linux",
        H2: "darwin",
    }
    assert hosts[H1]["Resources"]["pty"] == SESSIONS


async def test_starting_the_fabric_again_from_many_places_changes_nothing(fabric):
    before = {process.pid for process in processes(fabric, "ray::")}
    await asyncio.gather(*(ensure_fabric(fabric.plan) for _ in range(4)))
    after = {process.pid for process in processes(fabric, "ray::RegistryHost")}
    assert len(after) == 1
    assert after < before


async def test_the_registry_lists_both_nodes_with_what_is_left_of_them(fabric):
    async def both():
        nodes = {node.host: node for node in await fabric.registry.nodes()}
        return len(nodes) == 2 and all(node.alive for node in nodes.values()) and nodes

    nodes = await eventually(both, within=20)
    assert (nodes[H1].os, nodes[H2].os) == ("linux", "darwin")
    assert nodes[H1].ptys_free > 0
    assert nodes[H1].memory_free_bytes > 0


async def test_a_shell_keeps_its_state_between_sends_and_is_closed_with_a_receipt(fabric, owner):
    await fabric.warm()
    info = await owner.open(host=H1)
    assert info.host == H1
    await owner.send(info.session_id, "cd /tmp; X=42")
    result = await owner.send(info.session_id, "echo $X $PWD")
    assert "42 /tmp" in result.viewport
    assert (await owner.sessions.status(owner.caller, info.session_id)).host == H1
    closed = await owner.close(info.session_id)
    assert closed.outcome is CloseOutcome.CLOSED
    assert closed.receipt.survivors == ()
    assert not psutil.pid_exists(info.pid)
    with pytest.raises(SessionNotFoundError):
        await owner.send(info.session_id, "echo")


async def test_a_foreign_owner_is_refused(fabric, owner):
    info = await owner.open(host=H1)
    stranger = await fabric.caller()
    with pytest.raises(ForeignSessionError):
        await owner.sessions.read(stranger, info.session_id, 0, 10)
    with pytest.raises(ForeignSessionError):
        await fabric.registry.close(stranger, info.session_id, new_request_id())


async def test_placement_follows_host_and_system(fabric, owner):
    assert (await owner.open(os="darwin")).host == H2
    assert (await owner.open(host=H2)).host == H2
    assert (await owner.open(os="linux")).host == H1
    with pytest.raises(NodeNotFoundError):
        await owner.open(host="h9")


async def test_a_session_of_another_node_needs_that_node_s_gateway(fabric, owner):
    info = await owner.open(host=H2)
    with pytest.raises(GatewayUnavailableError, match="node h2"):
        await owner.send(info.session_id, "echo hi")

    class Dialer:
        """The other node's gateway, as if it were in this process."""

        def __init__(self):
            self.asked = set()

        async def sessions_on(self, host):
            self.asked.add(host)
            return there

    there = Sessions(H2, fabric.registry)
    dialer = Dialer()
    here = Sessions(H1, fabric.registry, dialer)
    request = SendRequest(new_request_id(), b"echo hi")
    result = await here.send(owner.caller, info.session_id, request)
    assert "hi" in result.viewport
    page = await here.read(owner.caller, info.session_id, 0, 10)
    assert "hi" in page.text
    assert dialer.asked == {H2}
    await here.close()
    await there.close()


async def test_a_full_cluster_refuses_with_numbers_instead_of_waiting(fabric, owner):
    opened = await asyncio.gather(
        *(owner.open(host=H2) for _ in range(SESSIONS)), return_exceptions=True
    )
    assert not [item for item in opened if isinstance(item, BaseException)], opened
    with pytest.raises(CapacityReachedError, match=str(SESSIONS)):
        await owner.open(host=H2)


async def test_a_worker_that_is_killed_comes_back_with_its_shell(fabric, owner):
    info = await owner.open(host=H1)
    await owner.send(info.session_id, "cd /tmp; X=42")
    old = await kill_worker(fabric, info.session_id)

    async def back():
        status = await owner.sessions.status(owner.caller, info.session_id)
        return status.adoption == 2 and status

    status = await eventually(back, within=20)
    assert status.pid == info.pid
    result = await owner.send(info.session_id, "echo $X $PWD")
    assert "42 /tmp" in result.viewport
    place = await fabric.registry.locate(info.session_id)
    assert worker_of(fabric, place.socket).pid != old


async def test_a_send_in_flight_when_the_worker_dies_is_unknown_and_never_run_again(fabric, owner):
    info = await owner.open(host=H1)
    mark = fabric.state_dir / "ran"
    request_id = new_request_id()
    text = f"echo ran >> {mark}; sleep 2; echo over"
    work = asyncio.create_task(owner.send(info.session_id, text, request_id=request_id))
    await eventually(mark.exists)
    await kill_worker(fabric, info.session_id)
    result = await work
    assert result.outcome is Outcome.UNKNOWN
    assert result.status.is_running
    assert await owner.send(info.session_id, text, request_id=request_id) == result

    async def over():
        page = await owner.sessions.read(owner.caller, info.session_id, 0, 20)
        return "over\n" in page.text

    await eventually(over, within=20)
    assert mark.read_text() == "ran\n"


async def test_a_cancelled_open_reaches_the_worker_and_leaves_nothing(fabric, owner):
    # A program that never asks for input keeps the open in its start-up.
    request = OpenRequest(new_request_id(), "sleeper", host=H1)
    work = asyncio.create_task(fabric.registry.open(owner.caller, request))
    sleeping = await eventually(lambda: programs("/bin/sleep", "31337"), within=20)
    assert holding(fabric)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not psutil.pid_exists(sleeping[0])
    assert not holding(fabric)
    assert await fabric.registry.list(owner.caller) == ()


def programs(*argv):
    """The pids of programs with this command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cmdline() == list(argv):
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def holding(fabric):
    """The slots whose files name a session."""
    files = (fabric.state_dir / "nodes").rglob("*.json")
    return [path.name for path in files if '"session_id"' in path.read_text()]


async def test_a_background_send_is_settled_in_the_registry_by_its_node(fabric, owner):
    info = await owner.open(host=H1)
    request = SendRequest(new_request_id(), b"echo hi", background=True)
    record = await owner.sessions.start_task(owner.caller, info.session_id, request)

    async def settled():
        rows = {row.task_id: row for row in await fabric.registry.list_tasks(owner.caller)}
        return rows[record.task_id].state is TaskState.COMPLETED

    await eventually(settled, within=20)
    await owner.close(info.session_id)
    output = await owner.sessions.task_output(owner.caller, record.task_id, 0, 0.0)
    assert "hi" in output.text


async def test_a_program_that_exits_is_listed_as_exited(fabric, owner):
    info = await owner.open(host=H1)
    await owner.send(info.session_id, "exit 7")

    async def exited():
        (row,) = await fabric.registry.list(owner.caller)
        return row.status.exit

    end = await eventually(exited, within=20)
    assert end.exit_code == 7


async def test_the_registry_comes_back_with_what_it_knew(fabric, owner):
    info = await owner.open(host=H1, name="kept")
    os.kill(await fabric.pid_of(REGISTRY), signal.SIGKILL)

    async def listed():
        try:
            return await fabric.registry.list(owner.caller)
        except RegistryUnavailableError:
            return None

    (found,) = await eventually(listed, within=30)
    assert (found.session_id, found.name) == (info.session_id, "kept")
    assert "hi" in (await owner.send(info.session_id, "echo hi")).viewport


async def test_a_node_actor_comes_back_and_finds_its_sessions(fabric, owner):
    info = await owner.open(host=H1)
    os.kill(await fabric.pid_of(node_name(H1)), signal.SIGKILL)

    async def found():
        try:
            rows = await fabric.actor(node_name(H1)).call("sessions", timeout_s=10)
        except FabricError:
            return False
        return info.session_id in {row.session_id for _, row, _ in rows}

    await eventually(found, within=30)
    assert "hi" in (await owner.send(info.session_id, "echo hi")).viewport
    closed = await eventually(lambda: try_close(owner, info.session_id), within=20)
    assert closed.receipt.survivors == ()
    await fabric.warm(H1)

    async def placed():
        return H1 in {node.host for node in await fabric.registry.nodes() if node.alive}

    await eventually(placed, within=30, what="the registry sees the node again")


async def try_close(owner, session_id):
    try:
        return await owner.close(session_id)
    except RegistryUnavailableError:
        return None


async def test_a_stranger_s_epoch_is_refused_after_a_take_over(fabric, owner):
    info = await owner.open(host=H1)
    old = Caller(owner.caller.owner_id, owner.caller.epoch - 1)
    with pytest.raises(FabricError):
        await owner.sessions.read(old, info.session_id, 0, 10)


def test_driver_and_workers_report_the_psutil_they_run(fabric, capsys):
    import ray

    @ray.remote(num_cpus=0)
    def version():
        import psutil as inside

        return inside.__version__, inside.__file__

    inside, path = ray.get(version.remote(), timeout=60)
    with capsys.disabled():
        print(f"\npsutil: driver {psutil.__version__} ({Path(psutil.__file__).parent}),")  # noqa: T201
        print(f"        worker {inside} ({Path(path).parent})")  # noqa: T201
    assert inside
