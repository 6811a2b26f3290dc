"""The shared terminal on a real shell: a person beside the model."""

import asyncio
import os
import random

import pytest

from fabric.core.errors import (
    InputTooLargeError,
    NotControllerError,
    SessionStateError,
    StaleGenerationError,
)
from fabric.core.model import WaitReason
from fabric.core.shared import Person, ViewKind
from tests.support.eventually import eventually
from tests.support.local_worker import config_in
from tests.support.shared_worker import Shared, shared_in
from workers.actor import SessionWorker
from workers.dial import ChannelClient
from workers.turn_table import Phase

ASKS = "python3 -c \"import time; [print('got', ascii(input(f'q{i}? '))) for i in range(4)]\""
BUSY = "python3 -c \"import time; print('up', flush=True); time.sleep(99)\""


@pytest.fixture
async def shared(tmp_path):
    async with shared_in(tmp_path, operation_timeout_s=20.0) as terminal:
        yield terminal


async def test_a_person_types_at_the_idle_prompt(shared):
    async with shared.view() as view:
        assert view.attached.controller
        await view.ask(Person.BEGIN, data=b"e")
        assert shared.turns.holder.value == "human"
        await view.type("cho hello\r")
        await shared.holds(Phase.READY)
        await eventually(lambda: b"hello\r\n" in view.shown)
        assert len(shared.told) == 1
        assert shared.told[0]["wait_reason"] == "prompt"
        with pytest.raises(NotControllerError, match="lease is closed"):
            await view.type("echo no\r")


async def test_taking_over_keeps_the_program_and_answers_four_rounds(shared):
    async with shared.view() as view:
        # The program waits for input, so a send that is detected would end: hold it busy first.
        task = asyncio.create_task(shared.send("sleep 0.5; " + ASKS))
        follower = None
        await shared.holds(Phase.RUNNING)
        lease = await view.take_over()
        result = await task
        assert result.wait_reason is WaitReason.HUMAN_HANDOFF
        assert (result.state.holder, lease) == ("human", 1)
        follower = asyncio.create_task(shared.send("echo follower"))
        for number, answer in enumerate(("grüße", "你好", "🎉👍", "done")):
            await eventually(lambda n=number: f"q{n}? ".encode() in view.shown)
            await view.type(answer)
            await view.type("\r")
        after = await follower
        assert after.wait_reason is WaitReason.PROMPT
        assert len(shared.told) == 1
        page = await shared.read(0, 1)
        for answer in ("grüße", "你好", "🎉👍"):
            assert f"got {answer!a}" in page.state.viewport
        assert "follower" in page.state.viewport.splitlines()


async def test_taking_over_sends_no_signal_and_has_no_deadline(tmp_path):
    async with shared_in(tmp_path, operation_timeout_s=2.0) as shared, shared.view() as view:
        task = asyncio.create_task(shared.send(BUSY))
        await eventually(lambda: b"up\r\n" in view.shown)
        group = shared.worker.session.parts.inspector.foreground()
        await view.take_over()
        assert (await task).wait_reason is WaitReason.HUMAN_HANDOFF
        assert shared.turns.wakes_at is None
        assert shared.worker.session.parts.inspector.foreground() == group
        await view.ask(Person.INTERRUPT, lease=view.lease)
        await shared.holds(Phase.READY)
        assert shared.told[0]["wait_reason"] == "cancelled"


async def test_typing_while_the_model_holds_the_slot_is_refused(shared):
    async with shared.view() as view:
        task = asyncio.create_task(shared.send("sleep 1"))
        await shared.holds(Phase.RUNNING)
        with pytest.raises(SessionStateError):
            await view.ask(Person.BEGIN, data=b"touch leaked\r")
        with pytest.raises(SessionStateError, match="takeover is not available"):
            await view.ask(Person.TAKE_OVER, target=999)
        assert (await task).wait_reason is WaitReason.PROMPT


async def test_only_one_view_controls(shared):
    phone = shared.view("phone", readonly=True)
    async with shared.view("one") as one, shared.view("two") as two, phone:
        assert (two.attached.controller, two.attached.reason) == (False, "occupied")
        assert (phone.attached.controller, phone.attached.reason) == (False, "readonly")
        assert two.attached.resume == ""
        with pytest.raises(NotControllerError):
            await two.ask(Person.BEGIN, data=b"x")
        await one.ask(Person.BEGIN, data=b"echo both\r")
        await eventually(lambda: b"both\r\n" in two.shown and b"both\r\n" in phone.shown)


