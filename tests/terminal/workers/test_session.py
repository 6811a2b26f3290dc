"""A session worker through its channel: real shim, real PTY, no Ray."""

import asyncio
import signal
from pathlib import Path

import pytest

from fabric.core.errors import (
    ForeignSessionError,
    InputLineTooLongError,
    InputTooLargeError,
    InvalidRequestError,
    OwnerNotLiveError,
    RequestIdConflictError,
    SendActiveError,
    SessionExitedError,
    SessionNotFoundError,
    SignalRefusedError,
    SpawnFailedError,
    StartupTimeoutError,
)
from fabric.core.model import Caller, Evidence, Outcome, PromptKind, WaitReason
from fabric.core.plain import to_plain
from fabric.core.settings import ReadinessSettings, WorkerSettings
from tests.support.eventually import eventually
from tests.support.local_worker import CALLER, OWNER, config_in, worker_in
from workers.actor import SessionWorker

FOREIGN = Caller("own_bbbbbbbbbbbbbbbb", 1)


def lives(pid):
    return Path(f"/proc/{pid}").exists()


def quick(**readiness):
    return WorkerSettings(readiness=ReadinessSettings(**readiness))


@pytest.fixture
async def shell(tmp_path):
    async with worker_in(tmp_path) as terminal:
        await terminal.open()
        yield terminal


async def test_an_opened_shell_shows_its_prompt_and_lists_itself(shell):
    assert shell.opened.motd == "$ "
    assert shell.opened.wait_reason is WaitReason.STDIN_READ
    info = await shell.info()
    assert info.status.is_running
    assert info.pid == shell.opened.info.pid
    assert not info.busy


async def test_state_persists_and_the_exit_code_is_told(shell):
    await shell.send("cd /usr; export KEEP=loader; f() { return 7; }")
    result = await shell.send('printf "cwd=%s keep=%s\\n" "$PWD" "$KEEP"; f')
    assert "cwd=/usr keep=loader" in result.viewport.split("\n")
    assert result.exit_code == 7
    assert result.cwd == "/usr"
    assert result.evidence is Evidence.MARKER


async def test_offsets_bound_the_bytes_of_a_send(shell):
    result = await shell.send("echo hi")
    page = await shell.client.call(
        "read_bytes",
        shell.args(
            offset=result.first_offset,
            max_bytes=result.next_offset - result.first_offset,
            wait_s=0.0,
        ),
    )
    assert b"echo hi\r\n" in page["data"]
    assert page["next_offset"] == result.next_offset


async def test_prompts_are_told_apart(shell):
    assert (await shell.send('echo "a')).prompt_kind is PromptKind.CONTINUATION
    assert (await shell.send('b"')).prompt_kind is PromptKind.SHELL
    assert (await shell.send("read -p 'name? ' X")).prompt_kind is PromptKind.LINE
    assert (await shell.send("bob")).prompt_kind is PromptKind.SHELL
    assert (await shell.send("read -s -p 'pw: ' P")).prompt_kind is PromptKind.PASSWORD
    secret = await shell.send("hunter2secret")
    assert "hunter2secret" not in secret.viewport
    assert "hunter2secret" not in (await shell.read()).text


async def test_a_silent_command_times_out_without_ending(tmp_path):
    async with worker_in(tmp_path, quick(idle_silence_s=0.3, timeout_s=0.6)) as shell:
        await shell.open()
        quiet = await shell.send("sleep 30")
        assert quiet.wait_reason is WaitReason.INFERRED_IDLE
        assert (await shell.signal("SIGINT")).target_pgid != shell.opened.info.pid
        assert (await shell.send("echo back-$((6*7))")).viewport.count("back-42") == 1
        busy = await shell.send("while :; do echo tick; sleep 0.05; done")
        assert busy.wait_reason is WaitReason.TIMEOUT
        await shell.signal("SIGINT")


async def test_a_second_send_is_refused_while_one_is_active(shell):
    first = asyncio.create_task(shell.send("sleep 1000"))
    await shell.send_started("sleep")
    with pytest.raises(SendActiveError):
        await shell.send("echo two")
    await shell.signal("SIGINT")
    assert (await first).wait_reason is WaitReason.STDIN_READ


async def test_cancelling_a_send_interrupts_the_program_for_real(shell):
    task = asyncio.create_task(shell.send("sleep 1000"))
    await shell.send_started("sleep")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await shell.slot_free()
    result = await shell.send("echo status=$?")
    assert "status=130" in result.viewport


