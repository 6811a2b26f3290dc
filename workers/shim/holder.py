"""One connection to the shim's socket: frames in, frames and descriptors out, never blocking."""

import array
import os
import socket
import struct
import sys

from workers.shim import protocol
from workers.shim.protocol import Decoder, Message

MAX_PENDING_BYTES = 8 * 1024 * 1024
"""A peer that does not read is dropped at this; two of the largest frames."""


class Connection:
    """A peer; ``is_holder`` once its hello was accepted."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._decoder = Decoder(protocol.MAX_HELLO_BYTES)
        self._out: list[tuple[bytes, list[int]]] = []
        self._pending = 0
        self.is_holder = False
        self.is_closing = False
        self.is_lost = False
        self.until: float | None = None

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._sock.fileno()

    @property
    def wants_write(self) -> bool:
        """Tell whether frames wait for room in the socket."""
        return bool(self._out)

    def prove(self) -> None:
        """Take frames of full size from now on."""
        self.is_holder = True
        self.until = None
        self._decoder.limit = protocol.MAX_FRAME_BYTES

    def receive(self) -> None:
        """Read what is there; an end or an error makes the connection lost."""
        try:
            data = self._sock.recv(65536)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            self._decoder.push(data)
        else:
            self.is_lost = True

    def next(self) -> Message | None:
        """Return the next request.

        Raises:
            ProtocolError: The stream cannot be understood from here on.
        """
        return None if self.is_lost or self.is_closing else self._decoder.next()

    def send(self, message: Message, fds: list[int] | None = None) -> None:
        """Queue a frame with the descriptors it names, and write what goes."""
        if self.is_lost or self.is_closing:
            return
        data = protocol.encode(message)
        self._pending += len(data)
        self._out.append((data, list(fds or ())))
        if self._pending > MAX_PENDING_BYTES:
            self.is_lost = True
        self.flush()

    def flush(self) -> None:
        """Write as much as the socket takes."""
        while self._out and not self.is_lost:
            data, fds = self._out[0]
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
            try:
                sent = self._sock.sendmsg([data], rights)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.is_lost = True
                return
            self._pending -= sent
            if sent == len(data):
                del self._out[0]
            else:
                self._out[0] = (data[sent:], [])
        if self.is_closing and not self._out:
            self.is_lost = True

    def finish(self) -> None:
        """Close once everything queued is written."""
        self.is_closing = True
        self.flush()

    def close(self) -> None:
        """Close now."""
        self._sock.close()


def peer_uid(sock: socket.socket) -> int:
    """Ask the kernel who is at the other end.

    Raises:
        OSError: It cannot say.
    """
    if sys.platform == "linux":
        size = struct.calcsize("3i")
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        return int(struct.unpack("3i", credentials)[1])
    local_peercred, sol_local = 1, 0  # <sys/un.h>: struct xucred begins with version and uid
    return int(struct.unpack_from("2I", sock.getsockopt(sol_local, local_peercred, 76))[1])


def may_connect(sock: socket.socket) -> bool:
    """Tell whether the peer is our own user (or root, who may everything anyway)."""
    try:
        return peer_uid(sock) in (os.geteuid(), 0)
    except OSError:
        return False
