"""The ordinary use of a registry: owners, sessions, modes, gateways."""

from pathlib import Path

import pytest

from fabric.core.errors import (
    DrainingError,
    ForeignSessionError,
    InvalidRequestError,
    NameTakenError,
    OwnerNotLiveError,
    RegistryUnavailableError,
    SandboxModeLockedError,
    SessionLostError,
    SessionNotFoundError,
    UnsupportedError,
)
from fabric.core.ids import AgentId, HostName, OwnerId, Principal, RequestId, SessionId
from fabric.core.model import Caller, CloseOutcome, ExitStatus, OpenRequest, SandboxMode
from fabric.core.settings import RegistrySettings, TaskSettings
from fabric.registry.journal import Journal
from fabric.registry.registry import Registry
from tests.support.fake_nodes import FakeNodes, node_state
from tests.unit.registry.desk import desk


async def test_calls_are_refused_before_the_start_and_after_the_stop(tmp_path: Path):
    registry = Registry(
        settings=RegistrySettings(),
        tasks=TaskSettings(),
        nodes=FakeNodes(),
        journal=Journal(tmp_path / "j.db"),
    )
    caller = Caller(OwnerId("own_x"), 1)
    with pytest.raises(RegistryUnavailableError):
        await registry.list(caller)
    await registry.start(watch=False)
    await registry.stop()
    await registry.stop()
    with pytest.raises(RegistryUnavailableError):
        await registry.open(caller, OpenRequest(RequestId("r"), "shell"))


