"""The machine of one send, with times and looks as literals."""

from dataclasses import replace

import pytest

from fabric.core.model import Evidence, PromptKind, WaitReason
from fabric.core.settings import ReadinessSettings
from workers.readiness.events import (
    Exited,
    Output,
    ProbeAt,
    Probed,
    Settle,
    Start,
    Tick,
    TickAt,
    Verdict,
    Wrote,
)
from workers.readiness.inspector import Probe, Wait
from workers.readiness.memory import Memory
from workers.readiness.tiers import BUSY_GRACE_S, MARKER_QUIET_S, STILL_S, UNMOVED_S, Tiers
from workers.terminal.dialects import Prompts
from workers.text.marks import Mark, MarkKind

SETTINGS = ReadinessSettings()
SHELL, CHILD = 100, 200
PROMPTS = Prompts("$ ", "> ")
PROMPT = Mark(MarkKind.PROMPT, 0)
COMMAND = Mark(MarkKind.COMMAND)
CONTINUATION = Mark(MarkKind.CONTINUATION)
READLINE = {"canonical": False, "echo": False, "line_editor": True}
COOKED = {"canonical": True, "echo": True}


def look(*waits: Wait, group: int = CHILD, supported: bool = True, **more) -> Probe:
    return Probe(supported, group, waits, **{**COOKED, **more})


def wait(switches: int, tid: int = 7, *, event_loop: bool = False) -> Wait:
    return Wait(tid, tid, switches, event_loop)


def machine(memory: Memory | None = None, **start) -> Tiers:
    chosen = {"at": 0.0, "prompts": PROMPTS, **start}
    return Tiers(SETTINGS, Start(**chosen), memory or Memory(shell_pgid=SHELL))


def settled(instructions: list) -> Verdict | None:
    found = [item.verdict for item in instructions if isinstance(item, Settle)]
    return found[0] if found else None


def probe_time(instructions: list) -> float | None:
    found = [item.at for item in instructions if isinstance(item, ProbeAt)]
    return found[0] if found else None


def tick_time(instructions: list) -> float | None:
    found = [item.at for item in instructions if isinstance(item, TickAt)]
    return found[0] if found else None


# -- the exact tier ---------------------------------------------------------------


def test_two_looks_at_the_same_new_sleep_settle():
    tiers = machine(before=look(wait(3)))
    tiers.feed(Wrote(0.0))
    first = tiers.feed(Probed(0.001, look(wait(4))))
    assert probe_time(first) == 0.001
    assert settled(tiers.feed(Probed(0.0012, look(wait(4))))) == Verdict(
        WaitReason.STDIN_READ, Evidence.SYSCALL, PromptKind.LINE,
        canonical=True, echo=True, foreground_pgid=CHILD,
    )  # fmt: skip


def test_a_sleep_that_was_left_between_the_looks_begins_the_proof_anew():
    tiers = machine(before=look(wait(3)))
    tiers.feed(Wrote(0.0))
    tiers.feed(Probed(0.001, look(wait(4))))
    assert settled(tiers.feed(Probed(0.0012, look(wait(5))))) is None
    assert settled(tiers.feed(Probed(0.0014, look(wait(5)))))


def test_a_reader_that_did_not_wait_before_counts_whatever_its_switches():
    tiers = machine(before=look())
    tiers.feed(Wrote(0.0))
    tiers.feed(Probed(0.001, look(wait(1))))
    assert settled(tiers.feed(Probed(0.0012, look(wait(1)))))


def test_an_old_sleep_is_no_answer_to_new_input():
    tiers = machine(before=look(wait(3)))
    tiers.feed(Wrote(0.0))
    for at in (0.001, 0.002, UNMOVED_S - 0.001):
        assert settled(tiers.feed(Probed(at, look(wait(3))))) is None


def test_an_old_sleep_counts_when_the_terminal_ate_the_input():
    tiers = machine(before=look(wait(3)))
    tiers.feed(Wrote(0.0))
    tiers.feed(Probed(UNMOVED_S, look(wait(3))))
    assert settled(tiers.feed(Probed(UNMOVED_S + 0.001, look(wait(3)))))


