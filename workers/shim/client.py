"""The session worker's end of the shim's socket.

One reader callback on the loop, no task and no thread. Descriptors that come with a
reply belong to the caller of the verb that asked for them; those of a reply nobody
waits for any more are closed here.
"""

import array
import asyncio
import contextlib
import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabric.core.errors import (
    CleanupIncompleteError,
    DeadlineError,
    FabricError,
    InputTooLargeError,
    InternalError,
    InvalidRequestError,
    PtyExhaustedError,
    SessionLostError,
    SessionStateError,
    SpawnFailedError,
    StaleGenerationError,
    UnauthenticatedError,
    UnsupportedError,
)
from fabric.core.model import CloseReceipt, EndedProcess, ExitStatus
from workers.shim import protocol
from workers.shim.launch import launch, socket_path
from workers.shim.protocol import Decoder, Message, ProtocolError
from workers.shim.teardown import FREEZE_CYCLES, KILL_S

CALL_S = 30.0
"""How long a shim may take over a call that has nothing to wait for."""
_ERRORS: dict[str, type[FabricError]] = {
    "ALREADY_SPAWNED": SessionStateError,
    "BAD_KEY": UnauthenticatedError,
    "CLEANUP_INCOMPLETE": CleanupIncompleteError,
    "FRAME_TOO_LARGE": InputTooLargeError,
    "GARBAGE": InvalidRequestError,
    "INVALID": InvalidRequestError,
    "NOT_SPAWNED": SessionStateError,
    "NO_HELLO": InvalidRequestError,
    "PEER_REFUSED": UnauthenticatedError,
    "PTY_EXHAUSTED": PtyExhaustedError,
    "SPAWN_FAILED": SpawnFailedError,
    "UNKNOWN_VERSION": UnsupportedError,
}


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """What to start, and as what.

    ``cwd`` is absolute; ``argv[0]`` without a slash is looked up in ``env``'s PATH.
    ``log_bytes`` is the size of the byte log's ring. ``labels`` are kept for whoever
    adopts the session. ``run_as`` is a user name or number and needs a service that is
    root. ``rlimits`` (name, value; -1 is unlimited) never exceed the hard limits in
    force. ``landlock`` is a plan for ``workers.shim.confine``. ``wrappers`` names the
    sandbox programs around the shell (``("bwrap",)``), so that a teardown knows the shell
    behind them. The graces serve the teardowns nobody asks for: after the program has
    left by itself, and when no worker holds the shim any more.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    rows: int
    cols: int
    log_bytes: int
    labels: bytes
    umask: int = 0o022
    run_as: str | None = None
    rlimits: tuple[tuple[str, int], ...] = ()
    landlock: bytes | None = None
    wrappers: tuple[str, ...] = ()
    grace_s: float = 3.0
    shell_grace_s: float = 1.0


@dataclass(slots=True)
class Spawned:
    """What runs in a shim; both descriptors are the receiver's to close."""

    pid: int
    start_time: int
    master_fd: int
    log_fd: int
    labels: bytes
    exit: ExitStatus | None


