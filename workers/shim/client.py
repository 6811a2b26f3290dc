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
from pathlib import Path

from fabric.core.errors import (
    DeadlineError,
    FabricError,
    InputTooLargeError,
    InternalError,
    SessionLostError,
    StaleGenerationError,
)
from fabric.core.model import CloseReceipt, ExitStatus
from workers.shim import protocol
from workers.shim.launch import launch, socket_path
from workers.shim.protocol import Decoder, Message, ProtocolError
from workers.shim.request import (
    Spawned,
    SpawnRequest,
    entries,
    error_of,
    exit_status,
    number_of,
    spawned_of,
)
from workers.shim.teardown import FREEZE_CYCLES, KILL_S

__all__ = ["ShimClient", "SpawnRequest", "Spawned"]

CALL_S = 30.0
"""How long a shim may take over a call that has nothing to wait for."""


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
        client.adoption = number_of(reply, "adoption")
        client.shim_pid = number_of(reply, "shim_pid")
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
        return spawned_of(reply, fds)

    async def adopt(self) -> Spawned | None:
        """Take over what runs there, with descriptors of our own; None when nothing was started."""
        reply, fds = await self._call("adopt")
        return None if reply.get("pid") is None else spawned_of(reply, fds)

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
        limit_s = CALL_S + 2 * (grace_s + (2 * FREEZE_CYCLES + 1) * KILL_S) + shell_grace_s
        reply, _ = await self._call(
            "teardown", limit_s=limit_s, grace_s=grace_s, shell_grace_s=shell_grace_s
        )
        return CloseReceipt(
            root_exit=exit_status(reply.get("root_exit")),
            ended=entries(reply, "ended"),
            survivors=entries(reply, "survivors"),
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
            _discard(future)
            raise DeadlineError(f"the shim did not answer {op} within {limit_s:g} s") from None
        except asyncio.CancelledError:
            _discard(future)
            raise
        finally:
            self._calls.pop(number, None)
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
            future.set_exception(error_of(message.get("error")))

    def _note_exit(self, value: object) -> None:
        status = exit_status(value)
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


def _discard(future: asyncio.Future[tuple[Message, list[int]]]) -> None:
    """Close what came with an answer that arrived in the very turn of a cancellation."""
    if future.done() and not future.cancelled() and future.exception() is None:
        for fd in future.result()[1]:
            os.close(fd)


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