def test_an_old_sleep_stands_when_nothing_could_end_it():
    tiers = machine(before=look(wait(3)), can_wake=False, writes=False)
    tiers.feed(Wrote(0.0))
    tiers.feed(Probed(0.0005, look(wait(3))))
    assert settled(tiers.feed(Probed(0.0006, look(wait(3)))))


def test_unread_input_forbids_a_verdict():
    tiers = machine(before=look())
    tiers.feed(Wrote(0.0))
    for at in (0.001, 0.002):
        assert settled(tiers.feed(Probed(at, look(wait(4), unread=1)))) is None
    tiers.feed(Probed(0.003, look(wait(4))))
    assert settled(tiers.feed(Probed(0.004, look(wait(4)))))


def test_a_drain_that_stopped_early_proves_nothing():
    tiers = machine(before=look())
    tiers.feed(Wrote(0.0))
    tiers.feed(Probed(0.001, look(wait(4)), drained=False))
    assert settled(tiers.feed(Probed(0.002, look(wait(4))))) is None
    assert settled(tiers.feed(Probed(0.003, look(wait(4)))))


def test_output_between_the_looks_belongs_to_the_answer():
    tiers = machine(before=look())
    tiers.feed(Wrote(0.0))
    tiers.feed(Probed(0.001, look(wait(4))))
    tiers.feed(Output(0.0011))
    assert settled(tiers.feed(Probed(0.0012, look(wait(4)))))


def test_nothing_settles_before_the_write_is_complete():
    tiers = machine(before=look())
    assert tiers.feed(Output(0.001, (PROMPT,), "$ ")) == []
    assert tiers.feed(Probed(0.002, look(wait(4)))) == []
    assert tiers.feed(Tick(1.0)) == [TickAt(SETTINGS.timeout_s)]


def test_the_far_end_of_a_pipeline_gets_a_moment_to_print():
    tiers = machine(before=look())
    tiers.feed(Wrote(0.0))
    tiers.feed(Probed(0.001, look(wait(4), busy=True)))
    later = tiers.feed(Probed(0.0012, look(wait(4), busy=True)))
    assert settled(later) is None
    assert probe_time(later) > 0.0012
    assert settled(tiers.feed(Probed(0.004, look(wait(4)))))


def test_a_thread_that_always_runs_does_not_hold_the_verdict_for_ever():
    tiers = machine(before=look())
    tiers.feed(Wrote(0.0))
    tiers.feed(Probed(0.001, look(wait(4), busy=True)))
    at = 0.001 + BUSY_GRACE_S
    assert settled(tiers.feed(Probed(at, look(wait(4), busy=True))))


def test_a_short_poll_is_no_wait_for_input():
    tiers = machine(before=look())
    tiers.feed(Wrote(0.0))
    for at in (0.1, 0.2, 0.9):
        assert settled(tiers.feed(Probed(at, look(polls=(wait(4),))))) is None


def test_a_short_poll_counts_at_the_readers_own_prompt():
    memory = Memory(shell_pgid=SHELL)
    memory.output((), None, b"In [1]: ")
    memory.learn(7)
    tiers = machine(memory, before=look(polls=(wait(3),)))
    tiers.feed(Wrote(0.0))
    tiers.feed(Output(0.001, line=b"2"))
    tiers.feed(Probed(0.002, look(polls=(wait(4),))))
    assert settled(tiers.feed(Probed(0.003, look(polls=(wait(4),))))) is None
    tiers.feed(Output(0.004, line=b"In [2]: "))
    tiers.feed(Probed(0.005, look(polls=(wait(5),))))
    assert settled(tiers.feed(Probed(0.006, look(polls=(wait(5),)))))


def known_loop() -> Memory:
    memory = Memory(shell_pgid=SHELL)
    memory.output((), None, b"> ")
    memory.learn(7)
    return memory


def test_an_event_loop_away_from_its_prompt_may_wait_for_its_own_timer():
    tiers = machine(known_loop(), before=look(wait(3, event_loop=True)))
    tiers.feed(Wrote(0.0))
    tiers.feed(Output(0.001, line=b""))
    for at in (0.01, 0.02, STILL_S + 1, STILL_S + 2):
        assert settled(tiers.feed(Probed(at, look(wait(4, event_loop=True))))) is None


