"""Confine by Landlock, where namespaces are forbidden.

Landlock only grants: a rule opens a folder and all below it, and nothing can be taken out
again. So a masked path is left out by opening its siblings instead, from the root down. What
appears later beside a masked path, in one of the folders above it, cannot be read by the
session; the workspace has a rule of its own and is not touched by this. Names are visible
everywhere, contents are not. Links are never followed: what they lead to has its own rule.

What each ABI can do, and so what is called partial:

    ABI 1  writing, creating, removing          5.13
    ABI 2  moving between folders               5.19
    ABI 3  truncating                           6.2   below it: content can be cut off
    ABI 4  TCP bind and connect                 6.7   (not used: see below)
    ABI 5  ioctl on devices                     6.10  below it: devices can be driven
    ABI 6  signals and abstract sockets         6.12  below it: outside processes reachable

    read-only        full from ABI 6 with the system call filter of ``seccomp``, else partial
    workspace-write  always partial: modes, owners and times of files outside, and unix
                     sockets by path, are beyond Landlock, and a workspace needs those calls
    network none     by the filter alone (every family but unix); ABI 4's rules know only
                     TCP, so without the filter the policy is refused

Programs inside cannot make terminals (``script``, ``tmux``): a rule for new ones would open
those of other sessions. ``/dev`` is limited to the harmless nodes and the session's own
terminal. ``/tmp`` is writable in workspace-write unless something masked lies in it.

The kernel is asked for its ABI by the plain system call; the rules are pure values.
"""

import ctypes
import os
from collections.abc import Callable, Iterable
from typing import Any

from fabric.core.model import SandboxMode
from workers.sandbox.policy import TEMPORARY, Folder, ResolvedPolicy, is_below

MAX_ABI = 7
FULL_ABI = 6

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, MAKE_DIR = 1 << 4, 1 << 5, 1 << 6, 1 << 7
MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK = 1 << 8, 1 << 9, 1 << 10, 1 << 11
MAKE_SYM, REFER, TRUNCATE, IOCTL_DEV = 1 << 12, 1 << 13, 1 << 14, 1 << 15
SCOPE_ABSTRACT_UNIX, SCOPE_SIGNAL = 1 << 0, 1 << 1

READ = EXECUTE | READ_FILE | READ_DIR
WRITE = (
    WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SOCK | MAKE_FIFO
    | MAKE_SYM | REFER | TRUNCATE
)  # fmt: skip
DEVICE = READ_FILE | WRITE_FILE | TRUNCATE
TERMINAL = READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV

_NODES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_CREATE_RULESET, _CREATE_RULESET_VERSION = 444, 1

Listing = Callable[[str], Iterable[tuple[str, bool]]]
Rule = tuple[str, int, tuple[int, int] | None]


def kernel_abi() -> int:
    """Ask the kernel for its Landlock ABI; 0 when it has none or it is switched off."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        version = ctypes.c_long(_CREATE_RULESET_VERSION)
        no_size = ctypes.c_long(0)
        answer = int(libc.syscall(ctypes.c_long(_CREATE_RULESET), None, no_size, version))
    except (OSError, AttributeError):
        return 0
    return min(max(answer, 0), MAX_ABI)


def handled_files(abi: int) -> int:
    """Name every right over files this ABI can take away."""
    bits = {1: 13, 2: 14, 3: 15, 4: 15}.get(abi, 16)
    return (1 << bits) - 1


def entries(path: str) -> Iterable[tuple[str, bool]]:
    """List a folder as (name, is a link); nothing when it cannot be read."""
    try:
        with os.scandir(path) as found:
            return [(entry.name, entry.is_symlink()) for entry in found]
    except OSError:
        return []


def openable(masked: Iterable[str], listing: Listing) -> list[str]:
    """List the paths that together are the whole tree without the masked ones and links."""
    closed = set(masked)
    found: list[str] = []

    def descend(folder: str) -> None:
        for name, is_link in sorted(listing(folder)):
            path = f"{folder.rstrip('/')}/{name}"
            if is_link or path in closed:
                continue
            if any(is_below(mask, path) for mask in closed):
                descend(path)
            else:
                found.append(path)

    if "/" not in closed:
        descend("/")
    return found


def is_partial(mode: SandboxMode, abi: int, *, filtered: bool) -> bool:
    """Tell whether Landlock of this ABI leaves some file effects of the mode open."""
    return mode is SandboxMode.WORKSPACE_WRITE or abi < FULL_ABI or not filtered


def ruleset(
    policy: ResolvedPolicy,
    abi: int,
    masked: Iterable[str],
    listing: Listing = entries,
    temporary: Folder | None = None,
) -> dict[str, Any]:
    """Build the Landlock step of a plan; ``temporary`` is ``/tmp`` where it may be written."""
    masks = set(masked)
    handled = handled_files(abi)
    rules: list[Rule] = [("/", READ_DIR, None)]
    rules += [(path, READ, None) for path in openable(masks | {"/dev"}, listing)]
    rules += [(path, DEVICE, None) for path in _NODES]
    rules.append(("/dev/tty", TERMINAL, None))
    if policy.mode is SandboxMode.WORKSPACE_WRITE:
        root = policy.workspace
        rules.append((root.path, READ | WRITE, (root.device, root.inode)))
        if temporary is not None and not is_below(temporary.path, root.path):
            rules.append((temporary.path, READ | WRITE, (temporary.device, temporary.inode)))
    return {
        "abi": abi,
        "fs": handled,
        "net": 0,
        "scope": SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL if abi >= FULL_ABI else 0,
        "tty": TERMINAL & handled,
        "rules": [
            [path, access & handled, list(same) if same else None] for path, access, same in rules
        ],
    }


def scope_only(abi: int) -> dict[str, Any] | None:
    """Build the step that only cuts off abstract unix sockets and signals, for other sandboxes.

    It handles no right over files, so a sandbox program may still build its mounts under it.
    """
    if abi < FULL_ABI:
        return None
    return {
        "abi": abi, "fs": 0, "net": 0, "scope": SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL,
        "tty": 0, "rules": [],
    }  # fmt: skip


def may_write_temporary(masked: Iterable[str], temporary: str = TEMPORARY) -> bool:
    """Tell whether nothing masked lies in the shared temporary folder."""
    return not any(is_below(path, temporary) for path in masked)