async def test_a_session_is_opened_listed_located_and_closed(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        result = await d.open(owner, "build")
        session_id = result.info.session_id
        assert (result.info.host, result.info.name, result.motd) == ("n1", "build", "$ ")
        assert await d.names(owner) == ["build"]
        assert (await d.registry.locate(session_id)).socket == f"/run/{session_id}.s"
        closed = await d.close(owner, session_id)
        assert closed.outcome is CloseOutcome.CLOSED
        assert closed.receipt is not None
        assert d.nodes.running == set()
        with pytest.raises(SessionNotFoundError) as failure:
            await d.close(owner, session_id)
        assert failure.value.reason == "SESSION_NOT_FOUND"
        assert await d.registry.list(owner) == ()


async def test_an_unknown_owner_is_told_before_a_bad_type(tmp_path: Path):
    async with desk(tmp_path) as d:
        stranger = Caller(OwnerId("own_aaaaaaaaaaaaaaaa"), 1)
        with pytest.raises(OwnerNotLiveError):
            await d.registry.open(stranger, OpenRequest(d.rid(), "no-such-type"))
        owner = await d.acquire()
        with pytest.raises(UnsupportedError, match=r"there are shell, .*python"):
            await d.registry.open(owner, OpenRequest(d.rid(), "no-such-type"))
        with pytest.raises(InvalidRequestError, match="type"):
            await d.registry.open(owner, OpenRequest(d.rid(), ""))
        with pytest.raises(InvalidRequestError, match="name"):
            await d.open(owner, "")
        assert d.nodes.calls["open"] == 0


async def test_foreign_and_unknown_sessions_are_told_apart(tmp_path: Path):
    async with desk(tmp_path) as d:
        one, two = await d.acquire("a"), await d.acquire("b")
        session_id = await d.opened(one)
        with pytest.raises(ForeignSessionError):
            await d.close(two, session_id)
        with pytest.raises(SessionNotFoundError):
            await d.close(two, SessionId("ses_aaaaaaaaaaaaaaaa"))
        assert await d.registry.list(two) == ()


async def test_names_are_unique_for_one_owner_only(tmp_path: Path):
    async with desk(tmp_path) as d:
        one, two = await d.acquire("a"), await d.acquire("b")
        first = await d.opened(one, "x")
        await d.open(two, "x")
        await d.open(one)
        await d.open(one)
        with pytest.raises(NameTakenError, match="already exists"):
            await d.open(one, "x")
        await d.close(one, first)
        await d.open(one, "x")
        assert await d.names(one) == [None, None, "x"]


async def test_a_take_over_fences_the_sessions_and_finds_them(tmp_path: Path):
    async with desk(tmp_path) as d:
        old = await d.acquire()
        session_id = await d.opened(old)
        new = await d.acquire()
        assert new == Caller(old.owner_id, old.epoch + 1)
        assert d.nodes["n1"].running[session_id].epoch == new.epoch
        with pytest.raises(OwnerNotLiveError, match=r"re-acquired \(epoch 2\)"):
            await d.registry.list(old)
        assert [info.session_id for info in await d.registry.list(new)] == [session_id]


async def test_a_take_over_does_not_hang_on_a_node_that_does_not_fence(tmp_path: Path):
    settings = RegistrySettings(node_call_timeout_s=0.02)
    async with desk(tmp_path, settings=settings) as d:
        old = await d.acquire()
        session_id = await d.opened(old)
        d.nodes["n1"].fencing.shut()
        new = await d.acquire()
        assert d.nodes["n1"].running[session_id].epoch == old.epoch
        d.nodes["n1"].fencing.open()
        await d.registry.poll()
        await d.nodes["n1"].fencing.reached(2)
        await d.registry.list(new)
        assert d.nodes["n1"].running[session_id].epoch == new.epoch


async def test_an_acquire_can_be_repeated(tmp_path: Path):
    async with desk(tmp_path) as d:
        args = (Principal("p"), AgentId("a"), None, None, RequestId("same"))
        first = await d.registry.acquire(*args)
        assert await d.registry.acquire(*args) == first
        assert (await d.acquire()).epoch == 2
        assert await d.registry.acquire(*args) == first
        with pytest.raises(InvalidRequestError) as failure:
            await d.registry.acquire(*args[:2], SandboxMode.READ_ONLY, None, RequestId("same"))
        assert failure.value.reason == "REQUEST_ID_CONFLICT"


async def test_release_closes_everything_and_ends_the_owner(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        ids = {await d.opened(owner), await d.opened(owner)}
        request = d.rid()
        receipt = await d.registry.release(owner, request)
        assert set(receipt.closed) == ids
        assert receipt.failed == ()
        assert d.nodes.running == set()
        assert await d.registry.release(owner, request) == receipt
        with pytest.raises(OwnerNotLiveError, match="it was released"):
            await d.open(owner)
        again = await d.acquire()
        assert again.owner_id != owner.owner_id
        assert again.epoch == 1


async def test_the_mode_changes_only_without_activity(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner, other = await d.acquire("a"), await d.acquire("b")
        session_id = await d.opened(owner)
        with pytest.raises(SandboxModeLockedError, match=r"read-only.*workspace-write"):
            await d.registry.set_mode(owner, SandboxMode.WORKSPACE_WRITE, d.rid())
        same = await d.registry.set_mode(owner, SandboxMode.READ_ONLY, d.rid())
        assert same.mode is SandboxMode.READ_ONLY
        await d.registry.set_mode(other, SandboxMode.WORKSPACE_WRITE, d.rid())
        with pytest.raises(SandboxModeLockedError):
            await d.acquire("a", mode=SandboxMode.WORKSPACE_WRITE)
        await d.registry.list(owner)
        await d.close(owner, session_id)
        grant = await d.registry.set_mode(owner, SandboxMode.WORKSPACE_WRITE, d.rid())
        assert grant.mode is SandboxMode.WORKSPACE_WRITE
        opened = await d.open(owner)
        assert opened.info.confinement.mode is SandboxMode.WORKSPACE_WRITE


async def test_the_lease_ends_an_owner_that_does_not_renew(tmp_path: Path):
    async with desk(tmp_path, settings=RegistrySettings(lease_s=100)) as d:
        idle, busy = await d.acquire("idle"), await d.acquire("busy")
        session_id = await d.opened(idle)
        d.clock.advance(60)
        grant = await d.registry.renew(busy, None)
        assert grant.expires_at == d.clock.wall() + 100
        await d.registry.tick()
        assert session_id in d.nodes.running
        d.clock.advance(41)
        await d.registry.tick()
        await d.nodes["n1"].closing.reached()
        with pytest.raises(OwnerNotLiveError, match="its lease ended"):
            await d.registry.list(idle)
        assert await d.registry.list(busy) == ()
        assert d.nodes["n1"].reasons == [(session_id, "owner disposed: its lease ended")]


async def test_an_exited_session_stays_listed_until_it_is_closed(tmp_path: Path):
    async with desk(tmp_path) as d:
        owner = await d.acquire()
        session_id = await d.opened(owner)
        d.nodes.exit(session_id, ExitStatus(exit_code=7))
        (info,) = await d.registry.list(owner)
        assert info.status.exit == ExitStatus(exit_code=7)
        await d.close(owner, session_id)
        assert await d.registry.list(owner) == ()


async def test_gateways_get_the_keys_and_show_with_their_nodes(tmp_path: Path):
    async with desk(tmp_path) as d:
        keys = await d.registry.join(HostName("n1"), "10.0.0.1:7443")
        assert await d.registry.join(HostName("n1"), "10.0.0.1:7443") == keys
        assert len(keys.token_keys[0]) == 64
        assert [node.gateway for node in await d.registry.nodes()] == ["10.0.0.1:7443"]
        await d.registry.leave(HostName("n1"), "10.0.0.2:7443")
        assert [node.gateway for node in await d.registry.nodes()] == ["10.0.0.1:7443"]
        await d.registry.leave(HostName("n1"), "10.0.0.1:7443")
        assert [node.gateway for node in await d.registry.nodes()] == [None]
        fresh = await d.registry.rotate_token_key()
        assert fresh.token_keys == (fresh.token_keys[0], keys.token_keys[0])
        assert fresh.peer_key == keys.peer_key
        await d.restart()
        assert await d.registry.join(HostName("n1"), "10.0.0.1:7443") == fresh


async def test_dispose_all_ends_every_owner_and_refuses_opens(tmp_path: Path):
    async with desk(tmp_path) as d:
        one, two = await d.acquire("a"), await d.acquire("b")
        ids = {await d.opened(one), await d.opened(two)}
        receipt = await d.registry.dispose_all("the fabric goes down")
        assert set(receipt.closed) == ids
        assert {reason for _, reason in d.nodes["n1"].reasons} == {
            "owner disposed: the fabric goes down"
        }
        with pytest.raises(DrainingError):
            await d.open(one)
        with pytest.raises(DrainingError):
            await d.acquire("c")


async def test_a_session_that_its_node_gave_up_is_lost(tmp_path: Path):
    async with desk(tmp_path, FakeNodes(node_state("n1"), node_state("n2"))) as d:
        owner, other = await d.acquire("a"), await d.acquire("b")
        session_id = await d.opened(owner, host="n2")
        del d.nodes["n2"].running[session_id]
        with pytest.raises(SessionLostError):
            await d.registry.locate(session_id)
        await d.registry.poll()
        with pytest.raises(SessionLostError, match="does not run it any more"):
            await d.close(owner, session_id)
        assert await d.registry.list(owner) == ()
        with pytest.raises(ForeignSessionError):
            await d.close(other, session_id)