def test_an_event_loop_at_a_new_prompt_must_sleep_a_while():
    tiers = machine(known_loop(), before=look(wait(3, event_loop=True)))
    tiers.feed(Wrote(0.0))
    tiers.feed(Output(0.001, line=b"... "))
    assert settled(tiers.feed(Probed(0.01, look(wait(4, event_loop=True))))) is None
    tiers.feed(Probed(0.01 + STILL_S, look(wait(4, event_loop=True))))
    assert settled(tiers.feed(Probed(0.02 + STILL_S, look(wait(4, event_loop=True)))))


def test_an_event_loop_of_which_nothing_is_known_counts_as_any_sleep():
    tiers = machine(before=look())
    tiers.feed(Wrote(0.0))
    tiers.feed(Probed(0.001, look(wait(4, event_loop=True))))
    assert settled(tiers.feed(Probed(0.002, look(wait(4, event_loop=True)))))


def test_prompts_of_another_reader_or_too_many_are_forgotten():
    memory = known_loop()
    memory.output((), None, b"? ")
    memory.learn(8)
    assert memory.prompts == {b"? "}
    for text in "abcdefghijklmnopqrst":
        memory.output((), None, text.encode())
        memory.learn(8)
    assert len(memory.prompts) <= 16
    memory.output((), None, b"")
    memory.learn(8)
    assert b"" not in memory.prompts


# -- the marker tier --------------------------------------------------------------


def at_prompt(tiers: Tiers, at: float = 0.001, status: int = 0, text: str = "$ ") -> list:
    mark = Mark(MarkKind.PROMPT, status)
    return tiers.feed(Output(at, (mark,), text))


def test_a_prompt_is_looked_at_at_once_and_settles_with_its_status():
    tiers = machine()
    tiers.feed(Wrote(0.0))
    assert probe_time(at_prompt(tiers, status=37)) == 0.001
    verdict = settled(tiers.feed(Probed(0.0011, look(wait(1), group=SHELL, **READLINE))))
    assert (verdict.wait_reason, verdict.evidence) == (WaitReason.STDIN_READ, Evidence.MARKER)
    assert (verdict.prompt_kind, verdict.exit_code) == (PromptKind.SHELL, 37)


def test_a_prompt_printed_before_the_write_ended_is_judged_after_it():
    tiers = machine()
    at_prompt(tiers)
    assert probe_time(tiers.feed(Wrote(0.002))) == 0.002
    assert settled(tiers.feed(Probed(0.003, look(wait(1), group=SHELL))))


def test_the_shell_must_really_sleep_on_the_terminal():
    tiers = machine()
    tiers.feed(Wrote(0.0))
    at_prompt(tiers)
    again = tiers.feed(Probed(0.0011, look(group=SHELL, busy=True)))
    assert settled(again) is None
    assert probe_time(again) < 0.002
    assert settled(tiers.feed(Probed(0.0013, look(wait(1), group=SHELL))))


def test_retries_at_a_prompt_back_off_when_the_shell_stays_away():
    tiers = machine()
    tiers.feed(Wrote(0.0))
    at_prompt(tiers)
    at = 0.001
    distances = []
    for _ in range(60):
        again = tiers.feed(Probed(at, look(group=SHELL)))
        distances.append(probe_time(again) - at)
        at = probe_time(again)
    assert distances[-1] == pytest.approx(SETTINGS.poll_interval_s)


@pytest.mark.parametrize(
    ("marks", "text", "more"),
    [
        ((PROMPT,), "$ echo b", {}),  # the next line of the text was echoed
        ((PROMPT,), "custom$ ", {}),
        ((PROMPT,), None, {}),
        ((COMMAND,), "$ ", {}),
        ((PROMPT,), "$ ", {"unread": 1}),
        ((PROMPT,), "$ ", {"group": CHILD}),
    ],
)
def test_what_is_not_quite_a_prompt_does_not_settle(marks, text, more):
    tiers = machine()
    tiers.feed(Wrote(0.0))
    tiers.feed(Output(0.001, marks, text))
    seen = look(**{"group": SHELL, **more})
    assert settled(tiers.feed(Probed(0.0011, seen))) is None


