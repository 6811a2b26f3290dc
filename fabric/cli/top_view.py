"""What ``fabric top`` shows: from two scrapes of each gateway to plain data, and to lines."""

from collections.abc import Mapping
from typing import Any

from fabric.cli.scraped import Scrape, grown, quantile, rate

SEND = "TerminalService.Send"
_RPC = "fabric_gateway_rpc_seconds"
Pair = tuple[Scrape, Scrape]


def state_of(pairs: Mapping[str, Pair | None]) -> dict[str, Any]:
    """Boil scrapes down; a gateway without any did not answer."""
    seen = {address: pair for address, pair in pairs.items() if pair is not None}
    latest = [pair[1] for pair in seen.values()]
    # Owners, sessions and nodes are the fabric's: whoever knows them says the same.
    knowing = [scrape for scrape in latest if scrape.total("fabric_gateway_registry_up")]
    fabric = knowing[0] if knowing else Scrape()
    return {
        "gateways": [_gateway(address, pair) for address, pair in pairs.items()],
        "owners": fabric.total("fabric_registry_owners"),
        "sessions": _states(fabric, "fabric_registry_sessions"),
        "tasks": _states(fabric, "fabric_registry_tasks"),
        "nodes": _nodes(fabric),
        "rates": _rates(seen),
        "send": _latencies(seen, SEND),
        "methods": _methods(seen),
        "errors": _errors(seen),
    }


def _states(scrape: Scrape, name: str) -> dict[str, int]:
    return {labels["state"]: int(value) for labels, value in scrape.of(name) if value}


def _gateway(address: str, pair: Pair | None) -> dict[str, Any]:
    if pair is None:
        return {"address": address, "up": False}
    before, after = pair
    return {
        "address": address,
        "up": True,
        "registry": bool(after.total("fabric_gateway_registry_up")),
        "draining": bool(after.total("fabric_gateway_draining")),
        "cpu": round(rate(before, after, "fabric_gateway_cpu_seconds_total"), 3),
        "memory_bytes": after.total("fabric_gateway_resident_bytes"),
        "descriptors": after.total("fabric_gateway_descriptors"),
    }


def _nodes(scrape: Scrape) -> list[dict[str, Any]]:
    rows = []
    for labels, up in sorted(scrape.of("fabric_node_up"), key=lambda item: item[0]["host"]):
        host = labels["host"]
        row: dict[str, Any] = {"host": host, "up": bool(up)}
        for key, name in (
            ("draining", "draining"), ("sessions", "sessions"), ("sessions_max", "sessions_max"),
            ("warm", "warm_slots"), ("ptys_free", "ptys_free"),
            ("memory_free_bytes", "memory_free_bytes"), ("descriptors_free", "descriptors_free"),
        ):  # fmt: skip
            value = scrape.total(f"fabric_node_{name}", host=host)
            row[key] = None if value is None else int(value)
        rows.append(row)
    return rows


def _rates(seen: Mapping[str, Pair]) -> dict[str, float]:
    def over(name: str) -> float:
        return round(sum(rate(*pair, name) for pair in seen.values()), 2)

    def now(name: str) -> float:
        return sum(pair[1].total(name) or 0.0 for pair in seen.values())

    return {
        "calls": over(f"{_RPC}_count"),
        "sends": over("fabric_gateway_sends_total"),
        "errors": over("fabric_gateway_errors_total"),
        "bytes_in": over("fabric_gateway_request_bytes_total"),
        "bytes_out": over("fabric_gateway_response_bytes_total"),
        "in_work": now("fabric_gateway_calls_active"),
        "in_line": now("fabric_gateway_line_calls"),
    }


def _latencies(seen: Mapping[str, Pair], method: str) -> dict[str, float | None]:
    """Take the worst gateway's percentile: together they cannot be better than said."""
    row: dict[str, float | None] = {}
    for name, share in (("p50_ms", 0.5), ("p90_ms", 0.9), ("p99_ms", 0.99)):
        found = [quantile(*pair, _RPC, share, method=method) for pair in seen.values()]
        known = [value for value in found if value is not None]
        row[name] = round(max(known) * 1e3, 2) if known else None
    return row


