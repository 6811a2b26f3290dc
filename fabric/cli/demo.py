"""``make demo``: an agent's session through a whole fabric on this machine, and its end.

Everything is real: a one-machine Ray cluster, the gateway, the client a harness would use.
Each step says what it does, what came of it and how long it took, and checks it; the exit
code is 0 only if every step was as expected and no process was left.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabric.cli import processes
from fabric.cli.hints import hint_for
from fabric.cli.output import Output
from fabric.client.client import FabricClient
from fabric.client.session import Session
from fabric.core.errors import FabricError, ForeignSessionError
from fabric.core.model import SandboxMode, SendResult, TaskState
from fabric.core.neighbours import refuse_the_ssh_library

# The demo types harmless commands only; a confined mode needs a node that can confine,
# which a container often cannot.
MODE = SandboxMode.DANGER_FULL_ACCESS
_SETTLE_S = 10.0
_TASK_WAIT_S = 30.0
_WARM_S = 60.0
_LOOK_EVERY_S = 0.1
_SHOWN_LINES = 6


class UnexpectedError(Exception):
    """A step did not give what it should."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """Where the fabric of this demo listens."""

    address: str
    token: str


def _say(text: str = "") -> None:
    print(text, flush=True)


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise UnexpectedError(what)


def _show(text: str) -> None:
    lines = text.rstrip("\n").splitlines()
    cut = len(lines) - _SHOWN_LINES
    for line in lines if cut <= 0 else [*lines[:2], f"... {cut} lines ...", *lines[cut + 2 :]]:
        _say(f"    | {line}")


class Transcript:
    """Numbers the steps and measures them."""

    def __init__(self) -> None:
        self.steps = 0

    @contextlib.asynccontextmanager
    async def step(self, title: str) -> AsyncIterator[None]:
        """Run one step; says how long it took."""
        self.steps += 1
        _say(f"\n{self.steps:2}. {title}")
        began = time.monotonic()
        yield
        _say(f"    {1000 * (time.monotonic() - began):.1f} ms")


async def _send(session: Session, text: str, want: str, **options: float) -> SendResult:
    result = await session.send(text, timeout_s=options.get("timeout_s"))
    _show(result.viewport)
    code = f", exit code {result.exit_code}" if result.exit_code is not None else ""
    _say(f"    [{result.wait_reason}, by {result.evidence}{code}]")
    _expect(want in result.viewport, f"the output holds {want!r}")
    return result


async def _warm(client: FabricClient) -> None:
    async with asyncio.timeout(_WARM_S):
        # The pool is another process's: there is no event here to wait for.
        while not any(node.warm for node in await client.nodes()):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_EVERY_S)
    for node in await client.nodes():
        _say(f"    node {node.host}: {node.warm} warm, room for {node.max_sessions} sessions")


async def shell_keeps_its_state(script: Transcript, shell: Session) -> None:
    """Directory, variables and exit codes last from one send to the next."""
    async with script.step("cd and export in one send ..."):
        await _send(shell, "cd /usr && export GREETING='hello from the same shell'", "")
    async with script.step("... are still there in the next"):
        await _send(shell, 'pwd; echo "$GREETING"', "/usr\nhello from the same shell")
    async with script.step("the exit code of a command comes with its output"):
        result = await _send(shell, "ls /no/such/folder", "No such file")
        _expect(result.exit_code not in (0, None), "a failed command has its exit code")


async def python_turn_by_turn(script: Transcript, client: FabricClient) -> None:
    """A REPL: each turn ends when it wants the next line, not after a pause."""
    async with script.step("open a Python REPL"):
        repl = await client.open("python", name="repl")
        _show(repl.opened.motd if repl.opened else "")
    for text, want in (
        ("squares = [n * n for n in range(10)]", ">>> "),
        ("sum(squares)", "285"),
        ("for n in (2, 3):", "..."),
        ("    print('square', squares[n])\n", "square 9"),
    ):
        async with script.step(f"type {text.strip()!r}"):
            await _send(repl, text, want)


async def interrupt(script: Transcript, shell: Session) -> None:
    """A real SIGINT to the foreground group; the shell lives on."""
    async with script.step("start `sleep 1000` and take a verdict after 0.5 s"):
        result = await _send(shell, "sleep 1000", "", timeout_s=0.5)
        _expect(result.wait_reason == "timeout", "a sleeping program wants no input")
    async with script.step("interrupt it with SIGINT"):
        delivered = await shell.signal("SIGINT")
        _say(f"    delivered to process group {delivered.target_pgid}")
        result = await _send(shell, "echo status $?", "status 130")
        _expect("\nstatus 130" in result.viewport, "the shell says that SIGINT ended it")
    async with script.step("and the shell is still the same one"):
        await _send(shell, 'echo "$GREETING"', "\nhello from the same shell")


async def page_back(script: Transcript, shell: Session) -> None:
    """Scrollback is read in pages, counted back from the newest line."""
    async with script.step("print 2000 lines"):
        await _send(shell, "seq 2000", "2000")
    async with script.step("read a page of it: 5 lines, 1000 back from the newest"):
        page = await shell.read(offset=1000, count=5)
        _show(page.text)
        _say(f"    [lines {page.line_begin}-{page.line_end} of {page.total_lines}]")
        numbers = [int(line) for line in page.text.split()]
        _expect(numbers == list(range(numbers[0], numbers[0] + 5)), "five lines in a row")


async def refuse_a_stranger(script: Transcript, gateway: Gateway, shell: Session) -> None:
    """Another agent knows the id and gets nothing."""
    async with (
        script.step("another agent tries to read the first one's session"),
        FabricClient.connect(gateway.address, token=gateway.token, agent="stranger") as stranger,
    ):
        try:
            await stranger.session(shell.id).read()
        except ForeignSessionError as error:
            _say(f"    refused: {error.message} [{error.reason}]")
        else:
            raise UnexpectedError("a foreign caller is refused")


async def work_in_the_background(script: Transcript, shell: Session) -> None:
    """A long command as a task, read in parts."""
    async with script.step("start a command in the background; the call returns at once"):
        task = await shell.send_background("for n in 1 2 3; do echo part $n; sleep 0.2; done")
        _say(f"    task {task.id} is {task.record.state}")
    async with script.step("and wait for its end"):
        text = ""
        async with asyncio.timeout(_TASK_WAIT_S):
            while task.is_running:
                text += (await task.output(wait_s=_SETTLE_S)).text
        _show(text)
        _say(f"    task {task.id} is {task.record.state}: {task.record.detail}")
        _expect(task.record.state is TaskState.COMPLETED, "the task is completed")
        _expect("part 3" in text, "its whole output arrived")


async def list_and_close(script: Transcript, client: FabricClient) -> None:
    """List what is open, close it, and see that its processes have ended."""
    async with script.step("list the agent's sessions"):
        rows = await client.list()
        for info in rows:
            _say(f"    {info.session_id} ({info.name}) [{info.type}] pid={info.pid}")
        _expect({info.name for info in rows} == {"main", "repl"}, "both sessions are listed")
    for info in rows:
        async with script.step(f"close {info.name}"):
            result = await client.session(info.session_id).close()
            ended = result.receipt.ended if result.receipt else ()
            _say(f"    {result.outcome}; processes ended and verified: {len(ended)}")
    _expect(not await client.list(), "nothing is listed any more")


async def play(gateway: Gateway) -> int:
    """Run the whole transcript; returns the number of steps."""
    script = Transcript()
    async with FabricClient.connect(
        gateway.address, token=gateway.token, agent="demo", mode=MODE
    ) as client:
        _say(f"\nagent 'demo' owns what it opens; sandbox mode: {client.owner.mode}")
        async with script.step("the node keeps slots warm for the next opens; wait for the first"):
            await _warm(client)
        async with script.step("open a shell"):
            shell = await client.open("shell", name="main")
            info = shell.opened.info if shell.opened else None
            _say(f"    session {shell.id}, pid {info.pid if info else '?'}")
        await shell_keeps_its_state(script, shell)
        await python_turn_by_turn(script, client)
        await interrupt(script, shell)
        await page_back(script, shell)
        await refuse_a_stranger(script, gateway, shell)
        await work_in_the_background(script, shell)
        await list_and_close(script, client)
    return script.steps


def _fabric(state_dir: str, *arguments: str) -> str:
    """Run one command of ours on the demo's own state folder; returns what it printed."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("FABRIC_")}
    done = subprocess.run(
        [sys.executable, "-m", "fabric.cli", *arguments, "--json"],
        env=environ | {"FABRIC_STATE_DIR": state_dir},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise UnexpectedError(f"fabric {' '.join(arguments)} succeeds (code {done.returncode})")
    return done.stdout


def _nothing_left() -> None:
    """Wait until no process is below us. Raises: UnexpectedError naming what is left."""
    deadline = time.monotonic() + _SETTLE_S
    while True:
        processes.reap_orphans()
        left = processes.below()
        if not left:
            return
        if time.monotonic() > deadline:
            names = ", ".join(f"{item.name} ({item.pid})" for item in left)
            raise UnexpectedError(f"no process is left; there are: {names}")
        time.sleep(0.05)


def main(argv: Sequence[str] = ()) -> int:
    """Run the demo; returns the exit code."""
    began = time.monotonic()
    processes.adopt_orphans()
    try:
        refuse_the_ssh_library()
        with tempfile.TemporaryDirectory(prefix="fabric-demo-") as state_dir:
            _say("starting a fabric of its own on this machine (Ray, registry, node, gateway):")
            try:
                record = json.loads(_fabric(state_dir, "up", "--detach"))
                token = Path(state_dir, "gateway.token").read_text(encoding="utf-8").strip()
                _say(f"it listens on {record['gateway']} after {time.monotonic() - began:.1f} s")
                steps = asyncio.run(play(Gateway(record["gateway"], token)))
            finally:
                _say("\nstopping everything:")
                _fabric(state_dir, "down")
            _nothing_left()
    except UnexpectedError as error:
        _say(f"\nNOT AS EXPECTED: it should be that {error}")
        return 1
    except FabricError as error:
        Output().error(error, hint_for(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    _say(
        f"\nall {steps} steps as expected, no process left, {time.monotonic() - began:.1f} s in all"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
