import re

import pytest

from fabric.core import metrics as m
from fabric.core.metrics import METRICS, OTHER, Kind, Metrics


def test_names_follow_the_form():
    assert len(METRICS) > 20
    for metric in METRICS.values():
        assert re.fullmatch(r"fabric_(gateway|worker|registry|node|web)_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
        assert metric.text.endswith(".")
        assert set(metric.labels) <= {
            "method", "code", "reason", "wait_reason", "evidence", "state", "host",
        }  # fmt: skip


def test_counters_add_and_gauges_are_asked_for():
    store, now = Metrics(), [4.0]
    store.counter(m.GATEWAY_ERRORS, "x").value += 3
    store.counter(m.GATEWAY_ERRORS, "y").value += 1
    store.observe_with(m.GATEWAY_LINE_CALLS, lambda: {(): now[0]})
    now[0] = 3
    assert list(store.render()) == [
        "# HELP fabric_gateway_errors_total Calls that ended with an error.",
        "# TYPE fabric_gateway_errors_total counter",
        'fabric_gateway_errors_total{reason="x"} 3',
        'fabric_gateway_errors_total{reason="y"} 1',
        "# HELP fabric_gateway_line_calls Calls that wait for their owner's turn.",
        "# TYPE fabric_gateway_line_calls gauge",
        "fabric_gateway_line_calls 3",
    ]


def test_histograms_are_cumulative_with_sum_and_count():
    store = Metrics()
    row = store.histogram(m.GATEWAY_RPC_SECONDS, "X.Y", "OK")
    for value in (0.0005, 0.001, 0.3, 99.0):
        row.observe(value)
    rows = dict(line.rsplit(" ", 1) for line in store.render() if not line.startswith("#"))
    name, labels = "fabric_gateway_rpc_seconds", 'method="X.Y",code="OK"'
    assert rows[f'{name}_bucket{{{labels},le="0.001"}}'] == "2"
    assert rows[f'{name}_bucket{{{labels},le="0.5"}}'] == "3"
    assert rows[f'{name}_bucket{{{labels},le="30.0"}}'] == "3"
    assert rows[f'{name}_bucket{{{labels},le="+Inf"}}'] == "4"
    assert rows[f"{name}_count{{{labels}}}"] == "4"
    assert float(rows[f"{name}_sum{{{labels}}}"]) > 99


def test_labels_must_be_those_declared_and_cannot_forge_a_line():
    store = Metrics()
    with pytest.raises(ValueError, match="labels"):
        store.counter(m.GATEWAY_ERRORS)
    store.counter(m.GATEWAY_ERRORS, 'a"\n\\b').value += 1
    assert 'fabric_gateway_errors_total{reason="a\\"\\n\\\\b"} 1' in list(store.render())


def test_rows_are_bounded():
    store = Metrics()
    for number in range(m.MAX_ROWS + 50):
        store.counter(m.GATEWAY_ERRORS, f"r{number}").value += 1
    rows = {values: value for _, values, value in store.rows()}
    assert len(rows) == m.MAX_ROWS + 1
    assert rows[(OTHER,)] == 50
