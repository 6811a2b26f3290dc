"""Where a session works when its owner's policy names no folder.

The node's setting comes first; ``{principal}`` and ``{agent}`` in it stand for the owner. With
neither, a session that may write gets a folder of its owner's own, so that one agent's mistake
never reaches another's work, nor the home of whoever runs the service:

    allowed roots set   <first allowed root>/<principal>/<agent>
    the service is root /var/lib/pty-fabric/workspaces/<principal>/<agent>
    else                $XDG_DATA_HOME or ~/.local/share, then as above

It is made at the first open, belongs to the account of the session, and stays: whatever is in
it is the owner's work. A session that may write nothing, or everything, starts in the first
allowed root or in the home of its account, as a login would.
"""

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from fabric.core.errors import SpawnFailedError
from fabric.core.model import OpenSpec, SandboxMode
from fabric.core.settings import SandboxSettings
from workers.sandbox.account import Account

MAX_NAME = 200
_OF_ROOT = "/var/lib/pty-fabric/workspaces"


def folder_name(label: str) -> str:
    """Turn a principal or an agent into the name of a folder; different ones stay different."""
    name = quote(label, safe="@+=,:")
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    if len(name) <= MAX_NAME:
        return name
    digest = hashlib.blake2b(label.encode(), digest_size=8).hexdigest()
    return f"{name[:MAX_NAME]}~{digest}"


def default_root(
    spec: OpenSpec, settings: SandboxSettings, account: Account, environ: Mapping[str, str]
) -> tuple[str, bool]:
    """Name the workspace of a session without one, and whether it is to be made."""
    names = {"principal": folder_name(spec.principal), "agent": folder_name(spec.agent)}
    if settings.workspace_root:
        path = settings.workspace_root
        for name, value in names.items():
            path = path.replace(f"{{{name}}}", value)
        return path, path != settings.workspace_root
    if spec.mode is not SandboxMode.WORKSPACE_WRITE:
        return (settings.allowed_roots or (_home(account),))[0], False
    if settings.allowed_roots:
        base = settings.allowed_roots[0]
    elif os.geteuid() == 0:
        base = _OF_ROOT
    else:
        data = environ.get("XDG_DATA_HOME", "")
        share = data if data.startswith("/") else f"{account.home}/.local/share"
        base = f"{share}/pty-fabric/workspaces"
    return f"{base}/{names['principal']}/{names['agent']}", True


def make(path: str, account: Account) -> None:
    """Make the workspace, for the account only, unless it is there.

    Raises: SpawnFailedError when it cannot be made.
    """
    folder = Path(path)
    try:
        # Passing through is for every account of the machine, looking around is not.
        for parent in reversed(folder.parents):
            with contextlib.suppress(FileExistsError):
                parent.mkdir(mode=0o711)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
            if account.switched:
                os.chown(folder, account.uid, account.gid)
    except OSError as error:
        raise SpawnFailedError(
            f"the workspace {path} cannot be made: {error.strerror}", workspace_root=path
        ) from error


def _home(account: Account) -> str:
    return account.home if Path(account.home or "/").is_dir() else "/"
