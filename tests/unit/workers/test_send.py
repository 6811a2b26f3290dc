"""The send machine against a table of histories, and against chance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.send import Ask, Phase, Send

W, X, S, F, R = Ask.WRITE, Ask.INTERRUPT, Ask.SETTLE, Ask.FAIL, Ask.RELEASE
STEPS = {
    "begin": lambda send: send.begin(),
    "written": lambda send: send.written(),
    "failed": lambda send: send.write_failed(),
    "cancel": lambda send: send.cancel(),
    "signalled": lambda send: send.interrupted(),
    "ready": lambda send: send.verdict(waits_for_input=True),
    "over": lambda send: send.verdict(waits_for_input=False),
}


@pytest.mark.parametrize(
    "history",
    [
        [("begin", [W]), ("written", []), ("ready", [S, R]), ("ready", [])],
        [("begin", [W]), ("ready", []), ("written", []), ("ready", [S, R])],
        [("begin", [W]), ("over", [S]), ("written", [R])],
        [("begin", [W]), ("over", [S]), ("failed", [R])],
        [("begin", [W]), ("failed", [F, R])],
        [("cancel", [S, R]), ("begin", [])],
        [("begin", [W]), ("cancel", []), ("written", [X]), ("signalled", []), ("ready", [S, R])],
        [("begin", [W]), ("cancel", []), ("failed", [F, R])],
        [("begin", [W]), ("written", []), ("cancel", [X]), ("cancel", []), ("over", [S])],
        [("begin", [W]), ("written", []), ("cancel", [X]), ("over", [S]), ("signalled", [R])],
        [("begin", [W]), ("cancel", []), ("over", [S]), ("written", [X]), ("signalled", [R])],
        [("begin", [W]), ("cancel", []), ("over", [S]), ("failed", [R])],
        [("begin", [W]), ("written", []), ("ready", [S, R]), ("cancel", [])],
    ],
    ids=lambda history: "-".join(step for step, _ in history),
)
def test_each_history_asks_for_exactly_this(history):
    send = Send()
    for step, asked in history:
        assert STEPS[step](send) == asked, step


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=30))
def test_no_history_writes_settles_or_releases_twice(steps):
    send = Send()
    asked: list[Ask] = []
    for step in steps:
        if step == "written" and not send.writing:
            continue
        if step == "failed" and not send.writing:
            continue
        if step == "signalled" and not send.interrupting:
            continue
        asked += STEPS[step](send)
        assert not (R in asked and (send.writing or send.interrupting))
    assert asked.count(W) <= 1
    assert asked.count(X) <= 1
    assert asked.count(S) + asked.count(F) <= 1
    assert asked.count(R) <= 1
    assert send.is_settled == (S in asked or F in asked)
    assert (send.phase is Phase.SETTLED) or R not in asked
