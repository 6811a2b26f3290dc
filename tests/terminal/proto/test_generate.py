"""The compiler of the protos: what is there stays until there is something to replace it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

API = "fabric/api/v1"
ONE = "event_service"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("proto", API):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    return tmp_path


def generate(folder: Path) -> int:
    command = [sys.executable, str(folder / "proto" / "generate.py")]
    return subprocess.run(command, capture_output=True, check=False).returncode


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / API).iterdir()}


def test_a_compile_that_fails_leaves_the_generated_files(copy):
    before = files(copy)
    broken = copy / "proto" / API / f"{ONE}.proto"
    text = broken.read_text()
    broken.write_text(text + "message {")
    assert generate(copy) != 0
    assert files(copy) == before
    broken.write_text(text)
    assert generate(copy) == 0
    assert files(copy) == before


def test_the_files_of_a_proto_that_is_gone_go_too(copy):
    (copy / "proto" / API / f"{ONE}.proto").unlink()
    gone = {name for name in files(copy) if name.startswith(ONE)}
    kept = files(copy).keys() - gone
    assert gone
    assert generate(copy) == 0
    assert files(copy).keys() == kept
