"""The folder where a fabric started here keeps what other commands need to find it.

Layout (the folder is 0700, every file 0600):

- ``up.lock``       held by the supervisor for as long as it lives; its being free means "not up"
- ``fabric.json``   who supervises, where the gateway listens, which cluster
- ``gateway.token`` the bearer token of an embedded gateway, for clients;
  ``gateway.principals`` its hash, for the gateway
- ``owners/``       owner tokens, one file an agent
- ``logs/``         what the processes in the background print
"""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fabric.core.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class Record:
    """What ``fabric up`` writes for the other commands."""

    pid: int
    start_time: int
    gateway: str
    cluster: str
    embedded: bool
    started_at: float
    version: str
    gateway_pid: int = 0
    gateway_start_time: int = 0
    metrics: str = ""


def default_folder(environ: Mapping[str, str]) -> Path:
    """Where the state is kept when nobody says otherwise."""
    if environ.get("FABRIC_STATE_DIR"):
        return Path(environ["FABRIC_STATE_DIR"])
    home = environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "pty-fabric"


def start_time_of(pid: int) -> int:
    """Return the kernel's start time of a process (0: there is none), to tell reused pids apart."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        raw = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        facts = raw.rpartition(")")[2].split()
        return 0 if facts[0] in "ZX" else int(facts[19])
    if not Path("/proc/self/stat").exists() and pid > 0:
        with contextlib.suppress(OSError):
            os.kill(pid, 0)
            return 1
    return 0


class StateDir:
    """One state folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser().absolute()

    @property
    def logs(self) -> Path:
        """Where background processes write."""
        return self.folder / "logs"

    @property
    def token_file(self) -> Path:
        """The bearer token of an embedded gateway."""
        return self.folder / "gateway.token"

    @property
    def principals_file(self) -> Path:
        """The same token as the gateway reads it: principal and hash."""
        return self.folder / "gateway.principals"

    @property
    def lock_file(self) -> Path:
        """The file the supervisor holds a lock on."""
        return self.folder / "up.lock"

    def prepare(self) -> "StateDir":
        """Make the folder, private to this user. Raises: InvalidRequestError."""
        try:
            for folder in (self.folder, self.logs, self.folder / "owners"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            info = self.folder.stat()
            if info.st_uid != os.geteuid():
                raise InvalidRequestError(
                    f"the state folder {self.folder} belongs to another user",
                    hint="set FABRIC_STATE_DIR to a folder of your own",
                )
            if stat.S_IMODE(info.st_mode) != 0o700:
                self.folder.chmod(0o700)
        except OSError as error:
            raise InvalidRequestError(
                f"the state folder {self.folder} cannot be used: {error.strerror or error}",
                hint="set FABRIC_STATE_DIR to a folder you can write",
            ) from error
        return self

    @contextlib.contextmanager
    def holding(self, path: Path, *, wait: bool) -> Iterator[bool]:
        """Hold an exclusive lock on a file; yields False when another process has it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)

    def is_up(self) -> bool:
        """Tell whether a supervisor lives here."""
        if not self.lock_file.exists():
            return False
        with self.holding(self.lock_file, wait=False) as free:
            return not free

    def record(self) -> Record | None:
        """Read what ``fabric up`` wrote; None when there is nothing."""
        row = self._read(self.folder / "fabric.json")
        try:
            return Record(**row) if row else None
        except TypeError:
            return None

    def write_record(self, record: Record) -> None:
        """Say where this fabric is."""
        self._write(self.folder / "fabric.json", asdict(record))

    def forget_record(self) -> None:
        """Say that this fabric is gone."""
        (self.folder / "fabric.json").unlink(missing_ok=True)

    def new_token(self, principal: str) -> Path:
        """Mint the bearer token of an embedded gateway; returns the file for the gateway.

        The token itself is in ``token_file``, for this user's commands.
        """
        token = secrets.token_urlsafe(32)
        digest = hashlib.sha256(token.encode()).hexdigest()
        self._replace(self.token_file, token + "\n")
        self._replace(self.principals_file, f"{principal} sha256:{digest}\n")
        return self.principals_file

    def forget_token(self) -> None:
        """Drop the bearer token: the gateway that knew it is gone."""
        self.token_file.unlink(missing_ok=True)
        self.principals_file.unlink(missing_ok=True)

    def owner_file(self, agent: str, gateway: str) -> Path:
        """Where the owner token of an agent at a gateway is kept."""
        return self.folder / "owners" / f"{quote(f'{agent}@{gateway}', safe='')}.json"

    def read_owner(self, path: Path) -> dict[str, Any]:
        """Read a cached owner; empty when there is none."""
        return self._read(path)

    def write_owner(self, path: Path, row: dict[str, Any]) -> None:
        """Cache an owner."""
        self._write(path, row)

    def forget_owners(self) -> None:
        """Drop every cached owner: the fabric that knew them is gone."""
        for path in (self.folder / "owners").iterdir():
            path.unlink(missing_ok=True)

    def _write(self, path: Path, row: dict[str, Any]) -> None:
        self._replace(path, json.dumps(row))

    @staticmethod
    def _replace(path: Path, text: str) -> None:
        """Write whole or not at all; never readable by others, not even for a moment."""
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        draft.replace(path)

    @staticmethod
    def _read(path: Path) -> dict[str, Any]:
        try:
            row = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return row if isinstance(row, dict) else {}
