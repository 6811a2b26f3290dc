"""Resolve what one session is confined to, once, before anything is started.

The mode, the network and the workspace root come from the owner's policy, never from the
caller's arguments: a caller that could choose the root could choose what it may write. The
root is canonical and its identity (device, inode) is remembered, so that a folder swapped for
a link between this check and the start of the program is noticed (``workers.shim.confine``).

    root   = the policy's workspace root, else the node's default folder
    cwd    = the caller's folder (a relative one counts from the root), else the root

A root is refused when it is not an existing folder, when it leaves the node's allowed roots
(in every mode: it is where the session works), or when it is ``/`` in workspace-write, which
would make the whole machine the workspace. The working folder is only a place to start in:
it gives no rights, so it is not checked against the roots, and when it does not exist the
start itself fails with that reason.

Pure: the file system is asked through ``look_up``.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fabric.core.errors import InvalidRequestError
from fabric.core.model import Network, OpenSpec, SandboxMode

TEMPORARY = "/tmp"  # noqa: S108  (the folder itself is the subject)


@dataclass(frozen=True, slots=True)
class Folder:
    """An existing folder: its canonical path and its identity."""

    path: str
    device: int
    inode: int


@dataclass(frozen=True, slots=True)
class ResolvedPolicy:
    """What one session is confined to, fixed for the life of its PTY."""

    mode: SandboxMode
    network: Network
    workspace: Folder
    cwd: str
    run_as: str | None = None

    @property
    def workspace_root(self) -> str:
        """The canonical path of the workspace."""
        return self.workspace.path

    @property
    def is_confined(self) -> bool:
        """Tell whether the session needs a sandbox at all."""
        return self.mode is not SandboxMode.DANGER_FULL_ACCESS


def folder_at(path: str) -> Folder | None:
    """Look a folder up; None when there is none."""
    try:
        real = os.path.realpath(path, strict=True)
        facts = os.stat(real)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return Folder(real, facts.st_dev, facts.st_ino) if os.path.isdir(real) else None  # noqa: PTH112


def resolve(
    spec: OpenSpec,
    *,
    allowed_roots: Iterable[str],
    node_cwd_default: str,
    look_up: Callable[[str], Folder | None] = folder_at,
) -> ResolvedPolicy:
    """Resolve the policy of one session.

    Raises: InvalidRequestError when the workspace root is not an existing folder, is not
    absolute, leaves the allowed roots, or would make the whole machine writable.
    """
    wanted = spec.workspace_root or node_cwd_default
    workspace = look_up(_absolute(wanted, "workspace_root"))
    if workspace is None:
        raise InvalidRequestError(
            f"workspace root {wanted} is not an existing folder", workspace_root=wanted
        )
    roots = tuple(allowed_roots)
    if roots and not any(
        root is not None and is_below(workspace.path, root.path) for root in map(look_up, roots)
    ):
        raise InvalidRequestError(
            f"workspace root {workspace.path} is outside the roots this node allows",
            workspace_root=workspace.path,
        )
    if spec.mode is SandboxMode.WORKSPACE_WRITE and workspace.path == "/":
        raise InvalidRequestError(
            "workspace root / would make the whole machine writable; name a folder",
            workspace_root="/",
        )
    return ResolvedPolicy(
        mode=spec.mode,
        network=spec.network,
        workspace=workspace,
        cwd=_working_folder(spec.cwd, workspace.path),
        run_as=spec.run_as,
    )


def _absolute(path: str, noun: str) -> str:
    if "\0" in path or not path.startswith("/"):
        raise InvalidRequestError(f"{noun} {path!r} must be an absolute path", field=noun)
    return path


def _working_folder(cwd: str | None, root: str) -> str:
    if not cwd:
        return root
    if "\0" in cwd:
        raise InvalidRequestError("cwd must not contain a NUL character", field="cwd")
    return os.path.normpath(cwd if cwd.startswith("/") else f"{root}/{cwd}")


def is_below(path: str, root: str) -> bool:
    """Tell whether a canonical path is the root or lies below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def writable_roots(policy: ResolvedPolicy, *temporary: str) -> tuple[str, ...]:
    """List what a confined session may write: the workspace and temporary folders, each once.

    ``temporary`` holds canonical paths; one that lies in another root is not listed again.
    """
    if policy.mode is not SandboxMode.WORKSPACE_WRITE:
        return ()
    found: list[str] = []
    for root in (policy.workspace_root, *temporary):
        if not any(is_below(root, other) for other in found):
            found.append(root)
    return tuple(found)