class ShimClient:
    """The holder of one shim. Made by ``launch`` or ``connect``.

    ``adoption`` counts the holders this shim has had, from 1. ``exited`` resolves when
    the program was reaped; ``lost`` when the connection has ended: ``superseded`` by a
    newer holder, or ``gone``.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._decoder = Decoder()
        self._fds: list[int] = []
        self._calls: dict[int, asyncio.Future[tuple[Message, list[int]]]] = {}
        self._hello: asyncio.Future[tuple[Message, list[int]]] = self._loop.create_future()
        self._next_id = 0
        self._writing = asyncio.Lock()
        self._superseded = False
        self.adoption = 0
        self.shim_pid = 0
        self.exited: asyncio.Future[ExitStatus] = self._loop.create_future()
        self.lost: asyncio.Future[str] = self._loop.create_future()
        self._loop.add_reader(sock.fileno(), self._readable)

    @classmethod
    async def launch(
        cls, *, node_dir: Path, slot_id: str, key: str, orphan_grace_s: float
    ) -> "ShimClient":
        """Start a shim for a slot, outside everybody's clean-up, and hold it.

        Raises:
            InternalError: It did not start.
            InvalidRequestError: The socket's path would be too long.
        """
        path = socket_path(node_dir, slot_id)
        await launch(path, key=key, orphan_grace_s=orphan_grace_s)
        return await cls.connect(socket=path, key=key)

    @classmethod
    async def connect(cls, *, socket: Path, key: str) -> "ShimClient":
        """Hold a running shim; a holder before us is told that it is superseded.

        Raises:
            SessionLostError: No shim listens there.
            UnauthenticatedError: The key is wrong, or the shim is another user's.
            UnsupportedError: The shim speaks no protocol version of ours.
        """
        client = cls(await _connected(socket))
        try:
            async with asyncio.timeout(CALL_S):
                await client._write(protocol.encode(protocol.hello(key)))
                reply, _ = await client._hello
        except TimeoutError:
            client.close()
            raise SessionLostError("the shim does not answer") from None
        except BaseException:
            client.close()
            raise
        client.adoption = _int(reply, "adoption")
        client.shim_pid = _int(reply, "shim_pid")
        client._note_exit(reply.get("exit"))
        return client

    async def spawn(self, request: SpawnRequest) -> Spawned:
        """Start the program; a failed attempt leaves nothing and may be repeated.

        Raises:
            SpawnFailedError: Metadata ``step`` (exec, cwd, run_as, rlimits, confine, fork,
                log) and ``errno``.
            PtyExhaustedError: The node has no pseudo-terminal left.
            InvalidRequestError: A field is malformed.
            SessionStateError: This shim has its program already.
        """
        reply, fds = await self._call(
            "spawn",
            argv=list(request.argv),
            env=request.env,
            cwd=request.cwd,
            rows=request.rows,
            cols=request.cols,
            log_bytes=request.log_bytes,
            labels=protocol.pack(request.labels),
            umask=request.umask,
            run_as=request.run_as,
            rlimits=dict(request.rlimits),
            landlock=None if request.landlock is None else protocol.pack(request.landlock),
            wrappers=list(request.wrappers),
            grace_s=request.grace_s,
            shell_grace_s=request.shell_grace_s,
        )
        return _spawned(reply, fds)

    async def adopt(self) -> Spawned | None:
        """Take over what runs there, with descriptors of our own; None when nothing was started."""
        reply, fds = await self._call("adopt")
        return None if reply.get("pid") is None else _spawned(reply, fds)

    async def set_labels(self, labels: bytes) -> None:
        """Replace what the next adopter will be given."""
        await self._call("labels", labels=protocol.pack(labels))

    async def resize(self, rows: int, cols: int) -> None:
        """Set the terminal's size in characters."""
        await self._call("resize", rows=rows, cols=cols)

    async def teardown(self, *, grace_s: float, shell_grace_s: float) -> CloseReceipt:
        """End every process of the session, the shell last.

        Survivors in the receipt mean that it failed and may be tried again. A call during
        a teardown joins it and can only shorten its graces.
        """
        # Two passes (before and after the shell), each with its grace and its kills.
        limit_s = CALL_S + 2 * grace_s + shell_grace_s + (2 * FREEZE_CYCLES + 1) * KILL_S
        reply, _ = await self._call(
            "teardown", limit_s=limit_s, grace_s=grace_s, shell_grace_s=shell_grace_s
        )
        return CloseReceipt(
            root_exit=_exit_status(reply.get("root_exit")),
            ended=_entries(reply, "ended"),
            survivors=_entries(reply, "survivors"),
            elapsed_s=float(reply["elapsed_s"]),  # type: ignore[arg-type]
        )

    async def quit(self) -> None:
        """End the shim, and first whatever still lives below it.

        Raises:
            CleanupIncompleteError: Processes survived; the shim stays with them.
        """
        await self._call("quit", limit_s=CALL_S * 4)
        async with asyncio.timeout(CALL_S):
            await asyncio.shield(self.lost)

    def close(self) -> None:
        """Let go; the shim stays, and its orphan grace runs."""
        self._lose("gone")

    # -- plumbing -------------------------------------------------------------------

    async def _call(
        self, op: str, *, limit_s: float = CALL_S, **fields: object
    ) -> tuple[Message, list[int]]:
        if self.lost.done():
            raise self._lost_error()
        self._next_id += 1
        number = self._next_id
        future: asyncio.Future[tuple[Message, list[int]]] = self._loop.create_future()
        try:
            frame = protocol.encode({"op": op, "id": number} | fields)
        except ProtocolError as error:
            raise InputTooLargeError(str(error)) from None
        self._calls[number] = future
        try:
            async with asyncio.timeout(limit_s):
                await self._write(frame)
                return await future
        except TimeoutError:
            raise DeadlineError(f"the shim did not answer {op} within {limit_s:g} s") from None
        finally:
            self._calls.pop(number, None)
            if future.done() and not future.cancelled() and future.exception() is None:
                pass
            else:
                future.cancel()

    async def _write(self, frame: bytes) -> None:
        async with self._writing:
            try:
                await self._loop.sock_sendall(self._sock, frame)
            except OSError:
                self._readable()  # a refusal may lie there, and says more than EPIPE
                if not self.lost.done():
                    self._lose("gone")

    def _readable(self) -> None:
        try:
            data, fds = _receive(self._sock)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data, fds = b"", []
        self._fds += fds
        self._decoder.push(data)
        try:
            while (message := self._decoder.next()) is not None:
                self._dispatch(message)
        except ProtocolError:
            data = b""
        if not data:
            self._lose("superseded" if self._superseded else "gone")

    def _dispatch(self, message: Message) -> None:
        event = message.get("event")
        if event == "superseded":
            self._superseded = True
            return
        if event == "exit":
            self._note_exit(message.get("exit"))
            return
        names = message.get("fds")
        count = len(names) if isinstance(names, list) else 0
        fds, self._fds = self._fds[:count], self._fds[count:]
        number = message.get("id")
        future = self._calls.get(number) if isinstance(number, int) else self._hello
        if future is None or future.done() or len(fds) != count:
            for fd in fds:
                os.close(fd)
            if future is not None and not future.done():
                future.set_exception(InternalError("descriptors were lost on the way"))
            return
        if message.get("ok") is True:
            self._note_exit(message.get("exit"))
            future.set_result((message, fds))
        else:
            future.set_exception(_error(message.get("error")))

    def _note_exit(self, value: object) -> None:
        status = _exit_status(value)
        if status is not None and not self.exited.done():
            self.exited.set_result(status)

    def _lose(self, why: str) -> None:
        if self.lost.done():
            return
        self.lost.set_result(why)
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
        for future in (self._hello, *self._calls.values()):
            if not future.done():
                future.set_exception(self._lost_error())
        with contextlib.suppress(asyncio.CancelledError):
            self._hello.exception()  # seen: nobody may be waiting for it any more

    def _lost_error(self) -> FabricError:
        if self._superseded:
            return StaleGenerationError("another worker holds this shim now")
        return SessionLostError("the connection to the shim has ended")


