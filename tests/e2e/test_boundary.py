"""The boundary around sessions of a running service: its secrets, and its death."""

import json
import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.support import leaks
from tests.support.command import Command
from tests.support.confined import somewhere
from tests.support.eventually import eventually_sync
from tests.terminal.sandbox.world import PYTHON

CANARY = "canary-e2e-71"
SECRETS = {
    "AWS_SECRET_ACCESS_KEY": CANARY, "GITHUB_TOKEN": CANARY, "SOMETHING": CANARY,
    "DB_PASSWORD": CANARY, "GRPC_VERBOSITY": "ERROR", "LC_ALL": "C",
}  # fmt: skip
GRACE_S = 3.0


@pytest.fixture
def place() -> Iterator[Path]:
    with somewhere() as folder:
        yield folder


def ours(state_dir: Path) -> tuple[list[str], list[str]]:
    """Every file and every socket of the service."""
    temp_dir = json.loads((state_dir / "cluster.json").read_text())["temp_dir"]
    paths = [path for top in (state_dir, Path(temp_dir)) for path in top.rglob("*")]
    files = [str(path) for path in paths if path.is_file() and path.stat().st_size]
    return files, [str(path) for path in paths if path.is_socket()]


@pytest.mark.skipif(os.geteuid() != 0, reason="the account of sessions is another one here")
@pytest.mark.parametrize(
    ("policy", "modes"),
    [
        ("", ("read-only", "workspace-write")),
        ("* run_as=nobody", ("read-only", "workspace-write", "danger-full-access")),
    ],
    ids=["own", "nobody"],
)
def test_sessions_reach_nothing_of_the_service(state_dir, place, policy, modes):
    settings = {
        "FABRIC_WORKER_SANDBOX__WORKSPACE_ROOT": str(place / "ws"),
        "FABRIC_REGISTRY__POLICIES": policy,
    }
    fabric = Command(state_dir, **SECRETS, **settings)
    try:
        fabric("up", "-d", check=True)
        for mode in modes:
            agent = Command(state_dir, FABRIC_AGENT=f"a-{mode}")
            session = agent("open", "-q", "--mode", mode, check=True).out.strip()
            files, sockets = ours(state_dir)
            assert any(path.endswith("ray.token") for path in files)
            assert any("/w/slt_" in path for path in sockets)
            assert any("/s/slt_" in path for path in sockets)
            facts = place / "facts.json"
            facts.write_text(json.dumps({"files": files, "sockets": sockets, "canary": CANARY}))
            command = f'{PYTHON} -I -B {place}/look.py "$(cat {shlex.quote(str(facts))})"; id -un'
            out = agent("send", "-q", session, command, "--timeout", "60", check=True).out
            (row,) = [line[1:] for line in out.splitlines() if line.startswith("@")]
            assert json.loads(row) == [], mode
            assert ("nobody" in out.splitlines()) == bool(policy)
            agent("close", session, check=True)
    finally:
        fabric("down", check=True)


def of_sessions() -> list[str]:
    """What lives of shims and of what they started."""
    leaks.reap_orphans()
    marks = ("workers/shim/", "/bwrap ", "/bin/bash --no", "sleep 79")
    rows = [f"{item.pid} {_line(item.pid)}" for item in leaks.descendants()]
    return [row for row in rows if any(mark in row for mark in marks)]


def _line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@pytest.mark.parametrize("victims", ["raylet", "everything"])
def test_nothing_of_a_session_outlives_the_service_for_long(state_dir, victims):
    """The service is killed without a chance to clean up, and nobody starts it again."""
    fabric = Command(state_dir, FABRIC_WORKER_TEARDOWN__ORPHAN_GRACE_S=str(GRACE_S))
    try:
        up = fabric("up", "-d", "--json", check=True).json
        for mode in ("danger-full-access", "read-only"):
            agent = Command(state_dir, FABRIC_AGENT=f"a-{mode}")
            session = agent("open", "-q", "--mode", mode, check=True).out.strip()
            agent(
                "send", session, "setsid sleep 7911 & (trap '' TERM HUP; sleep 7912) &", check=True
            )
        assert sum(" sleep 79" in row for row in of_sessions()) == 4
        status = fabric("status", "--json").json
        cluster = json.loads((state_dir / "cluster.json").read_text())
        for pid in (up["pid"], status["gateway_pid"]):
            os.kill(pid, signal.SIGKILL)
        for process in psutil.process_iter():
            try:
                if process.environ().get("FABRIC_CLUSTER_MARK") != cluster["mark"]:
                    continue
                if victims == "everything" or process.name() == "raylet":
                    process.kill()
            except psutil.Error:
                continue
        eventually_sync(lambda: not of_sessions(), within=GRACE_S + 12, what="all gone")
        assert not [path for path in state_dir.rglob("s/*.s") if path.is_socket()]
    finally:
        fabric("down", check=True)
