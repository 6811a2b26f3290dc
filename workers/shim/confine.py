"""Confine the calling process: the last thing a forked child does before it becomes a program.

Standard library only, since it runs inside the small shim. The plan is decided elsewhere
(``workers.sandbox``); here it is only carried out, in an order that matters:

1. join the session's cgroup, so that no instruction of the program runs outside it;
2. in a mount namespace of our own: make the host's device nodes read-only (root only: an
   owner may change the mode of a node it owns, also through a bind mount) and cover sockets
   (one that has gone meanwhile is skipped, which no sandbox program would forgive);
3. open the workspace and compare it with what was checked, so that a folder swapped for a
   link in between is refused; the descriptor stays open for the sandbox program;
4. take a fresh session keyring; give up capabilities; forbid gaining any;
5. Landlock; seccomp last, since it may forbid what the steps before need.

Steps 1 and 2 need the service's own rights: where the program gets another uid, call
``prepare`` before the switch and ``apply`` after it.

Any failure raises, and the caller must not start the program then. The process is changed
for good, so this must never run in a process that is to be used for anything else.

Run as a program, it carries out a plan and becomes a command: trials use that.
"""

from __future__ import annotations

import binascii
import ctypes
import errno
import json
import os
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing it takes longer than all the rest, on the way to every open
    from typing import Any

VERSION = 1

_MS_RDONLY, _MS_NOSUID, _MS_REMOUNT, _MS_BIND = 0x1, 0x2, 0x20, 0x1000
_MS_REC, _MS_SLAVE = 0x4000, 0x80000
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 38, 47, 4
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_CAPABILITY_VERSION_3 = 0x20080522
_KEYCTL_JOIN_SESSION_KEYRING = 1
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_RULE_PATH_BENEATH = 1
# What Landlock accepts for a rule on something that is not a directory.
_FILE_ACCESS = (1 << 0) | (1 << 1) | (1 << 2) | (1 << 14) | (1 << 15)
_MAX_CAPABILITY = 64
_LIBC = ctypes.CDLL(None, use_errno=True)  # by the parent: it is slow in a fresh child
_O_PATH = getattr(os, "O_PATH", 0)
_DEFAULTS: dict[str, Any] = {
    "cgroup": None,
    "devices": [],
    "sockets": [],
    "open": [],
    "keyring": None,
    "drop_caps": False,
    "no_new_privs": False,
    "landlock": None,
    "seccomp": None,
}


class ConfineError(Exception):
    """A step of the plan could not be carried out; the program must not start.

    Not an OSError, so that the step is part of what is reported; ``number`` is the errno.
    """

    def __init__(self, step: str, number: int) -> None:
        super().__init__(f"{step}: {os.strerror(number)}")
        self.number = number


class _Kernel:
    """The few system calls Python has no name for; each raises with the step it served."""

    def __init__(self) -> None:
        self._libc = _LIBC

    def _check(self, step: str, result: int) -> int:
        if result < 0:
            raise ConfineError(step, ctypes.get_errno())
        return result

    def syscall(self, step: str, number: int, *args: Any) -> int:
        values = [ctypes.c_long(arg) if isinstance(arg, int) else arg for arg in args]
        return self._check(step, int(self._libc.syscall(ctypes.c_long(number), *values)))

    def prctl(self, step: str, option: int, *args: Any) -> int:
        values = [ctypes.c_ulong(arg) if isinstance(arg, int) else arg for arg in args]
        values += [ctypes.c_ulong(0)] * (4 - len(values))
        return self._check(step, int(self._libc.prctl(ctypes.c_int(option), *values)))

    def mount(self, source: str, target: str, flags: int) -> None:
        result = self._libc.mount(
            os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(flags), None
        )
        self._check(f"mount {target}", int(result))

    def unshare(self, flags: int) -> None:
        self._check("unshare", int(self._libc.unshare(ctypes.c_int(flags))))

    def capset(self, header: bytes, data: bytes) -> None:
        self._check("capset", int(self._libc.capset(header, data)))


def apply(plan: bytes, *, prepared: bool = False) -> None:
    """Carry out a plan on the calling process.

    ``prepared`` says that ``prepare`` was called already, before the switch to another uid.

    Raises: ConfineError naming the step, OSError, ValueError for a plan not understood.
    """
    steps = _read(plan)
    kernel = _Kernel()
    if not prepared:
        _prepare(kernel, steps)
    for path, device, inode, number in steps["open"]:
        _open_at(path, device, inode, number)
    if steps["keyring"]:
        _fresh_keyring(kernel, steps["keyring"])
    if steps["drop_caps"]:
        _drop_capabilities(kernel)
    if steps["no_new_privs"]:
        kernel.prctl("no_new_privs", _PR_SET_NO_NEW_PRIVS, 1)
    if steps["landlock"]:
        _landlock(kernel, steps["landlock"])
    if steps["seccomp"]:
        _seccomp(kernel, binascii.a2b_base64(steps["seccomp"], strict_mode=True))


def prepare(plan: bytes) -> None:
    """Carry out the steps that need the service's own rights: its cgroup and its mounts.

    Raises: ConfineError naming the step, OSError, ValueError for a plan not understood.
    """
    _prepare(_Kernel(), _read(plan))


def _prepare(kernel: _Kernel, steps: dict[str, Any]) -> None:
    if steps["cgroup"]:
        _write(steps["cgroup"], b"0")
    if steps["devices"] or steps["sockets"]:
        _own_mounts(kernel)
        _protect_devices(kernel, steps["devices"])
        _cover_sockets(kernel, steps["sockets"])