@pytest.mark.parametrize(
    ("trap", "then", "seen"),
    [
        ("exit 0", "sleep 1001; sleep 1002", 0),  # the list goes on, and is interrupted again
        ("echo caught-$((6*7))", "true", 1),  # whoever tidies up is left in peace
    ],
)
async def test_a_cancel_interrupts_each_group_of_its_send_once(shell, trap, then, seen):
    parts = "; ".join(["sleep 0.3"] * 4)
    command = f"sh -c 'trap \"{trap}\" INT; echo armed-$((6*7)); {parts}'; {then}"
    task = asyncio.create_task(shell.send(command, timeout_s=60.0))
    page = shell.worker.session.transcript.page
    await eventually(lambda: "armed-42" in page(0, 5, 4096).text)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await shell.slot_free()
    assert (await shell.read()).text.count("caught-42") == seen
    assert "here-42" in (await shell.send("echo here-$((6*7))")).viewport


async def test_a_repeated_request_id_runs_once_and_gives_the_same_answer(shell):
    await shell.send("N=0")
    first = await shell.send("N=$((N+1)); echo n=$N", request_id="req-1")
    again = await shell.send("N=$((N+1)); echo n=$N", request_id="req-1")
    assert again == first
    with pytest.raises(RequestIdConflictError):
        await shell.send("echo other", request_id="req-1")
    assert "n=1" in (await shell.send("echo n=$N")).viewport


async def test_a_repeat_joins_the_call_that_still_runs(shell):
    first = asyncio.create_task(shell.send("read X", request_id="req-2"))
    second = asyncio.create_task(shell.send("read X", request_id="req-2"))
    assert await first == await second
    await shell.send("x")


async def test_one_of_two_callers_may_leave_without_ending_the_send(shell):
    first = asyncio.create_task(shell.send("sleep 0.5; echo end-$((4*4))", request_id="req-3"))
    await shell.send_started("sleep")
    second = asyncio.create_task(shell.send("sleep 0.5; echo end-$((4*4))", request_id="req-3"))
    await shell.callers(2)
    first.cancel()
    assert "end-16" in (await second).viewport


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL", "SIGHUP"])
async def test_a_signal_reaches_the_foreground_group(shell, name):
    task = asyncio.create_task(shell.send("sleep 1000"))
    await shell.send_started("sleep")
    delivered = await shell.signal(name)
    assert delivered.target_pgid != shell.opened.info.pid
    result = await task
    number = getattr(signal, name)
    assert result.exit_code == 128 + number


async def test_stopping_the_foreground_gives_the_prompt_back(shell):
    task = asyncio.create_task(shell.send("sleep 1000"))
    await shell.send_started("sleep")
    await shell.signal("SIGTSTP")
    assert "Stopped" in (await task).viewport


async def test_sigkill_at_the_shell_is_refused(shell):
    with pytest.raises(SignalRefusedError):
        await shell.signal("SIGKILL")
    assert (await shell.info()).status.is_running


async def test_a_signal_with_a_repeated_request_id_is_sent_once(shell):
    await shell.send("trap 'C=$((C+1))' INT")
    for _ in range(3):
        await shell.signal("SIGINT", request_id="sig-1")
    assert "c=1" in (await shell.send("echo c=$C")).viewport


async def test_exit_is_reported_with_its_code_and_last_words(shell):
    result = await shell.send("echo bye-$((59*2)); exit 7")
    assert result.wait_reason is WaitReason.SESSION_EXIT
    assert result.status.exit.exit_code == 7
    assert result.status.exit.signal is None
    assert "bye-118" in result.viewport
    with pytest.raises(SessionExitedError):
        await shell.send("echo ghost")
    with pytest.raises(SignalRefusedError):
        await shell.signal("SIGINT")
    assert "bye-118" in (await shell.read()).text


async def test_an_exit_by_signal_has_no_code(shell):
    result = await shell.send("kill -9 $$")
    assert result.status.exit.exit_code is None
    assert result.status.exit.signal == "SIGKILL"


async def test_closing_ends_every_process(shell):
    await shell.send("sleep 1001 & nohup setsid sleep 1002 >/dev/null 2>&1 & disown -a")
    receipt = await shell.close()
    assert not receipt.survivors
    assert len(receipt.ended) == 3
    assert not any(lives(item.pid) for item in receipt.ended)


