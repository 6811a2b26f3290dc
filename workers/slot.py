"""One slot on disk and on the wire: its configuration and its file.

The file ``<node_dir>/slots/<slot>.json`` (0600) holds what a node that starts again needs
to find the worker and the shim of a slot: its key, and the session's specification once
there is one. It is written before anything of the slot exists and removed after
everything of it is gone, so that nothing can be alive without a file that names it.
"""

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabric.core.errors import InvalidRequestError
from fabric.core.ids import HostName, SessionId, SlotId
from fabric.core.model import Location, OpenSpec
from fabric.core.plain import from_plain, to_plain

# The kernel's limit is 107 bytes on Linux and 103 on macOS, without the final zero.
MAX_SOCKET_PATH_BYTES = 100
_KEY_BYTES = 24
_VERSION = 1


@dataclass(frozen=True, slots=True)
class SlotConfig:
    """What a worker process needs to serve one slot. ``key`` opens its sockets."""

    slot_id: SlotId
    key: str
    node_dir: str
    host: HostName

    @property
    def channel_path(self) -> Path:
        """The socket of the session worker."""
        return Path(self.node_dir) / "w" / f"{self.slot_id}.s"

    @property
    def shim_path(self) -> Path:
        """The socket of the shim."""
        return Path(self.node_dir) / "s" / f"{self.slot_id}.s"

    @property
    def file(self) -> Path:
        """The slot's own file."""
        return Path(self.node_dir) / "slots" / f"{self.slot_id}.json"

    def location(self, spec: OpenSpec) -> Location:
        """Say where the session of this slot is."""
        return Location(spec.session_id, spec.owner_id, self.host, str(self.channel_path), self.key)


@dataclass(frozen=True, slots=True)
class SlotRecord:
    """A slot as its file tells it; ``spec`` is None while it is blank.

    ``opened`` is False while the session's start-up is under way: such a session was
    never published and is torn down when the node starts again.
    """

    config: SlotConfig
    spec: OpenSpec | None = None
    opened: bool = False


def new_slot(slot_id: SlotId, node_dir: Path, host: HostName) -> SlotConfig:
    """Make the configuration of a new slot, with a key of its own."""
    return SlotConfig(slot_id, secrets.token_urlsafe(_KEY_BYTES), str(node_dir), host)


def prepare(node_dir: Path) -> None:
    """Make the node's folders, for this user only.

    Raises: InvalidRequestError when the path is too long for sockets.
    """
    longest = node_dir / "w" / f"slt_{'x' * 16}.s"
    if len(os.fsencode(longest)) > MAX_SOCKET_PATH_BYTES:
        raise InvalidRequestError(
            f"the node folder {str(node_dir)!r} is too long for unix sockets:"
            f" {len(os.fsencode(longest))} bytes, at most {MAX_SOCKET_PATH_BYTES};"
            " choose a shorter state folder",
            field="state_dir",
        )
    for folder in (node_dir, node_dir / "w", node_dir / "s", node_dir / "slots"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)


def save(record: SlotRecord) -> None:
    """Write the slot's file, whole or not at all. Raises: OSError."""
    path = record.config.file
    spare = path.with_suffix(".new")
    row = {
        "version": _VERSION,
        "config": to_plain(record.config),
        "spec": to_plain(record.spec),
        "opened": record.opened,
    }
    with os.fdopen(os.open(spare, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(row, out)
    spare.replace(path)


def load(path: Path) -> SlotRecord:
    """Read a slot's file. Raises: OSError, ValueError when it is none of ours."""
    row: Any = json.loads(path.read_text())
    try:
        if row["version"] != _VERSION:
            raise ValueError(f"slot file of version {row['version']}")
        spec = None if row["spec"] is None else from_plain(OpenSpec, row["spec"])
        return SlotRecord(from_plain(SlotConfig, row["config"]), spec, bool(row["opened"]))
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a slot file: {error}") from error


def records(node_dir: Path) -> Iterator[SlotRecord]:
    """Yield every readable slot of the node; unreadable files are renamed out of the way."""
    for path in sorted((node_dir / "slots").glob("*.json")):
        try:
            yield load(path)
        except (OSError, ValueError):
            with contextlib.suppress(OSError):
                path.replace(path.with_suffix(".bad"))


def remove(config: SlotConfig) -> None:
    """Remove everything of the slot from the node's folder; its own file last."""
    for path in (
        config.channel_path,
        config.shim_path,
        config.file.with_suffix(".new"),
        config.file,
    ):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def session_of(record: SlotRecord) -> SessionId | None:
    """Return the session in the slot, None while it is blank."""
    return None if record.spec is None else record.spec.session_id
