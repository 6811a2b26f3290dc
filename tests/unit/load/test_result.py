import json
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from fabric.core.errors import InvalidRequestError
from fabric.load import report, result
from fabric.load.compare import compare, differences
from fabric.load.histogram import Histogram
from fabric.load.marks import FIGURES, judge, parse_marks
from fabric.load.plan import Plan
from fabric.load.processes import Sample, Use, kind_of
from fabric.load.runner import Outcome
from fabric.load.svg import Line, log_ticks, nice_ticks, plot
from fabric.load.tally import Tally, Window


def sample(at, pss_mb=50, workers=2, cpu=0.0):
    size = pss_mb * result.MB
    return Sample(at, {
        "gateway": Use(1, size, size, size, 20, cpu),
        "worker": Use(workers, workers * size, workers * size, size, 40, cpu),
        "shim": Use(workers, workers * size, workers * 5 * result.MB, size, 4, 0.0),
    })  # fmt: skip


def outcome(seconds=10, per_second=20, owners=4):
    tally = Tally()
    for at in range(seconds):
        window = Window(float(at), counted=at >= 2)
        for number in range(per_second):
            window.turn(number % owners, 0.004 + 0.001 * (number % owners), 0.002)
            window.call("send", 0.002)
        tally.take(window)
    return Outcome(tally, sessions=owners, began_at=1e9, elapsed_s=float(seconds), busy=0.5)


def built(**changes):
    plan = Plan(owners=4, duration_s=10.0, warmup_s=2.0, title="A <run>")
    done = outcome()
    for name, value in changes.items():
        setattr(done, name, value)
    samples = [sample(at, cpu=at * 0.5) for at in range(10)]
    return result.build(plan, done, samples, 0.1)


def test_figures_are_of_what_counts():
    figures = built()["figures"]
    assert set(figures) == set(FIGURES)
    assert figures["turns"] == 160
    assert figures["rate"] == 20
    assert figures["errors"] == 0
    assert 1.0 <= figures["slowest_owner_ratio"] <= 7 / 5 * 1.01
    assert figures["session_pss_mb"] == 55
    assert figures["memory_growth"] == 0
    # 4.5 s each of gateway and workers for the 200 turns between first and last sample
    assert figures["cpu_ms_per_turn"] == pytest.approx(45)
    assert figures["gateway_cpu_ms_per_turn"] == pytest.approx(22.5)
    assert figures["opens_rate"] is None


def test_setup_errors_and_dead_clients_count_as_errors():
    done = outcome()
    done.tally.setup.error("open", "CAPACITY_REACHED")
    done.failures.append("client process 0 ended early")
    found = result.build(Plan(duration_s=10.0, warmup_s=2.0), done, [], 0.0)
    assert found["figures"]["errors"] == 2
    assert found["figures"]["session_pss_mb"] is None


def test_growth_compares_the_last_quarter_with_the_third():
    flat = [sample(at, 50) for at in range(20)]
    assert result.growth(flat, "pss") == 0
    rising = [sample(at, 50 if at < 15 else 60) for at in range(20)]
    assert result.growth(rising, "pss") == pytest.approx(0.19, abs=0.01)
    started = [sample(at, 10 if at < 8 else 50) for at in range(20)]
    assert result.growth(started, "pss") == 0
    assert result.growth(flat[:6], "pss") is None


def test_the_slowest_owner_is_held_against_the_median_one():
    def owner(milliseconds):
        histogram = Histogram()
        histogram.add(milliseconds / 1000)
        return histogram

    assert result.slowest_ratio({0: owner(10), 1: owner(10), 2: owner(30)}) == pytest.approx(3)
    assert result.slowest_ratio({0: owner(10)}) is None


