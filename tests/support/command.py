"""The command `fabric` as a user runs it: a process, its two outputs, its exit code."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.eventually import scaled
from tests.support.paths import ROOT

LIMIT_S = 120.0


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        return json.loads(self.err.splitlines()[-1])["error"]


class Command:
    """`fabric` with a state folder of its own and nothing else of ours in the environment."""

    def __init__(self, state_dir: Path, **environ: str) -> None:
        self.state_dir = state_dir
        kept = {key: value for key, value in os.environ.items() if not key.startswith("FABRIC_")}
        self.environ = kept | {"FABRIC_STATE_DIR": str(state_dir)} | environ

    def argv(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "fabric.cli", *arguments]

    def start(self, *arguments: str, **options: Any) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.argv(*arguments),
            cwd=ROOT,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def __call__(self, *arguments: str, stdin: str = "", check: bool = False) -> Done:
        done = subprocess.run(
            self.argv(*arguments),
            cwd=ROOT,
            env=self.environ,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=scaled(LIMIT_S),
            check=False,
        )
        result = Done(done.returncode, done.stdout, done.stderr)
        if check:
            assert result.code == 0, f"fabric {' '.join(arguments)}: {result}"
        return result
