"""Programs that ask for input are told exactly, programs that do not are never taken so."""

import asyncio
import os
import shutil
import signal
import sys

import pytest

from fabric.core.settings import ReadinessSettings
from tests.load.readiness import run
from tests.support.bare import Sent, open_bash, open_program
from tests.support.eventually import eventually

QUICK = ReadinessSettings(idle_silence_s=0.7, timeout_s=3.0)
PYTHON = sys.executable


def python(code: str) -> str:
    return f"{PYTHON} -uc '{code}'"


def is_exact(sent: Sent) -> bool:
    return sent.reason == "stdin_read" and sent.unread == 0


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"not installed: {program}")


async def test_every_turn_of_a_python_repl_is_exact():
    async with await open_bash() as terminal:
        started = await terminal.send(f"{PYTHON} -q")
        assert is_exact(started)
        assert started.text.endswith(">>> ")
        for number in range(10):
            turn = await terminal.send(f"{number} + 1")
            assert is_exact(turn)
            assert turn.lines[-2:] == [str(number + 1), ">>>"]
            assert turn.verdict.prompt_kind == "line"
        left = await terminal.send("exit()")
        assert (left.verdict.evidence, left.verdict.prompt_kind) == ("marker", "shell")


@pytest.mark.parametrize(
    ("start", "turn", "answer", "leave"),
    [
        ("gdb -q -nx", "print 6*7", "$1 = 42", "quit"),
        ("bc -q", "6*7", "42", "quit"),
        ("dash", "echo $((6*7))", "42", "exit"),
        ("sh", "echo $((6*7))", "42", "exit"),
        ("bash --norc --noprofile", "echo $((6*7))", "42", "exit"),
        ("sqlite3", "select 6*7;", "42", ".quit"),
        ("perl -ne 'print $_ * 2, qq(\\n)'", "21", "42", "\x04"),
        ("awk '{print $1 * 2; fflush()}'", "21", "42", "\x04"),
    ],
)
async def test_other_programs_are_exact_too(start, turn, answer, leave):
    needs(start.split()[0])
    async with await open_bash() as terminal:
        assert is_exact(await terminal.send(start))
        for _ in range(2):
            sent = await terminal.send(turn)
            assert is_exact(sent), sent
            answer = answer.replace("$1", "$1") if _ == 0 else answer.replace("$1", "$2")
            assert answer in sent.lines
        left = await terminal.send(leave, submit=leave != "\x04")
        assert left.verdict.evidence == "marker"


async def test_an_event_loop_is_ready_at_its_prompt_and_not_while_it_awaits():
    needs("node")
    async with await open_bash() as terminal:
        await terminal.send("node")
        first = await terminal.send("6*7")
        assert is_exact(first)
        assert "42" in first.lines
        late = await terminal.send("await new Promise(r => setTimeout(() => r(6*8), 1300))")
        assert is_exact(late)
        assert "48" in late.lines
        assert (await terminal.send(".exit")).verdict.evidence == "marker"


async def test_ed_takes_a_whole_script_and_waits_silently():
    needs("ed")
    async with await open_bash() as terminal:
        assert is_exact(await terminal.send("ed -s"))
        typed = await terminal.send("a\nfirst\nsecond\n.\n,p")
        assert is_exact(typed)
        assert typed.lines[-3:-1] == ["first", "second"]
        assert (await terminal.send("Q")).verdict.evidence == "marker"


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("read -r -p 'name? ' x", "line"),
        ("read -r -s -p 'pw? ' x", "password"),
        ("read -r -n 1 -p 'key? ' x", "key"),
        ("select x in red blue; do break; done", "line"),
        (python('import getpass; getpass.getpass("pw? ")'), "password"),
        (python('import tty, sys; tty.setcbreak(0); sys.stdin.read(1)'), "key"),
        (python('import sys; open("/dev/tty").readline()'), "line"),
        ("less /etc/passwd", "key"),
    ],
)  # fmt: skip
async def test_what_is_asked_for_is_named(command, kind):
    async with await open_bash() as terminal:
        asked = await terminal.send(command)
        assert is_exact(asked), asked
        assert asked.verdict.prompt_kind == kind


