"""What the attempts share."""

import ctypes
import os
from pathlib import Path

ATTEMPTS = {}
MOUNTS, PIDS = 0x00020000, 0x20000000
REMOUNT, BIND = 32, 4096
LIBC = ctypes.CDLL(None, use_errno=True)
TIOCSTI = 0x5412
AT_FDCWD = -100
NR = {
    "x86_64": {
        "mknodat": 259, "keyctl": 250, "ptrace": 101, "process_vm_readv": 310, "fchmodat2": 452,
        "renameat2": 316, "open_tree": 428, "open_by_handle_at": 304, "name_to_handle_at": 303,
        "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438, "pivot_root": 155,
        "finit_module": 313, "shmget": 29, "shmat": 30, "prlimit64": 302, "setns": 308,
        "add_key": 248, "msgget": 68, "socket": 41,
    },
    "aarch64": {
        "mknodat": 33, "keyctl": 219, "ptrace": 117, "process_vm_readv": 270, "fchmodat2": 452,
        "renameat2": 276, "open_tree": 428, "open_by_handle_at": 265, "name_to_handle_at": 264,
        "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438, "pivot_root": 41,
        "finit_module": 273, "shmget": 194, "shmat": 196, "prlimit64": 261, "setns": 268,
        "add_key": 217, "msgget": 186, "socket": 198,
    },
}[os.uname().machine]  # fmt: skip


class World:
    """Where things are."""

    def __init__(self, facts):
        self.__dict__.update(facts)
        self.victim = f"{self.outside}/victim"


def attempt(function):
    ATTEMPTS[function.__name__] = function
    return function


def call(number, *arguments):
    values = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = LIBC.syscall(ctypes.c_long(NR[number]), *values)
    if result < 0:
        raise OSError(ctypes.get_errno(), number)
    return result


def libc(name, *arguments):
    values = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments]
    if getattr(LIBC, name)(*values) < 0:
        raise OSError(ctypes.get_errno(), name)


def mount(source, target, kind, flags):
    libc("mount", source.encode(), target.encode(), kind and kind.encode(), flags, None)


def overwrite(path):
    Path(path).write_text("broken")
    return f"wrote {path}"


def opened(path, flags=os.O_WRONLY):
    descriptor = os.open(path, flags)
    os.close(descriptor)
    return f"opened {path}"


def content(path):
    text = Path(path).read_bytes()
    return f"read {path}" if b"canary" in text else None


def new_user(*more):
    """Become root of a user namespace of our own."""
    uid, gid = os.getuid(), os.getgid()
    flags = 0x10000000
    for flag in more:
        flags |= flag
    libc("unshare", flags)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
