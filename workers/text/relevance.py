r"""What of a long stretch of output can still be seen on the screen.

A screen that has not been looked at for a while is megabytes behind. Feeding it all
would take seconds; most of it has scrolled away or was cleared. ``plan`` finds a place
from which on the rest gives the same screen, by one of these arguments:

- *Cleared*: home and erase (in either order, next to each other), or a reset. What was
  shown before is gone.
- *Scrolled away*: the end of the stretch is *flow*, text and moves within the row only,
  and holds enough newlines. If at least rows-1 newlines of flow come before a place, the
  cursor is on the last row there; if rows more follow, nothing from before is left. The
  place must follow ``\r\n``, so that the column is known. A row that scrolls away is the
  same whatever wrapped in between: wrapping only adds rows.
- *Wrapped away*: one endless line of plain characters. Its position after any number of
  whole rows is known, so all but the last rows can go.
- *The alternate screen*: a stay on it that is over left nothing behind but modes.

What is passed over is searched for what outlives it: modes, the scrolling region, the
title, the choice of screen. These are applied, each as it was last.

If no argument holds and the stretch is not too long, all of it is fed. Only a stretch
above ``MAX_FEED_BYTES`` without any such place (a full-screen program that never clears)
is shown from its last part; so is what follows bytes that the ring has lost.
"""

import re
from dataclasses import dataclass, replace
from enum import Enum, auto

MAX_FEED_BYTES = 1_048_576
_WINDOW_BYTES = 65_536

_ALTERNATE = re.compile(rb"\x1b\[\?((?:[0-9]+;)*(?:47|1047|1049)(?:;[0-9]+)*)([hl])")
_ALTERNATE_NUMBERS = frozenset({b"47", b"1047", b"1049"})
# One simple pattern each: together they are several times faster than one alternation.
_PRIVATE_MODES = re.compile(rb"\x1b\[\?([0-9;]*)([hl])")
_MODES = re.compile(rb"\x1b\[(4|20)([hl])")
_REGIONS = re.compile(rb"\x1b\[([0-9;]*)r")
_SOFT_RESETS = re.compile(rb"\x1b\[!p")
_TITLES = re.compile(rb"\x1b\][02];[^\x07\x18\x1a\x1b\n]{0,1024}(?:\x07|\x1b\\)")
_LEAVES_ROW = re.compile(
    rb"\x1b(?:\[[0-9;?]*[ABEFHJLMSTdefrsu]|\[\?(?:[0-9]+;)*6(?:;[0-9]+)*[hl]|\[!p|[78DEHMc#])"
)
_CLEARS = (
    b"\x1b[H\x1b[2J",
    b"\x1b[H\x1b[J",
    b"\x1b[H\x1b[0J",
    b"\x1b[2J\x1b[H",
    b"\x1b[1;1H\x1b[2J",
    b"\x1b[1;1H\x1b[J",
    b"\x1b[2J\x1b[1;1H",
)
_NO_WRAP = b"7l"  # at least: no stretch without it turns wrapping off
_REGION = (b"", b"r")
_TITLE = (b"", b"title")
_SOFT = (b"", b"!p")
_COLOUR = re.compile(rb"\x1b\[[0-9;:]*m")
_PRINTABLE = bytes(range(0x20, 0x7F))
_RESTART = re.compile(rb"[\n\x1b]")


class Origin(Enum):
    """Where a step begins: as the screen is, or on a blank one."""

    PRESENT = auto()
    TOP = auto()
    BOTTOM = auto()


@dataclass(frozen=True, slots=True)
class Step:
    """Feed ``data``, after blanking the screen unless ``origin`` is PRESENT."""

    data: bytes
    origin: Origin = Origin.PRESENT


@dataclass(frozen=True, slots=True)
class Situation:
    """The screen at the beginning of the stretch; ``lost``: bytes before it are missing."""

    rows: int
    cols: int
    column: int
    at_bottom: bool
    scrolls_whole: bool
    alternate: bool
    wraps: bool = True
    lost: bool = False


