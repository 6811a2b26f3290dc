"""The probe on this very machine, with what it tries made to fail in turn."""

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from fabric.core.settings import SandboxSettings
from tests.support.eventually import scaled
from workers.sandbox import bubblewrap, landlock, probe


@pytest.fixture(autouse=True)
def _fresh():
    probe._verdict.cache_clear()
    yield
    probe._verdict.cache_clear()


def program(folder: Path, text: str) -> str:
    path = folder / "bwrap"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return str(path)


def probed(timeout_s: float = 5.0) -> probe.NodeConfinement:
    return probe.probe_now(SandboxSettings(probe_timeout_s=scaled(timeout_s)), "here")


def test_what_is_found_is_used_and_kept(monkeypatch):
    if not bubblewrap.binaries():
        pytest.skip("no bubblewrap here")
    first = probed()
    assert first.host == "here"
    if first.bubblewrap:
        assert first.kinds[0] == "bubblewrap"
    monkeypatch.setattr(bubblewrap, "binaries", tuple)
    assert probed() is first


async def test_the_probe_does_not_block_the_loop():
    verdict = await probe.probe(SandboxSettings(), "here")
    assert verdict is await probe.probe(SandboxSettings(), "here")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("exit 1", "trial ended 1"),
        ("echo 'no user namespaces' >&2; exit 1", "no user namespaces"),
        ("exec sleep 60", "TimeoutExpired"),
        ('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "trial ended"),
    ],
)
def test_a_program_that_does_not_confine_is_not_used(text, why, tmp_path, monkeypatch):
    monkeypatch.setattr(bubblewrap, "binaries", lambda: (program(tmp_path, text),))
    verdict = probed(timeout_s=1.0)
    assert verdict.bubblewrap is None
    assert why in verdict.failure
    assert "bubblewrap" not in verdict.kinds


def test_without_anything_the_node_says_why(monkeypatch):
    monkeypatch.setattr(bubblewrap, "binaries", tuple)
    monkeypatch.setattr(landlock, "kernel_abi", lambda: 0)
    verdict = probed()
    assert set(verdict.kinds) <= {"run-as"}
    assert verdict.failure == "no bubblewrap program"
    assert verdict.summary == "none: no bubblewrap program"


def test_nothing_is_left_behind():
    before = set(Path("/var/tmp").glob("fabric-probe-*"))
    probed()
    assert set(Path("/var/tmp").glob("fabric-probe-*")) <= before


def test_the_overhead_of_bubblewrap_is_a_few_milliseconds(tmp_path):
    """Not a figure of merit, a guard: a flag that costs tens of milliseconds is noticed."""
    node = probed()
    if not node.bubblewrap:
        pytest.skip("no bubblewrap here")
    from tests.terminal.sandbox.world import Way, plan_for

    launch = plan_for(Way("bubblewrap", probe.SandboxMode.WORKSPACE_WRITE), "/usr", ("/bin/true",))
    argv = [word for word in launch.argv if word != "--bind-fd"]
    at = argv.index("200")
    del argv[at : at + 2]

    def best(command: list[str]) -> float:
        times = []
        for _ in range(10):
            began = time.perf_counter()
            subprocess.run(command, check=True, cwd="/usr", env={"PATH": os.defpath})
            times.append(time.perf_counter() - began)
        return min(times)

    assert best(argv) - best(["/bin/true"]) < scaled(0.02)
