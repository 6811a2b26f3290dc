"""Closing real shells over hostile trees: nothing is left, by a search of its own."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from fabric.core.errors import CleanupIncompleteError
from fabric.core.model import ExitStatus
from tests.load.trees import BOMB, LEAVES, TRAPS, marked, run, tree_of
from tests.support.eventually import eventually, scaled
from tests.terminal.shim.conftest import typed

GRACE_S = 0.4
HYDRA = """
import fcntl, os, random, signal, sys, time
folder, heads, until = sys.argv[1], 60, time.monotonic() + 10
for signo in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(signo, signal.SIG_IGN)
own = os.open("/dev/null", os.O_RDONLY)
while time.monotonic() < until:
    fd = os.open(f"{folder}/{random.randrange(heads)}", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        child = os.fork()
        os.close(fd if child else own)  # each head keeps its own lock, and no other
        own = own if child else fd
    except BlockingIOError:
        os.close(fd)
        time.sleep(0.0002)
"""
"""Regrows each head that is cut off; one a lock, and for ten seconds at the worst."""


async def closed(slots, client, grace_s=GRACE_S, shell_grace_s=2.0):
    """Tear down, check that nothing is left, and return the receipt and the time it took."""
    before = time.perf_counter()
    receipt = await client.teardown(grace_s=grace_s, shell_grace_s=shell_grace_s)
    seconds = time.perf_counter() - before
    assert marked(slots.mark) == []
    assert receipt.survivors == ()
    return receipt, seconds


def signals(receipt):
    return {(entry.name, entry.last_signal) for entry in receipt.ended}


@pytest.mark.parametrize("seed", range(30))
async def test_random_tree_leaves_nothing(slots, seed):
    outcome = await run(seed, slots.folder)
    assert outcome.survivors == (), tree_of(seed)


async def test_idle_shell_closes_in_milliseconds(slots):
    times = []
    for number in range(5):
        client = await slots.launch(f"idle{number}")
        await slots.bash(client)
        receipt, seconds = await closed(slots, client, grace_s=3.0, shell_grace_s=1.0)
        assert receipt.root_exit == ExitStatus(signal="SIGHUP")
        assert [(e.name, e.last_signal) for e in receipt.ended] == [("bash", "SIGHUP")]
        times.append(seconds)
    assert sorted(times)[2] < scaled(0.05)


async def test_fifty_obedient_children_close_quickly(slots):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    await typed(spawned, screen, "for i in $(seq 50); do sleep 700 & done")
    receipt, seconds = await closed(slots, client, grace_s=3.0, shell_grace_s=1.0)
    assert seconds < scaled(0.3)
    assert [entry.last_signal for entry in receipt.ended].count("SIGTERM") == 50


async def test_deaf_children_cost_the_grace_and_no_more(slots):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    await typed(spawned, screen, f"for i in 1 2 3; do {LEAVES['deaf']} & done; sleep 0.1")
    receipt, seconds = await closed(slots, client)
    assert GRACE_S <= seconds < scaled(GRACE_S + 0.3)
    assert ("sh", "SIGKILL") in signals(receipt)


@pytest.mark.parametrize("kind", [name for name in LEAVES if name != "restless"])
async def test_every_kind_of_process_is_in_the_receipt_and_gone(slots, kind):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    await typed(spawned, screen, f"{LEAVES[kind]} & sleep 0.1")
    assert len(marked(slots.mark)) > 1
    receipt, _ = await closed(slots, client)
    assert len(receipt.ended) >= 2
    assert ("bash", "SIGHUP") in signals(receipt)


async def test_obedient_daemons_and_stopped_jobs_leave_on_term_without_the_grace(slots):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    kinds = ("plain", "nohup", "setsid", "double-fork", "stopped", "tty-holder", "zombies")
    line = " & ".join(LEAVES[kind] for kind in kinds)
    await typed(spawned, screen, f"{line} & sleep 0.2")
    receipt, seconds = await closed(slots, client, grace_s=5.0, shell_grace_s=2.0)
    assert seconds < scaled(0.5)
    assert {signal for name, signal in signals(receipt) if name == "sleep"} == {"SIGTERM"}


async def test_restless_forker_is_ended_although_it_never_stands_still(slots):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    await typed(spawned, screen, f"{LEAVES['restless']} & sleep 0.1")
    await closed(slots, client)


async def test_end_of_one_command_does_not_start_the_next_of_the_same_line(slots):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    trace = slots.folder / "trace"
    await typed(spawned, screen, f"{LEAVES['deaf']} & sleep 0.1")  # so that the grace lasts
    os.write(spawned.master_fd, f"sleep 640; echo deployed > {trace}\n".encode())
    await eventually(lambda: any("sleep 640" in line for line in marked(slots.mark)))
    await closed(slots, client)
    assert not trace.exists()


async def test_loop_in_the_shell_itself_is_ended(slots):
    client = await slots.launch()
    spawned, _ = await slots.bash(client)
    os.write(spawned.master_fd, b"while :; do sleep 641 & sleep 0.01; done\n")
    await eventually(lambda: len(marked(slots.mark)) > 4)
    await closed(slots, client)


async def test_program_that_cleans_up_on_term_gets_the_time_for_it(slots):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    trace = slots.folder / "trace"
    cleanup = f"trap 'sleep 0.1; echo clean > {trace}; exit' TERM"
    script = f"{cleanup}; echo r''eady; while :; do sleep 0.01; done"
    os.write(spawned.master_fd, f'sh -c "{script}"\n'.encode())
    await eventually(lambda: b"\nready" in screen.text)
    await closed(slots, client, grace_s=3.0)
    assert trace.read_text() == "clean\n"


@pytest.mark.parametrize("trap", list(TRAPS))
async def test_what_an_exit_trap_starts_is_swept(slots, trap):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    await typed(spawned, screen, TRAPS[trap])
    receipt, seconds = await closed(slots, client, shell_grace_s=0.3)
    assert len(receipt.ended) > 1, "the shell and what its trap started"
    assert seconds < scaled(2 * GRACE_S + 2 * 0.3 + 0.5)


async def test_small_bomb_is_ended(slots):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    await typed(spawned, screen, BOMB.rstrip("& ") + " & true")
    receipt, _ = await closed(slots, client, grace_s=0.05)
    assert len(receipt.ended) > 3


async def test_what_regrows_faster_than_it_is_killed_is_frozen_first(slots):
    client = await slots.launch()
    spawned, _ = await slots.bash(client)
    (slots.folder / "hydra.py").write_text(HYDRA)
    os.write(spawned.master_fd, f"python3 {slots.folder}/hydra.py {slots.folder}\n".encode())
    await eventually(lambda: len(marked(slots.mark)) > 40, what="the hydra to grow")
    receipt, _ = await closed(slots, client, grace_s=0.05)
    assert len(receipt.ended) > 20


async def test_shell_that_ignores_everything_is_killed_after_its_grace(slots):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    await typed(spawned, screen, "trap '' TERM HUP INT QUIT")
    receipt, seconds = await closed(slots, client, shell_grace_s=0.2)
    assert 0.2 <= seconds < scaled(0.6)
    assert receipt.root_exit == ExitStatus(signal="SIGKILL")


async def test_stopped_shell_closes_like_any_other(slots):
    client = await slots.launch()
    spawned, _ = await slots.bash(client)
    os.write(spawned.master_fd, b"kill -STOP $$\n")
    stat = Path(f"/proc/{spawned.pid}/stat")
    await eventually(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "T")
    _, seconds = await closed(slots, client, grace_s=3.0, shell_grace_s=1.0)
    assert seconds < scaled(0.1)


async def test_program_in_place_of_the_shell_is_ended(slots):
    client = await slots.launch()
    await slots.spawn(client, "python3", "-c", "import time; time.sleep(600)")
    receipt, _ = await closed(slots, client)
    assert receipt.root_exit.signal in ("SIGTERM", "SIGHUP"), "whichever it got to first"


async def test_threads_whose_main_thread_has_left_are_found(slots):
    client = await slots.launch()
    script = (
        "import ctypes, threading, time, subprocess\n"
        "def work():\n"
        "    child = subprocess.Popen(['sleep', '650']); print('up'); time.sleep(600)\n"
        "threading.Thread(target=work).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    spawned, screen = await slots.bash(client)
    (slots.folder / "t.py").write_text(script)
    os.write(spawned.master_fd, f"python3 -u {slots.folder}/t.py\n".encode())
    await eventually(lambda: b"\nup" in screen.text)
    receipt, _ = await closed(slots, client)
    assert len(receipt.ended) == 3


async def test_strangers_live_on(slots):
    stranger = await asyncio.create_subprocess_exec("sleep", "660", start_new_session=True)
    try:
        client = await slots.launch()
        spawned, screen = await slots.bash(client)
        await typed(
            spawned, screen, "for i in $(seq 200); do (:); done; setsid sleep 661 & sleep 0.05"
        )
        await closed(slots, client)
        assert stranger.returncode is None
        os.kill(stranger.pid, 0)
    finally:
        stranger.kill()
        await stranger.wait()


async def test_second_close_joins_the_first_and_may_hurry_it(slots):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    await typed(spawned, screen, f"{LEAVES['deaf']} & sleep 0.1")
    slow = asyncio.create_task(client.teardown(grace_s=30, shell_grace_s=1))
    await client.set_labels(b"asked for before this")
    receipt, seconds = await closed(slots, client, grace_s=0.1)
    assert await slow == receipt
    assert seconds < scaled(0.6)


async def test_close_of_a_closed_session_repeats_the_receipt(slots):
    client = await slots.launch()
    await slots.bash(client)
    first, _ = await closed(slots, client)
    again, seconds = await closed(slots, client)
    assert (again.root_exit, again.ended) == (first.root_exit, first.ended)
    assert seconds < scaled(0.05)


async def test_close_of_a_shim_that_started_nothing_is_empty(slots):
    client = await slots.launch()
    receipt, _ = await closed(slots, client)
    assert (receipt.root_exit, receipt.ended) == (None, ())


async def test_quit_ends_what_lives(slots):
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    await typed(spawned, screen, "setsid sleep 670 & sleep 0.05")
    await client.quit()
    assert marked(slots.mark) == []


async def test_survivors_are_named_the_shell_is_left_and_a_retry_succeeds(slots):
    """A tracer holds the child between life and death, so SIGKILL waits as on a dead disk."""
    client = await slots.launch()
    spawned, screen = await slots.bash(client)
    holder = (
        "import ctypes, os, signal, sys, time\n"
        "libc = ctypes.CDLL(None); pid = int(sys.argv[1])\n"
        "seize, exit_event = 0x4206, 0x40\n"
        "assert libc.ptrace(seize, pid, None, ctypes.c_void_p(exit_event)) == 0\n"
        "print('held', flush=True); sys.stdin.read()\n"
    )
    await typed(spawned, screen, "sleep 680 & echo pid=$!, ; sleep 0.05")
    pid = int(screen.text.split(b"\npid=")[1].split(b",")[0])
    tracer = await asyncio.create_subprocess_exec(
        "python3", "-c", holder, str(pid),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert await tracer.stdout.readline() == b"held\n"
    receipt = await client.teardown(grace_s=0.1, shell_grace_s=0.1)
    assert [(e.pid, e.name, e.last_signal) for e in receipt.survivors] == [
        (pid, "sleep", "SIGKILL")
    ]
    assert receipt.root_exit is None
    assert "alive" in await typed(spawned, screen, "echo al''ive")
    with pytest.raises(CleanupIncompleteError, match="survived") as failed:
        await client.quit()
    assert failed.value.metadata["survivors"] == f"sleep ({pid})"
    tracer.stdin.close()
    await tracer.communicate()
    receipt, _ = await closed(slots, client)
    assert receipt.root_exit is not None


async def test_shell_in_a_pid_namespace_closes_as_quickly_and_completely(slots):
    from workers.sandbox.bubblewrap import binaries

    client = await slots.launch()
    bwrap = next(iter(binaries()), None)
    if bwrap is None:
        pytest.skip("no bubblewrap here")
    wrapper = (bwrap, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
    flags = ("--unshare-pid", "--die-with-parent", "--")
    argv = (*wrapper, *flags, "bash", "--norc", "--noprofile", "-i")
    spawned, screen = await slots.spawn(client, *argv, wrappers=("bwrap",))
    await eventually(lambda: screen.text.endswith(b"$ "), what="prompt in the sandbox")
    line = "sleep 690 & setsid sleep 691 & (setsid sleep 692 &); sleep 0.1"
    await typed(spawned, screen, line)
    receipt, seconds = await closed(slots, client, grace_s=3.0, shell_grace_s=1.0)
    assert seconds < scaled(0.3)
    ended = signals(receipt)
    assert ("sleep", "SIGTERM") in ended
    assert ("bash", "SIGHUP") in ended
    assert ("bwrap", None) in ended, "the wrapper leaves by itself"
    assert receipt.root_exit == ExitStatus(exit_code=129), "bubblewrap's word for SIGHUP"