async def _connected(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        async with asyncio.timeout(CALL_S):
            await asyncio.get_running_loop().sock_connect(sock, str(path))
    except (OSError, TimeoutError) as error:
        sock.close()
        raise SessionLostError(f"no shim listens at {path}: {error}") from None
    except BaseException:
        sock.close()
        raise
    return sock


def _receive(sock: socket.socket) -> tuple[bytes, list[int]]:
    size = array.array("i").itemsize
    flags = socket.MSG_CMSG_CLOEXEC if sys.platform == "linux" else 0
    data, ancillary, _, _ = sock.recvmsg(65536, socket.CMSG_SPACE(8 * size), flags)
    fds = array.array("i")
    for level, kind, payload in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(payload[: len(payload) - len(payload) % size])
    for fd in fds:
        os.set_inheritable(fd, False)
    return data, list(fds)


def _error(value: object) -> FabricError:
    facts: dict[str, Any] = value if isinstance(value, dict) else {}
    code = str(facts.get("code"))
    error = _ERRORS.get(code, InternalError)(str(facts.get("message", "the shim refused")))
    survivors = facts.get("survivors")
    if isinstance(survivors, list):
        error.with_metadata(survivors=", ".join(f"{e['name']} ({e['pid']})" for e in survivors))
    return error.with_metadata(step=facts.get("step"), errno=facts.get("errno"))


def _exit_status(value: object) -> ExitStatus | None:
    if not isinstance(value, dict):
        return None
    return ExitStatus(exit_code=value.get("code"), signal=value.get("signal"))


def _spawned(reply: Message, fds: list[int]) -> Spawned:
    master_fd, log_fd = fds
    return Spawned(
        pid=_int(reply, "pid"),
        start_time=_int(reply, "start_time"),
        master_fd=master_fd,
        log_fd=log_fd,
        labels=protocol.unpack(reply, "labels"),
        exit=_exit_status(reply.get("exit")),
    )


def _entries(reply: Message, name: str) -> tuple[EndedProcess, ...]:
    entries: Any = reply[name]
    return tuple(
        EndedProcess(pid=entry["pid"], name=entry["name"], last_signal=entry["signal"])
        for entry in entries
    )


def _int(reply: Message, name: str) -> int:
    value = reply[name]
    if not isinstance(value, int):
        raise InternalError(f"the shim answered without {name}")
    return value
