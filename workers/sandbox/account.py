"""The account a session runs under, and the locales of its machine."""

import ctypes
import os
import pwd
import sys
from dataclasses import dataclass

from fabric.core.errors import SpawnFailedError

_LC_ALL_MASK = 0x1FBF if sys.platform == "linux" else 0x3F


@dataclass(frozen=True, slots=True)
class Account:
    """One line of the user database. ``switched`` says that it is not the service's own."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    name: str
    home: str
    shell: str
    switched: bool = False


def account_of(run_as: str | None) -> Account:
    """Look an account up: by name, by number, or the service's own for None.

    A uid without an entry gets its number for a name and ``/`` for a home.

    Raises: SpawnFailedError when no account has this name.
    """
    if run_as is None:
        uid = os.geteuid()
        entry = _entry(uid)
        groups = (*os.getgroups(), os.getegid())
        if entry is None:
            return Account(uid, os.getegid(), groups, str(uid), "/", "")
        return Account(uid, os.getegid(), groups, entry.pw_name, entry.pw_dir, entry.pw_shell)
    try:
        entry = _entry(int(run_as)) if run_as.isdigit() else pwd.getpwnam(run_as)
    except KeyError:
        entry = None
    if entry is None:
        raise SpawnFailedError(f"no account {run_as!r} on this node", run_as=run_as)
    groups = tuple(os.getgrouplist(entry.pw_name, entry.pw_gid))
    return Account(
        entry.pw_uid, entry.pw_gid, groups, entry.pw_name, entry.pw_dir, entry.pw_shell,
        switched=entry.pw_uid != os.geteuid(),
    )  # fmt: skip


def _entry(uid: int) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwuid(uid)
    except KeyError:
        return None


def has_locale(name: str) -> bool:
    """Tell whether this machine has a locale; programs fall back to ASCII where it has not."""
    try:
        libc = ctypes.CDLL(None)
        libc.newlocale.restype = ctypes.c_void_p
        libc.freelocale.argtypes = [ctypes.c_void_p]
        found = libc.newlocale(ctypes.c_int(_LC_ALL_MASK), name.encode(), None)
    except (OSError, AttributeError, ValueError):
        return "\0" not in name
    if found is None:
        return False
    libc.freelocale(found)
    return True
