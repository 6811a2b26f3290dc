"""A short seeded run of ``python -m tests.load.faults``; the long one makes 2,000 calls."""

import pytest

from tests.load.faults import run
from tests.support.faults import Rates


@pytest.mark.parametrize("seed", [1, 2])
async def test_no_command_runs_twice_and_none_is_lost_silently(seed):
    ledger = await run(calls=120, sessions=4, seed=seed)
    assert ledger.faults == []
    assert len(ledger.completed | ledger.unsure) == 120
    assert sum(ledger.connection_faults[kind] for kind in ("before", "during", "after")) >= 10
    assert len(ledger.completed) > 100, "the client is safe by repeating, not by giving up"


async def test_a_network_that_breaks_all_the_time_still_loses_nothing_silently():
    rates = Rates(before=0.2, during=0.2, after=0.2)
    ledger = await run(calls=30, sessions=3, seed=3, rates=rates)
    assert ledger.faults == []
    assert len(ledger.completed | ledger.unsure) == 30