WAITS = {
    "a thread": "import threading, sys; t = threading.Thread(target=sys.stdin.readline);"
    " t.start(); t.join()",
    "readv": "import os; os.readv(0, [bytearray(9)])",
    "select": "import select; select.select([0], [], [])",
    "select with patience": "import select; select.select([0], [], [], 30)",
    "poll": "import select; p = select.poll(); p.register(0, 1); p.poll()",
    "epoll": "import select; p = select.epoll(); p.register(0, 1); p.poll()",
    "another number": "import os; fd = os.open(os.ttyname(0), os.O_RDWR);"
    " os.dup2(fd, 77); os.close(0); os.read(77, 1)",
    "a child": "import os; os.read(0, 1) if os.fork() == 0 else os.wait()",
}


@pytest.mark.parametrize("way", WAITS)
async def test_every_way_to_wait_for_the_terminal_is_seen(way):
    async with await open_bash() as terminal:
        asked = await terminal.send(python(WAITS[way]))
        assert is_exact(asked), asked
        assert asked.verdict.evidence == "syscall"


NOT_WAITS = {
    "sleep": "sleep 60",
    "a busy loop": "while :; do :; done",
    "a pipe": python("import os; r, w = os.pipe(); os.read(r, 1)"),
    "a pipe on descriptor 0": "sleep 60 | cat",
    "a socket": python("import socket; a, b = socket.socketpair(); a.recv(1)"),
    "a futex": python("import threading; threading.Event().wait(60)"),
    "a timer by select": python("import select; select.select([], [], [], 60)"),
    "a timer by poll": python("import select; select.poll().poll(60000)"),
    "an epoll without the terminal": python(
        "import os, select; p = select.epoll(); r, w = os.pipe(); p.register(r, 1); p.poll(60)"
    ),
    "an epoll that waits to write": python(
        "import os, select; p = select.epoll(); r, w = os.pipe(); p.register(r, 1);"
        " p.register(0, 0); p.poll(60)"
    ),
    "a wait for a child": "(sleep 60)",
    "a short poll of the terminal": python(
        "import select\nwhile True: select.select([0], [], [], 0.2)"
    ),
    "another terminal": python(
        "import os, pty, tty; m, s = pty.openpty(); tty.setraw(s); os.read(s, 1)"
    ),
}


@pytest.mark.parametrize("case", NOT_WAITS)
async def test_a_program_that_waits_for_something_else_is_never_ready(case):
    async with await open_bash(settings=QUICK) as terminal:
        sent = await terminal.send(NOT_WAITS[case])
        assert sent.reason == "inferred_idle", sent
        assert sent.verdict.evidence == "silence"


async def test_output_that_flows_ends_by_the_deadline():
    async with await open_bash() as terminal:
        ticking = python("import time\nwhile True: print(1); time.sleep(0.05)")
        sent = await terminal.send(ticking, timeout_s=1.0)
        assert (sent.reason, sent.verdict.evidence) == ("timeout", "deadline")
        await terminal.signal()
        assert (await terminal.send("echo done-$((1+1))")).lines[-2:] == ["done-2", "$"]


async def test_a_background_send_waits_for_evidence_not_for_quiet():
    async with await open_bash(settings=QUICK) as terminal:
        sent = await terminal.send("sleep 1.5; echo done-$((1+1))", background=True)
        assert sent.reason == "stdin_read"
        assert "done-2" in sent.lines


async def test_an_empty_send_without_enter_keeps_the_standing_wait():
    async with await open_bash() as terminal:
        assert (await terminal.send("", submit=False)).reason == "stdin_read"
        await terminal.send("cat")
        kept = await terminal.send("", submit=False)
        assert is_exact(kept)
        part = await terminal.send("half a line", submit=False)
        assert is_exact(part)
        whole = await terminal.send(" and the rest")
        assert whole.lines[-2] == "half a line and the rest"


