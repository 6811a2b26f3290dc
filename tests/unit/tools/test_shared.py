"""Results of the shared terminal as one bounded JSON text."""

import json

from hypothesis import given
from hypothesis import strategies as st

from fabric.core.model import ExitStatus, SessionStatus, WaitReason
from fabric.core.shared import SharedPage, SharedResult, SharedState
from fabric.tools.shared import bounded, page_value, result_value, suffix

BIG = 2**53 - 1
STATE = SharedState(
    generation=1, sequence=900, rows=40, cols=160, viewport="new\nvisible", cursor_x=7,
    cursor_y=1, status=SessionStatus(), queue_status="ready", holder=None, pending_count=0,
)  # fmt: skip
WORST = SharedState(
    generation=BIG, sequence=BIG, rows=1000, cols=1000, viewport="", cursor_x=999, cursor_y=999,
    status=SessionStatus(ExitStatus(signal="SIGVTALRM")), queue_status="disposed",
    holder="disconnect-recovery", pending_count=BIG, truncated=False,
)  # fmt: skip


def test_a_page_says_its_lines_from_the_oldest():
    text, value = bounded(page_value(SharedPage(STATE, "second", 2, 1, 2)), 4096)
    assert json.loads(text) == value
    assert (value["text"], value["lineBegin"], value["lineEnd"]) == ("second", 1, 2)
    assert (value["totalLines"], value["cursor"]) == (2, {"x": 7, "y": 1})
    assert value["viewport"] == "new\nvisible"
    assert value["holder"] is None
    assert not value["truncated"]


def test_an_operation_says_its_wait_and_why_it_ended():
    value = result_value(SharedResult(STATE, WaitReason.HUMAN_HANDOFF, 12, "out"))
    assert (value["waitReason"], value["queueTimeMs"]) == ("human_handoff", 12)
    assert value["output"] == "out"
    assert "processGroupId" not in value
    signalled = SharedResult(STATE, WaitReason.PROMPT, 0, "", None)
    assert result_value(signalled, with_group=True)["processGroupId"] is None
    assert "output" not in result_value(SharedResult(STATE, WaitReason.PROMPT, 0))


@given(st.text(max_size=3000), st.text(max_size=3000), st.integers(1024, 4000))
def test_the_whole_json_keeps_its_bound_and_the_newest_text(viewport, output, limit):
    full = result_value(SharedResult(WORST, WaitReason.HUMAN_HANDOFF, BIG, output, BIG))
    full["viewport"] = viewport
    text, value = bounded(full, limit)
    assert len(text.encode("utf-8", "replace")) <= limit
    assert json.loads(text) == value
    assert output.endswith(value["output"])
    assert viewport.endswith(value["viewport"])
    if (value["output"], value["viewport"]) != (output, viewport):
        assert value["truncated"]


def test_worst_case_escapes_and_numbers_fit_the_least_bound():
    page = SharedPage(WORST, "\x01" * 5000 + "end", BIG, BIG - 1, BIG)
    value = page_value(page) | {"viewport": "\x02" * 5000}
    text, kept = bounded(value, 1024)
    assert len(text.encode()) <= 1024
    assert kept["text"].endswith("end")
    assert kept["viewport"]


def test_a_cut_page_moves_its_first_line():
    lines = [f"line {number}" for number in range(1000)]
    value = bounded(page_value(SharedPage(STATE, "\n".join(lines), 1000, 0, 1000)), 1024)[1]
    shown = value["text"].split("\n")
    assert value["lineBegin"] == 1000 - len(shown)
    assert shown[-1] == "line 999"
    assert value["truncated"]


def test_a_suffix_never_splits_a_character():
    assert suffix("a🎉b", 5) == "🎉b"
    assert suffix("a🎉b", 4) == "b"
    assert suffix('"""', 4) == '""'
