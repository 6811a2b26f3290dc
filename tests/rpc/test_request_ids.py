"""How far a request id reaches: the table of proto/README.md, row by row, on the real stack."""

import pytest

from fabric.core.errors import FabricError, OutcomeUnknownError, RequestIdConflictError
from fabric.core.ids import RequestId
from fabric.core.model import Outcome, SandboxMode
from fabric.core.settings import Settings
from tests.support.local_fabric import local_fabric
from tests.support.paths import ROOT
from workers.ledger import ENTRY
from workers.text.bytelog import HEADER_BYTES, LEDGER_AT
from workers.text.cursors import CURSOR_BYTES

ONE = RequestId("the-one")


@pytest.fixture
async def fabric():
    async with local_fabric() as made:
        yield made


async def test_an_owner_s_calls_share_one_space_and_owners_do_not(fabric):
    async with fabric.client("a") as first, fabric.client("b") as second:
        shell = await first.open("shell", request_id=ONE)
        assert (await first.open("shell", request_id=ONE)).id == shell.id
        for other in (
            lambda: first.open("shell", name="x", request_id=ONE),
            lambda: shell.close(request_id=ONE),
            lambda: first.set_mode(SandboxMode.READ_ONLY, request_id=ONE),
            lambda: first.release(request_id=ONE),
        ):
            with pytest.raises(RequestIdConflictError):
                await other()
        assert (await second.open("shell", request_id=ONE)).id != shell.id


async def test_sends_of_a_session_share_one_space_apart_from_its_owner_its_signals_and_others(
    fabric,
):
    async with fabric.client() as client:
        shell, other = await client.open("shell", request_id=ONE), await client.open("shell")
        first = await shell.send("echo $RANDOM$RANDOM", request_id=ONE)
        again = await shell.send("echo $RANDOM$RANDOM", request_id=ONE, timeout_s=99)
        assert again == first
        for conflict in (
            lambda: shell.send("echo other", request_id=ONE),
            lambda: shell.send("echo $RANDOM$RANDOM", submit=False, request_id=ONE),
            lambda: shell.send_background("echo $RANDOM$RANDOM", request_id=ONE),
        ):
            with pytest.raises(RequestIdConflictError):
                await conflict()
        there = await other.send("echo $RANDOM$RANDOM", request_id=ONE)
        assert there.viewport != first.viewport
        await shell.signal("SIGINT", request_id=ONE)
        with pytest.raises(RequestIdConflictError):
            await shell.signal("SIGTERM", request_id=ONE)
        end = await shell.write("ab", request_id=ONE)
        assert await shell.write("ab", request_id=ONE) == end
        with pytest.raises(RequestIdConflictError):
            await shell.write("cd", request_id=ONE)
        assert (await shell.send("; echo [$?]")).viewport.count("ab") == 1


async def test_a_call_that_was_refused_leaves_its_id_free(fabric):
    async with fabric.client() as client:
        with pytest.raises(FabricError):
            await client.open("nonsense", request_id=ONE)
        shell = await client.open("shell", request_id=ONE)
        with pytest.raises(FabricError):
            await shell.send("x" * 10_000_000, request_id=ONE)
        assert "free" in (await shell.send("echo free", request_id=ONE)).viewport


async def test_an_answer_that_is_not_kept_any_more_is_unknown_for_a_send_and_runs_anew_elsewhere():
    few = {"worker__input__max_request_ids": "2", "registry__max_request_ids": "2"}
    async with local_fabric(**few) as fabric, fabric.client() as client:
        shell = await client.open("shell", request_id=ONE)
        line = "echo $RANDOM$RANDOM"
        first = await shell.send(line, request_id=ONE)
        await shell.send("true")
        assert await shell.send(line, request_id=ONE) == first
        for _ in range(2):
            await shell.send("true")
        later = await shell.send(line, request_id=ONE)
        assert (later.outcome, later.viewport) == (Outcome.UNKNOWN, "")
        with pytest.raises(OutcomeUnknownError):
            await shell.send_background("true", request_id=await _forgotten(shell))
        for _ in range(2):
            await (await client.open("shell")).close()
        assert (await client.open("shell", request_id=ONE)).id != shell.id


async def _forgotten(shell):
    """The id of a task that newer calls have pushed out of both tables."""
    task = RequestId("task")
    await (await shell.send_background("true", request_id=task)).output(5)
    shell_tasks = 64 + 1
    for _ in range(shell_tasks):
        await (await shell.send_background("true")).output(5)
    return task


def test_the_document_names_the_numbers_that_hold():
    text = (ROOT / "proto" / "README.md").read_text()
    registry, typed = Settings().registry, Settings().worker.input
    assert registry.request_retention_s == typed.request_retention_s == 600
    assert f"the last {registry.max_request_ids}\n" in text
    assert f"the last {typed.max_request_ids} of a session" in text
    room = (HEADER_BYTES - LEDGER_AT - CURSOR_BYTES) // ENTRY.size
    assert f"a session's last {room} sends" in text
    assert room > typed.max_request_ids
