"""The shared terminal on a real shell: the model's half."""

import asyncio

import psutil
import pytest

from fabric.core.errors import (
    InputTooLargeError,
    QueueBlockedError,
    QueueFullError,
    SessionExitedError,
    SignalRefusedError,
    SpawnFailedError,
    StartupTimeoutError,
    UnsupportedError,
)
from fabric.core.ids import new_request_id
from fabric.core.model import WaitReason
from tests.support.eventually import eventually
from tests.support.shared_worker import shared_in
from workers.turn_table import Phase

STUBBORN = 'python3 -c "import signal,time; signal.signal(2, 1); time.sleep(99)"'


@pytest.fixture
async def shared(tmp_path):
    async with shared_in(tmp_path) as terminal:
        yield terminal


async def test_a_send_ends_at_the_prompt_with_its_own_output(shared):
    result = await shared.send("echo one; echo two")
    assert result.wait_reason is WaitReason.PROMPT
    assert result.output.splitlines()[-3:] == ["one", "two", "$ "]
    state = result.state
    assert (state.generation, state.rows, state.cols) == (1, 40, 160)
    assert (state.queue_status, state.holder, state.pending_count) == ("ready", None, 0)
    assert (state.cursor_x, state.cursor_y) == (2, 3)
    assert state.viewport.splitlines()[1:] == ["one", "two", "$"]
    assert state.sequence > 0


async def test_the_terminal_is_dumb_has_no_pager_and_its_fixed_size(shared):
    result = await shared.send("echo $TERM $PAGER; stty size")
    assert result.output.splitlines()[1:3] == ["dumb cat", "40 160"]


async def test_a_program_that_waits_for_input_ends_a_send(shared):
    result = await shared.send('read -p "name? " X; echo "[$X]"')
    assert result.wait_reason is WaitReason.STDIN_READ
    result = await shared.send("ann")
    assert result.wait_reason is WaitReason.PROMPT
    assert "[ann]" in result.output


async def test_several_lines_settle_at_their_last_prompt(shared):
    first = asyncio.create_task(shared.send("echo a\nsleep 0.2\necho b"))
    await eventually(lambda: shared.turns.holder is not None)
    second = await shared.send("echo c")
    assert (await first).output.splitlines()[-2:] == ["b", "$ "]
    assert "b" not in second.output.splitlines()
    assert second.queue_time_ms >= 100


async def test_a_timeout_interrupts_and_frees_the_queue(tmp_path):
    async with shared_in(tmp_path, operation_timeout_s=0.5) as shared:
        first = asyncio.create_task(shared.send("sleep 60"))
        await eventually(lambda: shared.turns.holder is not None)
        second = await shared.send("echo after")
        assert (await first).wait_reason is WaitReason.TIMEOUT
        assert second.wait_reason is WaitReason.PROMPT
        assert "after" in second.output


async def test_what_ignores_the_interrupt_blocks_until_a_reset(tmp_path):
    limits = {"operation_timeout_s": 2.0, "interrupt_timeout_s": 0.3}
    async with shared_in(tmp_path, **limits) as shared:
        with pytest.raises(QueueBlockedError, match="recovery failed after timeout"):
            await shared.send(STUBBORN)
        with pytest.raises(QueueBlockedError, match="blocked until reset"):
            await shared.send("echo no")
        page = await shared.read()
        assert page.state.queue_status == "blocked"
        old = shared.worker.session.parts.spawned.pid
        result = await shared.reset()
        assert (result.wait_reason, result.state.generation) == (WaitReason.PROMPT, 2)
        assert not psutil.pid_exists(old)
        assert "fresh" in (await shared.send("echo fresh")).output
        assert not shared.told


async def test_giving_up_a_send_interrupts_it(shared):
    task = asyncio.create_task(shared.send("sleep 60"))
    await shared.holds(Phase.RUNNING)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await shared.holds(Phase.READY)
    assert "ok" in (await shared.send("echo ok")).output


async def test_a_signal_reaches_the_foreground_group_and_tells_which(shared):
    await shared.send("python3 -q")
    result = await shared.signal("SIGINT")
    assert result.wait_reason is WaitReason.STDIN_READ
    assert "KeyboardInterrupt" in result.output
    assert result.process_group > 0
    result = await shared.signal("SIGKILL")
    assert result.wait_reason is WaitReason.PROMPT


async def test_the_shell_itself_is_never_killed(shared):
    with pytest.raises(SignalRefusedError):
        await shared.signal("SIGKILL")
    assert (await shared.send("echo still")).wait_reason is WaitReason.PROMPT


async def test_the_shells_end_keeps_the_screen_until_a_reset(shared):
    await shared.send("echo last words")
    result = await shared.send("exit 3")
    assert result.wait_reason is WaitReason.SESSION_EXIT
    assert result.state.status.exit.exit_code == 3
    assert "last words" in result.state.viewport
    with pytest.raises(SessionExitedError, match="queue is exited"):
        await shared.send("echo no")
    assert (await shared.read()).state.queue_status == "exited"
    result = await shared.reset()
    assert result.state.generation == 2
    assert "last words" not in result.state.viewport
    assert "back" in (await shared.send("echo back")).output


