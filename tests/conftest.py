"""The folder of a test is its tier: marker, time limit and the check that nothing is left."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import leaks
from tests.support.eventually import eventually_sync, scaled

TESTS = Path(__file__).parent
# In the order in which they run. The cluster of the raycluster tier lives until the end of the
# run, so it comes last: the tests of e2e count processes.
LIMITS_S = {
    "unit": 5.0, "terminal": 30.0, "rpc": 30.0, "e2e": 180.0, "browser": 180.0,
    "raycluster": 120.0, "load": 1800.0,
}  # fmt: skip
CHECKED_FOR_LEAKS = {"terminal", "rpc", "raycluster", "e2e"}


def _tier_of(path: Path) -> str | None:
    parts = path.relative_to(TESTS).parts if path.is_relative_to(TESTS) else ()
    return parts[0] if parts and parts[0] in LIMITS_S else None


def pytest_configure(config: pytest.Config) -> None:
    leaks.become_subreaper()
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = list(LIMITS_S)
    for item in items:
        tier = _tier_of(item.path)
        if tier is None:
            continue
        item.add_marker(getattr(pytest.mark, tier))
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(scaled(LIMITS_S[tier])))
    items.sort(key=lambda item: order.index(_tier_of(item.path) or "unit"))


@pytest.fixture(autouse=True)
def _nothing_left_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    tier = _tier_of(request.path)
    if tier not in CHECKED_FOR_LEAKS:
        yield
        return
    before = leaks.take()
    yield
    leaks.reap_orphans()
    # A cluster that outlives the test has pools that come and go by themselves.
    with_cluster = tier == "raycluster" or "shared_fabric" in request.fixturenames
    try:
        eventually_sync(lambda: not leaks.since(before, with_cluster=with_cluster), within=5.0)
    except AssertionError:
        pytest.fail("left behind: " + "; ".join(leaks.since(before, with_cluster=with_cluster)))
    finally:
        leaks.reap_orphans()


def pytest_sessionfinish(session: pytest.Session) -> None:
    leaks.reap_orphans()
