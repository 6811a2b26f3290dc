"""How a process in the background tells the one that started it how far it is.

One JSON object a line through a pipe: ``{"progress": text}``, ``{"ready": {...}}``,
``{"error": {reason, message, metadata}}``. The pipe's end without ``ready`` or ``error``
means that the process died.
"""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from typing import Any

from fabric.core.errors import FabricError, InternalError, error_of


class Announcer:
    """The writing end; without a pipe it is silent."""

    def __init__(self, descriptor: int = -1) -> None:
        self._descriptor = descriptor
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)

    def progress(self, text: str) -> None:
        """Say what is being done."""
        self._say({"progress": text})

    def ready(self, facts: dict[str, Any]) -> None:
        """Say that everything runs, and end."""
        self._say({"ready": facts})
        self.close()

    def failed(self, error: FabricError) -> None:
        """Say why it will not run, and end."""
        row = {"reason": error.reason, "message": error.message, "metadata": error.metadata}
        self._say({"error": row})
        self.close()

    def close(self) -> None:
        """Close the pipe."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _say(self, row: dict[str, Any]) -> None:
        if self._descriptor >= 0:
            # The starter may have gone; that is no reason to stop.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._descriptor, json.dumps(row).encode() + b"\n")


async def announcements(descriptor: int) -> AsyncIterator[dict[str, Any]]:
    """Yield what comes through the reading end until it is closed; takes the descriptor over."""
    reader = asyncio.StreamReader()
    stream = os.fdopen(descriptor, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), stream
    )
    try:
        while line := await reader.readline():
            with contextlib.suppress(ValueError):
                row = json.loads(line)
                if isinstance(row, dict):
                    yield row
    finally:
        transport.close()


def error_from(row: dict[str, Any]) -> FabricError:
    """Rebuild an announced error."""
    try:
        return error_of(row["reason"], row["message"], row.get("metadata"))
    except (KeyError, TypeError):
        return InternalError("the process reported an error in a form unknown here")
