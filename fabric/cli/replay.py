"""The command ``fabric replay``: watch a recorded terminal (asciicast, version 2).

The recording is written as it is, control sequences and all: that is what a replay is. What
programs in it may have asked of the terminal is undone at the end, however it ends.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fabric.cli.context import Context, run_interruptible
from fabric.core.errors import InvalidRequestError

VERSION = 2
OUTPUT = "o"
# Attributes, cursor, wrapping, alternate screen, mouse, bracketed paste, keypad: as at first.
UNDO = (
    "\x1b[0m\x1b[?25h\x1b[?7h\x1b[?1049l"
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b>"
)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened, ``at`` seconds from the beginning."""

    at: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Cast:
    """A recording."""

    header: dict[str, Any]
    events: tuple[Event, ...]

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.events[-1].at if self.events else 0.0


def load(path: str) -> Cast:
    """Read a recording; a last line that was never finished is left out.

    Raises: InvalidRequestError.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError as error:
        raise InvalidRequestError(f"cannot read {path}: {error.strerror}") from error
    try:
        header = json.loads(lines[0])
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("version") != VERSION:
        raise InvalidRequestError(f"{path} is no asciicast of version {VERSION}")
    return Cast(header, tuple(_events(path, lines)))


def _events(path: str, lines: list[str]) -> Iterator[Event]:
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        try:
            at, kind, text = json.loads(line)
            event = Event(float(at), str(kind), str(text))
        except (ValueError, TypeError) as error:
            if number == len(lines):
                return
            raise InvalidRequestError(f"{path}, line {number}: no event") from error
        yield event


def replay(context: Context) -> int:
    """Play a recording, or describe it (``--json``)."""
    given = context.arguments
    cast = load(given.file)
    if context.output.as_json:
        facts = {
            "title": cast.header.get("title"),
            "rows": cast.header.get("height"),
            "cols": cast.header.get("width"),
            "timestamp": cast.header.get("timestamp"),
            "seconds": cast.seconds,
            "events": len(cast.events),
        }
        context.output.result(facts, "")
        return 0
    _say_if_small(context, cast)
    try:
        if given.no_wait:
            _write("".join(event.text for event in cast.events if event.kind == OUTPUT))
        else:
            run_interruptible(
                lambda: _play(cast, given.speed, given.idle), context.output, "the replay to end"
            )
    finally:
        if sys.stdout.isatty():
            _write(UNDO)
    return 0


async def _play(cast: Cast, speed: float, idle_s: float) -> None:
    before = 0.0
    for event in cast.events:
        pause = min(max(event.at - before, 0.0), idle_s) / speed
        before = event.at
        if pause:
            await asyncio.sleep(pause)
        if event.kind == OUTPUT:
            _write(event.text)


def _write(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


def _say_if_small(context: Context, cast: Cast) -> None:
    cols, rows = cast.header.get("width"), cast.header.get("height")
    if not sys.stdout.isatty() or not isinstance(cols, int) or not isinstance(rows, int):
        return
    size = os.get_terminal_size(sys.stdout.fileno())
    if size.columns < cols or size.lines < rows:
        context.output.note(f"recorded in {cols}x{rows}, this terminal is smaller")
