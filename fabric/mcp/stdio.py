"""Standard input and output as the SDK wants them, in a way that can be given up.

A read of a pipe in a thread cannot be cancelled, so it happens in a thread that nobody
waits for: whoever ends the command while the client holds its end open is not kept waiting.
While the wire is taken, descriptor 0 is empty and 1 goes to standard error, so that nothing
that prints can damage the protocol.
"""

import asyncio
import os
import threading

CHUNK_BYTES = 1 << 16
MAX_LINE_BYTES = 16_777_216
MAX_LINES_AHEAD = 64


class Wire:
    """The two ends; ``async for`` gives the lines of the input."""

    def __init__(self) -> None:
        self._in, self._out = os.dup(0), os.dup(1)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.dup2(2, 1)
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(MAX_LINES_AHEAD)
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, name="mcp-stdin", daemon=True).start()

    def _read(self) -> None:
        rest = b""
        while len(rest) <= MAX_LINE_BYTES:
            try:
                data = os.read(self._in, CHUNK_BYTES)
            except OSError:
                break
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._room.acquire()
                if not self._put(line):
                    return
        self._put(None)

    def _put(self, line: bytes | None) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except RuntimeError:  # the loop has ended before the client did
            return False
        return True

    def __aiter__(self) -> "Wire":
        return self

    async def __anext__(self) -> str:
        line = await self._lines.get()
        if line is None:
            raise StopAsyncIteration
        self._room.release()
        return line.decode("utf-8", "replace")

    async def write(self, text: str) -> None:
        """Write a message whole."""
        await asyncio.to_thread(self._write, text.encode("utf-8", "replace"))

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._out, view) :]

    async def flush(self) -> None:
        """Nothing is held back."""
