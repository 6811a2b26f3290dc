"""A terminal without a process: a few commands of a shell, enough for the calls around it."""

import asyncio
from dataclasses import dataclass, field

from fabric.core.errors import CursorExpiredError, SendActiveError, SessionExitedError
from fabric.core.model import (
    BytesPage,
    Evidence,
    ExitStatus,
    Outcome,
    PromptKind,
    ReadPage,
    ScreenSnapshot,
    SendRequest,
    SendResult,
    SessionStatus,
    TailPage,
    WaitReason,
)

PROMPT = "$ "
DEFAULT_TIMEOUT_S = 30.0


@dataclass
class FakeTerminal:
    """Understands `echo`, `sleep`, `exit`, `true` and `false`."""

    rows: int = 40
    cols: int = 160
    log: bytearray = field(default_factory=lambda: bytearray(PROMPT.encode()))
    oldest: int = 0
    exit: ExitStatus | None = None
    exit_code: int = 0
    busy: bool = False
    interrupted: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    tails: dict[str, int] = field(default_factory=dict)
    cancelled: int = 0
    cleaned: int = 0
    clean_up_held: asyncio.Event | None = None

    @property
    def status(self) -> SessionStatus:
        return SessionStatus(self.exit)

    @property
    def end(self) -> int:
        return self.oldest + len(self.log)

    def print(self, text: str) -> None:
        self.log += text.encode()
        self._wake()

    def _wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    def text(self, since: int = 0) -> str:
        return self.log[max(0, since - self.oldest) :].decode(errors="replace")

    def require_running(self) -> None:
        if self.exit is not None:
            raise SessionExitedError("the session's process has ended")

    def reserve(self) -> None:
        self.require_running()
        if self.busy:
            raise SendActiveError("the session already has an active send")
        self.busy = True
        self.interrupted.clear()

    async def send(self, request: SendRequest) -> SendResult:
        self.reserve()
        return await self.run(request)

    async def run(self, request: SendRequest) -> SendResult:
        start = self.end
        timeout = request.timeout_s or (None if request.background else DEFAULT_TIMEOUT_S)
        reason = WaitReason.STDIN_READ
        command = asyncio.ensure_future(self._obey(request.data.decode(errors="replace")))
        try:
            async with asyncio.timeout(timeout):
                await asyncio.shield(command)
        except TimeoutError:
            reason = WaitReason.TIMEOUT
        except asyncio.CancelledError:
            self.cancelled += 1
            self.interrupted.set()
            await command
            if self.clean_up_held is not None:
                await self.clean_up_held.wait()
            self.cleaned += 1
            raise
        finally:
            if reason is not WaitReason.TIMEOUT:
                self.busy = False
            else:
                command.add_done_callback(lambda _: setattr(self, "busy", False))
        if self.exit is not None:
            reason = WaitReason.SESSION_EXIT
        ready = reason is WaitReason.STDIN_READ
        return SendResult(
            viewport=self.text(start),
            wait_reason=reason,
            status=self.status,
            evidence=Evidence.MARKER if ready else Evidence.DEADLINE,
            prompt_kind=PromptKind.SHELL if ready else PromptKind.NONE,
            exit_code=self.exit_code if ready else None,
            first_offset=start,
            next_offset=self.end,
            outcome=Outcome.COMPLETED,
            elapsed_s=0.001,
        )

    async def _obey(self, line: str) -> None:
        self.print(line + "\n")
        word, _, rest = line.strip().partition(" ")
        self.exit_code = 0
        if word == "echo":
            self.print(rest + "\n")
        elif word == "sleep":
            try:
                async with asyncio.timeout(float(rest)):
                    await self.interrupted.wait()
                    self.exit_code = 130
                    self.print("^C\n")
            except TimeoutError:
                pass
        elif word == "exit":
            self.finish(ExitStatus(exit_code=int(rest or 0)))
            return
        elif word == "false":
            self.exit_code = 1
        elif word not in ("", "true"):
            self.exit_code = 127
            self.print(f"bash: {word}: command not found\n")
        self.print(PROMPT)

    def finish(self, status: ExitStatus) -> None:
        if self.exit is None:
            self.exit = status
        self.interrupted.set()
        self._wake()

    def read(self, offset: int, count: int) -> ReadPage:
        lines = self.text().split("\n")
        end = max(0, len(lines) - offset)
        begin = max(0, end - count)
        return ReadPage("\n".join(lines[begin:end]), len(lines), begin, end, False)

    def tail(self, consumer: str, lines: int) -> TailPage:
        whole = self.text().split("\n")[:-1]
        new = whole[self.tails.get(consumer, 0) :]
        self.tails[consumer] = len(whole)
        shown = new[-lines:]
        text = "".join(line + "\n" for line in shown)
        return TailPage(text, len(shown), len(shown) < len(new), len(whole))

    def snapshot(self) -> ScreenSnapshot:
        lines = self.text().split("\n")[-self.rows :]
        return ScreenSnapshot(
            self.rows,
            self.cols,
            tuple(lines),
            len(lines) - 1,
            len(lines[-1]),
            True,
            False,
            self.end,
        )

    def drop(self, count: int) -> None:
        """Forget the oldest ``count`` bytes, as a full ring does."""
        del self.log[:count]
        self.oldest += count

    def page(self, offset: int, max_bytes: int) -> BytesPage:
        if offset < self.oldest:
            raise CursorExpiredError("dropped", oldest_offset=self.oldest)
        data = bytes(self.log[offset - self.oldest :][:max_bytes])
        ended = self.exit is not None and offset + len(data) >= self.end
        return BytesPage(offset, data, offset + len(data), self.oldest, ended)

    async def read_bytes(self, offset: int, max_bytes: int, wait_s: float) -> BytesPage:
        try:
            async with asyncio.timeout(wait_s):
                while offset >= self.end and self.exit is None and wait_s:
                    await self.changed.wait()
        except TimeoutError:
            pass
        return self.page(offset, max_bytes)
