"""What a confined session must not reach although reading is free.

Two kinds: the service's own secrets (cluster tokens, keys, the state folder with the sockets
of every session) and the sockets of other programs, each of which could be asked to do
outside what the sandbox forbids inside. A path that does not exist cannot be masked, and one
the session's uid cannot get to need not be.
"""

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from workers.sandbox.account import Account
from workers.sandbox.policy import is_below

MAX_SOCKETS = 512
_UNIX_TABLE = Path("/proc/net/unix")
_PATH_COLUMN = 7
# Name lookup of the machine; they answer questions and do nothing else.
_HARMLESS = ("/var/lib/sss/pipes", "/var/run/nscd", "/run/nscd", "/var/cache/nscd")
_ACL = "system.posix_acl_access"

Mask = tuple[str, bool]


def of_service(environ: Mapping[str, str], home: str) -> tuple[str, ...]:
    """List where Ray keeps its token, keys, sockets and logs, for this environment."""
    named = ("RAY_AUTH_TOKEN_PATH", "RAY_TLS_SERVER_KEY", "RAY_TMPDIR")
    found = [f"{home.rstrip('/')}/.ray", "/tmp/ray"]  # noqa: S108  (Ray's own default)
    found += [environ[name] for name in named if environ.get(name, "").startswith("/")]
    return tuple(dict.fromkeys(found))


def sockets_of(table: str) -> list[str]:
    """Read the paths of bound unix sockets out of ``/proc/net/unix``."""
    found: dict[str, None] = {}
    for line in table.splitlines()[1:]:
        fields = line.split(None, _PATH_COLUMN)
        if len(fields) > _PATH_COLUMN and fields[_PATH_COLUMN].startswith("/"):
            path = fields[_PATH_COLUMN]
            if not any(is_below(path, folder) for folder in _HARMLESS):
                found[path] = None
    return list(found)


def listening_sockets(table: Path = _UNIX_TABLE) -> tuple[str, ...]:
    """List the unix sockets bound on this machine now, at most ``MAX_SOCKETS``."""
    try:
        text = table.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ()
    found = (path for path in sockets_of(text) if _is_socket(path))
    return tuple(path for path, _ in zip(found, range(MAX_SOCKETS), strict=False))


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)  # noqa: PTH116
    except OSError:
        return False


def of(masks: Iterable[Mask]) -> tuple[str, ...]:
    """List the paths of masks."""
    return tuple(path for path, _ in masks)


def outermost(masks: Iterable[Mask]) -> tuple[Mask, ...]:
    """Keep each mask once and none that lies in another, outer ones first."""
    kept: list[Mask] = []
    for path, is_folder in sorted(set(masks)):
        if not any(folder and is_below(path, other) for other, folder in kept):
            kept.append((path, is_folder))
    return tuple(kept)


def existing(
    paths: Iterable[str], account: Account, may_search: Callable[[str, Account], bool] | None = None
) -> tuple[Mask, ...]:
    """Make masks of the paths that exist and that the session's account can get to."""
    searchable = may_search or _may_search
    found: list[Mask] = []
    for path in paths:
        real = os.path.realpath(path)
        try:
            is_folder = stat.S_ISDIR(os.stat(real).st_mode)  # noqa: PTH116
        except OSError:
            continue
        if all(searchable(str(parent), account) for parent in Path(real).parents):
            found.append((real, is_folder))
    return outermost(found)


def _may_search(folder: str, account: Account) -> bool:
    """Tell whether the account may pass through a folder, by its mode; an ACL counts as yes."""
    try:
        facts = os.stat(folder)  # noqa: PTH116
    except OSError:
        return False
    if facts.st_uid == account.uid:
        return bool(facts.st_mode & stat.S_IXUSR)
    if _has_acl(folder):
        return True
    if facts.st_gid in account.groups:
        return bool(facts.st_mode & stat.S_IXGRP)
    return bool(facts.st_mode & stat.S_IXOTH)


def _has_acl(folder: str) -> bool:
    if not hasattr(os, "getxattr"):
        return True
    try:
        os.getxattr(folder, _ACL)
    except OSError:
        return False
    return True
