"""Where things are: names of actors, folders of nodes."""

import hashlib
import os
from pathlib import Path

from fabric.core.errors import InvalidRequestError
from fabric.core.ids import HostName
from workers.slot import MAX_SOCKET_PATH_BYTES

REGISTRY = "registry"
# What workers.slot puts below a node's folder: "/w/slt_" and 16 characters and ".s".
_SOCKET_TAIL_BYTES = 25


def node_name(host: HostName) -> str:
    """Name the node actor of a host."""
    return f"node:{host}"


def make_state_dir(state_dir: str) -> Path:
    """Make the state folder of this machine, for this user only, and return it."""
    folder = Path(state_dir).expanduser()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def short_folder() -> Path:
    """Return where the sockets of this user's nodes go when the state folder is too long."""
    return Path("/tmp") / f"ptyfabric-{os.getuid()}"  # noqa: S108  (checked when it is used)


def node_dir(state_dir: Path, host: HostName) -> Path:
    """Return the folder of a node; the same for the same state folder and host.

    It lies in the state folder unless that is too long for unix sockets; then in a folder
    of this user's below the system's short temporary one.
    Raises: InvalidRequestError when that one belongs to somebody else.
    """
    if not host or "/" in host or host.startswith("."):
        raise InvalidRequestError(f"host name {host!r} cannot name a folder", field="host")
    own = state_dir / "nodes" / host
    if len(os.fsencode(own)) + _SOCKET_TAIL_BYTES <= MAX_SOCKET_PATH_BYTES:
        return own
    top = short_folder()
    top.mkdir(mode=0o700, exist_ok=True)
    facts = top.lstat()
    if facts.st_uid != os.getuid() or top.is_symlink() or facts.st_mode & 0o077:
        raise InvalidRequestError(
            f"{top} is not this user's own private folder; choose a shorter state folder",
            field="state_dir",
        )
    return top / hashlib.blake2b(os.fsencode(own), digest_size=8).hexdigest()


def node_dirs(state_dir: Path) -> list[Path]:
    """List the folders of all nodes that this state folder has had on this machine."""
    marks = state_dir / "nodes"
    return [node_dir(state_dir, HostName(path.name)) for path in marks.glob("*") if path.is_dir()]


def claim_node_dir(state_dir: Path, host: HostName) -> Path:
    """Return the node's folder and leave its mark, so that ``node_dirs`` finds it."""
    (state_dir / "nodes" / host).mkdir(mode=0o700, parents=True, exist_ok=True)
    return node_dir(state_dir, host)
