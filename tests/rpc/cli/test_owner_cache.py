"""An agent's owner lasts from one command to the next."""

import argparse
import asyncio
import io

import pytest

from fabric.cli.connect import connected
from fabric.cli.context import Context
from fabric.cli.output import Output
from fabric.core.errors import SandboxModeLockedError
from fabric.core.model import SandboxMode
from tests.support.local_fabric import local_fabric

FULL = SandboxMode.DANGER_FULL_ACCESS


@pytest.fixture
async def local():
    async with local_fabric(registry__max_lease_s="3600", node__warm_sessions="0") as fabric:
        yield fabric


@pytest.fixture
def command(local, tmp_path):
    """Connect as a command would, for an agent."""

    def make(agent="cli", mode=None):
        arguments = argparse.Namespace(state_dir=str(tmp_path / "state"), agent=agent)
        output = Output(stdout=io.StringIO(), stderr=io.StringIO(), environ={})
        context = Context(arguments, output, {"FABRIC_GATEWAY": local.address})
        return connected(context, mode)

    return make


async def test_the_second_command_is_the_same_owner_in_the_same_epoch(command):
    async with command() as first:
        pass
    async with command() as second:
        assert second.owner.owner_id == first.owner.owner_id
        assert second.owner.epoch == first.owner.epoch


async def test_agents_are_owners_of_their_own(command):
    async with command("a") as first, command("b") as second:
        assert first.owner.owner_id != second.owner.owner_id


async def test_a_fabric_with_shorter_leases_than_ours_is_no_obstacle(command):
    async with command() as client:
        assert client.owner.lease_s <= 3600


async def test_a_token_that_counts_no_more_is_replaced(command, local):
    """Another program took the agent over: the next command takes it back."""
    async with command() as first:
        pass
    async with local.client("cli", mode=None, keep=True):
        pass
    async with command() as second:
        assert second.owner.owner_id == first.owner.owner_id
        assert second.owner.epoch == first.owner.epoch + 2


async def test_a_token_of_another_fabric_is_replaced(command, tmp_path):
    async with command():
        pass
    (cached,) = (tmp_path / "state" / "owners").glob("*.json")
    cached.write_text('{"owner_token": "from.another.fabric"}')
    async with command() as client:
        assert await client.list() == ()


async def test_commands_at_once_agree_on_one_epoch(command):
    async def one():
        async with command() as client:
            await client.list()
            return client.owner.epoch

    # The lock is taken in a blocking way, so each runs in a loop of its own thread, as processes.
    epochs = await asyncio.gather(*(asyncio.to_thread(asyncio.run, one()) for _ in range(3)))
    assert epochs == [1, 1, 1]


async def test_a_mode_is_set_when_it_differs_and_locked_while_sessions_live(command):
    async with command(mode=FULL) as client:
        assert client.owner.mode is FULL
        session = await client.open()
    with pytest.raises(SandboxModeLockedError):
        async with command(mode=SandboxMode.READ_ONLY):
            pass
    async with command(mode=FULL) as client:
        await client.session(session.id).close()
    async with command(mode=SandboxMode.READ_ONLY) as client:
        assert client.owner.mode is SandboxMode.READ_ONLY