def test_a_result_is_read_again_and_nothing_else_is(tmp_path):
    path = tmp_path / "r.json"
    found = result.judged(built(), judge(parse_marks({"errors_max": 0}), {"errors": 0}))
    result.write(found, path)
    assert result.read(path) == json.loads(json.dumps(found))
    for text in ("{}", "[]", "nonsense", json.dumps({"kind": result.KIND, "version": 99})):
        path.write_text(text)
        with pytest.raises(InvalidRequestError):
            result.read(path)
    with pytest.raises(InvalidRequestError, match="cannot write"):
        result.write(found, tmp_path / "none" / "r.json")
    assert [item.name for item in tmp_path.iterdir()] == ["r.json"]


def test_two_results_are_compared_by_what_is_better():
    before = built()
    after = json.loads(json.dumps(before))
    figures = after["figures"]
    figures.update(p50_ms=figures["p50_ms"] * 1.2, rate=figures["rate"] * 0.8, errors=1)
    figures.update(p99_ms=figures["p99_ms"] * 1.05, cpu_ms_per_turn=1.0)
    worse = {row.figure for row in compare(before, after, 0.1) if row.worse}
    assert worse == {"p50_ms", "rate", "errors"}
    assert not [row for row in compare(after, after, 0.0) if row.worse]
    assert not [row for row in compare(before, after, 0.3) if row.worse and row.figure != "errors"]


def test_a_difference_below_what_can_be_told_is_none():
    before, after = built(), built()
    before["figures"].update(p50_ms=0.1)
    after["figures"].update(p50_ms=0.14)
    assert not [row for row in compare(before, after, 0.1) if row.worse]


def test_runs_that_are_not_alike_say_in_what():
    before, after = built(), built()
    after["plan"]["owners"] = 9
    after["machine"]["cores"] = 64
    after["plan"]["title"] = "other"
    assert [row.partition(":")[0] for row in differences(before, after)] == [
        "plan.owners", "machine.cores",
    ]  # fmt: skip


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]


def test_the_page_stands_alone_and_shows_every_plot():
    found = built(failures=["client <1> ended"], interrupted=True)
    verdicts = judge(parse_marks({"p50_ms_max": 1, "rate_min": 1}), found["figures"])
    text = report.page(result.judged(found, verdicts))
    reader = Reader()
    reader.feed(text)
    assert reader.tags.count("svg") == 9
    assert not reader.links
    assert "script" not in reader.tags
    assert "<run>" not in text
    assert "client &lt;1&gt; ended" in text
    assert "FAIL" in text
    assert "pass" in text
    assert "interrupted" in text
    for piece in text.split("<figure>")[1:]:
        ET.fromstring(piece.partition("</figure>")[0])


def test_a_result_without_anything_has_a_page_too():
    empty = result.build(Plan(), Outcome(Tally()), [], 0.0)
    assert "nothing measured" in report.page(json.loads(json.dumps(empty)))


def test_ticks_are_round_and_cover():
    assert nice_ticks(0, 97) == [0, 20, 40, 60, 80, 100]
    assert nice_ticks(0, 0.3)[-1] >= 0.3
    assert nice_ticks(5, 5)[0] <= 5 <= nice_ticks(5, 5)[-1]
    assert log_ticks(0.5, 900) == [0.1, 1, 10, 100, 1000]
    assert log_ticks(1, 1) == [1, 10]


def test_a_gap_in_a_line_is_not_bridged():
    text = plot("t", [Line("a", [(0, 1.0), (1, 2.0), (2, None), (3, 1.0), (4, 2.0)])])
    assert text.count("<polyline") == 2
    assert plot("t", [Line("a", [(0, 0.0), (1, 2.0)])], log=True).count("<circle") == 1


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("/x/python -m fabric.cli serve --state-dir /s", "gateway"),
        ("/x/bin/python /x/bin/fabric serve --address h:1", "gateway"),
        ("ray::SessionHost", "worker"), ("ray::RegistryHost", "registry"),
        ("/x/python -I -S /y/workers/shim/__main__.py /s/a.s", "shim"),
        ("/r/gcs/gcs_server --log", "ray"), ("/x/python -m fabric.cli up", "supervisor"),
        ("/bin/bash", None), ("vim fabric.cli", None),
    ],
)  # fmt: skip
def test_processes_are_told_apart_by_their_command(line, kind):
    assert kind_of(line) == kind