async def test_closing_settles_the_active_send(shell):
    task = asyncio.create_task(shell.send("sleep 1000"))
    await shell.send_started("sleep")
    await shell.close()
    assert (await task).wait_reason is WaitReason.SESSION_EXIT


async def test_foreign_stale_and_unknown_callers_are_told_apart(shell):
    with pytest.raises(ForeignSessionError):
        await shell.send("id", caller=FOREIGN)
    await shell.send("id", caller=Caller(OWNER, 2))
    with pytest.raises(OwnerNotLiveError):
        await shell.send("id", caller=CALLER)
    args = shell.args() | {"session_id": "ses_zzzzzzzzzzzzzzzz"}
    with pytest.raises(SessionNotFoundError):
        await shell.client.call("status", args)


async def test_input_that_cannot_be_taken_is_refused_before_anything_is_written(shell):
    await shell.send("cat >/dev/null")
    with pytest.raises(InputLineTooLongError):
        await shell.send("x" * 5000)
    with pytest.raises(InputTooLargeError):
        await shell.send("x" * 5_000_000)
    await shell.send("\x04", submit=False)
    assert "alive-9" in (await shell.send("echo alive-$((3*3))")).viewport


@pytest.mark.parametrize(("offset", "count"), [(-1, 5), (0, 0), (0, -1), (2**53, 1)])
async def test_wrong_pages_are_refused(shell, offset, count):
    with pytest.raises(InvalidRequestError):
        await shell.read(offset, count)


@pytest.mark.parametrize(
    ("facts", "error"),
    [
        ({"cwd": "/does/not/exist"}, SpawnFailedError),
        ({"kind": "nonsense"}, InvalidRequestError),
        ({"argv": ("/no/such/program",)}, SpawnFailedError),
        ({"argv": ("/bin/sh", "-c", "echo no; exit 3")}, SpawnFailedError),
        ({"env": (("FABRIC_X", "1"),)}, InvalidRequestError),
    ],
)
async def test_a_failed_open_says_why_and_leaves_nothing(tmp_path, facts, error):
    async with worker_in(tmp_path) as terminal:
        with pytest.raises(error):
            await terminal.open(**facts)
        assert terminal.worker.session is None


async def test_a_program_that_never_speaks_is_not_published(tmp_path):
    async with worker_in(tmp_path, quick(idle_silence_s=0.1)) as terminal:
        with pytest.raises(StartupTimeoutError):
            await terminal.open(argv=("/bin/sleep", "1000"), startup_timeout_s=0.5)
        assert terminal.worker.session is None


async def test_a_cancelled_open_leaves_nothing(tmp_path):
    async with worker_in(tmp_path) as terminal:
        task = asyncio.create_task(terminal.open(argv=("/bin/sleep", "1000")))
        await terminal.session_exists()
        pid = terminal.worker.session.parts.spawned.pid
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await terminal.session_gone()
        assert not lives(pid)


async def test_a_python_repl_is_driven_turn_by_turn(tmp_path):
    async with worker_in(tmp_path) as repl:
        opened = await repl.open("python")
        assert opened.motd.endswith(">>> ")
        result = await repl.send("6*7")
        assert result.viewport == "6*7\n42\n>>> "
        assert result.evidence is Evidence.SYSCALL
        assert result.prompt_kind is PromptKind.LINE


async def test_another_worker_adopts_the_same_shell(tmp_path):
    config = config_in(tmp_path)
    async with worker_in(tmp_path, config=config) as first:
        await first.open()
        await first.send("cd /usr; X=42; sleep 1000 & echo started")
        pid = first.opened.info.pid
        # The worker dies without a word: its connections drop, its memory is gone.
        await first.worker.stop()
        async with worker_in(tmp_path, config=config) as second:
            second.spec = first.spec
            info = await second.info()
            assert (info.pid, info.adoption) == (pid, 2)
            assert "started" in (await second.read()).text
            result = await second.send("echo x=$X $PWD $(jobs -r | wc -l)")
            assert "x=42 /usr 1" in result.viewport
            assert result.evidence is Evidence.MARKER


