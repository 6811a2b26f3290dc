"""What a worker asks of a shim and what it gets back, in the fabric's own words."""

from dataclasses import dataclass
from typing import Any

from fabric.core.errors import (
    CleanupIncompleteError,
    FabricError,
    InputTooLargeError,
    InternalError,
    InvalidRequestError,
    PtyExhaustedError,
    SessionStateError,
    SpawnFailedError,
    UnauthenticatedError,
    UnsupportedError,
)
from fabric.core.model import EndedProcess, ExitStatus
from workers.shim import protocol
from workers.shim.protocol import Message

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


def error_of(value: object) -> FabricError:
    """Turn a refusal into the fabric's error; step, errno and survivors become metadata."""
    facts: dict[str, Any] = value if isinstance(value, dict) else {}
    code = str(facts.get("code"))
    error = _ERRORS.get(code, InternalError)(str(facts.get("message", "the shim refused")))
    survivors = facts.get("survivors")
    if isinstance(survivors, list):
        error.with_metadata(survivors=", ".join(f"{e['name']} ({e['pid']})" for e in survivors))
    return error.with_metadata(step=facts.get("step"), errno=facts.get("errno"))


def exit_status(value: object) -> ExitStatus | None:
    """Read an exit; None while the program runs."""
    if not isinstance(value, dict):
        return None
    return ExitStatus(exit_code=value.get("code"), signal=value.get("signal"))


def spawned_of(reply: Message, fds: list[int]) -> Spawned:
    """Read what runs there, with the descriptors that came along."""
    master_fd, log_fd = fds
    return Spawned(
        pid=number_of(reply, "pid"),
        start_time=number_of(reply, "start_time"),
        master_fd=master_fd,
        log_fd=log_fd,
        labels=protocol.unpack(reply, "labels"),
        exit=exit_status(reply.get("exit")),
    )


def entries(reply: Message, name: str) -> tuple[EndedProcess, ...]:
    """Read a list of a receipt."""
    entries: Any = reply[name]
    return tuple(
        EndedProcess(pid=entry["pid"], name=entry["name"], last_signal=entry["signal"])
        for entry in entries
    )


def number_of(reply: Message, name: str) -> int:
    """Read a whole number the shim always sends."""
    value = reply[name]
    if not isinstance(value, int):
        raise InternalError(f"the shim answered without {name}")
    return value
