"""Cases that kill the service: they need it as processes of its own."""

import os
import signal

import pytest

from fabric.client.client import FabricClient
from tests.support import leaks
from tests.support.case_runner import CaseRun, StepResult
from tests.support.case_surface import ClientSurface
from tests.support.cases import Case, load_cases

CASES = [case for case in load_cases() if "harness.kill_service" in case.tools]


class KillableSurface(ClientSurface):
    """Kills whatever serves: supervisor, gateway, cluster, workers, but no shim."""

    async def kill_service(self, signal: str) -> StepResult:
        kill_service(signal)
        return StepResult()


def kill_service(name: str) -> None:
    below = leaks.descendants()
    shims = {item.pid for item in below if "workers/shim" in item.name}
    kept = set(shims)
    for item in below:  # parents come first
        if item.parent in kept:
            kept.add(item.pid)
    for item in below:
        if item.pid not in kept:
            os.kill(item.pid, signal.Signals[name])
    leaks.reap_orphans()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_case(case: Case, fabric):
    flags = [word for key, value in case.settings.items() for word in ("--set", f"{key}={value}")]
    up = fabric("up", "--detach", "--json", *flags, check=True).json
    token = (fabric.state_dir / "gateway.token").read_text().strip()
    client = FabricClient.connect(
        up["gateway"], token=token, agent="case", mode="danger-full-access", keep=True
    )
    async with client:
        faults = await CaseRun(case, KillableSurface(client)).run()
    assert not faults, "\n".join(faults)
