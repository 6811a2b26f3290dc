"""A person's bytes on a shared terminal: in order, under their lease, for the right program.

Before anything is written the terminal is drained, and a prompt found in what it said ends
the lease first. Bytes for a program that was taken over go by ``workers.handover``; those
that a person types at the shell's own prompt are meant for the shell.
"""

import asyncio
from typing import TYPE_CHECKING

from fabric.core.errors import InputBlockedError, NotControllerError
from workers.handover import Handover, Typed
from workers.session import Session

if TYPE_CHECKING:
    from workers.sharing import Sharing

LATER_S = 0.001
LATER_MAX_S = 2.0


class Typist:
    """Writes what the controller types, one piece after the other."""

    def __init__(self, sharing: "Sharing") -> None:
        self._sharing = sharing
        self._typing = asyncio.Lock()

    def begin(self, session: Session) -> None:
        """Type at this session from now on."""
        parts = session.parts
        self.handover = Handover(parts.master, parts.inspector, lambda: self._sharing.prompt.stands)

    async def type(self, lease: int, data: bytes) -> None:
        """Write a person's bytes, in order, unless the program they are for has ended."""
        async with self._typing:
            self.look_before_writing()
            taken_over = self._sharing.taken is not None
            number = 0 if self._sharing.turns.active is None else self._sharing.turns.active.op
            self._sharing.session.parts.master.check_lines(data)
            self._sharing.feed_or_raise(self._sharing.turns.human_input(lease, len(data)))
            self._sharing.prompt.arm(anew=not taken_over)
            dispatch = self._sharing.turns.dispatch
            try:
                await self._write_typed(lease, memoryview(data), guarded=taken_over)
            except InputBlockedError as error:
                self._sharing.feed(self._sharing.failed(number, error))
                raise
            finally:
                self._sharing.feed(self._sharing.turns.wrote(dispatch, self._sharing.now()))

    async def _write_typed(self, lease: int, left: memoryview, *, guarded: bool) -> None:
        session, waited = self._sharing.session, 0.0
        master = session.parts.master
        stall_s = session.settings.input.write_stall_s
        total = len(left)
        while left:
            if not self._may_write(lease) or session is not self._sharing.session:
                raise NotControllerError("human lease is closed", lease=lease)
            if guarded:
                shell = session.sending.memory.shell_pgid
                typed, count = self.handover.type(shell, left)
            else:
                count = master.write_some(left)
                typed = Typed.TAKEN if count else Typed.FULL
            left = left[count:]
            if typed is Typed.FULL and left:
                if not await master.wait_for_room(stall_s):
                    raise InputBlockedError(
                        f"the program read nothing for {stall_s:g} s",
                        written_bytes=total - len(left),
                        total_bytes=total,
                    )
            elif typed is Typed.LATER:
                if waited >= LATER_MAX_S:
                    raise NotControllerError("no program is in front to take the input")
                await asyncio.sleep(LATER_S)
                waited += LATER_S
                self.look_before_writing()

    def _may_write(self, lease: int) -> bool:
        return self._sharing.turns.lease_open and self._sharing.turns.lease == lease

    def look_before_writing(self) -> None:
        """Take what the terminal has said so far; a prompt in it closes the lease first."""
        self._sharing.session.parts.master.drain()
        watching = self._sharing.taken is not None or self._sharing.turns.takeover is not None
        if watching and self._sharing.prompt.stands:
            self._sharing.dispatching.on_prompt()
