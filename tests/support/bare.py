"""A terminal of ours on a bare PTY: master, transcript and readiness, nothing else.

The process that runs the tests is the parent and subreaper of the shells, so it stands
in for the shim.
"""

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import termios
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from fabric.core.settings import ReadinessSettings, ShellSettings
from workers.readiness.choose import inspector_for
from workers.readiness.driver import SendWatch
from workers.readiness.events import Verdict
from workers.readiness.memory import Memory
from workers.readiness.signalled import until_taken
from workers.terminal.dialects import BashDialect, Dialect, PlainDialect
from workers.terminal.master import Master
from workers.text.transcript import Transcript

NONCE = "5eed5eed5eed5eed"
_KEEP = ("PATH", "HOME", "USER", "LANG", "LC_ALL")


def base_env() -> dict[str, str]:
    """The few variables a shell of the tests inherits."""
    return {name: os.environ[name] for name in _KEEP if name in os.environ}


def spawn_on_pty(
    argv: tuple[str, ...], env: dict[str, str], *, rows: int = 40, cols: int = 160, cwd: str = "/"
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a program as the leader of a session on a new PTY; return it and the master."""
    master, slave = os.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("4H", rows, cols, 0, 0))

    def lead() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    try:
        process = subprocess.Popen(
            argv, stdin=slave, stdout=slave, stderr=slave, env=env, cwd=cwd,
            start_new_session=True, preexec_fn=lead,
        )  # fmt: skip
    finally:
        os.close(slave)
    return process, master


@dataclass(frozen=True)
class Sent:
    """What one send gave."""

    text: str
    verdict: Verdict
    elapsed_s: float
    raw: bytes
    unread: int

    @property
    def reason(self) -> str:
        return self.verdict.wait_reason.value

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self.text.split("\n")]


class BareTerminal:
    """One program on a PTY, driven as a session drives it."""

    def __init__(
        self,
        dialect: Dialect,
        settings: ReadinessSettings,
        env: dict[str, str],
        cwd: str,
        exact: bool,
    ) -> None:
        self.dialect = dialect
        self.settings = settings
        self.process, master_fd = spawn_on_pty(
            dialect.argv, base_env() | dialect.env | env, cwd=cwd
        )
        self.master = Master(master_fd)
        self.inspector = inspector_for(
            self.master, root_pid=self.process.pid, shim_pid=os.getpid(), exact=exact
        )
        self.transcript = Transcript(
            nonce=NONCE, max_lines=10_000, max_bytes=4_194_304, carry_bytes=65_536
        )
        self.raw = bytearray()
        self.watch: SendWatch | None = None
        self.memory = Memory()
        self._reaper = asyncio.get_running_loop().create_task(self._reap())
        self.master.start(self._on_data)

    def _on_data(self, data: bytes) -> None:
        self.raw += data
        marks = self.transcript.feed(data)
        if self.watch is not None:
            self.watch.output(marks, self.transcript.text_since_mark)
        else:
            self.memory.output(marks, self.transcript.text_since_mark, self.master.line)

    async def _reap(self) -> None:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        pidfd = os.pidfd_open(self.process.pid)
        loop.add_reader(pidfd, lambda: ended.done() or ended.set_result(None))
        try:
            await ended
        finally:
            loop.remove_reader(pidfd)
            os.close(pidfd)
        self.process.wait()
        await self.master.drain_last()
        if self.watch is not None:
            self.watch.exited()

    async def send(
        self,
        text: str | bytes = "",
        *,
        submit: bool = True,
        startup: bool = False,
        background: bool = False,
        timeout_s: float | None = None,
    ) -> Sent:
        """Write and wait for the verdict, as a session does."""
        data = (text.encode() if isinstance(text, str) else text) + (b"\r" if submit else b"")
        self.master.drain()
        capture = self.transcript.capture(4_194_304)
        raw_from = 0 if startup else len(self.raw)
        started = time.perf_counter()
        self.watch = watch = SendWatch(
            master=self.master,
            inspector=self.inspector,
            dialect=self.dialect,
            settings=self.settings,
            data=data,
            startup=startup,
            background=background,
            timeout_s=timeout_s,
            memory=self.memory,
        )
        try:
            await self.master.write(data)
            watch.wrote()
            verdict = await watch.verdict
            elapsed = time.perf_counter() - started
            unread = self.inspector.unread() if self.master.slave_fd >= 0 else 0
            shown = capture.render()
            return Sent(shown.text, verdict, elapsed, bytes(self.raw[raw_from:]), unread)
        finally:
            self.watch = None
            watch.close()
            capture.close()

    async def signal(self, number: signal.Signals = signal.SIGINT) -> int:
        """Signal the foreground group and wait until a reader has taken it."""
        before = self.inspector.probe()
        group = self.inspector.foreground()
        assert group is not None
        os.killpg(group, number)
        await until_taken(self.inspector, before)
        return group

    async def __aenter__(self) -> "BareTerminal":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.master.fd < 0:
            return
        for pid in self._family():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await self._reaper
        self.memory.close()
        self.master.close()

    def _family(self) -> list[int]:
        """Every process below the program, deepest first, and the program."""
        found = [self.process.pid]
        for pid in found:
            with contextlib.suppress(OSError):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
                found.extend(int(word) for word in children.split())
        return found[::-1]


async def open_bash(
    *,
    settings: ReadinessSettings | None = None,
    shell: ShellSettings | None = None,
    env: dict[str, str] | None = None,
    term: str = "dumb",
    cwd: str = "/",
    exact: bool = True,
) -> BareTerminal:
    """Start the controlled bash and wait for its first prompt."""
    dialect = BashDialect(NONCE, "ses_test", shell or ShellSettings(), term)
    terminal = BareTerminal(dialect, settings or ReadinessSettings(), env or {}, cwd, exact)
    try:
        started = await terminal.send("", submit=False, startup=True)
        assert started.reason == "stdin_read", started
    except BaseException:
        await terminal.__aexit__(None, None, None)
        raise
    return terminal


async def open_program(
    *argv: str,
    settings: ReadinessSettings | None = None,
    env: dict[str, str] | None = None,
    exact: bool = True,
) -> BareTerminal:
    """Start a program without marks; the caller waits for its start-up."""
    dialect = PlainDialect(argv, "ses_test")
    return BareTerminal(dialect, settings or ReadinessSettings(), env or {}, "/", exact)