async def test_a_controller_comes_back_with_its_proof_and_its_lease(shared):
    async with shared.view("one") as one:
        task = asyncio.create_task(shared.send("sleep 0.3; cat"))
        await shared.holds(Phase.RUNNING)
        await one.take_over()
        await task
        proof = one.attached.resume
    await eventually(lambda: shared.worker.sharing.controllers.absent_since is not None)
    async with shared.view("thief", resume="wrong") as thief:
        assert thief.attached.reason == "invalid-resume"
    async with shared.view("early") as early:
        assert early.attached.reason == "occupied"
    async with shared.view("again", resume=proof) as again:
        assert again.attached.controller
        assert again.attached.resume != proof
        again.lease = again.status.lease
        assert again.lease == 1
        await eventually(lambda: shared.worker.session.parts.inspector.probe().waits)
        await again.type("answer\r\x04")
        await shared.holds(Phase.READY)
    assert len(shared.told) == 1


async def test_past_the_grace_the_lease_is_recovered_and_another_may_control(tmp_path):
    async with shared_in(tmp_path, disconnect_grace_s=0.3) as shared:
        async with shared.view("one") as one:
            task = asyncio.create_task(shared.send("sleep 60"))
            await shared.holds(Phase.RUNNING)
            await one.take_over()
            await task
            proof = one.attached.resume
        await shared.holds(Phase.READY)
        assert shared.told[0]["wait_reason"] == "cancelled"
        async with shared.view("late", resume=proof) as late:
            assert late.attached.reason == "invalid-resume"
        async with shared.view("two") as two:
            assert two.attached.controller


async def test_a_reset_ends_the_views_and_older_requests_are_stale(shared):
    async with shared.view() as view:
        await shared.send("echo before")
        result = await shared.reset()
        assert result.state.generation == 2
        await eventually(lambda: view.events[-1].kind is ViewKind.RESET)
        with pytest.raises(StaleGenerationError, match="generation is stale"):
            await view.ask(Person.BEGIN, data=b"x")
    async with shared.view("next") as after:
        assert after.attached.controller
        assert b"before" not in after.shown


async def test_a_lease_is_bounded_in_bytes(tmp_path):
    async with shared_in(tmp_path, max_input_bytes=10) as shared, shared.view() as view:
        await view.ask(Person.BEGIN, data=b"echo ")
        with pytest.raises(InputTooLargeError, match="maxInputBytes"):
            await view.type("123456")
        await view.type("1234\r")
        await shared.holds(Phase.READY)


async def test_the_final_screen_of_an_ended_shell_stays_in_view(shared):
    async with shared.view() as view:
        await shared.send("echo bye; exit")
        await eventually(lambda: view.status.exited)
    async with shared.view("late") as late:
        await eventually(lambda: b"bye" in late.shown)
        await eventually(lambda: late.status.queue_status == "exited")


RACER = """
import os, sys, termios, time
print("up", flush=True)
time.sleep(float(sys.argv[1]))
termios.tcflush(0, termios.TCIFLUSH)
os._exit(0)
"""


RACES = int(os.environ.get("RACES", "40"))


@pytest.mark.timeout(30 + RACES * 0.3)
async def test_answers_never_reach_the_shell_after_the_program_ended(tmp_path):
    """Races of a program's end with an answer. What came before its end it throws away itself,
    so a file can only come from an answer that was written later."""
    tried = refused = 0
    (tmp_path / "racer.py").write_text(RACER)
    async with shared_in(tmp_path, operation_timeout_s=20.0) as shared, shared.view() as view:
        await shared.send(f"cd {tmp_path}")
        for _ in range(RACES):
            seen = len(view.shown)
            pause = random.uniform(0.002, 0.02)
            task = asyncio.create_task(shared.send(f"python3 -S -I racer.py {pause}"))
            await eventually(lambda at=seen, t=task: b"up\r\n" in view.shown[at:] or t.done())
            takeover = shared.turns.takeover
            if takeover is None:
                await task
                continue
            try:
                await view.ask(Person.TAKE_OVER, target=takeover)
                await asyncio.wait({view.running}, timeout=random.uniform(0.0, 0.025))
                await view.type("touch leaked\r")
                tried += 1
            except SessionStateError:
                refused += 1
            await task
            await shared.holds(Phase.READY)
        await shared.send("true")
        assert tried
        assert refused
        assert not (tmp_path / "leaked").exists()


async def test_a_worker_that_died_brings_its_successor_a_free_queue(tmp_path):
    config = config_in(tmp_path)
    async with shared_in(tmp_path, config) as shared:
        await shared.reset()
        task = asyncio.create_task(shared.send("sleep 60"))
        await shared.holds(Phase.RUNNING)
        old, settings = shared.worker, shared.worker.settings
        await old.stop()
        await asyncio.gather(task, return_exceptions=True)
        worker = SessionWorker(config, settings)
        await worker.start()
        client = await ChannelClient.connect(config.channel_path, config.key)
        shared.terminal.worker, shared.terminal.client = worker, client
        again = Shared(shared.terminal)
        await again.holds(Phase.READY)
        assert again.turns.generation == 2
        assert "alive" in (await again.send("echo alive")).output
        assert worker.session.info().adoption == 2
        await client.call("shutdown")
        client.close()
        await client.closed
        await worker.stop()