def plan(data: bytes, situation: Situation) -> list[Step]:
    """Return the steps that bring the screen to the end of ``data``."""
    if situation.lost:
        match = _RESTART.search(data)
        if match is not None and match.start() < 4 * _WINDOW_BYTES:
            data = data[match.start() :]
    elif len(data) <= 2 * situation.rows * situation.cols:
        return [Step(data)]
    reset = data.rfind(b"\x1bc")
    if reset >= 0:
        fresh = Situation(
            situation.rows, situation.cols, 0, at_bottom=False, scrolls_whole=True, alternate=False
        )
        return [Step(b"\x1bc"), *plan(data[reset + 2 :], fresh)]
    switches = [
        match
        for match in _ALTERNATE.finditer(data)
        if _ALTERNATE_NUMBERS.intersection(match[1].split(b";"))
    ]
    if not switches:
        return _stretch(data, situation)
    if any(b"1049" not in match[1] for match in switches):
        return _bounded(data, b"", situation)  # the cursor is shared between the screens
    return _by_screen(data, switches, situation)


def _by_screen(data: bytes, switches: list[re.Match[bytes]], situation: Situation) -> list[Step]:
    """Divide at the switches: finished stays on the alternate screen leave only modes."""
    steps: list[Step] = []
    main: list[bytes] = []
    before = situation
    alternate = situation.alternate
    begin = entered = 0
    for match in switches:
        on = match[2] == b"h"
        if on == alternate:
            continue
        part = data[begin : match.start()]
        if on:
            main.append(part)
            entered = match.start()
        elif begin == 0 and situation.alternate:  # where the main screen's cursor is, is unknown
            steps.append(Step(_modes(part) + b"\x1b[?1049l"))
            before = replace(
                situation,
                column=-1,
                at_bottom=False,
                scrolls_whole=_region_is_whole(part, situation),
                wraps=situation.wraps and _NO_WRAP not in part,
                lost=False,
            )
        else:
            main.append(_left_behind(part))
        main.append(_others(match))
        alternate, begin = on, match.end()
    if alternate and begin == 0:
        return _stretch(data, situation)
    rest = data[begin:]
    if not alternate:
        return [*steps, *_stretch(b"".join([*main, rest]), replace(before, alternate=False))]
    steps += _stretch(b"".join(main), replace(before, alternate=False))
    steps.append(Step(b"\x1b[?1049h"))
    inside = replace(
        before,
        column=-1,
        at_bottom=False,
        scrolls_whole=_region_is_whole(data[:entered], situation),
        wraps=situation.wraps and _NO_WRAP not in data[:entered],
        alternate=True,
        lost=False,
    )
    return steps + _stretch(rest, inside)


def _stretch(data: bytes, situation: Situation) -> list[Step]:
    """Plan a stretch on one screen."""
    if len(data) <= 2 * situation.rows * situation.cols and not situation.lost:
        return [Step(data)]
    cleared = max((data.rfind(clear) for clear in _CLEARS), default=-1)
    if b"\x1b[?6h" in data:  # origin mode: home is not the corner
        cleared = -1
    flow = _flow_restart(data, situation, max(cleared, 0))
    if flow is not None:
        start, rest = flow
        return [Step(_modes(data[:start])), Step(rest, Origin.BOTTOM)]
    if cleared > 0:
        return _bounded(data[cleared:], _modes(data[:cleared]), situation)
    return _bounded(data, b"", situation)


def _bounded(data: bytes, modes: bytes, situation: Situation) -> list[Step]:
    if len(data) > MAX_FEED_BYTES:
        match = _RESTART.search(data, len(data) - MAX_FEED_BYTES)
        start = match.start() if match is not None else len(data) - MAX_FEED_BYTES
        switches = [match[0] for match in _ALTERNATE.finditer(data, 0, start)]
        state = modes + b"".join(switches[-1:]) + _modes(data[:start])
        return [Step(state), Step(data[start:], Origin.TOP)]
    return [Step(modes + data, Origin.TOP if situation.lost else Origin.PRESENT)]


