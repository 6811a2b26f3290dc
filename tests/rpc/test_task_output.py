"""A background send that printed more than is kept: whoever reads it is told, wherever it is."""

from fabric.core.model import TaskState
from tests.support.local_fabric import local_fabric

MUCH = "seq 1 90000; echo the end"
OMITTED = "bytes omitted …]"


async def test_cut_output_says_so_while_it_is_there_and_after_session_and_registry_are_gone():
    async with local_fabric() as fabric:
        async with fabric.client(keep=True) as client:
            shell = await client.open("shell")
            task = await shell.send_background(MUCH)
            first = await task.output(30)
            assert first.record.state is TaskState.COMPLETED
            assert OMITTED in first.text
            assert "the end" in first.text
            assert first.truncated
            rest = await task.output()
            assert (rest.text, rest.truncated) == ("", False)
            shown = await client.call_tool("task_output", {"task_id": task.id})
            assert shown.value["truncated"]
            await shell.close()
            token, record = client.owner_token, first.record
        await fabric.restart_control()
        async with client.connect(fabric.address, owner_token=token) as later:
            kept = await later.task(record).output()
            assert OMITTED in kept.text
            assert kept.truncated


async def test_output_that_was_not_cut_never_says_so():
    async with local_fabric() as fabric, fabric.client() as client:
        shell = await client.open("shell")
        task = await shell.send_background("seq 1 2000")
        assert not (await task.output(30)).truncated
