"""Conditions that a caller waits for beside the PTY, over offsets, without any clock.

Level-triggered: what already holds from ``since_offset`` on ends the wait at once. The
text is what a person would see (escapes removed), searched as it grows; a pattern is an
RE2 expression, so its time is linear in the text whatever it says. A match may span at
most ``OVERLAP_CHARS`` characters of text already searched.
"""

import re2

from fabric.core.errors import InvalidRequestError
from fabric.core.model import SessionStatus, WaitCondition

MAX_PATTERN_CHARS = 1024
MAX_PATTERN_MEMORY_BYTES = 1 << 20
OVERLAP_CHARS = 4096


def check(condition: WaitCondition) -> None:
    """Refuse a condition that can never hold or is malformed. Raises: InvalidRequestError."""
    if condition.pattern is not None:
        compile_pattern(condition.pattern)
    elif condition.quiet_s is None and not condition.ready and not condition.exit:
        raise InvalidRequestError("wait_for needs a pattern, quiet_s, ready or exit")
    if condition.quiet_s is not None and not 0 < condition.quiet_s <= 86_400:
        raise InvalidRequestError("quiet_s must lie above 0 and be at most a day")


def compile_pattern(pattern: str) -> "re2._Regexp[str]":
    """Compile with RE2. Raises: InvalidRequestError naming the fault."""
    if not pattern or len(pattern) > MAX_PATTERN_CHARS:
        raise InvalidRequestError(f"pattern must have 1 to {MAX_PATTERN_CHARS} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PATTERN_MEMORY_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        fault = error.args[0] if error.args else b""
        detail = fault.decode() if isinstance(fault, bytes) else str(fault)
        raise InvalidRequestError(f"pattern is not valid RE2 syntax: {detail}") from error


class Watch:
    """One wait: fed with text and facts, it says which condition holds first."""

    def __init__(self, condition: WaitCondition, status: SessionStatus) -> None:
        check(condition)
        self._condition = condition
        self._pattern = compile_pattern(condition.pattern) if condition.pattern else None
        self._carry = ""
        self._status = status
        self.match_text: str | None = None

    def output(self, final: str, partial: str) -> str | None:
        """Take text that is complete and the line still being written."""
        if self._pattern is None:
            return None
        text = self._carry + final
        found = self._pattern.search(text + partial)
        if found is not None:
            self.match_text = found.group(0)
            return "pattern"
        self._carry = text[-OVERLAP_CHARS:]
        return None

    def ready(self) -> str | None:
        """Take the news that the program waits for input."""
        return "ready" if self._condition.ready else None

    def exited(self, status: SessionStatus) -> str | None:
        """Take the news of the session's end, which ends every wait."""
        self._status = status
        return "exit"

    def quiet(self, silent_s: float) -> str | None:
        """Take how long no output came."""
        limit = self._condition.quiet_s
        return "quiet" if limit is not None and silent_s >= limit else None
