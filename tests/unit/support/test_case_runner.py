"""The cases are read as they stand, and every kind of check can fail."""

import pytest

from tests.support.case_runner import _CHECKS, CaseRun, StepResult, check
from tests.support.cases import Case, load_cases, resolve, text_of, with_index

CASES = load_cases()


def test_there_are_93_cases_of_different_names():
    assert len(CASES) == 93
    assert len({case.id for case in CASES}) == 93


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case_is_well_formed(case):
    """Every verb has a handler, every check a meaning, every checked step a result."""
    assert case.source
    assert all(url.startswith("https://github.com/") for url in case.source)
    for tool in case.tools:
        assert tool.startswith("view.") or hasattr(CaseRun, "_" + tool.replace(".", "_"))
    for row in case.expect:
        kinds = set(row) | {kind for other in row.get("any_of", []) for kind in other}
        assert kinds - {"step", "any_of"} <= set(_CHECKS)
        if isinstance(row["step"], int):
            assert row["step"] < len(case.steps)


PAGE = StepResult(text="L3\nL4", line_begin=0, line_end=2)
KINDS = {
    "expect_contains": (["b"], StepResult(text="abc"), StepResult(text="ac")),
    "expect_not_contains": (["b"], StepResult(text="ac"), StepResult(text="abc")),
    "expect_line_equals": (["b"], StepResult(text="a\nb  \nc"), StepResult(text="ab\nbc")),
    "expect_line_sequence": (["a", "b"], StepResult(text="x\na\nb"), StepResult(text="a\nx\nb")),
    "expect_regex": ([r"^\d+$"], StepResult(text="12"), StepResult(text="1x")),
    "expect_not_regex": ([r"\d"], StepResult(text="x"), StepResult(text="1")),
    "expect_count": ({"a": 2}, StepResult(text="aba"), StepResult(text="aaa")),
    "expect_wait_reason": (["stdin_read"], StepResult(wait_reason="stdin_read"), StepResult()),
    "expect_status": ("running", StepResult(status="running"), StepResult(status="exited")),
    "expect_exit_code": (0, StepResult(exit_code=0), StepResult(exit_code=None)),
    "expect_signal": ("SIGKILL", StepResult(signal="SIGKILL"), StepResult(signal="SIGTERM")),
    "expect_error": (True, StepResult(error="SEND_ACTIVE"), StepResult()),
    "expect_truncated": (True, StepResult(truncated=True), StepResult()),
    "expect_dropped": (True, StepResult(dropped=2), StepResult()),
    "max_seconds": (1, StepResult(seconds=0.9), StepResult(seconds=1e6)),
    "max_bytes": (2, StepResult(text="é"), StepResult(text="éa")),
    "pages_contiguous_with": (9, StepResult(text="L1\nL2", line_begin=2), StepResult(text="L1")),
    "same_as": ("9", StepResult(text=PAGE.text), StepResult(text="other")),
    "not_more_than": ("n", StepResult(text="7\n"), StepResult(text="8\n")),
    "survivors_named_by_step": (8, StepResult(), None),
    "expect_warning_at_step": (8, StepResult(), None),
}
EARLIER = {
    "9": PAGE,
    "n": StepResult(text="7\n"),
    "8": StepResult(error="CLEANUP_INCOMPLETE", survivors=["sleep"]),
}


@pytest.mark.parametrize("kind", _CHECKS)
def test_every_kind_of_check_holds_and_fails(kind):
    wanted, good, bad = KINDS[kind]
    assert check({"step": 0, kind: wanted}, good, EARLIER, "0") == []
    results = EARLIER if bad else {"8": StepResult()}
    (fault,) = check({"step": 0, kind: wanted}, bad or StepResult(), results, "0")
    assert kind in fault


def test_one_alternative_is_enough_and_none_is_a_fault():
    row = {"step": 0, "any_of": [{"expect_error": True}, {"expect_contains": ["x"]}]}
    assert check(row, StepResult(text="x"), {}, "0") == []
    assert len(check(row, StepResult(text="y"), {}, "0")) == 1


def test_a_doubled_or_lost_line_is_no_contiguous_page():
    for text in ("L1", "L1\nL2\nL2", "L2\nL1"):
        page = StepResult(text=text, line_begin=2)
        assert check({"step": 0, "pages_contiguous_with": 9}, page, EARLIER, "0")


def test_texts_are_written_out():
    assert text_of({"$concat": ["a", {"$repeat": ["%d,", 3]}]}) == "a1,2,3,"
    assert with_index({"save": "T@i@", "steps": ["$T@i@"]}, 4) == {"save": "T4", "steps": ["$T4"]}
    names = {"S1": {"sessionId": "ses_x"}, "b": {"taskId": "tsk_y"}}
    assert resolve("$S1", names) == "ses_x"
    assert resolve("$b.taskId", names) == "tsk_y"
    assert resolve("$other", names) == "$other"


class Echo:
    """A surface that answers with what it was asked."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        async def verb(*args):
            self.calls.append((name, *args))
            ids = {"sessionId": "ses_1"} if name == "open" else {"taskId": "tsk_1"}
            return StepResult(text=" ".join(map(str, args)), ids=ids)

        return verb


async def test_steps_reach_the_surface_with_their_references_filled_in():
    steps = [
        {"tool": "terminal_open", "args": {"type": "shell"}, "save": "S1"},
        {"tool": "terminal_send", "args": {"sessionId": "$S1", "text": "x"}, "deadline": 2.0},
        {
            "tool": "terminal_send",
            "args": {"sessionId": "$S1", "text": "y", "run_in_background": True},
            "id": "b",
        },
        {"tool": "task_output", "args": {"taskId": "$b.taskId", "wait": True}},
        {
            "tool": "harness.loop",
            "args": {
                "n": 2,
                "steps": [{"tool": "terminal_read", "args": {"sessionId": "r@i@"}}],
                "expect": [{"step": 0, "expect_contains": ["r0"]}],
            },
        },
    ]
    surface = Echo()
    case = Case("X", "x", steps, [{"step": "b", "expect_contains": ["nothing"]}])
    faults = await CaseRun(case, surface).run()
    assert surface.calls == [
        ("open", "shell"),
        ("send", "ses_1", "x", True, 2.0),
        ("start_task", "ses_1", "y"),
        ("task_output", "tsk_1", True),
        ("read", "r0", 0, 500),
        ("read", "r1", 0, 500),
    ]
    assert len(faults) == 2, "the second round of the loop and step b"