def _read(plan: bytes) -> dict[str, Any]:
    steps = json.loads(plan)
    if not isinstance(steps, dict) or steps.pop("v", None) != VERSION:
        raise ValueError(f"not a confinement plan of version {VERSION}")
    unknown = set(steps) - set(_DEFAULTS)
    if unknown:  # a step that cannot be carried out must not be skipped
        raise ValueError(f"unknown confinement steps: {', '.join(sorted(unknown))}")
    return {**_DEFAULTS, **steps}


def _write(path: str, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def _own_mounts(kernel: _Kernel) -> None:
    """Enter a mount namespace of our own, as root or as an ordinary user."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        kernel.unshare(_CLONE_NEWNS)
    else:
        kernel.unshare(_CLONE_NEWUSER | _CLONE_NEWNS)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            _write(f"/proc/self/{name}", text.encode())
    kernel.mount("none", "/", _MS_REC | _MS_SLAVE)


def _cover_sockets(kernel: _Kernel, paths: list[str]) -> None:
    for path in paths:
        try:
            kernel.mount("/dev/null", path, _MS_BIND)
        except ConfineError as error:
            # Gone, or in a folder we may not enter: then it cannot be reached either.
            if error.number not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                raise


def _protect_devices(kernel: _Kernel, paths: list[str]) -> None:
    for path in paths:
        kernel.mount(path, path, _MS_BIND)
        kernel.mount("none", path, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID)


def _open_same(path: str, device: int, inode: int) -> int:
    """Open a folder that must be the one that was checked, at that path without any link.

    The identity alone would not do: a link made right after the folder was removed may get
    its inode number.
    """
    descriptor = os.open(path, _O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC)
    facts = os.fstat(descriptor)
    found = os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115  (no pathlib in the shim)
    if (facts.st_dev, facts.st_ino, found) != (device, inode, path):
        os.close(descriptor)
        raise ConfineError(f"{path} is not the folder it was when it was checked", errno.ESTALE)
    return descriptor


def _open_at(path: str, device: int, inode: int, number: int) -> None:
    descriptor = _open_same(path, device, inode)
    try:
        os.fstat(number)
    except OSError:
        pass  # free, as it should be: nothing of ours may be overwritten
    else:
        raise ConfineError(f"descriptor {number}", errno.EBUSY)
    os.dup2(descriptor, number, inheritable=True)
    os.close(descriptor)


def _fresh_keyring(kernel: _Kernel, number: int) -> None:
    try:
        kernel.syscall("session keyring", number, _KEYCTL_JOIN_SESSION_KEYRING, None)
    except ConfineError as error:
        if error.number != errno.ENOSYS:  # a kernel without keyrings has none to inherit
            raise


def _drop_capabilities(kernel: _Kernel) -> None:
    kernel.prctl("ambient capabilities", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    try:
        for number in range(_MAX_CAPABILITY):
            kernel.prctl("bounding capabilities", _PR_CAPBSET_DROP, number)
    except ConfineError as error:
        # EINVAL: above the kernel's last one. EPERM: no privilege, so nothing to give up.
        if error.number not in (errno.EINVAL, errno.EPERM):
            raise
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    kernel.capset(header, struct.pack("=6I", 0, 0, 0, 0, 0, 0))


def _landlock(kernel: _Kernel, rules: dict[str, Any]) -> None:
    words = [rules["fs"]]
    if rules["abi"] >= 4:
        words.append(rules["net"])
    if rules["abi"] >= 6:
        words.append(rules["scope"])
    attributes = struct.pack(f"={len(words)}Q", *words)
    ruleset = kernel.syscall(
        "landlock ruleset", _LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0
    )
    try:
        for path, access, wanted in rules["rules"]:
            _add_rule(kernel, ruleset, path, access, wanted)
        if rules["tty"] and os.isatty(0):
            descriptor = os.open("/proc/self/fd/0", _O_PATH | os.O_CLOEXEC)
            _add_open(kernel, ruleset, descriptor, rules["tty"])
        kernel.syscall("landlock", _LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _add_rule(
    kernel: _Kernel, ruleset: int, path: str, access: int, wanted: list[int] | None
) -> None:
    """Allow ``access`` below ``path``; ``wanted`` is the identity of a path that must not change.

    A path without one was found by listing a folder: it may be gone or be a link by now, and
    leaving it out only narrows.
    """
    if wanted is not None:
        descriptor = _open_same(path, wanted[0], wanted[1])
    else:
        try:
            descriptor = os.open(path, _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return
    _add_open(kernel, ruleset, descriptor, access)


def _add_open(kernel: _Kernel, ruleset: int, descriptor: int, access: int) -> None:
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISLNK(mode):
            return
        if not stat.S_ISDIR(mode):
            access &= _FILE_ACCESS
        attribute = struct.pack("=Qi", access, descriptor)
        kernel.syscall(
            "landlock rule", _LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_RULE_PATH_BENEATH, attribute, 0
        )
    finally:
        os.close(descriptor)


def _seccomp(kernel: _Kernel, program: bytes) -> None:
    instructions = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(instructions))
    kernel.prctl("seccomp", _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header)


def command(
    plan: bytes, argv: tuple[str, ...], switch: tuple[int, int] | None = None
) -> tuple[str, ...]:
    """Build the command that carries out a plan and becomes ``argv``, as (uid, gid) if given."""
    account = f"{switch[0]}:{switch[1]}" if switch else "-"
    return (sys.executable, "-I", "-S", __file__, plan.decode("ascii"), account, *argv)


def main(arguments: list[str]) -> None:
    """Carry out the plan and become the command; never returns."""
    text, account, *argv = arguments
    plan = text.encode("ascii")
    prepare(plan)
    if account != "-":
        uid, gid = map(int, account.split(":"))
        os.setgroups([])
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    apply(plan, prepared=True)
    os.execvpe(argv[0], argv, os.environ)  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
