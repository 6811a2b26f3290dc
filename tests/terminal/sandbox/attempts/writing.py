"""Write where one must not."""

# Plain os calls are what is tried here:
# ruff: noqa: PTH101, PTH102, PTH103, PTH104, PTH108, PTH110, PTH211

import fcntl
import os
import socket
import threading
from pathlib import Path

from tests.terminal.sandbox.attempts.tools import AT_FDCWD, attempt, call, overwrite


@attempt
def write_a_file(w):
    return overwrite(w.victim)


@attempt
def create_a_file(w):
    return overwrite(f"{w.outside}/new")


@attempt
def write_through_a_link(w):
    return overwrite(f"{w.workspace}/link")


@attempt
def create_through_a_linked_folder(w):
    return overwrite(f"{w.workspace}/folder/new")


@attempt
def write_through_a_link_of_our_own(w):
    os.symlink(w.victim, f"{w.workspace}/mine")
    return overwrite(f"{w.workspace}/mine")


@attempt
def write_through_a_hard_link(w):
    os.link(w.victim, f"{w.workspace}/hard")
    return overwrite(f"{w.workspace}/hard")


@attempt
def write_by_proc_self_root(w):
    return overwrite(f"/proc/self/root{w.victim}")


@attempt
def write_by_proc_1_root(w):
    return overwrite(f"/proc/1/root{w.victim}")


@attempt
def write_by_proc_1_cwd(w):
    return overwrite("/proc/1/cwd/../outside/victim")


@attempt
def write_by_proc_self_cwd(w):
    os.chdir(w.workspace)
    return overwrite("/proc/self/cwd/../outside/victim")


@attempt
def write_by_the_victims_root(w):
    return overwrite(f"/proc/{w.pid}/root{w.victim}")


@attempt
def write_by_an_old_descriptor(w):
    os.chdir(w.outside)
    descriptor = os.open(".", os.O_RDONLY)
    created = os.open("new", os.O_WRONLY | os.O_CREAT, dir_fd=descriptor)
    return f"created {created}"


@attempt
def reopen_a_read_descriptor_for_writing(w):
    descriptor = os.open(w.victim, os.O_RDONLY)
    return overwrite(f"/proc/self/fd/{descriptor}")


@attempt
def rename_a_file_away(w):
    os.rename(w.victim, f"{w.outside}/gone")
    return "renamed"


@attempt
def rename_over_a_file(w):
    Path(f"{w.workspace}/bad").write_text("broken")
    os.rename(f"{w.workspace}/bad", w.victim)
    return "renamed"


@attempt
def exchange_folders(w):
    os.mkdir(f"{w.workspace}/swap")
    call("renameat2", AT_FDCWD, f"{w.workspace}/swap".encode(), AT_FDCWD, w.outside.encode(), 2)
    return "exchanged"


@attempt
def rename_race(w):
    """Swap a folder for a link to the outside while writing into it."""
    there = f"{w.workspace}/race"
    os.makedirs(f"{there}-real")
    os.symlink(w.outside, f"{there}-link")
    os.rename(f"{there}-real", there)
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            call("renameat2", AT_FDCWD, there.encode(), AT_FDCWD, f"{there}-link".encode(), 2)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for number in range(3000):
            try:
                overwrite(f"{there}/new{number % 10}")
            except OSError:
                continue
    finally:
        stop.set()
        thread.join()
    return os.path.exists(f"{w.outside}/new0") and "a file came into being"


@attempt
def remove_a_file(w):
    os.unlink(w.victim)
    return "removed"


@attempt
def truncate_a_file(w):
    os.truncate(w.victim, 0)
    return "truncated"


@attempt
def make_a_folder(w):
    os.mkdir(f"{w.outside}/new")
    return "made"


@attempt
def make_a_link(w):
    os.symlink("/", f"{w.outside}/new")
    return "made"


@attempt
def make_a_pipe(w):
    os.mkfifo(f"{w.outside}/new")
    return "made"


@attempt
def make_a_socket(w):
    socket.socket(socket.AF_UNIX).bind(f"{w.outside}/new")
    return "made"


@attempt
def make_a_nameless_file_and_name_it(w):
    descriptor = os.open(w.outside, os.O_TMPFILE | os.O_WRONLY)
    os.link(f"/proc/self/fd/{descriptor}", f"{w.outside}/new", follow_symlinks=True)
    return "named"


@attempt
def change_a_mode(w):
    os.chmod(w.victim, 0o777)
    return "changed"


@attempt
def change_a_mode_by_descriptor(w):
    os.fchmod(os.open(w.victim, os.O_RDONLY), 0o777)
    return "changed"


@attempt
def change_a_mode_by_the_newest_call(w):
    call("fchmodat2", AT_FDCWD, w.victim.encode(), 0o777, 0)
    return "changed"


@attempt
def change_an_owner(w):
    os.chown(w.victim, os.getuid(), os.getgid())
    return "changed"


@attempt
def change_times(w):
    os.utime(w.victim, (1, 1))
    return "changed"


@attempt
def change_attributes(w):
    os.setxattr(w.victim, "user.fabric", b"x")
    return "changed"


@attempt
def change_flags(w):
    descriptor = os.open(w.victim, os.O_RDONLY)
    flags = bytearray(8)
    fcntl.ioctl(descriptor, 0x80086601, flags)
    fcntl.ioctl(descriptor, 0x40086602, bytes(flags))
    return "changed"


@attempt
def write_to_shared_memory(w):
    Path(f"/dev/shm/{w.name}").write_text("x")
    return  # a private one is no escape: looked for outside


@attempt
def write_to_the_shared_temporary_folder(w):
    Path(f"/tmp/{w.name}").write_text("x")
    return  # looked for outside


@attempt
def write_to_other_folders(w):
    for folder in ("/etc", "/usr", "/var/tmp", "/root", "/home", "/opt", "/", "/var", "/boot"):
        try:
            return overwrite(f"{folder}/{w.name}")
        except OSError:
            continue
    return None
