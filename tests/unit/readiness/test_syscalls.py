import struct

import pytest

from workers.readiness import syscalls
from workers.readiness.syscalls import Call, Shape


def line(number: int, *args: int) -> str:
    padded = [*args, *[0] * (6 - len(args))]
    return f"{number} " + " ".join(hex(arg) for arg in padded) + " 0x7ffe0 0x7f11\n"


def test_a_blocked_call_is_read_with_its_arguments():
    assert syscalls.parse_call(line(7, 0x7FFC, 2, 0xFFFFFFFF)) == Call(
        7, (0x7FFC, 2, 0xFFFFFFFF, 0, 0, 0)
    )


@pytest.mark.parametrize(
    "text",
    ["", "running\n", "-1 0x7ffd 0x7f0a\n", "read 0x0 0x1 0x2 0x3 0x4 0x5 0x6 0x7\n",
     "0 0x0 0x1\n", "0 zero 0x1 0x2 0x3 0x4 0x5 0x6 0x7\n",
     "-1 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0\n"],
)  # fmt: skip
def test_anything_else_is_no_call(text):
    assert syscalls.parse_call(text) is None


def test_a_running_thread_is_told_apart_from_a_sleeping_one():
    assert syscalls.is_running("running\n")
    assert not syscalls.is_running(line(0))


@pytest.mark.parametrize(
    ("machine", "number", "shape"),
    [
        ("x86_64", 0, Shape.READ), ("x86_64", 19, Shape.READ), ("x86_64", 23, Shape.SELECT),
        ("x86_64", 270, Shape.PSELECT), ("x86_64", 7, Shape.POLL), ("x86_64", 271, Shape.PPOLL),
        ("x86_64", 232, Shape.EPOLL), ("x86_64", 281, Shape.EPOLL),
        ("x86_64", 441, Shape.EPOLL_TIMESPEC),
        ("aarch64", 63, Shape.READ), ("aarch64", 65, Shape.READ), ("aarch64", 72, Shape.PSELECT),
        ("aarch64", 73, Shape.PPOLL), ("aarch64", 22, Shape.EPOLL),
        ("aarch64", 441, Shape.EPOLL_TIMESPEC), ("riscv64", 63, Shape.READ),
        ("loongarch64", 22, Shape.EPOLL),
    ],
)  # fmt: skip
def test_numbers_of_the_kernel_headers(machine, number, shape):
    assert syscalls.TABLES[machine][number] is shape


@pytest.mark.parametrize("number", [1, 17, 202, 219, 230, 999])
def test_writes_other_reads_futexes_restarts_and_sleeps_are_misses(number):
    assert number not in syscalls.TABLES["x86_64"]


def test_an_unknown_architecture_has_no_table():
    assert "sparc64" not in syscalls.TABLES


@pytest.mark.parametrize(
    ("value", "want"), [(0, 0), (5, 5), (0xFFFFFFFF, -1), (0xFFFFFFFFFFFFFFFF, -1), (1 << 32, 0)]
)
def test_a_register_holds_a_signed_int(value, want):
    assert syscalls.signed32(value) == want


@pytest.mark.parametrize(
    ("nfds", "size"), [(0, 0), (-1, 0), (1, 8), (64, 8), (65, 16), (1024, 128), (1025, 0)]
)
def test_an_fd_set_is_as_large_as_its_highest_descriptor(nfds, size):
    assert syscalls.select_bytes(nfds) == size


def test_descriptors_of_an_fd_set_below_nfds_count():
    data = (1 << 0 | 1 << 5 | 1 << 63).to_bytes(8, "little")
    assert syscalls.select_fds(6, data) == (0, 5)
    assert syscalls.select_fds(5, data) == (0,)
    assert syscalls.select_fds(6, b"") == ()
    assert syscalls.select_fds(0, data) == ()


def test_poll_rows_that_want_to_read_count():
    rows = struct.pack("<ihhihhihhihh", 0, 1, 0, 3, 4, 0, -1, 1, 0, 7, 0x40, 0)
    assert syscalls.poll_fds(4, rows) == (0, 7)
    assert syscalls.poll_fds(1, rows) == (0,)
    assert syscalls.poll_fds(0, rows) == ()
    assert syscalls.poll_fds(4, rows[:12]) == (0,)


def test_epoll_rows_that_are_armed_to_read_count():
    text = (
        "pos:\t0\nflags:\t02000002\nmnt_id:\t15\nino:\t1057\n"
        "tfd:       11 events:       19 data:                b  pos:0 ino:e sdev:1a\n"
        "tfd:        9 events: 40000000 data:                9  pos:0 ino:421 sdev:f\n"
        "tfd:        4 events:        4 data:                4  pos:0 ino:421 sdev:f\n"
        "tfd: nonsense events: 1\ntfd: 3\n"
    )
    assert syscalls.epoll_fds(text) == (11,)


def test_a_timeout_is_seconds_and_a_fraction():
    assert syscalls.timespec_s(struct.pack("<qq", 2, 500_000_000), unit=1e-9) == 2.5
    assert syscalls.timespec_s(struct.pack("<qq", 0, 250_000), unit=1e-6) == 0.25
    assert syscalls.timespec_s(b"short", unit=1e-9) is None


@pytest.mark.parametrize(
    ("timeout", "patient"), [(None, True), (-1.0, True), (1.0, True), (0.999, False), (0.0, False)]
)
def test_a_short_timeout_is_a_poll_and_no_wait(timeout, patient):
    assert syscalls.is_patient(timeout) is patient
