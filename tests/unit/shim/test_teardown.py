"""The teardown with literal rows: what is signalled, in which order, and when it gives up."""

from signal import SIGCONT, SIGHUP, SIGKILL, SIGSTOP, SIGTERM

from workers.shim.teardown import (
    FREEZE_CYCLES,
    FREEZE_LOOK_S,
    KILL_S,
    TERM_ROUNDS,
    Done,
    Ended,
    Exited,
    Hurry,
    Scan,
    Scanned,
    Signal,
    Teardown,
    Tick,
    Wait,
)
from workers.shim.tree import Row

BASH = Row(10, 1, 100, name="bash")
SHELL = BASH.identity


def job(pid, ppid=10, state="S", name="job"):
    return Row(pid, ppid, 100 + pid, state=state, name=name)


def machine(**kwargs):
    return Teardown(**{"root": SHELL, "grace_s": 3.0, "shell_grace_s": 1.0} | kwargs)


def sent(instructions):
    return [(one.identity[0], one.signo) for one in instructions if isinstance(one, Signal)]


def rest(instructions):
    return [one for one in instructions if not isinstance(one, Signal)]


def gone(subject, *rows):
    """Report the end of processes; returns what the last report led to."""
    out = []
    for row in rows:
        out = subject.feed(Exited(row.identity))
    return out


def test_idle_shell_gets_term_hup_and_cont_together_and_is_never_stopped():
    subject = machine()
    assert subject.begin() == [Scan()]
    out = subject.feed(Scanned(0.0, [BASH]))
    assert sent(out) == [(10, SIGTERM), (10, SIGHUP), (10, SIGCONT)]
    assert rest(out) == [Wait(1.0)]
    assert gone(subject, BASH) == [Scan()]
    assert subject.feed(Scanned(0.01, [])) == [Done([Ended(10, "bash", SIGHUP)], [])]
    assert subject.feed(Tick(99.0)) == []


def test_nothing_to_end_is_done_at_once():
    subject = machine(root=None)
    subject.begin()
    assert subject.feed(Scanned(0.0, [])) == [Done([], [])]


def test_descendants_get_term_children_first_while_the_shell_stands_still():
    subject = machine()
    subject.begin()
    out = subject.feed(Scanned(0.0, [job(12, 11), job(11), BASH]))
    assert sent(out) == [
        (10, SIGSTOP), (12, SIGTERM), (11, SIGTERM), (12, SIGCONT), (11, SIGCONT),
    ]  # fmt: skip
    assert rest(out) == [Wait(3.0)]
    assert gone(subject, job(12)) == []
    assert gone(subject, job(11)) == [Scan()]
    out = subject.feed(Scanned(0.1, [job(11, state="Z"), BASH]))
    assert sent(out) == [(10, SIGTERM), (10, SIGHUP), (10, SIGCONT)]
    gone(subject, BASH)
    assert subject.feed(Scanned(0.2, [])) == [
        Done([Ended(12, "job", SIGTERM), Ended(11, "job", SIGTERM), Ended(10, "bash", SIGHUP)], [])
    ]


def test_term_ignoring_job_is_killed_after_the_grace_and_not_before():
    subject = machine()
    subject.begin()
    subject.feed(Scanned(0.0, [job(11), BASH]))
    assert subject.feed(Tick(2.99)) == []
    assert subject.feed(Tick(3.0)) == [Scan()]
    assert subject.feed(Tick(3.0)) == [], "a scan is under way"
    out = subject.feed(Scanned(3.0, [job(11), BASH]))
    assert sent(out) == [(11, SIGKILL)]
    assert rest(out) == [Wait(3.0 + KILL_S)]
    assert gone(subject, job(11)) == [Scan()]
    assert (10, SIGHUP) in sent(subject.feed(Scanned(3.1, [BASH])))


def test_early_scan_within_the_grace_waits_on():
    subject = machine()
    subject.begin()
    subject.feed(Scanned(0.0, [job(11), BASH]))
    gone(subject, job(11))
    out = subject.feed(Scanned(1.0, [job(11), BASH]))
    assert out == [Wait(3.0)], "the report was wrong; it keeps what is left of its grace"


