"""A result as one HTML page that needs nothing else: tables and plots, no script."""

import html
import itertools
import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fabric.load.marks import FIGURES
from fabric.load.svg import Line, plot

MB = 1_048_576
_NUMBER = re.compile(r"[0-9][0-9,.e+-]*")
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 800px; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { border-bottom: 1px solid var(--line); padding: .2rem .8rem .2rem 0; text-align: left; }
td.n { text-align: right; } .bad { color: #c23030; font-weight: 600; } .good { color: #2b9a66; }
figure { margin: 1rem 0; } svg { width: 100%; height: auto; }
svg text { fill: currentColor; } svg .title { font-size: 13px; font-weight: 600; }
svg .tick { font-size: 11px; opacity: .8; } svg .grid { stroke: var(--line); }
svg .shade { fill: var(--soft); } svg polyline { stroke-width: 1.5; }
pre { overflow-x: auto; background: var(--soft); padding: .6rem; }
"""
_OMISSION = (
    "Latencies count from the moment a turn was meant to begin, so what waited behind a slow call "
    "is slow too (coordinated omission); the service time counts from its real begin. In a closed "
    "loop that moment is the end of the user's turn before and the think time. Shaded: warm-up, "
    "not counted."
)


def page(result: Mapping[str, Any]) -> str:
    """Render a result."""
    title = result["title"] or "Load run"
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(result["began_at"]))
    machine = result["machine"]
    body = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{when}; {result['sessions']} sessions for {result['elapsed_s']:g} s "
        f"({result['counted_s']:g} s counted); {html.escape(machine['cpu'] or 'unknown CPU')}, "
        f"{machine['cores']} cores, {html.escape(machine['system'])}, Python {machine['python']}, "
        f"load {machine['load_before']:g} before.</p>",
        _warnings(result),
        _marks(result["marks"]),
        f"<p>{_OMISSION}</p>",
        *_plots(result),
        "<h2>Figures</h2>",
        _table(
            ("figure", "", "what it is"),
            [(name, _shown(result["figures"].get(name)), FIGURES[name]) for name in FIGURES],
        ),
        "<h2>Calls</h2>",
        _summaries(
            {"turn": result["turns"], "turn, service": result["service"], **result["calls"]}
        ),
        _errors(result),
        _owners(result["owners"]),
        "<h2>Plan</h2>",
        f"<pre>{html.escape(json.dumps(result['plan'], indent=1))}</pre>",
    ]
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
        + "".join(body)
        + "</html>\n"
    )


def _warnings(result: Mapping[str, Any]) -> str:
    rows = [html.escape(text) for text in warnings_of(result)]
    return "".join(f'<p class="bad">{row}</p>' for row in rows)


def warnings_of(result: Mapping[str, Any]) -> list[str]:
    """Say what makes the figures less than they seem."""
    rows = list(result["failures"])
    if not result["figures"].get("turns"):
        rows.append("No turn was counted.")
    if result["interrupted"]:
        rows.append("The run was interrupted: its figures are of the time until then.")
    if (result["figures"].get("client_busy") or 0) > 0.8:
        rows.append("A client process used most of a core: it may be the bottleneck; --processes.")
    if result["machine"]["load_before"] > 0.5 * (result["machine"]["cores"] or 1):
        rows.append("The machine was busy before the run: latencies are worse than they need be.")
    return rows


def _marks(rows: Sequence[Mapping[str, Any]]) -> str:
    if not rows:
        return ""
    lines = [
        f"<tr><td>{html.escape(row['mark'])}</td><td class=n>{_shown(row['value'])}</td>"
        f'<td class="{"good" if row["passed"] else "bad"}">{"pass" if row["passed"] else "FAIL"}'
        "</td></tr>"
        for row in rows
    ]
    return "<h2>Pass marks</h2><table>" + "".join(lines) + "</table>"


def _plots(result: Mapping[str, Any]) -> Iterable[str]:
    series, warm = result["series"], float(result["plan"]["warmup_s"])

    def over(name: str, field: str) -> Line:
        return Line(name, [(row["at_s"], row[field]) for row in series])

    def rate(name: str, field: str, unit: float = 1.0) -> Line:
        points = [(row["at_s"], row[field] / row["length_s"] / unit) for row in series]
        return Line(name, points)

    latencies = [over("p50", "p50_ms"), over("p90", "p90_ms"), over("p99", "p99_ms"),
                 over("max", "max_ms"), over("service p99", "service_p99_ms")]  # fmt: skip
    yield plot("Latency of turns", latencies, y_name="ms", log=True, shaded_until=warm)
    through = [rate("turns", "count"), rate("errors", "errors")]
    yield plot("Throughput", through, y_name="per second", shaded_until=warm)
    queues = [over("in work", "in_work"), over("waiting", "waiting")]
    yield plot("Turns in work, and due but waiting", queues, shaded_until=warm)
    yield plot("Terminal output", [rate("output", "output_bytes", MB)], y_name="MB per second",
               shaded_until=warm)  # fmt: skip
    owners = sorted(result["owners"].values(), key=lambda row: row["p99_ms"])
    fairness = [
        Line(name, [(float(place), row[name]) for place, row in enumerate(owners, 1)])
        for name in ("p50_ms", "p99_ms", "max_ms")
    ]
    yield plot("Fairness: owners by their p99", fairness, x_name="owner", y_name="ms", log=True)
    samples = result["processes"]
    kinds = sorted({kind for sample in samples for kind in sample["kinds"]})
    for title, field, unit, name in (
        ("PSS of the fabric's processes", "pss", MB, "MB"),
        ("RSS of the fabric's processes", "rss", MB, "MB"),
        ("Descriptors of the fabric's processes", "descriptors", 1, ""),
    ):
        lines = [
            Line(kind, [(row["at_s"], _of(row, kind, field, unit)) for row in samples])
            for kind in kinds
        ]
        yield plot(title, lines, y_name=name, shaded_until=warm)
    yield plot("CPU of the fabric's processes", [_cpu(samples, kind) for kind in kinds],
               y_name="cores", shaded_until=warm)  # fmt: skip


def _of(sample: Mapping[str, Any], kind: str, field: str, unit: float) -> float | None:
    use = sample["kinds"].get(kind)
    return None if use is None else use[field] / unit


def _cpu(samples: Sequence[Mapping[str, Any]], kind: str) -> Line:
    points: list[tuple[float, float | None]] = []
    for before, after in itertools.pairwise(samples):
        first, second = (row["kinds"].get(kind, {}).get("cpu_s") for row in (before, after))
        seconds = after["at_s"] - before["at_s"]
        known = first is not None and second is not None and seconds > 0
        # Sessions that ended took their counts along; a fall says nothing of use.
        points.append((after["at_s"], max(0.0, (second - first) / seconds) if known else None))
    return Line(kind, points)


def _summaries(rows: Mapping[str, Mapping[str, Any]]) -> str:
    names = ("count", "p50_ms", "p90_ms", "p99_ms", "p999_ms", "max_ms", "mean_ms")
    return _table(
        ("call", *names),
        [(call, *(_shown(row[name]) for name in names)) for call, row in rows.items()],
    )


def _errors(result: Mapping[str, Any]) -> str:
    rows = [(key, str(count)) for key, count in result["errors"].items()]
    rows += [
        (f"{key} (before or after)", str(count)) for key, count in result["setup_errors"].items()
    ]
    return "<h2>Errors</h2>" + (_table(("error", "count"), rows) if rows else "<p>None.</p>")


def _owners(owners: Mapping[str, Mapping[str, Any]]) -> str:
    worst = sorted(owners.items(), key=lambda item: -(item[1]["p99_ms"] or 0))[:10]
    if not worst:
        return ""
    return "<h2>Slowest owners</h2>" + _summaries({f"owner {name}": row for name, row in worst})


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["<tr>" + "".join(f"<th>{html.escape(name)}</th>" for name in head) + "</tr>"]
    for row in rows:
        cells = "".join(
            f"<td{' class=n' if _NUMBER.fullmatch(cell) else ''}>{html.escape(cell)}</td>"
            for cell in row
        )
        lines.append(f"<tr>{cells}</tr>")
    return "<table>" + "".join(lines) + "</table>"


def _shown(value: float | None) -> str:
    return "not measured" if value is None else f"{value:,.6g}"
