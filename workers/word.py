"""The registry's word, without which the sessions of a cut-off node rest.

Theory. A node that is cut off keeps its shells, its workers and its gateway, and cannot
know what is decided elsewhere: an owner was taken over, its sessions were given up. So a
node on another machine than the registry serves sessions only for as long as it has the
registry's word for each. Word is good for a span that begins when the *node* said the
sentence that the registry answers, by the node's own monotonic clock: no clocks are
compared, and a message that was long under way extends nothing. The registry gives a
session up only later than that (``word_s < lost_timeout_s``), so nobody is served by a
session that counts as lost. Resting ends nothing: the shell runs on, and with the next
word, which carries the owner's epoch, the session is as it was.

The time stands in the session's byte log, so that a worker that is started again rests as
its predecessor did. On the registry's own machine word is for ever.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping

from fabric.core.errors import FabricError
from fabric.core.ids import SessionId
from workers.held import Held

KEEP_TIMEOUT_S = 2.0
# A worker is told again when this share of the span has passed, not at every poll.
WORDS_PER_SPAN = 4
_log = logging.getLogger(__name__)


class Word:
    """What a node was told last: ``until`` is in monotonic seconds, None for ever."""

    def __init__(self) -> None:
        self.until: float | None = None

    async def give(
        self,
        sessions: Iterable[Held],
        epochs: Mapping[SessionId, int],
        asked_at: float,
        word_s: float | None,
    ) -> None:
        """Hand on to the named sessions what the registry says now."""
        self.until = None if word_s is None else asked_at + word_s
        due = [
            self._tell(held, epochs[held.spec.session_id])
            for held in sessions
            if held.spec is not None
            and held.spec.session_id in epochs
            and held.is_connected
            and not held.is_ending
            and self._is_due(held, word_s)
        ]
        await asyncio.gather(*due)

    def _is_due(self, held: Held, word_s: float | None) -> bool:
        if not held.has_word or self.until is None or held.until is None or word_s is None:
            return not held.has_word or held.until != self.until
        return self.until - held.until >= word_s / WORDS_PER_SPAN

    async def _tell(self, held: Held, epoch: int) -> None:
        channel, spec, until = held.channel, held.spec, self.until
        if channel is None or spec is None:
            return
        args = {"session_id": spec.session_id, "epoch": epoch, "until": until}
        try:
            await channel.call("keep", args, KEEP_TIMEOUT_S)
        except FabricError as error:
            row = {"session": spec.session_id, "reason": error.reason}
            _log.warning("word not handed on", extra=row)
        else:
            held.until, held.has_word = until, True
