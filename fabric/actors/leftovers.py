"""Ending what a node left: sessions and idle shims that no worker holds any more."""

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fabric.core.errors import CleanupIncompleteError, FabricError
from fabric.core.settings import TeardownSettings
from workers import slot as files
from workers.ending import ShimEnder
from workers.sandbox import limits


def end_slots(node_dirs: Iterable[Path], teardown: TeardownSettings) -> int:
    """End every slot of these nodes and remove its files; return how many there were.

    Only for nodes whose workers are gone. Blocks, also when a loop runs in this thread.
    Raises: CleanupIncompleteError, which names every slot that could not be ended.
    """
    found = [record.config for folder in node_dirs for record in files.records(folder)]
    if not found:
        return 0
    with ThreadPoolExecutor(1) as thread:
        shims = ShimEnder(teardown, limits.detect())
        faults = thread.submit(lambda: asyncio.run(_end(found, shims))).result()
    if faults:
        raise CleanupIncompleteError("; ".join(faults), survivors="; ".join(faults))
    return len(found)


async def _end(found: list[files.SlotConfig], shims: ShimEnder) -> list[str]:
    ends = await asyncio.gather(*(_end_one(config, shims) for config in found))
    return [fault for fault in ends if fault]


async def _end_one(config: files.SlotConfig, shims: ShimEnder) -> str:
    try:
        await shims.end(config)
    except FabricError as error:
        return f"{config.slot_id}: {error.message}"
    files.remove(config)
    return ""
