"""The controlled bash under what users and scripts do to their shell."""

import asyncio
import os
import shutil

import pytest

from fabric.core.settings import ReadinessSettings, ShellSettings
from tests.support.bare import NONCE, BareTerminal, open_bash

QUICK = ReadinessSettings(idle_silence_s=0.7, timeout_s=4.0)


async def marked(terminal: BareTerminal, text: str) -> list[str]:
    """Send, insist on a verdict by the mark, return the lines between echo and prompt."""
    sent = await terminal.send(text)
    assert sent.verdict.evidence == "marker", sent
    assert sent.lines[-1] == "$", sent
    return sent.lines[1:-1]


async def test_the_last_status_is_reported_and_kept():
    async with await open_bash() as terminal:
        for code in (0, 1, 37, 255):
            assert (await terminal.send(f"(exit {code})")).verdict.exit_code == code
            assert await marked(terminal, "echo $?") == [str(code)]


async def test_pipe_statuses_and_the_last_argument_survive_a_prompt():
    async with await open_bash() as terminal:
        assert await marked(terminal, "true | (exit 3) | false; echo ${PIPESTATUS[@]}") == ["0 3 1"]
        await marked(terminal, "(exit 4) | true | (exit 5)")
        assert await marked(terminal, 'echo "${PIPESTATUS[@]}"') == ["4 0 5"]
        await marked(terminal, "true some-last-arg")
        assert await marked(terminal, 'echo "$_"') == ["some-last-arg"]


async def test_nothing_of_the_control_reaches_children():
    async with await open_bash() as terminal:
        names = "PS0|PS1|PS2|PROMPT_COMMAND|PIPESTATUS|HISTFILE|INPUTRC|__fabric"
        look = f"env | grep -acE '^({names})='; env | grep -c {NONCE[:9]}"
        assert await marked(terminal, look) == ["0", "0"]
        await marked(terminal, "set -a; true")
        await marked(terminal, "PS1=x")
        assert await marked(terminal, look) == ["0", "0"]


@pytest.mark.parametrize(
    "change",
    [
        "PS1='custom$ '",
        "PS1=''",
        'PS1="(venv) $PS1"',
        "PS1=a PS2=b PS0=c",
        "unset PS1 PS2 PS0",
        "export PS1='(base) $ '",
        "shopt -u promptvars",
        "set -o posix",
        "set -u",
        "set -f",
        "set -T; trap 'echo trapped >&2' DEBUG; trap - DEBUG",
        "printf() { command printf x; }; export() { echo y; }",
        "alias printf='echo z' export='echo z' builtin='echo z'",
        "PROMPT_COMMAND='PS1=mine'",
        "IFS=abc$",
        "LC_ALL=C",
        "trap 'echo err' ERR",
        "set +m",
        "set -o vi",
    ],
)
async def test_a_changed_shell_is_itself_again_at_the_next_prompt(change):
    async with await open_bash(settings=QUICK) as terminal:
        await marked(terminal, change)
        sent = await terminal.send("(exit 7)")
        assert (sent.verdict.evidence, sent.verdict.exit_code) == ("marker", 7), sent
        many = await terminal.send("echo $((6*7))\necho $((6*8))")
        assert many.lines[-2:] == ["48", "$"], many
        assert "42" in many.lines


async def test_errexit_lets_a_session_live_until_the_users_own_failure():
    async with await open_bash() as terminal:
        await marked(terminal, "set -e")
        await marked(terminal, "PS1=custom")
        assert await marked(terminal, "echo $((1+1))") == ["2"]
        ended = await terminal.send("false")
        assert ended.reason == "session_exit"
        assert terminal.process.returncode == 1


async def test_tracing_shows_the_users_commands_only():
    async with await open_bash() as terminal:
        await marked(terminal, "set -x")
        assert await marked(terminal, "echo a") == ["+ echo a", "a"]
        assert await marked(terminal, "PS1=x") == ["+ PS1=x"]
        assert await marked(terminal, "echo b") == ["+ echo b", "b"]


