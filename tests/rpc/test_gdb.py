"""A real consumer: gdb's machine interface on a compiled program, only through the facade."""

import asyncio
import shutil
import subprocess

import pytest

from examples.gdb_mi import Gdb, GdbError, _results
from tests.support.eventually import eventually
from tests.support.local_fabric import local_fabric

PROGRAM = r"""
#include <stdio.h>
#include <unistd.h>
static int doubled(int n) {
    int twice = n * 2;
    return twice;
}
int main(void) {
    volatile int spins = 1;
    int got = doubled(21);
    printf("got %d\n", got);
    fflush(stdout);
    while (spins) usleep(1000);
    printf("left\n");
    return 3;
}
"""

pytestmark = pytest.mark.skipif(
    not (shutil.which("gdb") and shutil.which("gcc")), reason="needs gdb and gcc"
)


@pytest.fixture
def program(tmp_path):
    source, target = tmp_path / "spin.c", tmp_path / "spin"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O0", "-o", target, source], check=True)
    return str(target)


def line_of(text):
    return str(PROGRAM.split("\n").index(text) + 1)


async def test_a_debugger_breaks_steps_evaluates_interrupts_and_leaves(program):
    async with local_fabric() as fabric, fabric.client() as client, Gdb(client, program) as gdb:
        point = await gdb.command("-break-insert doubled")
        assert point.values["bkpt"]["func"] == "doubled"
        await gdb.command("-exec-run")
        stop = await gdb.stopped()
        assert stop.values["reason"] == "breakpoint-hit"
        assert stop.values["frame"]["line"] == line_of("    int twice = n * 2;")
        assert stop.values["frame"]["args"] == [{"name": "n", "value": "21"}]
        await gdb.command("-exec-next")
        stop = await gdb.stopped()
        assert stop.values["reason"] == "end-stepping-range"
        value = await gdb.command("-data-evaluate-expression twice")
        assert value.values["value"] == "42"
        frames = (await gdb.command("-stack-list-frames")).values["stack"]
        assert [frame["func"] for frame in frames] == ["doubled", "main"]
        with pytest.raises(GdbError, match="No symbol"):
            await gdb.command("-data-evaluate-expression nonsense")

        await gdb.command("-exec-continue")
        await eventually(lambda: "got 42" in gdb.printed)
        assert gdb.running.is_set()
        await gdb.interrupt()
        stop = await gdb.stopped()
        assert stop.values["reason"] == "signal-received"
        assert stop.values["signal-name"] == "SIGINT"

        # In the sleep or beside it: in main's frame the loop's condition can be ended.
        frames = (await gdb.command("-stack-list-frames")).values["stack"]
        level = next(frame["level"] for frame in frames if frame["func"] == "main")
        await gdb.command(f"-stack-select-frame {level}")
        await gdb.command("-gdb-set var spins = 0")
        await gdb.command("-exec-continue")
        stop = await gdb.stopped()
        assert stop.values["reason"] == "exited"
        assert int(stop.values["exit-code"], 8) == 3
        assert "left" in gdb.printed
        await gdb.command("-gdb-exit")
        async with asyncio.timeout(10):
            await gdb.ended.wait()


async def test_the_documents_own_example_works():
    async with local_fabric() as fabric, fabric.client() as client:
        opened = await client.pty.open(client, "gdb -q -nx -i=mi2")
        assert "(gdb)" in opened.initial_output
        sent = await client.pty.send(client, opened.session_id, "-gdb-exit")
        assert "^exit" in sent.delta
        page = await client.pty.tail(client, opened.session_id, 100)
        assert "^exit" in page.text
        assert await client.pty.close(client, opened.session_id)


def test_values_of_mi_are_read():
    text = r'bkpt={number="1",args=[{name="n"},"x"]},msg="a\"b\303\n",frames=[frame={l="0"}]'
    assert _results(text) == {
        "bkpt": {"number": "1", "args": [{"name": "n"}, "x"]},
        "msg": 'a"b\xc3\n',
        "frames": [{"l": "0"}],
    }
