"""Cases that kill the service: they need it as processes of its own."""

import contextlib
import json
import os
from pathlib import Path
from signal import Signals

import pytest

from fabric.client.client import FabricClient
from tests.support import leaks
from tests.support.case_runner import CaseRun, StepResult
from tests.support.case_surface import ClientSurface
from tests.support.cases import Case, load_cases
from tests.support.command import Command

CASES = [case for case in load_cases() if "harness.kill_service" in case.tools]


class KillableSurface(ClientSurface):
    """Kills whatever serves: supervisor, gateway, cluster, workers, but no shim."""

    def __init__(self, client: FabricClient, fabric: Command) -> None:
        super().__init__(client)
        self._fabric = fabric

    async def kill_service(self, signal: str) -> StepResult:
        record = json.loads((self._fabric.state_dir / "fabric.json").read_text())
        mark = json.loads((self._fabric.state_dir / "cluster.json").read_text())["mark"]
        for pid in (record["pid"], record["gateway_pid"], *marked(mark)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, Signals[signal])
        leaks.reap_orphans()
        return StepResult()


def marked(mark: str) -> list[int]:
    """Everything that this fabric's cluster started carries its mark."""
    wanted = f"FABRIC_CLUSTER_MARK={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_case(case: Case, fabric):
    flags = [word for key, value in case.settings.items() for word in ("--set", f"{key}={value}")]
    up = fabric("up", "--detach", "--json", *flags, check=True).json
    token = (fabric.state_dir / "gateway.token").read_text().strip()
    client = FabricClient.connect(
        up["gateway"], token=token, agent="case", mode="danger-full-access", keep=True
    )
    async with client:
        faults = await CaseRun(case, KillableSurface(client, fabric)).run()
    assert not faults, "\n".join(faults)