def _flow_restart(data: bytes, situation: Situation, least: int) -> tuple[int, bytes] | None:
    """Find where what is left can begin on the last row: the place and what to feed there.

    ``least`` is where the feeding could begin without this; a place before is no gain.
    """
    rows = situation.rows
    size = _WINDOW_BYTES
    while True:
        base = max(least, len(data) - size)
        window = data[base:]
        border = 0
        for match in _LEAVES_ROW.finditer(window):
            border = match.end()
        lines = window[border:].split(b"\n")
        from_start = base == 0 and border == 0 and not situation.lost
        bottom = situation.at_bottom and from_start
        if border or len(lines) > 2 * rows or base == least:
            break
        size *= 4
    if not _region_is_whole(data[: base + border], situation):
        return None
    wraps = situation.wraps and _NO_WRAP not in data
    long_line = _wrapped_away(lines, situation, bottom, from_start) if wraps else None
    if long_line is not None:
        return len(data), long_line
    last = len(lines) - rows
    for at in range(last, 0 if bottom else max(0, rows - 2), -1):
        if lines[at - 1].endswith(b"\r"):
            rest = b"\n".join(lines[at:])
            return len(data) - len(rest), rest
    return None


def _wrapped_away(
    lines: list[bytes], situation: Situation, bottom: bool, from_start: bool
) -> bytes | None:
    """Cut the last line, if it alone fills the screen more than twice."""
    cols = situation.cols
    screen = situation.rows * cols
    line = lines[-1]
    if len(line) < 3 * screen:
        return None
    begin = line.rfind(b"\r") + 1
    column = 0
    if begin == 0 and not (len(lines) > 1 and lines[-2].endswith(b"\r")):
        if not from_start or len(lines) > 1 or situation.column < 0:
            return None
        column = situation.column % cols
    plain = _COLOUR.sub(b"", line[begin:])
    if plain.translate(None, _PRINTABLE):
        return None
    keep = screen + (column + len(plain)) % cols
    if len(plain) - keep < (0 if bottom else screen) + cols:
        return None
    return plain[len(plain) - keep :]


def _region_is_whole(data: bytes, situation: Situation) -> bool:
    """Tell whether the whole screen scrolls after ``data``."""
    reset = data.rfind(b"\x1b[!p")
    regions = _REGIONS.findall(data, max(reset, 0))
    if not regions:
        return situation.scrolls_whole or reset >= 0
    top, bottom = [int(field or 0) for field in [*regions[-1].split(b";"), b"", b""][:2]]
    return top <= 1 and bottom in (0, situation.rows)


def _left_behind(data: bytes) -> bytes:
    """Return what a finished stay on the alternate screen leaves: no move of the cursor."""
    kept = _last_states(data)
    region = kept.pop(_REGION, b"")
    if region:
        region = b"\x1b7" + region + b"\x1b8"
    return region + b"".join(kept.values())


def _others(match: re.Match[bytes]) -> bytes:
    """Return the modes that were set together with a switch of the screen."""
    numbers = [n for n in match[1].split(b";") if n not in _ALTERNATE_NUMBERS]
    return b"\x1b[?" + b";".join(numbers) + match[2] if numbers else b""


def _modes(data: bytes) -> bytes:
    """Return what of ``data`` outlives it, as it was last."""
    return b"".join(_last_states(data).values())


def _last_states(data: bytes) -> dict[tuple[bytes, bytes], bytes]:
    kept: dict[tuple[bytes, bytes], bytes] = {}
    found = [
        (match.start(), pattern, match)
        for pattern in (_PRIVATE_MODES, _MODES, _REGIONS, _SOFT_RESETS, _TITLES)
        for match in pattern.finditer(data)
    ]
    for _, pattern, match in sorted(found, key=lambda entry: entry[0]):
        if pattern is _SOFT_RESETS:
            kept = {_TITLE: kept[_TITLE]} if _TITLE in kept else {}
            kept[_SOFT] = match[0]
        elif pattern in (_PRIVATE_MODES, _MODES):
            prefix = b"?" if pattern is _PRIVATE_MODES else b""
            for number in match[1].split(b";"):
                kept.pop((prefix, number), None)
                if not (prefix and number in _ALTERNATE_NUMBERS):
                    kept[prefix, number] = b"\x1b[" + prefix + number + match[2]
        else:
            key = _REGION if pattern is _REGIONS else _TITLE
            kept.pop(key, None)
            kept[key] = match[0]
    return kept
