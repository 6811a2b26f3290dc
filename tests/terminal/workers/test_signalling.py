"""A signal for a process group reaches that group or nobody."""

import os
import signal
import subprocess

import pytest

from workers import signalling


@pytest.fixture
def group():
    """A group of two: its leader and one more."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, process_group=0
    )
    member = int(process.stdout.readline())
    yield process, member
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_the_whole_group_gets_it(group):
    process, _ = group
    assert signalling.deliver(process.pid, signal.SIGTERM, lambda: process.pid)
    assert process.wait(timeout=5) == -signal.SIGTERM
    assert process.stdout.read() == b""  # the other one held it open until now


def end(process, member):
    """End the group and reap it; the run adopts the one whose parent was the leader."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.waitpid(member, 0)


@pytest.mark.parametrize("other", [None, 1, os.getpid()])
def test_a_group_that_is_in_the_foreground_no_more_gets_nothing(group, other):
    process, _ = group
    assert not signalling.deliver(process.pid, signal.SIGKILL, lambda: other)
    assert process.poll() is None


def test_a_group_that_has_ended_gets_nothing(group):
    process, member = group
    end(process, member)
    with pytest.raises(ProcessLookupError):
        signalling.deliver(process.pid, signal.SIGKILL, lambda: process.pid)


def test_a_group_whose_leader_has_gone_is_reached_all_the_same(group):
    process, _ = group
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert signalling.deliver(process.pid, signal.SIGTERM, lambda: process.pid)
    assert process.stdout.read() == b""


def test_a_kernel_that_cannot_signal_a_group_by_descriptor_does_it_by_number(group, monkeypatch):
    def refuse(*_):
        raise OSError(22, "flags")

    monkeypatch.setattr(signalling.signal, "pidfd_send_signal", refuse)
    process, _ = group
    assert signalling.deliver(process.pid, signal.SIGTERM, lambda: process.pid)
    assert process.wait(timeout=5) == -signal.SIGTERM


@pytest.mark.skipif(
    tuple(map(int, os.uname().release.split(".")[:2])) < (6, 9), reason="signals by number here"
)
def test_a_number_given_out_again_meanwhile_is_not_signalled(group, monkeypatch):
    """The group ends after the terminal was asked again: the descriptor knows, a number not."""
    process, member = group
    by_number = []

    def ended_by_now():
        end(process, member)
        monkeypatch.setattr(signalling.os, "killpg", lambda *args: by_number.append(args))
        return process.pid

    with pytest.raises(ProcessLookupError):
        signalling.deliver(process.pid, signal.SIGKILL, ended_by_now)
    assert by_number == []
    monkeypatch.undo()
