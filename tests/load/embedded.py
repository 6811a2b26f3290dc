"""A fabric of its own for measurements: started and ended by the command a user has."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Embedded:
    """Where it listens, and its folder."""

    address: str
    token: str
    state_dir: str


def command(state_dir: str, *arguments: str, **environ: str) -> str:
    """Run one ``fabric`` command on a state folder; returns what it printed."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("FABRIC_")}
    done = subprocess.run(
        [sys.executable, "-m", "fabric.cli", *arguments, "--json"],
        env=env | {"FABRIC_STATE_DIR": state_dir} | environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


@contextmanager
def embedded(**environ: str) -> Iterator[Embedded]:
    """Start a fabric with settings from ``environ`` (FABRIC_...), end it afterwards."""
    with tempfile.TemporaryDirectory(prefix="fabric-bench-") as state_dir:
        try:
            record = json.loads(command(state_dir, "up", "--detach", **environ))
            token = Path(state_dir, "gateway.token").read_text(encoding="utf-8").strip()
            yield Embedded(record["gateway"], token, state_dir)
        finally:
            command(state_dir, "down")
