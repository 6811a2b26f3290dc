import inspect
import re

from fabric.core import metrics
from fabric.core.metrics import Metrics


def test_names_follow_the_form():
    names = [
        value
        for name, value in inspect.getmembers(metrics)
        if name.isupper() and isinstance(value, str)
    ]
    assert names
    for name in names:
        assert re.fullmatch(r"fabric_(gateway|worker|registry|node|web)_[a-z_]+", name)


def test_counters_add_and_gauges_are_set():
    store = Metrics()
    store.add("a_total", reason="x")
    store.add("a_total", 2, reason="x")
    store.add("a_total", reason="y")
    store.set("g", 4)
    store.set("g", 3)
    assert list(store.render()) == ['a_total{reason="x"} 3', 'a_total{reason="y"} 1', "g 3"]


def test_histograms_are_cumulative_with_sum_and_count():
    store = Metrics()
    for value in (0.0005, 0.001, 0.3, 99.0):
        store.observe("h_seconds", value, code="OK")
    rows = dict(line.rsplit(" ", 1) for line in store.render())
    assert rows['h_seconds_bucket{code="OK",le="0.001"}'] == "2"
    assert rows['h_seconds_bucket{code="OK",le="0.5"}'] == "3"
    assert rows['h_seconds_bucket{code="OK",le="30.0"}'] == "3"
    assert rows['h_seconds_bucket{code="OK",le="+Inf"}'] == "4"
    assert rows['h_seconds_count{code="OK"}'] == "4"
    assert float(rows['h_seconds_sum{code="OK"}']) > 99
