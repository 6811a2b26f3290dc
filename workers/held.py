"""A slot as its node holds it, and who starts and ends the workers of slots."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from fabric.core.ids import SlotId
from fabric.core.model import CloseReceipt, OpenSpec, SessionInfo
from workers.dial import ChannelClient
from workers.slot import SlotConfig


class SlotFactory(Protocol):
    """Starts and ends worker processes."""

    async def create(self, config: SlotConfig) -> None:
        """Start a worker for the slot, or find the one it has; return when it serves.

        Raises: FabricError when it does not come up.
        """
        ...

    async def destroy(self, slot_id: SlotId) -> None:
        """End the worker of the slot, if there is one, and do not start it again."""
        ...


@dataclass(slots=True, eq=False)
class Held:
    """One slot as the node holds it; ``spec`` and ``info`` are None while it is blank."""

    config: SlotConfig
    channel: ChannelClient | None = None
    spec: OpenSpec | None = None
    info: SessionInfo | None = None
    is_ending: bool = False
    until: float | None = None
    has_word: bool = False
    recovery: asyncio.Task[None] | None = None
    closing: asyncio.Task[CloseReceipt | None] | None = None

    @property
    def is_connected(self) -> bool:
        """Tell whether the slot's worker can be called."""
        return self.channel is not None and self.channel.is_open
