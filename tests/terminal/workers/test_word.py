"""A session rests without the registry's word, and is as it was once there is word again."""

import time

import pytest

from fabric.core.errors import OwnerNotLiveError, RegistryUnavailableError
from fabric.core.model import Caller
from tests.support.local_worker import OWNER, config_in, worker_in
from workers.actor import SessionWorker
from workers.dial import ChannelClient


async def keep(terminal, until, epoch=1):
    args = {"session_id": terminal.spec.session_id, "epoch": epoch, "until": until}
    await terminal.client.call("keep", args)


async def test_no_verb_of_an_owner_is_served_after_the_word_has_ended(tmp_path):
    async with worker_in(tmp_path) as terminal:
        await terminal.open()
        await terminal.send("X=42")
        await keep(terminal, time.monotonic() - 0.001)
        for verb in (terminal.info, terminal.read, lambda: terminal.send("echo no")):
            with pytest.raises(RegistryUnavailableError, match="no word from the registry"):
                await verb()
        await keep(terminal, time.monotonic() + 60)
        result = await terminal.send("echo $X")
        assert "42" in result.viewport
        assert "no" not in (await terminal.read()).text.split()


async def test_word_fences_older_callers(tmp_path):
    async with worker_in(tmp_path) as terminal:
        await terminal.open()
        await keep(terminal, None, epoch=5)
        with pytest.raises(OwnerNotLiveError):
            await terminal.send("echo", caller=Caller(OWNER, 4))
        assert "ok" in (await terminal.send("echo ok", caller=Caller(OWNER, 5))).viewport


async def test_a_worker_that_is_started_again_rests_as_the_one_before_did(tmp_path):
    config = config_in(tmp_path)
    async with worker_in(tmp_path, config=config) as terminal:
        await terminal.open()
        await keep(terminal, time.monotonic() - 0.001)
        terminal.client.close()
        await terminal.client.closed
        await terminal.worker.stop()
        again = SessionWorker(config, terminal.worker.settings)
        await again.start()
        terminal.worker, terminal.client = (
            again,
            await ChannelClient.connect(config.channel_path, config.key),
        )
        try:
            with pytest.raises(RegistryUnavailableError):
                await terminal.info()
            await keep(terminal, None)
            assert (await terminal.info()).adoption == 2
            await terminal.client.call("shutdown")
        finally:
            terminal.client.close()
            await terminal.client.closed
            await again.stop()


async def test_what_is_given_up_can_still_be_ended(tmp_path):
    async with worker_in(tmp_path) as terminal:
        await terminal.open()
        await keep(terminal, time.monotonic() - 0.001)
        assert (await terminal.close()).survivors == ()