async def test_a_debug_trap_sees_the_users_commands_only():
    async with await open_bash() as terminal:
        await marked(terminal, "trap 'echo dbg' DEBUG")
        assert await marked(terminal, "echo a") == ["dbg", "a"]
        assert await marked(terminal, "echo b") == ["dbg", "b"]


async def test_a_read_only_foreign_prompt_is_a_wait_like_any_other():
    async with await open_bash(settings=QUICK) as terminal:
        await terminal.send("PS1='mine> '; readonly PS1")
        sent = await terminal.send("echo $((6*7))")
        assert (sent.reason, sent.verdict.evidence) == ("stdin_read", "syscall")
        assert sent.lines[1:] == ["42", "mine>"]


async def test_the_hook_may_be_removed_and_the_mark_stays():
    async with await open_bash() as terminal:
        await marked(terminal, "unset PROMPT_COMMAND; unset -f __fabric_prompt")
        assert (await terminal.send("(exit 9)")).verdict.exit_code == 9


@pytest.mark.parametrize(
    "inner",
    [
        "bash",
        "bash -i",
        "bash --norc",
        "dash",
        "exec bash",
        "exec bash -i",
        "sh",
        "su -s /bin/bash",
    ],
)
async def test_an_inner_shell_without_marks_is_exact_and_has_no_exit_code(inner):
    """What `dialects.py` promises a caller there; the outer shell has its marks back after it."""
    if shutil.which(inner.removeprefix("exec ").split()[0]) is None:
        pytest.skip(f"not installed: {inner}")
    if inner.startswith("su") and os.geteuid() != 0:
        pytest.skip("su asks for a password here")
    async with await open_bash() as terminal:
        entered = await terminal.send(inner)
        assert (entered.reason, entered.verdict.evidence) == ("stdin_read", "syscall")
        for number in (6, 7):
            turn = await terminal.send(f"echo $(({number}*7))")
            assert (turn.reason, turn.verdict.evidence) == ("stdin_read", "syscall")
            assert (turn.verdict.prompt_kind, turn.verdict.exit_code) == ("line", None)
            assert str(number * 7) in turn.lines
        piped = await terminal.send("(exit 3) | (exit 4); echo p-${PIPESTATUS[*]}")
        if "bash" in inner:
            assert "p-3 4" in piped.lines, "an inner bash is as bash is by itself"
        left = await terminal.send("exit 5")
        if inner.startswith("exec"):
            assert left.reason == "session_exit"
            assert terminal.process.returncode == 5
        else:
            assert (left.verdict.evidence, left.verdict.exit_code) == ("marker", 5)


async def test_a_shell_that_prints_elsewhere_is_seen_by_its_sleep():
    async with await open_bash(settings=QUICK) as terminal:
        gone = await terminal.send("exec 3>&1 4>&2 >/dev/null 2>&1")
        assert (gone.reason, gone.verdict.evidence) == ("stdin_read", "syscall")
        assert (await terminal.send("true")).reason == "stdin_read"
        await terminal.send("exec >&3 2>&4")
        assert await marked(terminal, "echo $((6*7))") == ["42"]


@pytest.mark.parametrize("nonce", [NONCE, "0123456789abcdef"])
async def test_a_forged_prompt_does_not_end_the_wait(nonce):
    forged = f"printf '\\033]133;D;{nonce};0\\007$ '"
    async with await open_bash() as terminal:
        by_program = await terminal.send(f'sh -c "{forged}; sleep 0.4"; echo; echo e-$((1+1))')
        assert "e-2" in by_program.lines
        by_builtin = await terminal.send(
            f"{forged}; read -t 0.4 x </dev/zero; sleep 0.4; echo f-$((1+1))"
        )
        assert any(line.endswith("f-2") for line in by_builtin.lines)


