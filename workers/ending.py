"""Ending what a slot's shim holds, without its worker."""

import os
import socket
from typing import Protocol

from fabric.core.errors import CleanupIncompleteError, SessionLostError
from fabric.core.model import CloseReceipt
from fabric.core.settings import TeardownSettings
from workers.sandbox.limits import Cgroups
from workers.shim.client import ShimClient
from workers.slot import SlotConfig


class Shims(Protocol):
    """Ends the shims of this node."""

    async def end(self, config: SlotConfig, *, is_over: bool = False) -> CloseReceipt | None:
        """Tear down what the slot's shim holds and end it; None when no shim answers.

        ``is_over`` says that this was done, with a receipt; only the shim is left to end.
        Raises: CleanupIncompleteError (the shim stays, so it may be tried again).
        """
        ...


class ShimEnder:
    """Ends shims over their sockets, as a newer holder than any worker.

    ``cgroups`` is what the node divides: a slot's cgroup goes with its shim.
    """

    def __init__(self, teardown: TeardownSettings, cgroups: Cgroups | None = None) -> None:
        self._teardown = teardown
        self._cgroups = cgroups

    async def end(self, config: SlotConfig, *, is_over: bool = False) -> CloseReceipt | None:
        """Tear down and end the slot's shim. Raises: CleanupIncompleteError."""
        receipt = await self._end(config, is_over)
        cgroup = self._cgroups.find(config.slot_id) if self._cgroups else None
        if cgroup is not None:
            cgroup.remove()
        return receipt

    async def _end(self, config: SlotConfig, is_over: bool) -> CloseReceipt | None:
        try:
            shim = await ShimClient.connect(socket=config.shim_path, key=config.key)
        except SessionLostError:  # nobody listens there
            return None
        try:
            receipt = None
            spawned = None if is_over else await shim.adopt()
            if spawned is not None:
                os.close(spawned.master_fd)
                os.close(spawned.log_fd)
                receipt = await shim.teardown(
                    grace_s=self._teardown.grace_s, shell_grace_s=self._teardown.shell_grace_s
                )
                refuse_survivors(receipt)
            await shim.quit()
            return receipt
        finally:
            shim.close()


def shim_lives(config: SlotConfig) -> bool:
    """Tell whether a shim listens for the slot; its holder, if it has one, is not disturbed."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(config.shim_path))
        except BlockingIOError:
            return True  # its queue is full: it is there, and busy
        except OSError:
            return False
        return True


def refuse_survivors(receipt: CloseReceipt) -> None:
    """Name the processes that outlived a teardown. Raises: CleanupIncompleteError."""
    if receipt.survivors:
        names = ", ".join(f"{item.name} ({item.pid})" for item in receipt.survivors)
        raise CleanupIncompleteError(
            f"processes survived the teardown: {names}; close again to retry", survivors=names
        )
