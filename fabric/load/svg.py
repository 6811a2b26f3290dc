"""Line plots as SVG text: no script, no font, no colour that a dark page could hide.

Theory. A plot maps data to a fixed canvas: evenly chosen round ticks on both axes, lines
broken where a value is missing (a gap is a finding and not to be bridged), and a legend
below. With ``log`` the y axis is logarithmic, for latencies whose tail would flatten the rest.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 760, 260
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 28, 52
COLOURS = ("#2f6fdb", "#d9822b", "#2b9a66", "#c23030", "#8a5cd1", "#00848e", "#98791a", "#6b7785")
TICKS = 5


@dataclass(frozen=True, slots=True)
class Line:
    """A named row of points; None is a gap."""

    name: str
    points: Sequence[tuple[float, float | None]]


def nice_ticks(low: float, high: float, count: int = TICKS) -> list[float]:
    """Return round numbers that cover a range."""
    if not high > low:
        high = low + (abs(low) or 1.0)
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    return [round(number * step, 12) for number in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten that cover a range of positive numbers."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def plot(
    title: str,
    lines: Sequence[Line],
    *,
    x_name: str = "seconds",
    y_name: str = "",
    log: bool = False,
    shaded_until: float = 0.0,
) -> str:
    """Draw lines; ``shaded_until`` marks the time before it as not counted."""
    values = [y for line in lines for _, y in line.points if y is not None and (y > 0 or not log)]
    times = [x for line in lines for x, _ in line.points]
    if not values:
        return f"<figure><figcaption>{html.escape(title)}: nothing measured</figcaption></figure>"
    y_ticks = log_ticks(min(values), max(values)) if log else nice_ticks(0.0, max(values))
    x_ticks = nice_ticks(min(0.0, *times), max(times))
    area = _Area(x_ticks[0], max(max(times), x_ticks[0] + 1e-9), y_ticks[0], y_ticks[-1], log)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(title)}">',
        f'<text class="title" x="{LEFT}" y="16">{html.escape(title)}</text>',
    ]
    if shaded_until > x_ticks[0]:
        width = area.x(min(shaded_until, area.x_high)) - LEFT
        height = HEIGHT - TOP - BOTTOM
        parts.append(f'<rect class="shade" x="{LEFT}" y="{TOP}" width="{width:.1f}" '
                     f'height="{height}"/>')  # fmt: skip
    parts += _axes(area, x_ticks, y_ticks, x_name, y_name)
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        for piece in _pieces(line, log):
            parts.append(_drawn(area, piece, colour))
    parts += _legend([line.name for line in lines])
    return "<figure>" + "".join(parts) + "</svg></figure>"


class _Area:
    def __init__(self, x_low: float, x_high: float, y_low: float, y_high: float, log: bool) -> None:
        self.x_low, self.x_high, self._log = x_low, x_high, log
        self._y_low, self._y_high = self._scale(y_low), self._scale(y_high)

    def _scale(self, value: float) -> float:
        return math.log10(value) if self._log else value

    def x(self, value: float) -> float:
        share = (value - self.x_low) / (self.x_high - self.x_low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        share = (self._scale(value) - self._y_low) / (self._y_high - self._y_low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def _pieces(line: Line, log: bool) -> list[list[tuple[float, float]]]:
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, y in line.points:
        if y is None or (log and y <= 0):
            pieces.append([])
        else:
            pieces[-1].append((x, y))
    return [piece for piece in pieces if piece]


def _drawn(area: _Area, piece: list[tuple[float, float]], colour: str) -> str:
    spots = [f"{area.x(x):.1f},{area.y(y):.1f}" for x, y in piece]
    if len(spots) == 1:
        x, _, y = spots[0].partition(",")
        return f'<circle cx="{x}" cy="{y}" r="2" fill="{colour}"/>'
    return f'<polyline points="{" ".join(spots)}" fill="none" stroke="{colour}"/>'


def _axes(
    area: _Area, x_ticks: list[float], y_ticks: list[float], x_name: str, y_name: str
) -> list[str]:
    parts = []
    for tick in y_ticks:
        y = area.y(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" '
                     f'y1="{y:.1f}" y2="{y:.1f}"/>')  # fmt: skip
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" '
                     f'text-anchor="end">{number(tick)}</text>')  # fmt: skip
    for tick in x_ticks:
        if tick > area.x_high * 1.0001:
            continue
        parts.append(f'<text class="tick" x="{area.x(tick):.1f}" y="{HEIGHT - BOTTOM + 16}" '
                     f'text-anchor="middle">{number(tick)}</text>')  # fmt: skip
    parts.append(f'<text class="tick" x="{WIDTH - RIGHT}" y="{HEIGHT - BOTTOM + 30}" '
                 f'text-anchor="end">{html.escape(x_name)}</text>')  # fmt: skip
    parts.append(f'<text class="tick" x="{WIDTH - RIGHT}" y="16" '
                 f'text-anchor="end">{html.escape(y_name)}</text>')  # fmt: skip
    return parts


def _legend(names: Sequence[str]) -> list[str]:
    parts, x = [], LEFT
    for position, name in enumerate(names):
        colour = COLOURS[position % len(COLOURS)]
        parts.append(f'<rect x="{x}" y="{HEIGHT - 17}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text class="tick" x="{x + 14}" y="{HEIGHT - 8}">'
                     f"{html.escape(name)}</text>")  # fmt: skip
        x += 30 + 7 * len(name)
    return parts


def number(value: float) -> str:
    """Write a number as short as it is useful."""
    if value >= 1e6:
        return f"{value / 1e6:g} M"
    return f"{value:g}" if value < 1e4 else f"{value / 1e3:g} k"
