"""What an operator looks with, on a whole fabric: metrics, top, load, log lines."""

import json
import urllib.request

import pytest

from tests.support.eventually import eventually_sync


def test_load_top_and_metrics_agree(cli, tmp_path):
    out, page = tmp_path / "r.json", tmp_path / "r.html"
    done = cli(
        "load", "--owners", "2", "--turns", "40", "--duration", "60", "--warmup", "0",
        "--think", "0.05", "--mode", "danger-full-access", "--out", str(out), "--html", str(page),
        "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    figures = done.json["figures"]
    assert (figures["turns"], figures["errors"], figures["left_behind"]) == (40, 0, 0)
    kinds = {kind for sample in done.json["processes"] for kind in sample["kinds"]}
    assert {"gateway", "worker", "shim", "registry", "node", "ray", "supervisor"} <= kinds
    assert 20 < figures["session_pss_mb"] < 200
    assert page.read_text().count("<svg") >= 8  # CPU needs two samples

    status = cli("status", "--json", check=True).json
    with urllib.request.urlopen(f"http://{status['metrics']}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    sends = [
        float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("fabric_gateway_sends_total{")
    ]
    assert sum(sends) >= 40

    top = cli("top", "--once", "--json", "--interval", "0.2", check=True).json
    assert top["nodes"][0]["up"]
    assert top["gateways"][0]["registry"]


def test_a_line_of_the_gateways_log_says_whose_call_it_was(cli):
    session = cli("open", "shell", "--mode", "danger-full-access", "-q", check=True).out.strip()
    cli("send", session, "echo hi", check=True)
    log = cli.state_dir / "logs" / "gateway.log"

    def found():
        rows = [json.loads(line) for line in log.read_text().splitlines() if line[:1] == "{"]
        return [row for row in rows if row.get("method") == "Send" and row["session"] == session]

    (row,) = eventually_sync(found)
    assert row["owner"].startswith("own_")
    assert row["node"]
    assert row["request_id"]
    assert row["code"] == "OK"


@pytest.mark.parametrize("what", ["load", "top"])
def test_help_needs_nothing(cli, what):
    done = cli(what, "--help")
    assert done.code == 0
    assert "--" in done.out
