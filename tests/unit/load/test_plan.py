import pytest

from fabric.core.errors import InvalidRequestError
from fabric.load.marks import FIGURES, Mark, judge, parse_marks
from fabric.load.plan import Plan, plan_of, read_plan
from fabric.load.runner import shares


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ({"owners": 0}, "between 1"), ({"owners": 2.0}, "type int"), ({"owner": 1}, "not known"),
        ({"duration_s": 5, "warmup_s": 5}, "nothing would count"),
        ({"rate": 5, "think_s": 1}, "no think_s"), ({"pace_s": 1, "think_s": 1}, "instead of"),
        ({"scenarios": {"echo": 0}}, "weight"), ({"scenarios": {"dance": 1}}, "weight"),
        ({"scenarios": ["echo"]}, "name = weight"), ({"spacing": "odd"}, "poisson"),
        ({"mode": "root"}, "read-only"), ({"owners": 2, "processes": 3}, "exceed owners"),
        ({"rate": float("nan")}, "between"), ({"owners": True}, "type int"),
    ],
)  # fmt: skip
def test_a_wrong_plan_is_refused_with_the_rule(row, rule):
    with pytest.raises(InvalidRequestError, match=rule):
        plan_of(row)


def test_a_file_and_flags_over_it(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text('[load]\nowners = 8\nscenarios = "repl"\n[marks]\nerrors_max = 0\n')
    plan, marks = read_plan(path)
    assert (plan.owners, plan.scenarios) == (8, {"repl": 1})
    assert marks == (Mark("errors", least=False, limit=0.0),)
    assert plan_of({"owners": 9, "duration_s": 60}, plan) == Plan(
        owners=9, duration_s=60.0, scenarios={"repl": 1}
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x =", "cannot read"), ("[lod]\n", "unknown table lod"),
        ("[marks]\nspeed_max = 1\n", "marks.speed_max"), ("[marks]\np50_ms = 1\n", "marks.p50_ms"),
        ('[marks]\np50_ms_max = "6"\n', "must be a number"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused(tmp_path, text, fault):
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(InvalidRequestError, match=fault):
        read_plan(path)
    with pytest.raises(InvalidRequestError, match="cannot read"):
        read_plan(tmp_path / "none.toml")


def test_marks_hold_at_their_limit_and_fail_on_what_was_not_measured():
    marks = parse_marks({"p50_ms_max": 6, "rate_min": 100, "session_pss_mb_max": 60})
    found = judge(marks, {"p50_ms": 6.0, "rate": 99.9, "session_pss_mb": None})
    assert [item.passed for item in found] == [True, False, False]
    assert found[0].mark.text == "p50_ms <= 6"
    assert judge(parse_marks({f"{name}_max": 1 for name in FIGURES}), {})


def test_processes_get_whole_owners_and_their_share_of_rate_and_turns():
    plan = Plan(owners=5, sessions=2, processes=2, rate=50.0, turns=7, scenarios={"echo": 1})
    first, second = shares(plan)
    assert (first.first_owner, first.owners, second.first_owner, second.owners) == (0, 3, 3, 2)
    assert (first.rate, second.rate) == (30.0, 20.0)
    assert (first.turns, second.turns) == (4, 3)
    assert (len(first.scenarios), len(second.scenarios)) == (6, 4)
