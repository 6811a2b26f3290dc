import itertools

import pytest

from fabric.load.schedule import Arrival, Pauses, arrivals, mixed, share_out, user_start


def test_even_arrivals_keep_their_rate():
    times = list(arrivals(10, 5, ramp_s=0, spacing=Arrival.EVEN, seed=1))
    assert times == pytest.approx([number / 10 for number in range(1, 50)])


def test_a_ramp_grows_evenly_and_then_keeps_the_rate():
    times = list(arrivals(100, 20, ramp_s=10, spacing=Arrival.EVEN, seed=1))
    counts = [sum(low <= at < low + 1 for at in times) for low in range(20)]
    assert counts[:10] == sorted(counts[:10])
    assert counts[0] <= 6
    assert counts[9] == pytest.approx(95, abs=2)
    assert all(count == pytest.approx(100, abs=1) for count in counts[10:])
    assert times == sorted(times)


def test_poisson_arrivals_have_the_rate_are_uneven_and_repeatable():
    def given(seed):
        return list(arrivals(100, 100, ramp_s=0, spacing=Arrival.POISSON, seed=seed))

    times = given(7)
    assert len(times) == pytest.approx(10_000, rel=0.05)
    assert times == given(7) != given(8)
    gaps = [after - before for before, after in itertools.pairwise(times)]
    assert sum(gap < 0.001 for gap in gaps) == pytest.approx(len(gaps) * 0.095, rel=0.15)


def test_users_begin_spread_over_the_ramp_or_a_think_time():
    assert [user_start(index, 4, 0, 2) for index in range(4)] == [0, 0.5, 1, 1.5]
    assert [user_start(index, 4, 8, 2) for index in range(4)] == [0, 2, 4, 6]
    assert user_start(3, 4, 0, 0) == 0


def test_pauses_lie_around_their_mean():
    pauses = Pauses(2.0, seed=3)
    found = [pauses.next() for _ in range(2000)]
    assert 1.0 <= min(found) < max(found) <= 3.0
    assert sum(found) / 2000 == pytest.approx(2.0, rel=0.02)


def test_shares_and_mixes_are_even():
    assert share_out(10, 4) == [3, 3, 2, 2]
    assert share_out(1, 3) == [1, 0, 0]
    order = mixed({"echo": 3, "build": 1}, 8)
    assert sorted(order) == ["build"] * 2 + ["echo"] * 6
    assert sorted(order[:4]) == ["build", "echo", "echo", "echo"]
    assert order == mixed({"echo": 3, "build": 1}, 8)
