"""Writes the bytes of a shim and its holder down: ``python -m tests.terminal.shim.record``.

Done once for each version of the protocol, with the code of that version; the file stays as
it is from then on. Each row is a frame: ``to`` the shim or the ``holder``, and its bytes.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.terminal.shim.conftest import KEY, request_for
from workers.shim import protocol
from workers.shim.client import ShimClient


async def record(folder: Path) -> list[dict[str, str]]:
    """Run every request of the protocol once, the death of the holder among them."""
    rows: list[dict[str, str]] = []

    def note(to: str, frame: bytes) -> None:
        rows.append({"to": to, "frame": frame.hex()})

    class Noted(ShimClient):
        async def _write(self, frame: bytes) -> None:
            note("shim", frame)
            await super()._write(frame)

        def _dispatch(self, message: protocol.Message) -> None:
            note("holder", protocol.encode(message))
            super()._dispatch(message)

    first = await Noted.launch(node_dir=folder, slot_id="a", key=KEY, orphan_grace_s=20.0)
    spawned = await first.spawn(request_for("/bin/sh", "-c", "exec sleep 1000"))
    second = await Noted.connect(socket=folder / "s" / "a.s", key=KEY)
    await first.lost
    adopted = await second.adopt()
    assert adopted is not None
    await second.set_labels(b'{"later": true}')
    await second.resize(40, 100)
    await second.teardown(grace_s=0.3, shell_grace_s=0.3)
    await second.quit()
    for one in (spawned, adopted):
        for fd in (one.master_fd, one.log_fd):
            os.close(fd)
    return rows


def main() -> int:
    """Write the file named after the version."""
    target = Path(sys.argv[1])
    folder = Path(tempfile.mkdtemp(prefix="pfv", dir="/tmp"))
    try:
        rows = asyncio.run(record(folder))
    finally:
        shutil.rmtree(folder)
    target.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
