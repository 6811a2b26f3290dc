"""The filters are run here by a small interpreter of classic BPF."""

import errno
import struct

import pytest

from workers.sandbox import seccomp
from workers.sandbox.seccomp import AF_UNIX, TIOCSTI, common_rules, landlock_rules, program

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
X86_64, I386, AARCH64 = 0xC000003E, 0x40000003, 0xC00000B7


def run(code, architecture, number, *arguments):
    """Run a program on one call; returns the errno it is refused with, 0, or "killed"."""
    data = struct.pack("=iIQ6Q", number, architecture, 0, *(*arguments, *[0] * 6)[:6])
    ops = list(struct.iter_unpack("=HBBI", code))
    accumulator, at = 0, 0
    while True:
        op, true, false, value = ops[at]
        at += 1
        if op == 0x20:
            accumulator = struct.unpack_from("=I", data, value)[0]
        elif op == 0x05:
            at += value
        elif op == 0x15:
            at += true if accumulator == value else false
        elif op == 0x35:
            at += true if accumulator >= value else false
        elif op == 0x06:
            if value == KILL:
                return "killed"
            return 0 if value == ALLOW else value & 0xFFFF if value & ERRNO else value
        else:
            pytest.fail(f"unknown operation {op:#x}")


COMMON = program("x86_64", common_rules(), companion=True)
READ_ONLY = program(
    "x86_64", common_rules() + landlock_rules(read_only=True, network=True), companion=False
)
OFFLINE = program("x86_64", landlock_rules(read_only=False, network=False), companion=False)
READ, IOCTL, SOCKET, CHMOD, KEYCTL, OPENAT, IO_URING_SETUP = 0, 16, 41, 90, 250, 257, 425


@pytest.mark.parametrize("code", [COMMON, READ_ONLY, OFFLINE])
def test_ordinary_calls_pass(code):
    for number in (READ, 1, 2, 9, 56, 59, 231, OPENAT, 435, 439):
        assert run(code, X86_64, number) == 0


def test_every_confined_session_loses_keyrings_and_faked_input():
    assert run(COMMON, X86_64, KEYCTL) == errno.EPERM
    assert run(COMMON, I386, 288) == errno.EPERM
    assert run(COMMON, X86_64, IOCTL, 0, TIOCSTI) == errno.EPERM
    assert run(COMMON, X86_64, IOCTL, 0, TIOCSTI | 1 << 32) == errno.EPERM  # the kernel cuts it
    assert run(COMMON, X86_64, IOCTL, 0, 0x5401) == 0
    assert run(COMMON, I386, 54, 0, TIOCSTI) == errno.EPERM


def test_the_second_set_of_numbers_is_refused():
    assert run(COMMON, X86_64, 0x40000000 | KEYCTL) == errno.ENOSYS


def test_programs_of_another_architecture_are_killed_where_their_calls_are_not_known():
    assert run(COMMON, I386, READ) == 0
    assert run(READ_ONLY, I386, READ) == "killed"
    assert run(COMMON, AARCH64, READ) == "killed"


def test_read_only_under_landlock_refuses_metadata_unix_sockets_and_rings():
    for number in (CHMOD, 91, 92, 94, 132, 188, 197, 235, 260, 261, 268, 280, 452, 463, 466, 469):
        assert run(READ_ONLY, X86_64, number) == errno.EROFS
    for number in (29, 30, 64, 68, 425, 426, 427):
        assert run(READ_ONLY, X86_64, number) == errno.EPERM
    assert run(READ_ONLY, X86_64, SOCKET, AF_UNIX) == errno.EACCES
    assert run(READ_ONLY, X86_64, SOCKET, 2) == 0
    assert run(READ_ONLY, X86_64, IOCTL, 3, seccomp.FS_IOC_SETFLAGS) == errno.EROFS
    assert run(READ_ONLY, X86_64, IOCTL, 3, TIOCSTI) == errno.EPERM


def test_no_network_leaves_only_unix_sockets():
    for family in (2, 10, 16, 17, 40):
        assert run(OFFLINE, X86_64, SOCKET, family) == errno.EACCES
    assert run(OFFLINE, X86_64, SOCKET, AF_UNIX) == 0
    assert run(OFFLINE, X86_64, CHMOD) == 0


def test_no_network_and_read_only_leave_no_socket():
    both = program("x86_64", landlock_rules(read_only=True, network=False), companion=False)
    assert run(both, X86_64, SOCKET, AF_UNIX) == errno.EACCES
    assert run(both, X86_64, SOCKET, 2) == errno.EACCES


def test_the_other_architecture_has_its_own_numbers():
    code = program("aarch64", common_rules(), companion=True)
    assert run(code, AARCH64, 219) == errno.EPERM
    assert run(code, AARCH64, 29, 0, TIOCSTI) == errno.EPERM
    assert run(code, AARCH64, 250) == 0
    assert run(code, 0x40000028, 311) == errno.EPERM


def test_unknown_machines_have_no_filter():
    assert not seccomp.is_supported("riscv64")
    assert seccomp.keyctl_number("riscv64") is None
    assert seccomp.keyctl_number("x86_64") == KEYCTL


def test_jumps_stay_in_reach():
    for machine in ("x86_64", "aarch64"):
        for read_only in (True, False):
            rules = common_rules() + landlock_rules(read_only=read_only, network=False)
            assert len(program(machine, rules, companion=False)) // 8 < 4096


def test_other_processes_keep_their_limits_and_priorities():
    for number, own, others in (
        (302, (0, 7), (5, 7)),
        (141, (0, 0), (0, 5)),
        (141, (0, 0), (2, 0)),
    ):
        assert run(OFFLINE, X86_64, number, *own) == 0
        assert run(OFFLINE, X86_64, number, *others) == errno.EPERM
        assert run(COMMON, X86_64, number, *others) == 0  # a PID namespace does it
