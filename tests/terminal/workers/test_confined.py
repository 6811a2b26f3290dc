"""Confined sessions by the whole path of an open: escapes, terminals, signals, limits."""

import asyncio
import contextlib
import json
import os
import shlex
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.core.errors import (
    CleanupIncompleteError,
    InvalidRequestError,
    SandboxUnavailableError,
    SignalRefusedError,
    SpawnFailedError,
)
from fabric.core.model import (
    CloseReceipt,
    EndedProcess,
    Evidence,
    Network,
    PromptKind,
    SignalName,
    WaitReason,
)
from fabric.core.settings import SandboxSettings
from tests.support.confined import FULL, QUICK, READ, WRITE, printed, session
from tests.support.eventually import eventually
from tests.support.local_worker import config_in
from tests.terminal.sandbox.test_escapes import GAPS, GAPS_SEEN, HARMLESS_WHEN_OPEN
from tests.terminal.sandbox.world import NOBODY, PYTHON, START, Way, World
from workers.actor import SessionWorker

INSIDE = Way("bubblewrap", WRITE)
ESCAPES = [
    Way("bubblewrap", READ),
    INSIDE,
    Way("bubblewrap", WRITE, switched=True),
    Way("landlock", READ),
    Way("landlock", WRITE),
]
TRIED = [
    *HARMLESS_WHEN_OPEN, "remount_the_root_writable", "mount_over_the_outside",
    "bind_the_outside_into_the_workspace", "unmount_a_mask", "open_by_handle", "trace_a_process",
    "enter_the_namespaces_of_the_service", "write_through_a_hard_link", "keep_a_capability",
    "write_to_shared_memory", "fake_input_on_another_terminal", "limit_a_process",
]  # fmt: skip


@pytest.mark.parametrize("way", ESCAPES, ids=str)
async def test_nothing_gets_out_of_a_session(way, place, subtests):
    if way.switched and os.geteuid() != 0:
        pytest.skip("only root can run as somebody else")
    is_partial = way.kind == "landlock" and way.writes
    with contextlib.ExitStack() as stack:
        world = World(way, stack)
        masked = SandboxSettings(masked_paths=world.masked())
        settings = replace(QUICK, sandbox=masked)
        async with session(way, place, settings, workspace_root=str(world.workspace)) as shell:
            argv = (PYTHON, "-I", "-B", "-c", START, world.facts(), *TRIED)
            result = await shell.send(shlex.join(argv), timeout_s=60)
        damage = world.damage()
    rows = [json.loads(row[1:]) for row in result.viewport.split("\n") if row.startswith("@")]
    assert [row["name"] for row in rows] == TRIED
    for row in rows:
        with subtests.test(row["name"]):
            assert row["how"] == "" or row["how"].startswith("E")
            if not (is_partial and row["name"] in GAPS):
                assert row["escaped"] is None
    assert [row for row in damage if not (is_partial and row in GAPS_SEEN)] == []


async def test_job_control_inside_bubblewrap(place):
    async with session(INSIDE, place) as shell:
        first = asyncio.create_task(shell.send("sleep 1000"))
        await shell.send_started("sleep")
        group = (await shell.signal("SIGTSTP")).target_pgid
        assert "Stopped" in (await first).viewport
        assert group not in shell.worker.session.shell_groups()
        assert "Running" in (await shell.send("bg; jobs")).viewport
        again = asyncio.create_task(shell.send("fg"))
        await shell.send_started("sleep")
        assert (await shell.signal("SIGKILL")).target_pgid == group
        assert "Killed" in (await again).viewport
        assert (await shell.send("echo alive-$((6*7))")).viewport.count("alive-42") == 1


@pytest.mark.parametrize("way", [Way("bubblewrap", READ), Way("landlock", READ)], ids=str)
async def test_a_repl_is_exact_inside(way, place):
    async with session(way, place) as shell:
        started = await shell.send(f"{PYTHON} -q")
        assert started.evidence is Evidence.SYSCALL
        for turn in range(20):
            result = await shell.send(f"print({turn} + 1)")
            assert result.wait_reason is WaitReason.STDIN_READ
            assert result.evidence is Evidence.SYSCALL
            assert result.prompt_kind is PromptKind.LINE
            assert f"\n{turn + 1}\n" in result.viewport
        done = await shell.send("exit()")
        assert (done.evidence, done.exit_code) == (Evidence.MARKER, 0)