async def test_reading_counts_history_lines_from_the_oldest(shared):
    await shared.send("for i in $(seq 1 100); do echo line$i; done")
    page = await shared.read(0, 2)
    # 102 lines in all, 40 of them on the screen
    assert page.total_lines == 62
    assert (page.line_begin, page.line_end) == (60, 62)
    assert page.text == "line60\nline61"
    assert page.state.viewport.splitlines()[0] == "line62"
    page = await shared.read(60, 10)
    assert (page.line_begin, page.line_end) == (0, 2)
    page = await shared.read(1000, 10)
    assert (page.text, page.line_begin, page.line_end) == ("", 0, 0)


async def test_lines_wider_than_the_screen_count_by_their_rows(shared):
    await shared.send("for i in $(seq 1 30); do printf '%0200d\\n' $i; done")
    page = await shared.read(0, 1)
    top = page.state.viewport.splitlines()[0]
    assert page.text.endswith("11") or top.startswith("0")
    lines = page.state.viewport.splitlines()
    assert lines[-1] == "$"
    # 39 rows above the prompt: 19 whole lines and the second half of one
    assert page.text == f"{11 - 1:0200d}"


async def test_reading_takes_no_turn(shared):
    task = asyncio.create_task(shared.send("sleep 1"))
    await shared.holds(Phase.RUNNING)
    page = await shared.read()
    assert (page.state.queue_status, page.state.holder) == ("busy", "model-send")
    await task


async def test_a_repeated_request_id_runs_nothing_again(shared):
    request_id = new_request_id()
    first = await shared.send("echo x >> f; wc -l < f", request_id=request_id)
    again = await shared.send("echo x >> f; wc -l < f", request_id=request_id)
    assert again == first
    assert (await shared.send("wc -l < f")).output.splitlines()[-2].strip() == "1"
    await shared.send("rm f")


async def test_bounds_are_held(tmp_path):
    async with shared_in(tmp_path, max_input_bytes=8, max_queued_operations=1) as shared:
        with pytest.raises(InputTooLargeError, match="maxInputBytes"):
            await shared.send("12345678")
        task = asyncio.create_task(shared.send("sleep 1"))
        await shared.holds(Phase.RUNNING)
        with pytest.raises(QueueFullError, match="queue is full"):
            await shared.send("x")
        await task


async def test_ordinary_input_is_refused_on_a_shared_terminal(shared):
    with pytest.raises(UnsupportedError):
        await shared.terminal.send("echo no")
    with pytest.raises(UnsupportedError):
        await shared.terminal.signal("SIGINT")


async def test_an_ordinary_session_is_no_shared_terminal(tmp_path):
    async with shared_in(tmp_path) as shared:
        shared.worker.sharing.close()
        shared.worker.sharing = None
        with pytest.raises(UnsupportedError):
            await shared.read()


async def test_a_recovery_interrupts_each_further_program_of_the_line(tmp_path):
    """One that ends orderly on SIGINT lets the shell go on with the next."""
    orderly = "sh -c 'trap \"exit 0\" INT; echo up-$((6*7)); sleep 0.3; sleep 99'"
    limits = {"operation_timeout_s": 1.0, "interrupt_timeout_s": 5.0}
    async with shared_in(tmp_path, **limits) as shared:
        result = await shared.send(f"{orderly}; sleep 98; echo never-$((6*7))")
        assert result.wait_reason is WaitReason.TIMEOUT
        assert "up-42" in result.output
        assert "never-42" not in result.output
        assert "ok" in (await shared.send("echo ok")).output


async def test_a_shell_that_ends_or_stays_silent_at_its_start_is_no_terminal(tmp_path):
    for script, error, text in (
        ("exit 3", SpawnFailedError, "terminal exited during startup"),
        ("sleep 60", StartupTimeoutError, "terminal startup timed out before controlled prompt"),
    ):
        shell = tmp_path / f"{script.split()[0]}bash"
        shell.write_text(f"#!/bin/sh\n{script}\n")
        shell.chmod(0o755)
        folder = tmp_path / f"w{script[0]}"
        folder.mkdir()
        limits = {"shell_path": str(shell), "operation_timeout_s": 1.0}
        with pytest.raises(error, match=text):
            async with shared_in(folder, **limits):
                pass


async def test_no_credential_reaches_the_shell(tmp_path, monkeypatch):
    names = ("AWS_SECRET_X", "MY_API_KEY", "GH_TOKEN", "DB_PASSWORD", "RAY_AUTH_X", "FABRIC_TOKEN")
    for name in names:
        monkeypatch.setenv(name, "hunter2")
    async with shared_in(tmp_path) as shared:
        result = await shared.send("env | grep -c hunter2")
        assert result.output.splitlines()[1] == "0"