def test_child_forked_during_term_gets_term_too_within_the_same_grace():
    subject = machine()
    subject.begin()
    subject.feed(Scanned(0.0, [job(11), BASH]))
    gone(subject, job(11))
    out = subject.feed(Scanned(0.5, [job(20), BASH]))
    assert sent(out) == [(20, SIGTERM), (20, SIGCONT)]
    assert rest(out) == [Wait(3.0)]


def test_what_keeps_forking_loses_the_rest_of_the_grace():
    subject = machine()
    subject.begin()
    for turn in range(TERM_ROUNDS):
        row = job(20 + turn)
        assert (row.pid, SIGTERM) in sent(subject.feed(Scanned(0.0, [row, BASH])))
        assert gone(subject, row) == [Scan()]
    assert sent(subject.feed(Scanned(0.1, [job(30), BASH]))) == [(30, SIGKILL)]


def test_newcomer_at_the_end_of_the_grace_is_killed_with_the_survivors():
    subject = machine()
    subject.begin()
    subject.feed(Scanned(0.0, [job(11), BASH]))
    subject.feed(Tick(3.0))
    assert sent(subject.feed(Scanned(3.0, [job(20), job(11), BASH]))) == [
        (20, SIGKILL), (11, SIGKILL),
    ]  # fmt: skip


def to_kill(subject, *rows):
    subject.begin()
    subject.feed(Scanned(0.0, [*rows, BASH]))
    subject.feed(Tick(3.0))
    subject.feed(Scanned(3.0, [*rows, BASH]))


def stopped(pid):
    return job(pid, state="T")


def test_fork_bomb_is_frozen_until_nothing_new_shows_and_then_killed():
    subject = machine()
    to_kill(subject, job(11))
    gone(subject, job(11))
    assert subject.feed(Scanned(3.1, [job(20), BASH])) == [Scan(freeze=True)]
    assert subject.feed(Scanned(3.2, [stopped(20), stopped(21), BASH])) == [Scan(freeze=True)]
    rows = [stopped(20), stopped(21), stopped(22), BASH]
    assert subject.feed(Scanned(3.3, rows)) == [Scan(freeze=True)]
    out = subject.feed(Scanned(3.4, rows))
    assert sent(out) == [(20, SIGKILL), (21, SIGKILL), (22, SIGKILL)]
    assert rest(out) == [Wait(3.4 + KILL_S)]
    gone(subject, job(20), job(21), job(22))
    out = subject.feed(Scanned(3.5, [BASH]))
    assert sent(out) == [(10, SIGTERM), (10, SIGHUP), (10, SIGCONT)]


def test_nothing_is_killed_before_everything_has_come_to_a_stand():
    """A process told to stop may still be inside the fork that it was about to finish."""
    subject = machine()
    to_kill(subject, job(11))
    gone(subject, job(11))
    subject.feed(Scanned(3.0, [job(20), BASH]))
    running = [job(20, state="R"), job(21, state="D"), BASH]
    assert subject.feed(Scanned(3.0, running)) == [Scan(freeze=True)]
    assert subject.feed(Scanned(3.0, running)) == [Wait(3.0 + FREEZE_LOOK_S)]
    assert subject.feed(Tick(3.01)) == [Scan(freeze=True)]
    late = [stopped(20), job(21, state="D"), job(22), BASH]
    assert subject.feed(Scanned(3.01, late)) == [Scan(freeze=True)]
    still = [stopped(20), job(21, state="D"), stopped(22), BASH]
    assert sent(subject.feed(Scanned(3.02, still))) == [(20, SIGKILL), (21, SIGKILL), (22, SIGKILL)]


def test_what_never_stands_still_is_killed_after_a_while_all_the_same():
    subject = machine()
    to_kill(subject, job(11))
    gone(subject, job(11))
    rows = [job(20), BASH]
    for turn in range(30):
        assert subject.feed(Scanned(3.1, rows)) == [Scan(freeze=True)]
        rows = [job(30 + turn), *rows]
    assert (30, SIGKILL) in sent(subject.feed(Scanned(3.1 + KILL_S, rows)))


