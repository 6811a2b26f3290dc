"""``fabric attach``: a session in the user's own terminal.

The terminal is put into raw mode, so every key but the detach key goes to the session, and
what the session prints is written as it is. Size changes are passed on. Whatever way this
ends (detached, session over, an error, a signal), the terminal gets back the settings it
had, and what programs may have asked of it (alternate screen, mouse, key modes) is undone.
A stop signal gives the terminal back for as long as this process is stopped.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Callable
from functools import partial
from typing import Any

from fabric.cli.connect import connected
from fabric.cli.context import Context
from fabric.cli.terminals import resolve
from fabric.client.attach import Attachment
from fabric.client.session import Session
from fabric.core.attach import AttachEvent, AttachKind
from fabric.core.errors import (
    DrainingError,
    GatewayUnavailableError,
    InvalidRequestError,
)
from fabric.core.model import SessionStatus

DEFAULT_DETACH_KEY = "Ctrl-]"
INPUT_BYTES = 65_536
REATTACH_S = 30.0
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 3.0
REDRAW_S = 0.05
LEAVE_S = 2.0
SIGNALLED = 128
_AWAY = (DrainingError, GatewayUnavailableError)
_ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
# Undo what a program may have asked of the terminal, leaving what is shown.
_UNDO = (
    b"\x1b[?1049l\x1b[?1l\x1b>\x1b[?2004l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l"
    b"\x1b[?1004l\x1b[?7h\x1b[?6l\x1b[4l\x1b[r\x1b[m\x1b(B\x0f\x1b[?25h"
)


class Terminal:
    """The user's terminal while it is lent to a session."""

    def __init__(self, in_fd: int, out_fd: int) -> None:
        self.in_fd = in_fd
        self.out_fd = out_fd
        self._before: list[Any] | None = None

    def __enter__(self) -> "Terminal":
        """Take the terminal over."""
        self.lend()
        return self

    def __exit__(self, *_: object) -> None:
        """Give the terminal back as it was. May be repeated."""
        self.restore()

    def lend(self) -> None:
        """Switch to raw mode, keeping the settings. Raises: InvalidRequestError."""
        try:
            self._before = termios.tcgetattr(self.in_fd)
            tty.setraw(self.in_fd, termios.TCSADRAIN)
        except termios.error as error:
            raise InvalidRequestError("the terminal cannot be put into raw mode") from error

    def restore(self) -> None:
        """Put the settings and modes back, with the cursor on a line of its own at the end."""
        before, self._before = self._before, None
        if before is None:
            return
        with contextlib.suppress(OSError):  # a terminal that hung up needs nothing
            os.write(self.out_fd, _UNDO + f"\x1b[{self.size()[0]};1H\r\n".encode())
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self.in_fd, termios.TCSADRAIN, before)

    def size(self) -> tuple[int, int]:
        """Return rows and columns."""
        found = shutil.get_terminal_size((80, 24))
        with contextlib.suppress(OSError):
            found = os.get_terminal_size(self.out_fd)
        return max(1, min(found.lines, 1000)), max(1, min(found.columns, 1000))

    async def write(self, data: bytes) -> None:
        """Write everything, however slowly the terminal takes it. Raises: OSError."""
        loop = asyncio.get_running_loop()
        left = memoryview(data)
        while left:
            left = left[await loop.run_in_executor(None, os.write, self.out_fd, left) :]