@pytest.mark.parametrize("way", [INSIDE, Way("landlock", READ), Way("none", FULL)], ids=str)
async def test_the_shell_is_never_killed_by_a_signal_to_the_foreground(way, place):
    async with session(way, place) as shell:
        group = shell.worker.session.parts.inspector.foreground()
        assert group in shell.worker.session.shell_groups()
        assert (group == shell.opened.info.pid) == (way.kind != "bubblewrap")
        with pytest.raises(SignalRefusedError, match="close the session"):
            await shell.signal("SIGKILL")
        assert (await shell.signal("SIGINT")).target_pgid == group
        assert (await shell.info()).status.is_running


async def test_a_worker_that_takes_over_knows_the_shell_too(place):
    config = config_in(place / "state")
    async with session(INSIDE, place, config=config) as shell:
        group = shell.worker.session.parts.inspector.foreground()
        await shell.worker.stop()
        successor = SessionWorker(config, QUICK)
        await successor.start()
        try:
            assert successor.session.sending.memory.shell_pgid == group
            with pytest.raises(SignalRefusedError):
                successor.session.signal(SignalName.SIGKILL)
            assert successor.session.parts.confinement == shell.opened.info.confinement
        finally:
            await successor.on_shutdown({})
            await successor.stop()


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
async def test_no_network_means_none(kind, place):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        command = f"(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>&1 && echo in''side"
        for network, opened in ((Network.SHARED, True), (Network.NONE, False)):
            way = Way(kind, READ, network=network)
            async with session(way, place) as shell:
                assert ("inside" in (await shell.send(command)).viewport) == opened
                assert shell.opened.info.confinement.network is network


async def test_what_cannot_be_met_is_refused_and_leaves_nothing(place):
    nothing = {"bubblewrap": None, "bubblewrap_switched": None, "landlock_abi": 0}
    for node, facts in (
        (nothing, {}),
        ({"bubblewrap_network": False, "filtered": False}, {"network": Network.NONE}),
    ):
        with pytest.raises(SandboxUnavailableError) as caught:
            async with session(INSIDE, place, node=node, **facts):
                pass
        assert caught.value.metadata["mode"] == "workspace-write"
        assert "danger-full-access" in caught.value.message


@pytest.mark.parametrize("root", ["state", "missing", "look.py"])
async def test_a_workspace_that_cannot_be_one_is_refused(root, place):
    with pytest.raises(InvalidRequestError, match=r"workspace|folder of the service"):
        async with session(INSIDE, place, workspace_root=str(place / root)):
            pass


@pytest.mark.parametrize("switched", [False, True])
async def test_a_session_without_a_workspace_gets_its_owners_own(switched, place):
    if switched and os.geteuid() != 0:
        pytest.skip("only root can run as somebody else")
    sandbox = SandboxSettings(workspace_root=f"{place}/all/{{principal}}/{{agent}}")
    settings = replace(QUICK, sandbox=sandbox)
    way = replace(INSIDE, switched=switched)
    for agent in ("a/../b", "other"):
        async with session(way, place, settings, workspace_root=None, agent=agent) as shell:
            name = agent.replace("/", "%2F")
            assert await printed(shell, "pwd; echo x > f; ls -A") == [f"{place}/all/me/{name}", "f"]
            assert (await shell.send("ls ../..")).exit_code != 0 or os.geteuid() == 0
    folder = place / "all" / "me" / "other"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.stat().st_uid == (NOBODY if switched else os.geteuid())


async def test_limits_hold_for_each_process_where_there_is_no_cgroup(place):
    facts = {"memory_max_bytes": 256 << 20, "pids_max": 40, "cpu_weight": 50}
    async with session(INSIDE, place, node={"cgroup": None}, **facts) as shell:
        confinement = shell.opened.info.confinement
        assert (confinement.limited_by, confinement.limits) == ("rlimit", ("memory",))
        assert confinement.unmet_limits == ("pids", "cpu_weight")
        assert "MemoryError" in (await shell.send(f"{PYTHON} -c 'bytearray(1 << 30)'")).viewport