def _methods(seen: Mapping[str, Pair]) -> list[dict[str, Any]]:
    names = {
        dict(labels)["method"]
        for pair in seen.values()
        for labels, value in grown(*pair, f"{_RPC}_count").items()
        if value
    }
    active = {
        labels["method"]
        for _, after in seen.values()
        for labels, _ in after.of("fabric_gateway_calls_active")
    }
    rows = []
    for name in sorted(names | active):
        rows.append({
            "method": name,
            "rate": round(sum(rate(*pair, f"{_RPC}_count", method=name)
                              for pair in seen.values()), 2),
            "active": int(sum(pair[1].total("fabric_gateway_calls_active", method=name) or 0
                              for pair in seen.values())),
            **_latencies(seen, name),
        })  # fmt: skip
    return sorted(rows, key=lambda row: (-row["rate"], row["method"]))


def _errors(seen: Mapping[str, Pair]) -> dict[str, float]:
    found: dict[str, float] = {}
    for before, after in seen.values():
        for labels, value in grown(before, after, "fabric_gateway_errors_total").items():
            if value:
                reason = dict(labels)["reason"]
                found[reason] = found.get(reason, 0.0) + value
    return found


def lines_of(state: Mapping[str, Any], seconds: float) -> list[str]:
    """Write a state as lines of text, the most important first."""
    rates, send = state["rates"], state["send"]
    sessions, tasks = state["sessions"], state["tasks"]
    lines = [
        f"pty-fabric   owners {_int(state['owners'])}   sessions {sum(sessions.values())}"
        f"{_detail(sessions)}   tasks {sum(tasks.values())}{_detail(tasks)}",
        f"calls {rates['calls']:.1f}/s   sends {rates['sends']:.1f}/s   "
        f"errors {rates['errors']:.1f}/s   in work {rates['in_work']:.0f}   "
        f"in line {rates['in_line']:.0f}   in {_size(rates['bytes_in'])}/s   "
        f"out {_size(rates['bytes_out'])}/s",
        f"send   p50 {_ms(send['p50_ms'])}   p90 {_ms(send['p90_ms'])}   "
        f"p99 {_ms(send['p99_ms'])}   (of the last {seconds:g} s)",
        "",
        f"{'NODE':<24}{'STATE':<10}{'SESSIONS':>12}{'WARM':>6}{'PTYS':>8}{'MEMORY':>10}{'FDS':>9}",
    ]
    for node in state["nodes"]:
        word = "down" if not node["up"] else ("draining" if node["draining"] else "up")
        held = f"{_int(node['sessions'])}/{_int(node['sessions_max'])}"
        lines.append(
            f"{node['host'][:23]:<24}{word:<10}{held:>12}{_int(node['warm']):>6}"
            f"{_int(node['ptys_free']):>8}{_size(node['memory_free_bytes']):>10}"
            f"{_int(node['descriptors_free']):>9}"
        )
    lines += ["", f"{'GATEWAY':<24}{'STATE':<10}{'CPU':>12}{'MEMORY':>10}{'FDS':>9}"]
    for gateway in state["gateways"]:
        if not gateway["up"]:
            lines.append(f"{gateway['address'][:23]:<24}does not answer")
            continue
        word = "draining" if gateway["draining"] else "up"
        word = word if gateway["registry"] else "registry?"
        lines.append(
            f"{gateway['address'][:23]:<24}{word:<10}{gateway['cpu']:>11.0%} "
            f"{_size(gateway['memory_bytes']):>9}{_int(gateway['descriptors']):>9}"
        )
    lines += ["", f"{'METHOD':<40}{'/s':>9}{'ACTIVE':>8}{'p50':>11}{'p99':>11}"]
    for row in state["methods"]:
        lines.append(
            f"{row['method'][:39]:<40}{row['rate']:>9.1f}{row['active']:>8}"
            f"{_ms(row['p50_ms']):>11}{_ms(row['p99_ms']):>11}"
        )
    if state["errors"]:
        lines += ["", "errors: " + "  ".join(
            f"{reason} {count:.0f}" for reason, count in sorted(state["errors"].items())
        )]  # fmt: skip
    return lines


def _detail(states: Mapping[str, int]) -> str:
    return f" ({', '.join(f'{name} {count}' for name, count in states.items())})" if states else ""


def _int(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms"


def _size(value: float | None) -> str:
    if value is None:
        return "-"
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1024 or unit == "GB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
