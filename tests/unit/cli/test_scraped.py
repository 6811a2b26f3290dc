import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.cli.scraped import Scrape, grown, parse, quantile, rate
from fabric.cli.top_view import lines_of, state_of
from fabric.core import metrics as m
from fabric.core.errors import InvalidRequestError
from fabric.core.metrics import Metrics


def served(store, at):
    return parse("\n".join(store.render()), at)


def gateway_store():
    store = Metrics()
    store.observe_with(m.GATEWAY_REGISTRY_UP, lambda: {(): 1.0})
    store.observe_with(m.REGISTRY_OWNERS, lambda: {(): 3.0})
    store.observe_with(
        m.REGISTRY_SESSIONS, lambda: {("published",): 4.0, ("opening",): 1.0, ("closing",): 0.0}
    )
    store.observe_with(m.GATEWAY_CALLS_ACTIVE, lambda: {("PtyService.Attach",): 2.0})
    for metric, value in (
        (m.NODE_UP, 1), (m.NODE_SESSIONS, 5), (m.NODE_SESSIONS_MAX, 64), (m.NODE_WARM, 4),
        (m.NODE_MEMORY_FREE, 3 << 30),
    ):  # fmt: skip
        store.observe_with(metric, lambda value=value: {("build7",): float(value)})
    store.observe_with(m.NODE_DRAINING, lambda: {("build7",): 1.0})
    return store


@given(st.text(max_size=40), st.floats(0, 1e12))
def test_what_is_rendered_is_read(text, value):
    store = Metrics()
    store.counter(m.GATEWAY_ERRORS, text).value = value
    line = [row for row in store.render() if not row.startswith("#")]
    found = parse("\n".join(line), 1.0)
    (labels, read) = next(found.of("fabric_gateway_errors_total"))
    assert labels == {"reason": text}
    assert read == value


@pytest.mark.parametrize("text", ["<html>", "fabric_x{} one", "fabric_x"])
def test_anything_else_is_refused(text):
    with pytest.raises(InvalidRequestError):
        parse(text, 0.0)


def test_a_rate_is_growth_and_a_counter_that_went_back_began_anew():
    before = parse('c{a="x"} 10\nc{a="y"} 5', 1.0)
    after = parse('c{a="x"} 30\nc{a="y"} 2\nc{a="z"} 4', 3.0)
    assert rate(before, after, "c") == (20 + 2 + 4) / 2
    assert rate(before, after, "c", a="x") == 10
    assert grown(before, after, "none") == {}


def test_a_percentile_is_of_what_came_in_between():
    store = Metrics()
    row = store.histogram(m.GATEWAY_RPC_SECONDS, "A.B", "OK")
    for _ in range(1000):
        row.observe(5.0)  # long ago
    before = served(store, 0.0)
    for _ in range(90):
        row.observe(0.0015)
    for _ in range(10):
        store.histogram(m.GATEWAY_RPC_SECONDS, "A.B", "NOT_FOUND").observe(0.2)
    after = served(store, 1.0)
    name = "fabric_gateway_rpc_seconds"
    assert 0.001 < quantile(before, after, name, 0.5, method="A.B") <= 0.0025
    assert 0.1 < quantile(before, after, name, 0.99, method="A.B") <= 0.25
    assert quantile(before, after, name, 0.5, method="C.D") is None
    assert quantile(after, after, name, 0.5) is None


def test_beyond_the_last_bucket_only_that_is_known():
    store = Metrics()
    row = store.histogram(m.GATEWAY_TURN_WAIT_SECONDS)
    before = served(store, 0.0)
    row.observe(400.0)
    assert quantile(before, served(store, 1.0), "fabric_gateway_turn_wait_seconds", 0.5) == 30.0


def test_the_state_is_of_all_gateways_and_says_who_does_not_answer():
    store = gateway_store()
    before = served(store, 10.0)
    send = store.histogram(m.GATEWAY_RPC_SECONDS, "TerminalService.Send", "OK")
    for _ in range(40):
        send.observe(0.002)
    store.counter(m.GATEWAY_SENDS, "stdin_read", "marker").value += 40
    store.counter(m.GATEWAY_ERRORS, "SESSION_LOST").value += 2
    after = served(store, 12.0)
    state = state_of({"a:1": (before, after), "b:2": None, "c:3": (after, after)})
    assert state["owners"] == 3
    assert state["sessions"] == {"published": 4, "opening": 1}
    assert state["rates"]["sends"] == 20
    assert 1 < state["send"]["p99_ms"] <= 2.5
    assert state["nodes"][0] | {"x": 0} == {
        "host": "build7", "up": True, "draining": 1, "sessions": 5, "sessions_max": 64, "warm": 4,
        "ptys_free": None, "memory_free_bytes": 3 << 30, "descriptors_free": None, "x": 0,
    }  # fmt: skip
    assert [row["up"] for row in state["gateways"]] == [True, False, True]
    assert {row["method"]: row["active"] for row in state["methods"]} == {
        "TerminalService.Send": 0, "PtyService.Attach": 4,
    }  # fmt: skip
    assert state["errors"] == {"SESSION_LOST": 2}
    text = "\n".join(lines_of(state, 2.0))
    for word in ("build7", "draining", "5/64", "3.0 GB", "does not answer", "SESSION_LOST 2"):
        assert word in text


def test_a_fabric_that_says_nothing_is_shown_as_such():
    state = state_of({"a:1": (Scrape(), Scrape())})
    assert state["owners"] is None
    assert "owners -" in lines_of(state, 1.0)[0]