async def test_machine_typed_text_is_taken_as_it_is():
    async with await open_bash() as terminal:
        assert await marked(terminal, 'echo "a!!b!c" ^a^b') == ["a!!b!c ^a^b"]
        assert await marked(terminal, "printf '%s\\n' 'a\tb' | tr '\\t' '@'") == ["a@b"]
        assert await marked(terminal, "printf '%s\\n' 'grüße 漢字 🙂'") == ["grüße 漢字 🙂"]
        assert await marked(terminal, "echo $HISTFILE:$TMOUT:$MAILCHECK") == ["::"]
        assert await marked(terminal, "stty -a | grep -o -- '-ixon'") == ["-ixon"]


async def test_an_unclosed_quote_is_a_continuation():
    async with await open_bash() as terminal:
        opened = await terminal.send("echo 'a")
        assert (opened.verdict.evidence, opened.verdict.prompt_kind) == ("marker", "continuation")
        await terminal.signal()
        assert await marked(terminal, "echo $((6*7))") == ["42"]


async def test_many_lines_settle_at_the_last_prompt():
    async with await open_bash() as terminal:
        text = "\n".join(f"sleep 0.01; echo $(({n}*2))" for n in range(20))
        sent = await terminal.send(text)
        assert sent.verdict.evidence == "marker"
        assert sent.lines[-2] == "38"
        follower = await terminal.send("echo $((1+1))")
        assert follower.lines[-2:] == ["2", "$"]


async def test_a_job_notice_before_the_prompt_changes_nothing():
    async with await open_bash() as terminal:
        await marked(terminal, "sleep 0.2 &")
        lines = await marked(terminal, "sleep 0.4")
        assert any("Done" in line for line in lines)


@pytest.mark.parametrize("term", ["xterm-256color", "vt100", "screen"])
async def test_capable_terminals_have_the_same_prompts(term):
    async with await open_bash(term=term) as terminal:
        for number in range(3):
            sent = await terminal.send(f"echo $(({number}*7))")
            assert sent.verdict.evidence == "marker"
            assert sent.lines[-2:] == [str(number * 7), "$"]


@pytest.mark.parametrize("prompt", ["$ ", "fabric> ", '`x` $HOME \\w "q" ', "→ "])
async def test_any_text_can_be_the_prompt(prompt):
    async with await open_bash(shell=ShellSettings(prompt=prompt)) as terminal:
        for code in (0, 3):
            sent = await terminal.send(f"(exit {code})")
            assert (sent.verdict.evidence, sent.verdict.exit_code) == ("marker", code)
        assert sent.text.endswith("\n" + prompt)


async def test_startup_files_may_do_what_they_like(tmp_path):
    (tmp_path / ".bashrc").write_text(
        "PS1='mine$ '\nPROMPT_COMMAND=\"$PROMPT_COMMAND; true\"\necho from-bashrc\n"
    )
    shell = ShellSettings(read_startup_files=True)
    async with await open_bash(shell=shell, env={"HOME": str(tmp_path)}) as terminal:
        assert b"from-bashrc" in terminal.raw
        assert (await terminal.send("(exit 7)")).verdict.exit_code == 7
        assert await marked(terminal, "true | false; echo ${PIPESTATUS[@]}") == ["0 1"]


async def test_many_shells_at_once_do_not_disturb_each_other():
    async def one(number: int) -> None:
        async with await open_bash() as terminal:
            for turn in range(5):
                lines = await marked(terminal, f"echo {number}-$(({turn}*2))")
                assert lines == [f"{number}-{turn * 2}"]

    await asyncio.gather(*[one(number) for number in range(8)])


async def test_text_typed_right_after_an_interrupt_keeps_its_beginning():
    async with await open_bash() as terminal:
        for number in range(15):
            await terminal.send("echo junk", submit=False)
            await terminal.signal()
            sent = await terminal.send(f"echo $(({number}*7))")
            assert sent.verdict.exit_code == 0, sent
            assert sent.lines[-2] == str(number * 7)
