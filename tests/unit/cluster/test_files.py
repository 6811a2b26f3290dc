"""The files an operator takes: plans can be read, each query of the dashboard names what exists."""

import importlib.util
import json
import re
import sys

import pytest

from fabric.core.errors import error_classes
from fabric.core.metrics import METRICS, Kind
from fabric.core.model import Evidence
from fabric.load.plan import read_plan
from tests.support.paths import ROOT

PLANS = sorted((ROOT / "cluster" / "load").glob("*.toml"))
GRAFANA = ROOT / "cluster" / "grafana"
BOARD = json.loads((GRAFANA / "fabric.json").read_text())
QUERIES = [
    (panel["title"], target["expr"], target["legendFormat"])
    for panel in BOARD["panels"]
    for target in panel["targets"]
]
# Labels that Prometheus adds to every series, and that of histograms.
ADDED = {"instance", "job", "le"}


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_every_plan_can_be_read_and_has_marks(path):
    plan, marks = read_plan(path)
    assert plan.title
    assert marks
    assert f"cluster/load/{path.name}" in path.read_text()


def test_plans_are_listed():
    text = (ROOT / "cluster" / "load" / "README.md").read_text()
    assert all(path.name in text for path in PLANS)


def metrics_in(query):
    found = []
    for name in re.findall(r"\bfabric_[a-z_]+", query):
        base, ending = name, ""
        for suffix in ("_bucket", "_sum", "_count"):
            if name not in METRICS and name.endswith(suffix):
                base, ending = name.removesuffix(suffix), suffix
        found.append((base, ending))
    return found


@pytest.mark.parametrize(("title", "query", "legend"), QUERIES)
def test_every_query_names_metrics_and_labels_that_exist(title, query, legend):
    found = metrics_in(query)
    assert found, title
    allowed = set(ADDED)
    for base, ending in found:
        assert base in METRICS, f"{title}: {base}"
        assert bool(ending) == (METRICS[base].kind is Kind.HISTOGRAM), f"{title}: {base}{ending}"
        allowed |= set(METRICS[base].labels)
        if METRICS[base].kind is Kind.GAUGE:
            assert "rate(" not in query
        else:
            assert "rate(" in query, f"{title}: a counter is of no use without its rate"
    used = set(re.findall(r"{{(\w+)}}", legend)) | set(re.findall(r"(\w+)=~?\"", query))
    for group in re.findall(r"by \(([^)]*)\)", query):
        used |= {name.strip() for name in group.split(",")}
    assert used <= allowed, title
    assert query.count("(") == query.count(")")


def test_the_queries_to_be_woken_by_name_what_exists():
    text = (ROOT / "cluster" / "OBSERVE.md").read_text()
    names = {base for base, _ in metrics_in(text)} - {"fabric_"}
    assert len(names) >= 4
    assert names <= set(METRICS)
    reasons = {item.reason for item in error_classes()}
    named = re.findall(r'reason=~?"([^"]+)"', text)
    assert named
    for group in named:
        assert set(group.replace("\\|", "|").split("|")) <= reasons
    evidence = set(re.findall(r'evidence="(\w+)"', text))
    assert evidence <= {item.value for item in Evidence}


def test_every_gateway_metric_is_shown():
    shown = {base for _, query, _ in QUERIES for base, _ in metrics_in(query)}
    served = {name for name in METRICS if not name.startswith("fabric_worker_")}
    assert served == shown


def loaded(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_the_table_of_scale_is_what_its_arithmetic_says():
    scale = loaded("cluster_scale", ROOT / "cluster" / "scale.py")
    text = (ROOT / "cluster" / "SCALE.md").read_text()
    shown = text.partition("<!-- scale: begin -->\n")[2].partition("<!-- scale: end -->")[0]
    assert shown.strip() == scale.table(scale.Size()).strip()
    assert "arithmetic" in shown
    small = {name: cores for name, cores, _ in scale.loads(scale.Size(10, 500))}
    large = {name: cores for name, cores, _ in scale.loads(scale.Size(10, 5000))}
    assert all(large[name] >= small[name] for name in small)


def test_the_dashboard_is_the_one_its_program_writes():
    module = loaded("make_dashboard", GRAFANA / "make.py")
    assert module.dashboard() == BOARD
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
