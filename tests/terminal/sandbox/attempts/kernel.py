"""Change mounts, namespaces, devices and settings of the kernel."""

# Plain os calls are what is tried here:
# ruff: noqa: BLE001, PTH101, PTH102, PTH116

import ctypes
import os
import stat
import struct
from pathlib import Path

from tests.terminal.sandbox.attempts.tools import (
    AT_FDCWD,
    BIND,
    LIBC,
    MOUNTS,
    PIDS,
    REMOUNT,
    attempt,
    call,
    content,
    libc,
    mount,
    new_user,
    opened,
    overwrite,
)


@attempt
def remount_the_root_writable(w):
    mount("none", "/", None, REMOUNT | BIND)
    return overwrite(w.victim)


@attempt
def mount_over_the_outside(w):
    mount("none", w.outside, "tmpfs", 0)
    return "mounted"


@attempt
def bind_the_outside_into_the_workspace(w):
    os.mkdir(f"{w.workspace}/bound")
    mount(w.outside, f"{w.workspace}/bound", None, BIND)
    return overwrite(f"{w.workspace}/bound/victim")


@attempt
def unmount_a_mask(w):
    libc("umount2", w.state.encode(), 2)
    return "unmounted"


@attempt
def clone_a_tree(w):
    call("open_tree", AT_FDCWD, b"/", 1 | 0x8000)
    return "cloned"


@attempt
def remount_as_root_of_a_user_namespace(w):
    new_user(MOUNTS)
    mount("none", "/", None, REMOUNT | BIND)
    return overwrite(w.victim)


@attempt
def bind_as_root_of_a_user_namespace(w):
    new_user(MOUNTS)
    mount(w.outside, "/mnt", None, BIND)
    mount("none", "/mnt", None, REMOUNT | BIND)
    return overwrite("/mnt/victim")


@attempt
def unmount_a_mask_as_root_of_a_user_namespace(w):
    new_user(MOUNTS)
    libc("umount2", w.state.encode(), 2)
    return content(w.secret)


@attempt
def mount_proc_as_root_of_a_user_namespace(w):
    new_user(MOUNTS, PIDS)
    child = os.fork()
    if child == 0:
        try:
            mount("proc", "/proc", "proc", 0)
            os.chmod("/proc/uptime", 0o400)
            os._exit(1)
        except BaseException:
            os._exit(0)
    return os.waitpid(child, 0)[1] and "mounted proc and changed a mode"


@attempt
def change_the_root(w):
    os.chroot(w.workspace)
    return "changed"


@attempt
def pivot_the_root(w):
    call("pivot_root", b".", b".")
    return "pivoted"


@attempt
def enter_the_mounts_of_init(w):
    call("setns", os.open("/proc/1/ns/mnt", os.O_RDONLY), 0)
    return overwrite(w.victim)


@attempt
def enter_the_namespaces_of_the_service(w):
    for name in ("mnt", "pid", "net", "ipc", "user"):
        try:
            call("setns", os.open(f"/proc/{w.pid}/ns/{name}", os.O_RDONLY), 0)
            return f"entered {name}"
        except OSError:
            continue
    return None


@attempt
def open_by_handle(w):
    handle = bytearray(struct.pack("=Ii", 128, 0) + bytes(128))
    buffer = (ctypes.c_char * len(handle)).from_buffer(handle)
    identity = ctypes.c_int()
    call("name_to_handle_at", AT_FDCWD, w.victim.encode(), buffer, ctypes.byref(identity), 0)
    folder = os.open(w.outside, os.O_RDONLY)
    return f"opened {call('open_by_handle_at', folder, buffer, os.O_WRONLY)}"


@attempt
def make_a_device(w):
    call("mknodat", AT_FDCWD, f"{w.workspace}/disk".encode(), 0o060666, w.disk or os.makedev(7, 0))
    return "made"


@attempt
def make_a_device_in_dev(w):
    call("mknodat", AT_FDCWD, b"/dev/fabric-disk", 0o060666, w.disk or os.makedev(7, 0))
    return "made"


@attempt
def read_a_disk(w):
    for path in Path("/dev").iterdir():
        if stat.S_ISBLK(path.stat().st_mode):
            try:
                return opened(path, os.O_RDONLY)
            except OSError:
                continue
    return None


@attempt
def make_a_loop_device(w):
    return opened("/dev/loop-control", os.O_RDWR)


@attempt
def read_memory(w):
    for path in ("/dev/mem", "/proc/kcore", "/dev/kmem"):
        try:
            return opened(path, os.O_RDONLY)
        except OSError:
            continue
    return None


@attempt
def change_the_mode_of_a_device(w):
    for path in ("/dev/null", "/dev/zero", "/dev/tty", "/dev/urandom", "/dev/random", "/dev/full"):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        try:
            os.chmod(path, mode ^ 0o001)
        except OSError:
            continue
        os.chmod(path, mode)
        return f"changed {path}"
    return None


@attempt
def change_the_mode_of_a_kernel_file(w):
    for path in ("/proc/uptime", "/proc/version", "/proc/meminfo", "/proc/sysrq-trigger"):
        try:
            mode = stat.S_IMODE(os.stat(path).st_mode)
            os.chmod(path, mode ^ 0o001)
        except OSError:
            continue
        os.chmod(path, mode)
        return f"changed {path}"
    return None


@attempt
def write_a_kernel_setting(w):
    for path in (
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/swappiness",
        "/proc/sys/fs/file-max",
    ):
        try:
            return opened(path)
        except OSError:
            continue
    return None


@attempt
def write_any_file_of_proc(w):
    own = {"self", "thread-self"}
    for path in Path("/proc").iterdir():
        if path.name.isdigit() or path.name in own or not path.is_file():
            continue
        try:
            return opened(path)
        except OSError:
            continue
    return None


@attempt
def write_to_sys(w):
    for folder, _, names in os.walk("/sys/kernel"):
        for name in names:
            try:
                return opened(f"{folder}/{name}")
            except OSError:
                continue
    return None


@attempt
def write_to_a_cgroup(w):
    for folder, _, names in os.walk("/sys/fs/cgroup"):
        try:
            os.mkdir(f"{folder}/{w.name}")
            return f"made a cgroup in {folder}"
        except OSError:
            pass
        for name in names:
            if name.endswith("procs") or name == "release_agent":
                try:
                    return opened(f"{folder}/{name}")
                except OSError:
                    continue
    return None


@attempt
def load_a_module(w):
    call("finit_module", os.open(w.victim, os.O_RDONLY), b"", 0)
    return "loaded"


@attempt
def change_the_hostname(w):
    name = os.uname().nodename.encode()
    if LIBC.sethostname(name, len(name)) < 0:
        raise OSError(ctypes.get_errno(), "sethostname")
    return "changed"


@attempt
def keep_a_capability(w):
    rows = dict(row.split(":", 1) for row in Path("/proc/self/status").read_text().splitlines())
    held = [name for name in ("CapEff", "CapPrm", "CapInh", "CapAmb") if int(rows[name], 16)]
    return held or None


@attempt
def gain_privileges(w):
    rows = dict(row.split(":", 1) for row in Path("/proc/self/status").read_text().splitlines())
    if rows["NoNewPrivs"].strip() != "1":
        return "setuid programs would work"
    if os.getuid():
        os.setuid(0)
        return "became root"
    return None


@attempt
def become_somebody_else(w):
    os.setgroups([0])
    return "changed groups"
