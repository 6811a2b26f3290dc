"""A shared terminal's operations on their way to the session: text, signals, interrupts.

A model's send and a signal are watched by the readiness machine, which settles on
evidence; a person's turn and a recovery by ``PromptWatch``, since only the shell's prompt
ends them.

A recovery interrupts the foreground group, and then each further group that comes to the
foreground before the prompt does, once: a program that ends orderly on SIGINT lets the
shell go on with the next one of its line.
"""

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from fabric.core.errors import FabricError, InternalError, SignalRefusedError
from fabric.core.ids import new_request_id
from fabric.core.model import Evidence, PromptKind, SignalName, WaitReason
from workers.prompt_watch import PromptWatch
from workers.readiness.driver import SendWatch
from workers.readiness.tiers import Verdict
from workers.session import Session
from workers.shared_op import SharedOp
from workers.text.marks import Mark
from workers.turn_table import Phase
from workers.turn_words import Kind, Sight

if TYPE_CHECKING:
    from workers.sharing import Sharing

_log = logging.getLogger(__name__)


class Dispatching:
    """What one shared terminal does to its present session, and how it watches it."""

    def __init__(self, sharing: "Sharing") -> None:
        self._sharing = sharing
        self._watch: SendWatch | None = None
        self._looking: asyncio.TimerHandle | None = None
        self._interrupted: set[int] = set()

    def begin(self, session: Session) -> None:
        """Work on this session from now on."""
        parts = session.parts
        self.prompt = PromptWatch(
            parts.master,
            parts.inspector,
            session.sending.memory,
            parts.dialect.prompts,
            self._sharing.settings.poll_interval_s,
            self.on_prompt,
        )

    def output(self, marks: list[Mark]) -> None:
        """Take note of output of the present session."""
        if self._watch is not None:
            self._watch.output(marks, self._sharing.session.transcript.text_since_mark)
        self.prompt.output([mark.kind for mark in marks])

    def stop_watching(self) -> None:
        """Look for nothing any more."""
        self.close_watch()
        self.prompt.disarm()
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def close_watch(self) -> None:
        """End the watch of a send or signal."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    def on_prompt(self) -> None:
        """Tell the machine that the prompt stands there."""
        sharing = self._sharing
        sharing.feed(sharing.turns.sight(Sight.PROMPT, sharing.turns.dispatch, sharing.now()))

    def dispatch(self, op: SharedOp, dispatch: int) -> None:
        """Write a model's text or signal; a person's bytes are written by ``_type``."""
        if op.kind is Kind.HUMAN or op.number == self._sharing.taken:
            return
        session = self._sharing.session
        limit = session.settings.scrollback.send_max_bytes
        session.parts.master.drain()
        op.capture = session.transcript.capture(limit)
        self.prompt.note()
        if op.signal is not None:
            self._sharing.spawn(self._deliver(op, op.signal, dispatch))
            return
        try:
            session.parts.master.check_lines(op.data)
            self._begin_watch(op.data, dispatch)
            if session.parts.master.write_now(op.data):
                self._wrote(dispatch)
            else:
                self._sharing.spawn(self._write_rest(op.number, dispatch))
        except FabricError as refused:
            error = refused
            self._sharing.soon(lambda: self._sharing.refused(op.number, error))

    async def _write_rest(self, number: int, dispatch: int) -> None:
        session = self._sharing.session
        try:
            await session.parts.master.flush(session.settings.input.write_stall_s)
        except FabricError as error:
            self._sharing.feed(self._sharing.failed(number, error))
        except OSError as error:
            self._sharing.feed(
                self._sharing.failed(number, InternalError(f"writing failed: {error.strerror}"))
            )
        else:
            self._wrote(dispatch)

    async def _deliver(self, op: SharedOp, name: SignalName, dispatch: int) -> None:
        try:
            delivered = await self._sharing.session.signal_once(name, new_request_id())
        except FabricError as error:
            self._sharing.feed(self._sharing.refused(op.number, error))
            return
        op.group = delivered.target_pgid
        if self._sharing.turns.dispatch == dispatch:
            self._begin_watch(b"", dispatch)
            self._wrote(dispatch)

    def _wrote(self, dispatch: int) -> None:
        if self._watch is not None:
            self._watch.wrote()
        self._sharing.soon(lambda: self._sharing.turns.wrote(dispatch, self._sharing.now()))

    def _begin_watch(self, data: bytes, dispatch: int) -> None:
        self.close_watch()
        session = self._sharing.session
        watch = self._watch = SendWatch(
            master=session.parts.master,
            inspector=session.parts.inspector,
            dialect=session.parts.dialect,
            settings=session.settings.readiness,
            data=data,
            memory=session.sending.memory,
            background=True,
        )
        watch.verdict.add_done_callback(lambda done: self._on_verdict(watch, dispatch, done))

    def _on_verdict(self, watch: SendWatch, dispatch: int, done: "asyncio.Future[Verdict]") -> None:
        if done.cancelled() or watch is not self._watch:
            return
        error = done.exception()
        if error is not None:
            _log.error("watching a shared send failed", exc_info=error)
            return  # its deadline ends the operation
        verdict = done.result()
        if verdict.wait_reason is not WaitReason.STDIN_READ:
            self.prompt.arm(anew=False)  # a guess ends nothing here; the prompt still does
            return
        at_prompt = verdict.evidence is Evidence.MARKER and verdict.prompt_kind is PromptKind.SHELL
        sight = Sight.PROMPT if at_prompt else Sight.STDIN_READ
        self._sharing.feed(self._sharing.turns.sight(sight, dispatch, self._sharing.now()))

    def interrupt(self) -> None:
        """Interrupt what is in the foreground, and watch for the prompt."""
        self._sharing.typist.handover.withdraw()
        self.close_watch()
        self._sharing.session.parts.master.drain()
        self.prompt.note()
        try:
            first = self._sharing.session.signal(SignalName.SIGINT)
        except SignalRefusedError:
            self._sharing.soon(lambda: self._sharing.turns.not_interrupted(self._sharing.now()))
            return
        self.prompt.arm()
        self._interrupted = {first.target_pgid}
        self._look_soon()
        self._sharing.soon(lambda: self._sharing.turns.interrupted(self._sharing.now()))

    def _look_soon(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
        delay = self._sharing.settings.poll_interval_s
        self._looking = asyncio.get_running_loop().call_later(delay, self._interrupt_further)

    def _interrupt_further(self) -> None:
        """Interrupt a group that has come to the foreground since; each one once."""
        self._looking = None
        session = self._sharing.session
        recovering = self._sharing.turns.phase in (Phase.INTERRUPTING, Phase.RECOVERING)
        if not recovering or not session.status.is_running:
            return
        front = session.parts.inspector.foreground()
        if front and front not in session.shell_groups() and front not in self._interrupted:
            with contextlib.suppress(SignalRefusedError):  # it has ended meanwhile
                self._interrupted.add(session.signal(SignalName.SIGINT).target_pgid)
        self._look_soon()
