"""Logs: constant lower-case events, facts in ``extra``, context from context variables.

Never log terminal bytes, typed text, argv values or environment values.
"""

import json
import logging
import sys
import time
from contextvars import ContextVar
from typing import Any, TextIO

from fabric.core.settings import Secret

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
owner: ContextVar[str | None] = ContextVar("owner", default=None)
session: ContextVar[str | None] = ContextVar("session", default=None)
node: ContextVar[str | None] = ContextVar("node", default=None)

_always: dict[str, str] = {}

_CONTEXT = (("request_id", request_id), ("owner", owner), ("session", session), ("node", node))
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _facts(record: logging.LogRecord) -> dict[str, object]:
    facts: dict[str, object] = {
        key: _shown(value)
        for key, value in vars(record).items()
        if key not in _STANDARD and not key.startswith("_")  # others hang private things on it
    }
    for name, variable in _CONTEXT:
        value = variable.get()
        if value is not None:
            facts.setdefault(name, value)
    for name, text in _always.items():
        facts.setdefault(name, text)
    return facts


def _shown(value: Any) -> Any:
    """Hide secrets, at any depth: to a formatter a Secret is a string like any other."""
    if isinstance(value, Secret):
        return "***"
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    return value


def _word(value: object) -> str:
    """Write a fact so that it can neither be torn apart nor forge a line."""
    text = str(value)
    plain = text.isprintable() and not any(char in text for char in ' "=')
    return text if plain and text else json.dumps(text)


def _stamp(record: logging.LogRecord) -> str:
    base = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{base}.{int(record.msecs):03d}Z"


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        row: dict[str, object] = {
            "ts": _stamp(record),
            "level": record.levelname,
            "logger": record.name,
            "event": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            row["error"] = self.formatException(record.exc_info)
        return json.dumps(row, default=str)


class LogfmtFormatter(logging.Formatter):
    """``time level logger event key=value`` for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Format one record."""
        facts = " ".join(f"{key}={_word(value)}" for key, value in _facts(record).items())
        line = f"{_stamp(record)} {record.levelname} {record.name} {record.getMessage()!r} {facts}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line.rstrip()


def always(**facts: str) -> None:
    """Say these facts in every line of this process, unless the line knows better.

    For what a process is (its node, its slot); what a call is belongs into the variables.
    """
    _always.clear()
    _always.update({name: text for name, text in facts.items() if text})


def configure(level: str = "INFO", stream: TextIO | None = None) -> None:
    """Send the fabric's logs to ``stream`` (default standard error)."""
    target = stream or sys.stderr
    handler = logging.StreamHandler(target)
    handler.setFormatter(LogfmtFormatter() if target.isatty() else JsonFormatter())
    for name in ("fabric", "workers"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