class Attached:
    """One user's attach: keys in, output out, until one side ends it."""

    def __init__(self, session: Session, terminal: Terminal, detach: bytes, *, watch: bool) -> None:
        self._session = session
        self._terminal = terminal
        self._detach = detach
        self._watch = watch
        self._typed: asyncio.Queue[bytes] = asyncio.Queue()
        self._resized = asyncio.Event()
        self.status: SessionStatus | None = None
        self.signalled: int | None = None
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Serve until detached, signalled, or the session is over. Raises: FabricError."""
        loop = asyncio.get_running_loop()
        handlers: list[tuple[signal.Signals, Callable[[], None]]] = [
            (signal.SIGWINCH, self._resized.set),
            (signal.SIGTSTP, self._stop),
            (signal.SIGCONT, self._resized.set),
        ]
        handlers += [(number, partial(self._signal, number)) for number in _ENDING]
        for number, handler in handlers:
            loop.add_signal_handler(number, handler)
        loop.add_reader(self._terminal.in_fd, self._read)
        try:
            await self._until_over()
        finally:
            loop.remove_reader(self._terminal.in_fd)
            for number, _ in handlers:
                loop.remove_signal_handler(number)

    async def _until_over(self) -> None:
        loop = asyncio.get_running_loop()
        lost_at: float | None = None
        pause = FIRST_PAUSE_S
        while not self._over.is_set():
            try:
                if await self._attach():
                    return
                lost_at, pause = None, FIRST_PAUSE_S
            except _AWAY:
                lost_at = loop.time() if lost_at is None else lost_at
                if loop.time() - lost_at > REATTACH_S:
                    raise
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._over.wait()
            pause = min(LONGEST_PAUSE_S, 2 * pause)

    async def _attach(self) -> bool:
        """Attach once; False when the connection was lost after something was shown."""
        rows, cols = (None, None) if self._watch else self._terminal.size()
        shown = False
        async with self._session.attach(rows=rows, cols=cols) as attached:
            showing = asyncio.ensure_future(self._show(attached))
            others = [
                asyncio.ensure_future(self._type(attached)),
                asyncio.ensure_future(self._size(attached)),
                asyncio.ensure_future(self._over.wait()),
            ]
            try:
                await asyncio.wait({showing, others[2]}, return_when=asyncio.FIRST_COMPLETED)
                if self._over.is_set():
                    if self.signalled is None:
                        await self._leave(attached, showing)
                    return True
                shown = showing.result()
            finally:
                for task in (showing, *others):
                    task.cancel()
                await asyncio.wait({showing, *others})
        return shown

    async def _show(self, attached: Attachment) -> bool:
        """Write what comes; True when the session is over, False when the connection was lost."""
        first = True
        try:
            async for event in attached:
                if event.data:
                    await self._terminal.write(event.data)
                if event.kind is AttachKind.SNAPSHOT and first and not self._watch:
                    await self._redraw(attached, event)
                if event.kind is AttachKind.REFUSED:
                    await self._terminal.write(b"\x07")
                if event.kind is AttachKind.END:
                    self.status = event.status
                    return True
                first = False
        except _AWAY:
            if first:
                raise
        return False

    async def _redraw(self, attached: Attachment, event: AttachEvent) -> None:
        """Let a full-screen program paint itself anew, in colour, by a change of size."""
        if event.alternate and event.rows > 1:
            await attached.resize(event.rows - 1, event.cols)
            await asyncio.sleep(REDRAW_S)
            await attached.resize(event.rows, event.cols)

    async def _type(self, attached: Attachment) -> None:
        while True:
            data = await self._typed.get()
            try:
                with contextlib.suppress(*_AWAY):
                    await attached.write(data)
            finally:
                self._typed.task_done()

    async def _size(self, attached: Attachment) -> None:
        while True:
            await self._resized.wait()
            self._resized.clear()
            if not self._watch:
                with contextlib.suppress(*_AWAY):
                    await attached.resize(*self._terminal.size())

    def _read(self) -> None:
        try:
            data = os.read(self._terminal.in_fd, INPUT_BYTES)
        except OSError:
            data = b""
        if not data:  # the terminal hung up
            self._signal(signal.SIGHUP)
            return
        before, key, _ = data.partition(self._detach)
        if before and not self._watch:
            self._typed.put_nowait(before)
        if key:
            self._over.set()

    async def _leave(self, attached: Attachment, showing: "asyncio.Future[bool]") -> None:
        """Detach, so that what was typed before the detach key is still taken."""
        with contextlib.suppress(TimeoutError, *_AWAY):
            async with asyncio.timeout(LEAVE_S):
                await self._typed.join()
                await attached.detach()
                await asyncio.wait({showing})

    def _signal(self, number: int) -> None:
        self.signalled = number
        self._over.set()

    def _stop(self) -> None:
        self._terminal.restore()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._terminal.lend()
        self._resized.set()


def detach_key_of(text: str) -> bytes:
    """Return the byte of a detach key like ``Ctrl-]``. Raises: InvalidRequestError."""
    name = text.lower().removeprefix("ctrl-").removeprefix("^").upper()
    if len(name) == 1 and text.lower() != name.lower() and "@" <= name <= "_":
        return bytes([ord(name) - 64])
    raise InvalidRequestError(
        f"{text!r} is no detach key; name one like {DEFAULT_DETACH_KEY}", field="detach_key"
    )


def attach(context: Context) -> int:
    """Attach the user's terminal to a session."""
    given = context.arguments
    detach = detach_key_of(given.detach_key)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidRequestError(
            "attach needs a terminal as standard input and output; fabric read and send do not"
        )
    terminal = Terminal(sys.stdin.fileno(), sys.stdout.fileno())

    async def body() -> tuple[Attached, str]:
        async with connected(context, None) as client:
            session = await resolve(client, given.session)
            await session.status()  # an error about the session leaves the terminal alone
            context.output.note(f"attached to {session.id}; {given.detach_key} detaches")
            attached = Attached(session, terminal, detach, watch=given.read_only)
            with terminal:
                await attached.run()
            return attached, session.id

    try:
        attached, session_id = asyncio.run(body())
    finally:
        terminal.restore()
    if attached.signalled is not None:
        return SIGNALLED + attached.signalled
    if attached.status is not None:
        end = attached.status.exit
        code = end.exit_code if end is not None else None
        how = "" if code is None else f" with code {code}"
        context.output.note(f"{session_id} has ended{how}")
        return code or 0
    context.output.note(f"detached; fabric attach {session_id} comes back")
    return 0