def test_bomb_that_outlives_every_cycle_is_given_up_and_named():
    subject = machine()
    to_kill(subject, job(11))
    gone(subject, job(11))
    for turn in range(FREEZE_CYCLES):
        row = job(100 + turn)
        assert subject.feed(Scanned(4.0, [row, BASH])) == [Scan(freeze=True)]
        assert subject.feed(Scanned(4.0, [stopped(row.pid), BASH])) == [Scan(freeze=True)]
        out = subject.feed(Scanned(4.0, [stopped(row.pid), BASH]))
        assert sent(out) == [(row.pid, SIGKILL)]
        assert gone(subject, row) == [Scan()]
    out = subject.feed(Scanned(4.0, [job(999), BASH]))
    assert sent(out) == [(999, SIGKILL), (10, SIGCONT)]
    assert rest(out)[0].survivors == [Ended(999, "job", SIGKILL)]


def test_unkillable_job_fails_the_teardown_by_name_and_leaves_the_shell_running():
    subject = machine()
    to_kill(subject, job(11, state="D", name="nfs"), job(12))
    gone(subject, job(12))
    assert subject.feed(Tick(3.0 + KILL_S)) == [Scan()]
    out = subject.feed(Scanned(3.0 + KILL_S, [job(11, state="D", name="nfs"), BASH]))
    assert sent(out) == [(10, SIGCONT)]
    assert rest(out) == [Done([Ended(12, "job", SIGKILL)], [Ended(11, "nfs", SIGKILL)])]


def test_slowly_dying_job_is_waited_for_within_the_limit():
    subject = machine()
    to_kill(subject, job(11))
    gone(subject, job(11))
    assert subject.feed(Scanned(3.5, [job(11), BASH])) == [Wait(3.0 + KILL_S)]


def test_shell_that_will_not_leave_is_killed_after_its_own_grace():
    subject = machine()
    subject.begin()
    subject.feed(Scanned(0.0, [BASH]))
    assert subject.feed(Tick(0.9)) == []
    assert subject.feed(Tick(1.0)) == [Scan()]
    out = subject.feed(Scanned(1.0, [BASH]))
    assert sent(out) == [(10, SIGKILL)]
    assert rest(out) == [Wait(1.0 + KILL_S)]
    gone(subject, BASH)
    assert subject.feed(Scanned(1.1, [])) == [Done([Ended(10, "bash", SIGKILL)], [])]


def test_shell_that_survives_kill_is_named():
    subject = machine()
    subject.begin()
    subject.feed(Scanned(0.0, [BASH]))
    subject.feed(Tick(1.0))
    subject.feed(Scanned(1.0, [BASH]))
    subject.feed(Tick(1.0 + KILL_S))
    assert subject.feed(Scanned(1.0 + KILL_S, [BASH])) == [
        Done([], [Ended(10, "bash", SIGKILL)])
    ]  # fmt: skip


def test_false_report_about_the_shell_waits_on():
    subject = machine()
    subject.begin()
    subject.feed(Scanned(0.0, [BASH]))
    gone(subject, BASH)
    assert subject.feed(Scanned(0.5, [BASH])) == [Wait(1.0)]


def test_children_of_the_exit_trap_are_swept_with_a_grace_of_their_own():
    subject = machine()
    subject.begin()
    subject.feed(Scanned(0.0, [BASH]))
    gone(subject, BASH)
    out = subject.feed(Scanned(0.5, [job(40, 1)]))
    assert sent(out) == [(40, SIGTERM), (40, SIGCONT)]
    assert rest(out) == [Wait(3.5)]
    subject.feed(Tick(3.5))
    assert sent(subject.feed(Scanned(3.5, [job(40, 1)]))) == [(40, SIGKILL)]
    gone(subject, job(40))
    assert subject.feed(Scanned(3.6, [])) == [
        Done([Ended(10, "bash", SIGHUP), Ended(40, "job", SIGKILL)], [])
    ]


def test_rest_of_a_tree_whose_shell_has_left_is_ended_without_it():
    subject = machine(root=None)
    subject.begin()
    assert sent(subject.feed(Scanned(0.0, [job(11, 1)]))) == [(11, SIGTERM), (11, SIGCONT)]
    gone(subject, job(11))
    assert subject.feed(Scanned(0.1, [])) == [Done([Ended(11, "job", SIGTERM)], [])]


def test_recycled_root_pid_is_no_shell():
    subject = machine()
    subject.begin()
    stranger = Row(10, 1, 555, name="new")
    assert sent(subject.feed(Scanned(0.0, [stranger]))) == [(10, SIGTERM), (10, SIGCONT)]


