"""The worked harness of the guide, run as it is written there."""

import os
import subprocess
import sys

from tests.support.paths import ROOT


def test_the_python_harness_runs(cli, shared_fabric):
    gateway = shared_fabric("status", "--json", check=True).json["gateway"]
    token = (shared_fabric.state_dir / "gateway.token").read_text().strip()
    env = {key: value for key, value in os.environ.items() if not key.startswith("FABRIC_")}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "harness.py")],
        env=env | {"FABRIC_GATEWAY": gateway, "FABRIC_TOKEN": token},
        capture_output=True, text=True, timeout=90,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("the program wants input") == 3
    assert "42" in done.stdout
    assert "matched: pattern" in done.stdout
