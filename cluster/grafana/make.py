"""Write the dashboard anew: ``python cluster/grafana/make.py > cluster/grafana/fabric.json``."""

import json
import sys

RATE = "[$__rate_interval]"


def quantile(share: float, metric: str, by: str = "", where: str = "") -> str:
    """Ask for a percentile of a histogram."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{where}{RATE})))"


def rate(metric: str, by: str = "", where: str = "") -> str:
    """Ask for a rate."""
    whole = f"sum by ({by})" if by else "sum"
    return f"{whole} (rate({metric}{where}{RATE}))"


SEND = '{method="TerminalService.Send"}'
ROWS: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("Calls per second by how they ended", "reqps",
     [(rate("fabric_gateway_rpc_seconds_count", "code"), "{{code}}")]),
    ("Calls per second by method", "reqps",
     [(rate("fabric_gateway_rpc_seconds_count", "method"), "{{method}}")]),
    ("Sends: time to the verdict", "s",
     [(quantile(share, "fabric_gateway_rpc_seconds", where=SEND), f"p{int(100 * share)}")
      for share in (0.5, 0.9, 0.99)]),
    ("p99 by method", "s",
     [(quantile(0.99, "fabric_gateway_rpc_seconds", "method"), "{{method}}")]),
    ("Errors by reason", "reqps", [(rate("fabric_gateway_errors_total", "reason"), "{{reason}}")]),
    ("Sends by what the verdict rests on", "reqps",
     [(rate("fabric_gateway_sends_total", "wait_reason, evidence"),
       "{{wait_reason}} {{evidence}}")]),
    ("Bytes", "Bps",
     [(rate("fabric_gateway_request_bytes_total"), "in"),
      (rate("fabric_gateway_response_bytes_total"), "out")]),
    ("Calls and streams that run", "short",
     [("sum by (method) (fabric_gateway_calls_active)", "{{method}}")]),
    ("Waits for an owner's turn", "s",
     [(quantile(0.99, "fabric_gateway_turn_wait_seconds"), "p99"),
      (quantile(0.5, "fabric_gateway_turn_wait_seconds"), "p50")]),
    ("Calls in line", "short", [("sum (fabric_gateway_line_calls)", "calls")]),
    ("Owners", "short", [("max (fabric_registry_owners)", "owners")]),
    ("Sessions by state", "short", [("max by (state) (fabric_registry_sessions)", "{{state}}")]),
    ("Tasks by state", "short", [("max by (state) (fabric_registry_tasks)", "{{state}}")]),
    ("Sessions by node", "short",
     [("max by (host) (fabric_node_sessions)", "{{host}}"),
      ("max by (host) (fabric_node_sessions_max)", "{{host}} at most")]),
    ("Warm slots", "short", [("max by (host) (fabric_node_warm_slots)", "{{host}}")]),
    ("Nodes that answer", "short",
     [("sum (max by (host) (fabric_node_up))", "up"),
      ("sum (max by (host) (fabric_node_draining))", "draining")]),
    ("Memory left", "bytes", [("min by (host) (fabric_node_memory_free_bytes)", "{{host}}")]),
    ("Terminals and descriptors left", "short",
     [("min by (host) (fabric_node_ptys_free)", "{{host}} terminals"),
      ("min by (host) (fabric_node_descriptors_free)", "{{host}} descriptors")]),
    ("Gateways: CPU", "short",
     [(f"rate(fabric_gateway_cpu_seconds_total{RATE})", "{{instance}}")]),
    ("Gateways: memory", "bytes", [("fabric_gateway_resident_bytes", "{{instance}}")]),
    ("Gateways: descriptors", "short", [("fabric_gateway_descriptors", "{{instance}}")]),
    ("Gateways: registry reached, draining", "short",
     [("fabric_gateway_registry_up", "{{instance}} registry"),
      ("fabric_gateway_draining", "{{instance}} draining")]),
]  # fmt: skip


def dashboard() -> dict[str, object]:
    """Return the whole dashboard, two panels a row."""
    source = {"type": "prometheus", "uid": "${source}"}
    panels = [
        {
            "id": number + 1,
            "type": "timeseries",
            "title": title,
            "datasource": source,
            "gridPos": {"h": 8, "w": 12, "x": 12 * (number % 2), "y": 8 * (number // 2)},
            "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
            "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
            "targets": [
                {"refId": chr(65 + place), "expr": query, "legendFormat": legend,
                 "datasource": source}
                for place, (query, legend) in enumerate(queries)
            ],
        }
        for number, (title, unit, queries) in enumerate(ROWS)
    ]  # fmt: skip
    return {
        "uid": "pty-fabric",
        "title": "pty-fabric",
        "tags": ["pty-fabric"],
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "type": "datasource", "query": "prometheus", "current": {}}]
        },
        "panels": panels,
    }


if __name__ == "__main__":
    json.dump(dashboard(), sys.stdout, indent=1)
    sys.stdout.write("\n")