def test_a_continuation_prompt_is_told_apart():
    tiers = machine()
    tiers.feed(Wrote(0.0))
    tiers.feed(Output(0.001, (CONTINUATION,), "> "))
    verdict = settled(tiers.feed(Probed(0.002, look(wait(1), group=SHELL, **READLINE))))
    assert verdict.prompt_kind is PromptKind.CONTINUATION
    assert verdict.exit_code is None


def test_the_first_prompt_teaches_the_shells_group():
    memory = Memory()
    tiers = machine(memory, startup=True)
    tiers.feed(Wrote(0.0))
    at_prompt(tiers)
    assert settled(tiers.feed(Probed(0.002, look(wait(1), group=SHELL))))
    assert memory.shell_pgid == SHELL


def test_a_mark_of_before_does_not_settle_this_send():
    memory = Memory(SHELL, MarkKind.PROMPT, "$ ")
    tiers = machine(memory, before=look(wait(3), group=SHELL))
    tiers.feed(Wrote(0.0))
    assert settled(tiers.feed(Probed(0.001, look(wait(3), group=SHELL)))) is None


def test_with_nothing_written_the_standing_prompt_settles():
    memory = Memory(SHELL, MarkKind.PROMPT, "$ ")
    tiers = machine(memory, before=look(wait(3), group=SHELL), can_wake=False, writes=False)
    assert probe_time(tiers.feed(Wrote(0.0))) == 0.0
    verdict = settled(tiers.feed(Probed(0.001, look(wait(3), group=SHELL))))
    assert verdict.evidence is Evidence.MARKER


def test_where_sleepers_cannot_be_seen_a_prompt_must_stand_a_moment():
    tiers = machine()
    tiers.feed(Wrote(0.0))
    at_prompt(tiers)
    blind = look(group=SHELL, supported=False)
    assert settled(tiers.feed(Probed(0.0011, blind))) is None
    verdict = settled(tiers.feed(Probed(0.0011 + MARKER_QUIET_S, blind)))
    assert verdict.evidence is Evidence.MARKER


def test_a_reader_inside_the_shell_is_a_line_and_not_the_prompt():
    tiers = machine()
    tiers.feed(Wrote(0.0))
    tiers.feed(Output(0.001, (COMMAND,), "name? "))
    tiers.feed(Probed(0.002, look(wait(1), group=SHELL)))
    verdict = settled(tiers.feed(Probed(0.003, look(wait(1), group=SHELL))))
    assert verdict.prompt_kind is PromptKind.LINE


def test_part_of_a_line_at_the_prompt_still_is_the_shell():
    memory = Memory(SHELL, MarkKind.PROMPT, "$ ")
    tiers = machine(memory, before=look(wait(3), group=SHELL))
    tiers.feed(Wrote(0.0))
    tiers.feed(Output(0.001, (), "$ echo par"))
    seen = look(wait(4), group=SHELL, **READLINE)
    tiers.feed(Probed(0.002, seen))
    verdict = settled(tiers.feed(Probed(0.003, seen)))
    assert (verdict.evidence, verdict.prompt_kind) == (Evidence.SYSCALL, PromptKind.SHELL)


@pytest.mark.parametrize(
    ("seen", "kind"),
    [
        ({"echo": False}, PromptKind.PASSWORD),
        ({"canonical": False, "echo": False}, PromptKind.KEY),
        ({"canonical": False, "echo": False, "line_editor": True}, PromptKind.LINE),
        ({"canonical": None, "echo": None}, PromptKind.NONE),
    ],
)
def test_kinds_of_what_a_program_asks_for(seen, kind):
    tiers = machine(before=look())
    tiers.feed(Wrote(0.0))
    tiers.feed(Probed(0.001, look(wait(4), **seen)))
    assert settled(tiers.feed(Probed(0.002, look(wait(4), **seen)))).prompt_kind is kind


# -- when to look -----------------------------------------------------------------


def test_the_first_look_comes_a_moment_after_the_write_and_every_output():
    tiers = machine(before=look())
    assert probe_time(tiers.feed(Wrote(1.0))) == 1.0 + SETTINGS.first_probe_s
    assert probe_time(tiers.feed(Output(2.0))) == 2.0 + SETTINGS.first_probe_s