async def test_a_send_under_way_when_its_worker_died_is_unknown_and_never_run_again(tmp_path):
    config = config_in(tmp_path)
    async with worker_in(tmp_path, config=config) as first:
        await first.open()
        await first.send("N=0")
        text = "N=$((N+1)); sleep 1000"
        task = asyncio.create_task(first.send(text, request_id="req-x"))
        await first.send_started("sleep")
        await first.worker.stop()
        with pytest.raises(Exception, match=r"went away|cancelled"):
            await task
        async with worker_in(tmp_path, config=config) as second:
            second.spec = first.spec
            again = await second.send(text, request_id="req-x")
            assert again.outcome is Outcome.UNKNOWN
            await second.signal("SIGINT")
            assert "n=1" in (await second.send("echo n=$N")).viewport


async def test_a_background_send_is_collected_and_killed(shell):
    request = {
        "request_id": "bg-1",
        "data": b"echo early; read X; echo late-$X",
        "background": True,
    }
    record = await shell.client.call("start_task", shell.args(request=request))
    task_id = record["task_id"]
    output = await shell.client.call(
        "task_output", shell.args(task_id=task_id, cursor=-1, wait_s=5.0)
    )
    assert output["record"]["state"] == "completed"
    assert "early" in output["text"]
    assert (await shell.client.call("start_task", shell.args(request=request)))[
        "task_id"
    ] == task_id
    await shell.send("y")
    request = {"request_id": "bg-2", "data": b"sleep 1000", "background": True}
    record = await shell.client.call("start_task", shell.args(request=request))
    await shell.send_started("sleep")
    with pytest.raises(SendActiveError):
        await shell.send("x")
    await shell.client.call("kill_task", shell.args(task_id=record["task_id"]))
    output = await shell.client.call(
        "task_output", shell.args(task_id=record["task_id"], cursor=-1, wait_s=5.0)
    )
    assert output["record"]["state"] == "killed"


async def test_waits_end_at_the_first_condition(shell):
    async def wait(timeout_s=5.0, **condition):
        args = shell.args(condition=condition, timeout_s=timeout_s)
        return await shell.client.call("wait_for", args)

    task = asyncio.create_task(wait(pattern=r"port \d+"))
    await shell.watched()
    await shell.send("echo port $((80*100))")
    found = await task
    assert (found["matched"], found["match_text"]) == ("pattern", "port 8000")
    assert (await wait(pattern=r"port \d+", since_offset=0))["matched"] == "pattern"
    assert (await wait(ready=True))["matched"] == "ready"
    assert (await wait(quiet_s=0.05))["matched"] == "quiet"
    assert (await wait(timeout_s=0.05, pattern="never"))["matched"] == "timeout"
    task = asyncio.create_task(wait(exit=True))
    await shell.watched()
    await shell.send("exit 3")
    ended = await task
    assert ended["matched"] == "exit"
    assert ended["status"]["exit"]["exit_code"] == 3


async def test_followers_get_every_byte_once_and_an_end(shell):
    async def follow():
        return [page async for page in shell.client.stream("follow", shell.args(offset=0))]

    tasks = [asyncio.create_task(follow()) for _ in range(3)]
    await shell.send("seq 20000")
    await shell.send("exit")
    whole = None
    for task in tasks:
        pages = await task
        data = b"".join(page["data"] for page in pages)
        assert pages[-1]["ended"]
        assert whole in (None, data)
        whole = data
    assert whole.count(b"\r\n") > 20000
    assert to_plain(CALLER)


async def test_a_worker_object_can_stop_twice(tmp_path):
    worker = SessionWorker(config_in(tmp_path), WorkerSettings())
    await worker.start()
    await worker.on_shutdown({})
    await worker.stop()
    await worker.stop()


async def test_text_sent_right_after_a_signal_at_the_prompt_is_whole(shell):
    for round_number in range(20):
        await shell.signal("SIGINT")
        result = await shell.send(f"echo whole-$(({round_number}+0))")
        assert f"\nwhole-{round_number}\n" in result.viewport


async def test_a_wait_for_readiness_sees_what_no_send_has_proved(tmp_path):
    async with worker_in(tmp_path, quick(idle_silence_s=0.2, timeout_s=0.3)) as shell:
        await shell.open()
        assert (await shell.send("sleep 1000")).wait_reason is WaitReason.INFERRED_IDLE

        async def ready(timeout_s):
            args = shell.args(condition={"ready": True}, timeout_s=timeout_s)
            return (await shell.client.call("wait_for", args))["matched"]

        assert await ready(0.2) == "timeout"
        await shell.signal("SIGINT")
        assert await ready(5.0) == "ready"
