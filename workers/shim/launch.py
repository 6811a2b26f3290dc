"""Starts a shim process from a session worker and waits until it listens.

A plain ``Popen`` (vfork and exec; nothing of ours runs in the child of a threaded
process) with an empty environment: nothing of the worker's is to be read in
``/proc/<shim>/environ``. What the interpreter itself may need to find its libraries is
the one exception.
"""

import asyncio
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from fabric.core.errors import InternalError, InvalidRequestError

MAX_SOCKET_PATH_BYTES = 100
LAUNCH_LIMIT_S = 30.0
_LIBRARIES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")


def socket_path(node_dir: Path, slot_id: str) -> Path:
    """Name the socket of a slot's shim.

    Raises:
        InvalidRequestError: The system's limit on socket paths (bytes) would cut it.
    """
    path = node_dir.absolute() / "s" / f"{slot_id}.s"
    if len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:
        raise InvalidRequestError(
            f"{path} is too long for a socket; choose a shorter state folder",
            limit=MAX_SOCKET_PATH_BYTES,
        )
    return path


async def launch(path: Path, *, key: str, orphan_grace_s: float) -> None:
    """Start a shim that listens at ``path``; it is nobody's child when this returns.

    Raises:
        InternalError: It did not start; the message has its reason.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    orders = {"key": key, "orphan_grace_s": orphan_grace_s, "path": _ptyprocess_path()}
    main = Path(__file__).with_name("__main__.py")
    process = subprocess.Popen(  # noqa: ASYNC220  (vfork; back as soon as exec is done)
        [sys.executable, "-I", "-S", "-X", "utf8", str(main), str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        env={name: os.environ[name] for name in _LIBRARIES if name in os.environ},
        start_new_session=True,
    )
    assert process.stdin is not None  # noqa: S101  (a pipe, as asked)
    assert process.stdout is not None  # noqa: S101  (likewise)
    try:
        with contextlib.suppress(BrokenPipeError), process.stdin:
            process.stdin.write(json.dumps(orders).encode())  # far below what a pipe holds
        async with asyncio.timeout(LAUNCH_LIMIT_S):
            answer = await _read_all(process.stdout.fileno())
    except TimeoutError:
        raise InternalError(f"the shim did not start within {LAUNCH_LIMIT_S:g} s") from None
    finally:
        process.stdout.close()
        # The launcher leaves before its fork says ok; it is killed only if it never got there.
        if process.poll() is None:
            process.kill()
            await asyncio.shield(asyncio.to_thread(process.wait))
    if answer != b"ok":
        raise InternalError(f"the shim did not start: {answer[-2000:].decode('utf-8', 'replace')}")


def _ptyprocess_path() -> list[str]:
    spec = importlib.util.find_spec("ptyprocess")
    if spec is None or spec.origin is None:
        raise InternalError("the package ptyprocess is not installed")
    return [str(Path(spec.origin).parent.parent)]


async def _read_all(fd: int) -> bytes:
    """Read a pipe to its end without a thread."""
    loop = asyncio.get_running_loop()
    os.set_blocking(fd, False)
    data = bytearray()
    ended: asyncio.Future[None] = loop.create_future()

    def readable() -> None:
        try:
            chunk = os.read(fd, 65536)
        except BlockingIOError:
            return
        data.extend(chunk)
        if not chunk and not ended.done():
            ended.set_result(None)

    loop.add_reader(fd, readable)
    try:
        await ended
    finally:
        loop.remove_reader(fd)
    return bytes(data)
