"""One operation of a shared terminal on its way: what it does and who waits for it."""

import asyncio
from dataclasses import dataclass

from fabric.core.model import SignalName
from fabric.core.shared import SharedResult
from workers.text.transcript import Capture
from workers.turn_words import Kind

Answer = asyncio.Future[SharedResult]


@dataclass(slots=True)
class SharedOp:
    """An operation; ``done`` is its callers' answer, times are of the machine's clock."""

    number: int
    kind: Kind
    accepted_at: float
    done: Answer
    data: bytes = b""
    signal: SignalName | None = None
    granted_at: float | None = None
    capture: Capture | None = None
    group: int | None = None
    callers: int = 0
    abandoned: asyncio.TimerHandle | None = None
