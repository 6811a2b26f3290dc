"""Every case from a public bug report, through client, gateway, registry, node and worker."""

import shutil

import pytest

from tests.support.case_runner import CaseRun
from tests.support.case_surface import ClientSurface
from tests.support.cases import Case, load_cases
from tests.support.local_fabric import local_fabric

# Needs the service as processes of its own; tests/e2e runs it.
NEEDS_PROCESSES = {"harness.kill_service"}
VIEW = "view."
CASES = [
    case
    for case in load_cases()
    if not case.tools & NEEDS_PROCESSES and not any(tool.startswith(VIEW) for tool in case.tools)
]
# Shorter than the defaults, so that a case about silence does not take half a minute.
LIMITS = {"worker.readiness.idle_silence_s": "2", "worker.readiness.timeout_s": "12"}


@pytest.mark.timeout(90)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_case(case: Case, monkeypatch):
    missing = [name for name in case.requires if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    for name, value in case.service_env.get("set", {}).items():
        monkeypatch.setenv(name, value)
    for name in case.service_env.get("unset", []):
        monkeypatch.delenv(name, raising=False)
    async with local_fabric(**(LIMITS | case.settings)) as fabric, fabric.client() as client:
        for _ in range(case.repeat):
            faults = await CaseRun(case, ClientSurface(client)).run()
            assert not faults, f"{case.fault}\n" + "\n".join(faults)