def test_shell_that_leaves_while_its_jobs_are_ended_is_not_signalled():
    subject = machine()
    subject.begin()
    subject.feed(Scanned(0.0, [job(11), BASH]))
    gone(subject, BASH)
    assert gone(subject, job(11)) == [Scan()]
    assert subject.feed(Scanned(0.1, [])) == [
        Done([Ended(11, "job", SIGTERM), Ended(10, "bash", None)], [])
    ]


def test_signal_that_found_its_process_gone_is_not_in_the_receipt():
    subject = machine(root=None)
    subject.begin()
    subject.feed(Scanned(0.0, [job(11), job(12)]))
    subject.feed(Exited(job(11).identity, missed=True))
    gone(subject, job(12))
    assert subject.feed(Scanned(0.1, [])) == [
        Done([Ended(11, "job", None), Ended(12, "job", SIGTERM)], [])
    ]


def test_unknown_and_repeated_exits_are_ignored():
    subject = machine(root=None)
    subject.begin()
    subject.feed(Scanned(0.0, [job(11), job(12)]))
    assert gone(subject, job(77)) == []
    assert gone(subject, job(11), job(11)) == []


def test_exits_during_a_scan_do_not_ask_for_another():
    subject = machine(root=None)
    subject.begin()
    subject.feed(Scanned(0.0, [job(11)]))
    assert subject.feed(Tick(3.0)) == [Scan()]
    assert gone(subject, job(11)) == []


def test_shell_behind_a_wrapper_gets_the_hangup_and_the_wrapper_leaves_by_itself():
    outer, init = Row(10, 1, 100, name="bwrap"), Row(11, 10, 101, name="bwrap")
    shell, sleep = Row(12, 11, 102, name="bash"), Row(13, 12, 103, name="sleep")
    subject = machine(wrappers=("bwrap",))
    subject.begin()
    out = subject.feed(Scanned(0.0, [sleep, shell, init, outer]))
    assert sent(out) == [(12, SIGSTOP), (13, SIGTERM), (13, SIGCONT)]
    gone(subject, sleep)
    out = subject.feed(Scanned(0.1, [shell, init, outer]))
    assert sent(out) == [(12, SIGTERM), (12, SIGHUP), (12, SIGCONT)]
    assert gone(subject, shell, init) == []
    assert gone(subject, outer) == [Scan()]


def test_frozen_wrappers_are_continued_with_the_shell():
    outer, shell = Row(10, 1, 100, name="bwrap"), Row(12, 10, 102, name="bash")
    subject = machine(wrappers=("bwrap",))
    subject.begin()
    subject.feed(Scanned(0.0, [job(20, 12), shell, outer]))
    subject.feed(Tick(3.0))
    subject.feed(Scanned(3.0, [job(20, 12), shell, outer]))
    gone(subject, job(20))
    subject.feed(Scanned(3.1, [job(21, 12), shell, outer]))
    subject.feed(Scanned(3.1, [job(21, 12, state="T"), shell, outer]))
    subject.feed(Scanned(3.1, [job(21, 12, state="T"), shell, outer]))
    gone(subject, job(21))
    out = subject.feed(Scanned(3.2, [shell, outer]))
    assert sent(out) == [(12, SIGTERM), (12, SIGHUP), (10, SIGCONT), (12, SIGCONT)]


def test_second_caller_can_only_shorten_the_graces():
    subject = machine()
    assert subject.feed(Hurry(0.0, 9.0, 9.0)) == []
    subject.begin()
    subject.feed(Scanned(0.0, [job(11), BASH]))
    assert subject.feed(Hurry(1.0, 9.0, 9.0)) == [Wait(3.0)]
    assert subject.feed(Hurry(1.0, 0.5, 0.2)) == [Wait(1.5)]
    subject.feed(Tick(1.5))
    assert subject.feed(Hurry(1.5, 0.1, 0.2)) == [], "a scan is under way"
    subject.feed(Scanned(1.5, [job(11), BASH]))
    assert subject.feed(Hurry(1.5, 0.1, 0.1)) == [], "killing has no grace"
    gone(subject, job(11))
    assert rest(subject.feed(Scanned(2.0, [BASH]))) == [Wait(2.1)]


def test_no_grace_at_all_kills_at_once():
    subject = machine(root=None, grace_s=0.0)
    subject.begin()
    assert sent(subject.feed(Scanned(0.0, [job(11)]))) == [(11, SIGKILL)]
