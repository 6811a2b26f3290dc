"""Reach processes outside, and their terminals."""

# Plain os calls are what is tried here:
# ruff: noqa: PTH115, PTH208

import ctypes
import fcntl
import os
import signal
import struct
import termios
from pathlib import Path

from tests.terminal.sandbox.attempts.tools import TIOCSTI, attempt, call, content, opened


@attempt
def signal_a_process(w):
    os.kill(w.pid, 0)
    return "reached"


@attempt
def signal_a_group(w):
    os.killpg(w.pid, 0)
    return "reached"


@attempt
def signal_by_descriptor(w):
    call("pidfd_send_signal", call("pidfd_open", w.pid, 0), 0, None, 0)
    return "reached"


@attempt
def signal_by_proc(w):
    call("pidfd_send_signal", os.open(f"/proc/{w.pid}", os.O_RDONLY), 0, None, 0)
    return "reached"


@attempt
def signal_by_owner_of_a_descriptor(w):
    """Have the kernel send SIGIO to a process of our choice."""
    ours, theirs = os.pipe()
    fcntl.fcntl(ours, fcntl.F_SETOWN, w.pid)
    fcntl.fcntl(ours, 10, signal.SIGKILL)
    fcntl.fcntl(ours, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(theirs, b"x")
    return  # the victim's death is looked for outside


@attempt
def trace_a_process(w):
    for request in (16, 0x4206):
        try:
            call("ptrace", request, w.pid, None, None)
            return "traced"
        except OSError:
            continue
    return None


@attempt
def read_the_memory_of_a_process(w):
    buffer = ctypes.create_string_buffer(8)
    local = struct.pack("=QQ", ctypes.addressof(buffer), 8)
    remote = struct.pack("=QQ", w.address, 8)
    call("process_vm_readv", w.pid, local, 1, remote, 1, 0)
    return "read"


@attempt
def steal_a_descriptor(w):
    return f"took {call('pidfd_getfd', call('pidfd_open', w.pid, 0), 0, 0)}"


@attempt
def read_the_environment_of_a_process(w):
    return content(f"/proc/{w.pid}/environ")


@attempt
def read_any_environment(w):
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if content(path):
                return f"read {path}"
        except OSError:
            continue
    return None


@attempt
def open_the_descriptors_of_a_process(w):
    return opened(f"/proc/{w.pid}/fd/0", os.O_RDONLY)


@attempt
def write_the_memory_file_of_a_process(w):
    return opened(f"/proc/{w.pid}/mem", os.O_RDWR)


@attempt
def limit_a_process(w):
    call("prlimit64", w.pid, 0, struct.pack("=QQ", 1, 1), None)
    return "limited"


@attempt
def slow_a_process(w):
    os.setpriority(os.PRIO_PROCESS, w.pid, 19)
    return "slowed"


@attempt
def adopt_inherited_descriptors(w):
    found = {}
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != w.reporter:
            try:
                found[name] = os.readlink(f"/proc/self/fd/{name}")
            except OSError:
                continue
    return found or None


@attempt
def fake_input_on_the_own_terminal(w):
    fcntl.ioctl(0, TIOCSTI, b"x")
    return "faked"


@attempt
def open_another_terminal(w):
    return opened(w.terminal, os.O_RDWR | os.O_NOCTTY)


@attempt
def read_another_terminal(w):
    return opened(w.terminal, os.O_RDONLY | os.O_NOCTTY)


@attempt
def open_any_terminal(w):
    own = os.fstat(0).st_rdev
    for path in Path("/dev/pts").iterdir():
        if path.name.isdigit() and path.stat().st_rdev != own:
            try:
                return opened(path, os.O_RDWR | os.O_NOCTTY)
            except OSError:
                continue
    return None


@attempt
def fake_input_on_another_terminal(w):
    fcntl.ioctl(os.open(w.terminal, os.O_RDONLY | os.O_NOCTTY), TIOCSTI, b"x")
    return "faked"


@attempt
def write_to_the_console(w):
    for path in ("/dev/console", "/dev/tty0", "/dev/tty1", "/dev/ttyS0"):
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NOCTTY)
        except OSError:
            continue
        if os.fstat(descriptor).st_rdev != os.fstat(0).st_rdev:
            return f"opened {path}"
    return None


@attempt
def steal_a_terminal(w):
    os.setsid()
    descriptor = os.open(w.terminal, os.O_RDWR)
    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 1)
    return "stolen"
