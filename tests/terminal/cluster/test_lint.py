"""The operator's files by the tools of their kind; no container engine and no systemd runs here."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

CLUSTER = ROOT / "cluster"
BIN = Path(sys.executable).parent


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=25, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_scripts_by_shellcheck():
    scripts = [str(path) for path in sorted((CLUSTER / "bin").iterdir())]
    assert len(scripts) >= 5
    run(str(BIN / "shellcheck"), "-x", "-P", str(CLUSTER / "bin"), *scripts)


def test_the_image_by_hadolint():
    file = CLUSTER / "image" / "Containerfile"
    run(str(BIN / "hadolint"), str(file))
    assert "USER 10001" in file.read_text()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
@pytest.mark.parametrize(
    "unit", sorted((CLUSTER / "systemd").glob("*.service")), ids=lambda p: p.stem
)
def test_the_units_by_systemd_itself(unit, tmp_path):
    """Programs are looked for, so the scripts are named where they are here."""
    text = unit.read_text().replace("/opt/pty-fabric/cluster/bin", str(CLUSTER / "bin"))
    copy = tmp_path / unit.name
    copy.write_text(text)
    assert run("systemd-analyze", "verify", "--man=no", str(copy)).strip() == ""
    copy.write_text(text.replace("KillMode=process", "KillMode=proces"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],
        capture_output=True,
        text=True,
        timeout=25,
    )
    assert "kill mode" in done.stderr


def test_ray_s_own_loader_accepts_the_on_premises_file():
    code = (
        "import sys, yaml\n"
        "from ray.autoscaler._private.util import prepare_config, validate_config\n"
        "given = yaml.safe_load(open(sys.argv[1]))\n"
        "made = prepare_config(given)\n"
        "validate_config(made)\n"
        "(kind,) = made['available_node_types'].values()\n"
        "workers = len(given['provider']['worker_ips'])\n"
        "assert kind['min_workers'] == made['max_workers'] == workers, kind\n"
        "assert made['worker_start_ray_commands'] == given['worker_start_ray_commands']\n"
    )
    run(sys.executable, "-c", code, str(CLUSTER / "onprem" / "cluster.yaml"))


def test_a_script_says_what_is_missing(tmp_path):
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PTY_FABRIC": sys.executable}
    for script, words in (
        ("start-head", "which address"),
        ("start-node", "where is the head"),
        ("start-gateway", "where is the head"),
        ("start-ray", "no "),
    ):
        done = subprocess.run(
            [CLUSTER / "bin" / script], capture_output=True, text=True, timeout=10, env=env
        )
        assert done.returncode == 2
        assert words in done.stderr
    done = subprocess.run(
        [CLUSTER / "bin" / "start-node", "10.0.0.1:6379"],
        capture_output=True, text=True, timeout=10, env=env,
    )  # fmt: skip
    assert "ray.token" in done.stderr