def test_looks_back_off_to_the_poll_interval_and_begin_anew_with_output():
    tiers = machine(before=look())
    at = probe_time(tiers.feed(Wrote(0.0)))
    distances = []
    while at < 1.0:
        again = probe_time(tiers.feed(Probed(at, look())))
        distances.append(again - at)
        at = again
    assert distances[0] == pytest.approx(SETTINGS.first_probe_s)
    assert max(distances) == pytest.approx(SETTINGS.poll_interval_s)
    assert distances == sorted(distances, key=lambda value: round(value, 9))
    assert probe_time(tiers.feed(Output(1.0))) == 1.0 + SETTINGS.first_probe_s


def test_costly_looks_come_rarely():
    tiers = machine(before=look())
    at = probe_time(tiers.feed(Wrote(0.0)))
    for _ in range(60):
        at, before = probe_time(tiers.feed(Probed(at, look(cost_s=0.001)))), at
    assert at - before == pytest.approx(0.5)


# -- silence, deadlines, exits ----------------------------------------------------


def quiet(tiers: Tiers, probe: Probe | None = None, at: float = 0.1) -> float:
    """Write, print, look in vain; return the time of the next tick."""
    tiers.feed(Wrote(0.0))
    tiers.feed(Output(at, line=b"working"))
    return tick_time(tiers.feed(Probed(at + 0.001, probe or look())))


def test_silence_is_an_inference():
    tiers = machine(before=look())
    at = quiet(tiers)
    assert at == 0.1 + SETTINGS.idle_silence_s
    assert settled(tiers.feed(Tick(at - 0.01))) is None
    verdict = settled(tiers.feed(Tick(at)))
    assert verdict.wait_reason is WaitReason.INFERRED_IDLE
    assert (verdict.evidence, verdict.prompt_kind) == (Evidence.SILENCE, PromptKind.NONE)


def test_output_moves_the_silence():
    tiers = machine(before=look())
    at = quiet(tiers)
    tiers.feed(Output(at - 0.01))
    assert tiers.feed(Tick(at)) == [TickAt(at - 0.01 + SETTINGS.idle_silence_s)]


def test_silence_without_any_output_counts_from_the_write():
    tiers = machine(before=look())
    assert tick_time(tiers.feed(Wrote(2.0))) == 2.0 + SETTINGS.idle_silence_s


def test_a_mark_without_its_prompt_gets_a_grace():
    tiers = machine(before=look())
    tiers.feed(Wrote(0.0))
    tiers.feed(Output(0.1, (PROMPT,), "[1]+ Done"))
    at = 0.1 + SETTINGS.idle_silence_s
    assert settled(tiers.feed(Tick(at))) is None
    assert settled(tiers.feed(Tick(at + SETTINGS.handoff_grace_s)))


def test_a_command_mark_gets_no_grace():
    tiers = machine(before=look())
    tiers.feed(Wrote(0.0))
    tiers.feed(Output(0.1, (COMMAND,), ""))
    assert settled(tiers.feed(Tick(0.1 + SETTINGS.idle_silence_s)))


def test_silence_without_output_never_completes_startup():
    tiers = machine(startup=True)
    tiers.feed(Wrote(0.0))
    tiers.feed(Probed(0.001, look()))
    assert settled(tiers.feed(Tick(SETTINGS.startup_timeout_s - 0.1))) is None
    verdict = settled(tiers.feed(Tick(SETTINGS.startup_timeout_s)))
    assert verdict.wait_reason is WaitReason.TIMEOUT


def test_startup_with_output_may_end_by_silence():
    tiers = machine(startup=True)
    assert settled(tiers.feed(Tick(quiet(tiers))))


def test_the_deadline_says_nothing_about_the_program():
    tiers = machine(before=look(), timeout_s=1.0)
    assert tiers.begin() == [TickAt(1.0)]
    tiers.feed(Wrote(0.0))
    for at in (0.2, 0.4, 0.6, 0.8, 0.99):
        tiers.feed(Output(at))
    verdict = settled(tiers.feed(Tick(1.0)))
    assert (verdict.wait_reason, verdict.evidence) == (WaitReason.TIMEOUT, Evidence.DEADLINE)


