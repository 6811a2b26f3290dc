import json

from fabric.load.live import Live
from fabric.load.plan import Plan
from fabric.load.tally import MAX_ERROR_KINDS, Tally, Window


def window(at, turns=1, owner=0, counted=True, latency=0.01):
    made = Window(float(at), counted=counted)
    for _ in range(turns):
        made.turn(owner, latency, latency / 2)
    return made


def test_a_window_survives_the_pipe():
    made = window(3, 5, owner=7)
    made.call("send", 0.002)
    made.error("turn", "SESSION_LOST")
    made.output_bytes, made.in_work, made.waiting = 9, 2, 1
    read = Window.from_plain(json.loads(json.dumps(made.to_plain())))
    assert read.to_plain() == made.to_plain()
    assert not read.is_empty
    assert Window(0.0).is_empty


def test_what_does_not_count_is_in_the_series_only():
    tally = Tally()
    tally.take(window(0, 3, counted=False))
    tally.take(window(1, 4))
    tally.take(window(1, 2, owner=1))  # of another process
    assert tally.total.turns.count == 6
    assert {owner: item.count for owner, item in tally.total.owners.items()} == {0: 4, 1: 2}
    rows = [(item.at_s, item.turns.count, item.counted) for item in tally.series]
    assert rows == [(0.0, 3, False), (1.0, 6, True)]


def test_a_long_run_has_longer_windows_and_loses_nothing():
    tally = Tally(most=10)
    for at in range(95):
        tally.take(window(at, 2))
    series = list(tally.series)
    assert len(series) <= 10
    assert {item.length_s for item in series} == {16.0}
    assert sum(item.turns.count for item in series) == 190
    assert [item.at_s for item in series] == [0, 16, 32, 48, 64, 80]


def test_kinds_of_errors_are_bounded():
    made = Window(0.0)
    for number in range(1000):
        made.error("turn", f"KIND_{number}")
    assert len(made.errors) <= MAX_ERROR_KINDS + 1
    assert made.errors.total() == 1000


class Terminal:
    def __init__(self, is_tty):
        self.text, self._is_tty = "", is_tty

    def isatty(self):
        return self._is_tty

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_progress_is_one_line_rewritten_on_a_terminal_and_few_lines_elsewhere():
    for is_tty, times in ((True, 2), (False, 1)):
        clock, stream = [0.0], Terminal(is_tty)
        live = Live(Plan(duration_s=60, warmup_s=1), stream, now=lambda clock=clock: clock[0])
        for second in (1, 2, 3, 4, 5):
            clock[0] = second * (0.3 if is_tty else 1.0)
            live.take(window(second, 10, latency=0.004))
        live.close()
        assert stream.text.count("turns/s") == times
        assert ("\r" in stream.text) is is_tty
        assert "p50 4.0" in stream.text
        assert stream.text.endswith("\n")


def test_the_rate_shown_is_that_of_all_processes():
    live = Live(Plan(warmup_s=0), Terminal(is_tty=False), now=lambda: 0.0)
    for at in (1, 2):
        for _ in range(3):
            live.take(window(at, 10))
    assert "30.0 turns/s" in live.line()
