"""A short chaos run; `make chaos` is the long one."""

import pytest

from tests.load.chaos import chaos


@pytest.mark.timeout(900)
def test_nothing_but_its_shim_ends_a_session(tmp_path):
    """A minute under fire, then the audit: see `tests/load/chaos.py`."""
    assert chaos(seed=7, seconds=60.0, owners=3, keep=tmp_path / "kept") == []
