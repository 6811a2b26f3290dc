import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.load.histogram import HALF, LONGEST_US, Histogram, bucket_of, edge_of, summary


@given(st.integers(0, LONGEST_US))
def test_a_value_lies_in_its_bucket_and_the_bucket_is_narrow(micros):
    number = bucket_of(micros)
    upper = edge_of(number)
    lower = edge_of(number - 1) + 1 if number else 0
    assert lower <= micros <= upper
    assert upper - lower <= lower / HALF


@given(st.lists(st.integers(0, LONGEST_US), min_size=1, max_size=200), st.floats(0, 1))
def test_a_percentile_is_within_a_bucket_above_the_true_one(values, share):
    histogram = Histogram()
    for value in values:
        histogram.add(value / 1e6)
    ordered = sorted(values)
    true = ordered[max(0, math.ceil(round(share * len(values) * 1e9) / 1e9) - 1)] / 1e6
    found = histogram.percentile(share)
    assert true <= found + 1e-9 <= true * (1 + 1 / HALF) + 2e-9
    assert histogram.longest == ordered[-1] / 1e6
    assert found <= histogram.longest


@given(st.lists(st.lists(st.integers(0, 10**7), max_size=30), max_size=6))
def test_parts_put_together_are_the_whole(groups):
    parts, whole = [], Histogram()
    for group in groups:
        part = Histogram()
        for value in group:
            part.add(value / 1e6)
            whole.add(value / 1e6)
        parts.append(Histogram.from_plain(part.to_plain()))
    assert Histogram.sum_of(parts).to_plain() == whole.to_plain()


def test_memory_is_bounded_by_the_range_and_not_by_the_count():
    histogram = Histogram()
    for value in range(1, 200_000, 7):
        histogram.add(value * 0.02)
    assert len(histogram.to_plain()["buckets"]) <= HALF * 26
    histogram.add(1e9)
    histogram.add(-1.0)
    assert histogram.longest == LONGEST_US / 1e6
    assert histogram.percentile(0) == 0


def test_nothing_counted_is_no_latency_of_zero():
    empty = Histogram()
    assert (empty.percentile(0.5), empty.longest, empty.mean) == (None, None, None)
    assert summary(empty)["p99_ms"] is None


def test_damage_is_refused():
    row = Histogram().to_plain() | {"count": 3}
    with pytest.raises(ValueError, match="add up"):
        Histogram.from_plain(row)


def test_the_summary_is_in_milliseconds():
    histogram = Histogram()
    for value in range(1, 101):
        histogram.add(value / 1000)
    found = summary(histogram)
    assert found["count"] == 100
    assert 50 <= found["p50_ms"] <= 50.4
    assert 99 <= found["p99_ms"] <= 99.8
    assert (found["max_ms"], found["mean_ms"]) == (100, 50.5)
