"""How the foreign errors of a failed spawn become a step, a number and a sentence."""

import errno

import pytest

from workers.shim.plan import SpawnError
from workers.shim.reap import Ending, signal_name
from workers.shim.spawn import _explained


def with_number(number):
    error = OSError(f"[Errno {number}] as ptyprocess rebuilds it")
    error.errno = number
    return error


@pytest.mark.parametrize(
    ("error", "step", "number", "code"),
    [
        (OSError("out of pty devices"), "pty", None, "PTY_EXHAUSTED"),
        (OSError(errno.ENOSPC, "x"), "pty", errno.ENOSPC, "PTY_EXHAUSTED"),
        (OSError(errno.EAGAIN, "x"), "fork", errno.EAGAIN, "SPAWN_FAILED"),
        (OSError(errno.EMFILE, "x"), "fork", errno.EMFILE, "SPAWN_FAILED"),
        (with_number(errno.ENOEXEC), "exec", errno.ENOEXEC, "SPAWN_FAILED"),
        (FileNotFoundError("x"), "exec", errno.ENOENT, "SPAWN_FAILED"),
        (RuntimeError("cwd\n2\nthe folder\nis away"), "cwd", 2, "SPAWN_FAILED"),
        (RuntimeError("confine\n0\nno plan"), "confine", None, "SPAWN_FAILED"),
        (RuntimeError("of another kind"), "prepare", None, "SPAWN_FAILED"),
        (ValueError("x"), "prepare", None, "SPAWN_FAILED"),
        (SpawnError("exec", "late"), "exec", None, "SPAWN_FAILED"),
    ],
)
def test_each_kind_of_failure_is_told_apart(error, step, number, code):
    explained = _explained(error, "/bin/x")
    assert isinstance(explained, SpawnError)
    assert (explained.step, explained.number, explained.code) == (step, number, code)


def test_interruptions_stay_what_they_are():
    assert isinstance(_explained(KeyboardInterrupt(), "/bin/x"), KeyboardInterrupt)


@pytest.mark.parametrize(
    ("status", "code", "signal"),
    [(0, 0, None), (7 << 8, 7, None), (9, None, "SIGKILL"), (11 | 0x80, None, "SIGSEGV"),
     (40, None, "SIG40")],
)  # fmt: skip
def test_exit_is_a_code_or_a_signal_and_never_both(status, code, signal):
    ending = Ending.of(status)
    assert (ending.code, ending.signal) == (code, signal)


def test_signals_have_names():
    assert [signal_name(1), signal_name(63)] == ["SIGHUP", "SIG63"]
