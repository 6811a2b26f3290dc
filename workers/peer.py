"""Who is at the other end of a unix socket, and a folder only we can enter."""

import os
import socket
import struct
import sys
from pathlib import Path

_XUCRED_BYTES = 76  # struct xucred of sys/ucred.h: version, uid, 16 groups
_LOCAL_PEERCRED = 1


def peer_uid(fd: int) -> int:
    """Return the uid of the process that connected. Raises: OSError."""
    with socket.socket(fileno=os.dup(fd)) as sock:
        if sys.platform == "darwin":
            raw = sock.getsockopt(0, _LOCAL_PEERCRED, _XUCRED_BYTES)
            return int(struct.unpack_from("=II", raw)[1])
        raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", raw)[1])


def private_dir(path: Path) -> Path:
    """Make a folder that only this user may enter. Raises: PermissionError when it is shared."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = path.stat()
    if info.st_uid != os.getuid():
        raise PermissionError(f"{path} belongs to another user")
    if info.st_mode & 0o077:
        path.chmod(0o700)
    return path