async def test_input_that_the_terminal_itself_eats_does_not_hang():
    async with await open_bash(settings=QUICK) as terminal:
        await terminal.send("trap '' INT; cat")
        eaten = await terminal.send("\x03", submit=False)
        assert is_exact(eaten), eaten


async def test_an_end_of_file_counts_as_input():
    async with await open_bash() as terminal:
        await terminal.send("cat; sleep 0.3; echo after-$((1+1))")
        ended = await terminal.send("\x04", submit=False)
        assert "after-2" in ended.lines
        assert ended.verdict.evidence == "marker"


async def test_a_plain_program_is_ready_without_a_word():
    async with await open_program("cat") as terminal:
        started = await terminal.send("", submit=False, startup=True)
        assert is_exact(started)
        assert (await terminal.send("hello")).lines[-3:-1] == ["hello", "hello"]


async def test_a_silent_program_never_completes_startup():
    settings = ReadinessSettings(idle_silence_s=0.2, startup_timeout_s=1.0)
    async with await open_program("sleep", "60", settings=settings) as terminal:
        started = await terminal.send("", submit=False, startup=True)
        assert started.reason == "timeout"


async def test_exit_settles_with_everything_that_was_printed():
    async with await open_bash() as terminal:
        sent = await terminal.send("seq 20000; exit 7")
        assert sent.reason == "session_exit"
        assert sent.lines[-3:-1] == ["20000", "exit"]
        assert terminal.process.returncode == 7


async def test_a_daemon_that_keeps_the_terminal_does_not_delay_the_exit(tmp_path):
    async with await open_bash() as terminal:
        note = tmp_path / "pid"
        sent = await terminal.send(
            f"sh -c 'trap \"\" HUP; echo $$ >{note}; exec sleep 61' & until [ -s {note} ]; do"
            " sleep 0.02; done; exit 3"
        )
        os.kill(int(note.read_text()), signal.SIGKILL)
        assert sent.reason == "session_exit"
        assert terminal.process.returncode == 3


async def test_without_the_exact_tier_marks_and_silence_still_tell():
    settings = ReadinessSettings(idle_silence_s=0.5)
    async with await open_bash(settings=settings, exact=False) as terminal:
        marked = await terminal.send("echo a-$((1+1)); (exit 3)")
        assert (marked.verdict.evidence, marked.verdict.exit_code) == ("marker", 3)
        many = await terminal.send("\n".join(f"echo n-$(({n}))" for n in range(9)))
        assert many.lines[-2] == "n-8"
        assert (await terminal.send("cat")).reason == "inferred_idle"
        assert (await terminal.send("\x04", submit=False)).verdict.evidence == "marker"


async def test_waiting_long_costs_little():
    async with await open_bash() as terminal:
        task = asyncio.ensure_future(terminal.send("sleep 3.2", background=True))
        await eventually(lambda: len(terminal.raw) > 40 or terminal.raw.count(b"\n") > 0)
        used = os.times()
        sent = await task
        after = os.times()
        assert sent.verdict.evidence == "marker"
        cpu = after.user + after.system - used.user - used.system
        assert cpu <= 0.06, f"{cpu:.3f} s of CPU in 3.2 s"


@pytest.mark.timeout(120)
async def test_random_sends_are_never_early_and_never_guessed():
    tallies = await run(150, seed=20240229)
    assert sum(tally.sends for tally in tallies.values()) == 150
    faults = [tally.row(name) for name, tally in tallies.items() if tally.faults]
    assert not faults, (faults, [tally.examples for tally in tallies.values()])


async def test_watching_leaves_no_descriptor(tmp_path):
    async with await open_bash() as terminal:
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        for _ in range(20):
            await terminal.send("echo x")
        assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


async def test_output_after_the_verdict_is_still_remembered():
    async with await open_bash() as terminal:
        sent = await terminal.send("sleep 0.3; echo late-$((1+1))", timeout_s=0.1)
        assert sent.reason == "timeout"
        await eventually(lambda: terminal.memory.text == "$ ")
        empty = await terminal.send("", submit=False)
        assert (empty.reason, empty.verdict.prompt_kind) == ("stdin_read", "shell")