def test_a_late_tick_reports_what_came_first():
    tiers = machine(before=look(), timeout_s=4.0)
    tiers.feed(Wrote(0.0))
    assert settled(tiers.feed(Tick(50.0))).wait_reason is WaitReason.INFERRED_IDLE
    tiers = machine(before=look(), timeout_s=2.0)
    tiers.feed(Wrote(0.0))
    assert settled(tiers.feed(Tick(50.0))).wait_reason is WaitReason.TIMEOUT


def test_the_deadline_comes_even_while_the_write_waits():
    tiers = machine(before=look(), timeout_s=1.0)
    assert settled(tiers.feed(Tick(1.0))).wait_reason is WaitReason.TIMEOUT


def test_a_background_send_has_no_deadline_and_knows_no_silence():
    tiers = machine(before=look(), background=True)
    assert tiers.begin() == []
    tiers.feed(Wrote(0.0))
    assert tick_time(tiers.feed(Probed(0.001, look()))) is None
    assert tiers.feed(Tick(10_000.0)) == []


def test_a_background_send_without_an_exact_tier_ends_by_a_long_silence():
    tiers = machine(before=look(supported=False), background=True)
    tiers.feed(Wrote(0.0))
    at = tick_time(tiers.feed(Probed(0.001, look(supported=False))))
    assert at == SETTINGS.background_silence_s
    assert settled(tiers.feed(Tick(at))).wait_reason is WaitReason.INFERRED_IDLE


def test_a_background_send_may_have_a_deadline_of_its_own():
    tiers = machine(before=look(), background=True, timeout_s=5.0)
    assert tiers.begin() == [TickAt(5.0)]


HIDDEN = {"echo": False, "supported": False}


def test_a_hidden_line_of_a_program_nobody_may_inspect_is_guessed_a_password():
    tiers = machine(before=look())
    at = quiet(tiers, look(**HIDDEN))
    assert at == 0.1 + SETTINGS.handoff_grace_s
    verdict = settled(tiers.feed(Tick(at)))
    assert verdict.wait_reason is WaitReason.INFERRED_IDLE
    assert (verdict.evidence, verdict.prompt_kind) == (Evidence.TERMIOS, PromptKind.PASSWORD)
    assert tiers.verdict == verdict


@pytest.mark.parametrize(
    "seen",
    [{**HIDDEN, "supported": True}, {**HIDDEN, "canonical": False}, {**HIDDEN, "echo": True},
     {**HIDDEN, "unread": 3}],
)  # fmt: skip
def test_other_silences_are_no_password(seen):
    tiers = machine(before=look())
    quiet(tiers, look(**seen))
    assert settled(tiers.feed(Tick(0.1 + SETTINGS.handoff_grace_s))) is None


def test_a_hidden_line_is_no_verdict_for_a_background_send():
    tiers = machine(before=look(), background=True)
    tiers.feed(Wrote(0.0))
    tiers.feed(Output(0.1))
    tiers.feed(Probed(0.2, look(**HIDDEN)))
    assert settled(tiers.feed(Tick(5.0))) is None


def test_exit_settles_at_any_time_and_nothing_after_it_counts():
    tiers = machine(before=look())
    verdict = settled(tiers.feed(Exited(0.5)))
    assert (verdict.wait_reason, verdict.evidence) == (WaitReason.SESSION_EXIT, Evidence.EXIT)
    assert tiers.feed(Tick(100.0)) == []
    assert tiers.feed(Output(100.0)) == []


def test_exit_reports_the_last_status_a_prompt_carried():
    tiers = machine(before=look())
    tiers.feed(Wrote(0.0))
    at_prompt(tiers, status=3)
    assert settled(tiers.feed(Exited(0.5))).exit_code == 3


def test_a_machine_without_any_look_settles_without_facts():
    verdict = settled(replace_before(None).feed(Exited(0.1)))
    assert (verdict.canonical, verdict.echo, verdict.foreground_pgid) == (None, None, None)


def replace_before(before: Probe | None) -> Tiers:
    start = replace(Start(at=0.0), before=before)
    return Tiers(SETTINGS, start, Memory())