async def test_processes_of_an_account_of_its_own_are_limited(place):
    if os.geteuid() != 0:
        pytest.skip("only root can run as somebody else")
    way = Way("landlock", READ, switched=True)
    async with session(way, place, node={"cgroup": None}, pids_max=16) as shell:
        assert shell.opened.info.confinement.limits == ("pids",)
        text = (await shell.send("for i in $(seq 40); do sleep 100 & done", timeout_s=10)).viewport
        assert "Resource temporarily unavailable" in text
        assert (await shell.close()).survivors == ()


async def test_a_session_joins_its_cgroup_and_a_kill_for_memory_is_told(place):
    """The hierarchy is a plain folder here: what the kernel would do is done by hand."""
    config = config_in(place / "state")
    folder = place / "cgroup" / f"fabric-{config.slot_id}"
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").touch()
    node = {"cgroup": str(place / "cgroup"), "controllers": ("memory", "pids")}
    facts = {"memory_max_bytes": 1 << 30, "pids_max": 40, "cpu_weight": 50}
    async with session(INSIDE, place, node=node, config=config, **facts) as shell:
        confinement = shell.opened.info.confinement
        assert (confinement.limited_by, confinement.limits) == ("cgroup", ("memory", "pids"))
        assert confinement.unmet_limits == ("cpu_weight",)
        written = {path.name: path.read_text() for path in folder.iterdir()}
        assert written["cgroup.procs"] == "0"
        assert written["memory.max"] == str(1 << 30)
        assert written["pids.max"] == "40"
        (folder / "memory.events").write_text("oom 1\noom_kill 1\n")
        result = await shell.send("kill -9 $$")
        assert result.wait_reason is WaitReason.SESSION_EXIT
        assert result.status.exit.detail == "oom"
        for path in folder.iterdir():
            path.unlink()
        await shell.close()
        assert not folder.exists()


async def test_a_cgroup_goes_with_an_open_that_fails(place):
    config = config_in(place / "state")
    node = {"cgroup": str(place / "cgroup"), "controllers": ()}
    (place / "cgroup").mkdir()
    with pytest.raises(SpawnFailedError):  # this folder has no file to join by
        async with session(INSIDE, place, node=node, config=config, pids_max=40):
            pass
    assert list((place / "cgroup").iterdir()) == []


async def test_a_close_that_fails_names_who_is_left_and_may_be_tried_again(place, monkeypatch):
    async with session(INSIDE, place) as shell:
        teardown = shell.worker.shim.teardown
        monkeypatch.setattr(shell.worker.shim, "teardown", leave_something)
        with pytest.raises(CleanupIncompleteError, match="stuck") as caught:
            await shell.close()
        assert caught.value.metadata["surviving_pids"] == "4711"
        assert "still-42" in (await shell.send("echo still-$((6*7))")).viewport
        monkeypatch.setattr(shell.worker.shim, "teardown", teardown)
        assert (await shell.close()).survivors == ()


async def leave_something(**_):
    return CloseReceipt(None, survivors=(EndedProcess(4711, "stuck", "SIGKILL"),))


@pytest.mark.parametrize("way", [INSIDE, Way("landlock", WRITE)], ids=str)
async def test_a_close_ends_daemons_inside_too(way, place):
    async with session(way, place) as shell:
        await shell.send("(setsid sleep 7001 &); (trap '' TERM HUP; sleep 7002; sleep 7002) &")
        root = shell.opened.info.pid
        receipt = await shell.close()
        assert receipt.survivors == ()
        assert receipt.elapsed_s < 2.5
        await eventually(lambda: not Path(f"/proc/{root}").exists())
        assert not sleeping("700")


def sleeping(mark):
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[0] == b"sleep" and words[1].startswith(mark.encode()):
                found.append(path.parent.name)
    return found
