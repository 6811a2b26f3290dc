import io
import json
import logging

import pytest

from fabric.core import log
from fabric.core.settings import Secret


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _restored():
    loggers = [logging.getLogger(name) for name in ("fabric", "workers")]
    before = [(item.handlers[:], item.level, item.propagate) for item in loggers]
    yield
    for item, (handlers, level, propagate) in zip(loggers, before, strict=True):
        item.handlers[:], item.propagate = handlers, propagate
        item.setLevel(level)


def logged(stream, level="INFO"):
    log.configure(level, stream)
    return logging.getLogger("fabric.test"), stream


def test_json_lines_carry_event_facts_and_context():
    logger, stream = logged(io.StringIO())
    token = log.request_id.set("req_1")
    try:
        logger.info("session opened", extra={"ms": 3, "host": "a"})
    finally:
        log.request_id.reset(token)
    row = json.loads(stream.getvalue())
    assert row["event"] == "session opened"
    assert (row["ms"], row["host"], row["request_id"]) == (3, "a", "req_1")
    assert row["level"] == "INFO"
    assert row["ts"].endswith("Z")
    assert "owner" not in row


def test_a_fact_wins_over_the_context():
    logger, stream = logged(io.StringIO())
    token = log.session.set("ses_context")
    try:
        logger.info("x", extra={"session": "ses_fact"})
    finally:
        log.session.reset(token)
    assert json.loads(stream.getvalue())["session"] == "ses_fact"


def test_a_terminal_gets_logfmt_on_one_line():
    logger, stream = logged(Terminal())
    logger.warning("node lost", extra={"node": "a", "why": "no answer"})
    (line,) = stream.getvalue().splitlines()
    assert "WARNING fabric.test 'node lost'" in line
    assert "node=a" in line
    assert 'why="no answer"' in line


def test_a_value_cannot_forge_a_line():
    """A newline or an escape in a fact stays inside its own line, escaped."""
    for stream in (Terminal(), io.StringIO()):
        logger, stream = logged(stream)
        logger.info("x", extra={"program": "a\nERROR forged\x1b[31m"})
        assert len(stream.getvalue().splitlines()) == 1
        assert "\x1b" not in stream.getvalue()


def test_errors_carry_their_traceback():
    for stream in (Terminal(), io.StringIO()):
        logger, stream = logged(stream)
        try:
            raise ValueError("broken")
        except ValueError:
            logger.exception("failed")
        assert "ValueError: broken" in stream.getvalue()


def test_level_is_kept_and_below_it_nothing_is_written():
    logger, stream = logged(io.StringIO(), "WARNING")
    logger.info("x")
    logging.getLogger("workers.test").info("x")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("make", [Terminal, io.StringIO])
def test_a_secret_in_a_fact_is_not_logged(make):
    logger, stream = logged(make())
    logger.info("x", extra={"token": Secret("hunter2"), "all": {"token": Secret("hunter2")}})
    assert "hunter2" not in stream.getvalue()


def test_what_a_process_is_stands_in_every_line_unless_the_line_knows_better():
    stream = io.StringIO()
    log.configure("INFO", stream)
    log.always(node="build7", slot="", room="x")
    logger = logging.getLogger("fabric.test")
    try:
        logger.info("one")
        logger.info("two", extra={"node": "other"})
        token = log.node.set("third")
        logger.info("three")
        log.node.reset(token)
    finally:
        log.always()
    rows = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [row["node"] for row in rows] == ["build7", "other", "third"]
    assert rows[0]["room"] == "x"
    assert "slot" not in rows[0]
    logger.info("four")
    assert "node" not in json.loads(stream.getvalue().splitlines()[-1])
