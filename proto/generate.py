"""Compile the protos into ``fabric/api`` and check that what is there is right.

    python proto/generate.py               write fabric/api/v1/*_pb2*
    python proto/generate.py --check       fail when the files differ from a fresh compile
    python proto/generate.py --lint        buf lint
    python proto/generate.py --breaking    buf breaking against the main branch, offline

The paths below ``proto/`` repeat the Python package, so the generated imports are right
without rewriting. grpcio-tools is pinned: its version decides the oldest runtime that
accepts the code.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
API = Path("fabric/api/v1")
MAIN = "main"


def compile_into(target: Path) -> None:
    sources = sorted(str(path) for path in (PROTO / API).glob("*.proto"))
    well_known = str(files("grpc_tools") / "_proto")
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", f"-I{well_known}"]
    outputs = [f"--{kind}_out={target}" for kind in ("python", "pyi", "grpc_python")]
    subprocess.run([*command, *outputs, *sources], check=True)
    for stub in (target / API).glob("*_pb2_grpc.py"):
        if "Servicer" not in stub.read_text():  # a file without services gets an empty one
            stub.unlink()


def generated(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in (folder / API).glob("*_pb2*.py*")}


def write() -> int:
    """Compile aside and replace then, so that a compile that fails leaves everything as it is."""
    with tempfile.TemporaryDirectory() as folder:
        compile_into(Path(folder))
        fresh = generated(Path(folder))
    for name, text in fresh.items():
        new = ROOT / API / f"{name}.new"
        new.write_text(text)
        new.replace(ROOT / API / name)
    for name in generated(ROOT).keys() - fresh.keys():
        (ROOT / API / name).unlink()
    print(f"wrote {len(fresh)} files to {API}")
    return 0


def check() -> int:
    with tempfile.TemporaryDirectory() as folder:
        compile_into(Path(folder))
        fresh, kept = generated(Path(folder)), generated(ROOT)
    wrong = sorted(name for name in fresh | kept if fresh.get(name) != kept.get(name))
    for name in wrong:
        print(f"{API / name} differs from a fresh compile; run: python proto/generate.py")
    return 1 if wrong else 0


def program(name: str) -> str:
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if not found:
        sys.exit(f"{name} is missing: install the development dependencies")
    return found


def lint() -> int:
    return subprocess.run([program("buf"), "lint", str(PROTO)], check=False).returncode


def breaking() -> int:
    listing = subprocess.run(
        [
            program("git"),
            "-C",
            str(ROOT),
            "ls-tree",
            "-r",
            "--name-only",
            MAIN,
            "--",
            f"proto/{API}",
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if listing.returncode != 0 or ".proto" not in listing.stdout:
        print(f"branch {MAIN} has no protos to compare with")
        return 0
    git_dir = subprocess.run(
        [
            program("git"),
            "-C",
            str(ROOT),
            "rev-parse",
            "--path-format=absolute",
            "--git-common-dir",
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    against = f"{git_dir}#branch={MAIN},subdir=proto"
    command = [program("buf"), "breaking", str(PROTO), "--against", against]
    return subprocess.run(command, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    choice = parser.add_mutually_exclusive_group()
    for action in (check, lint, breaking):
        choice.add_argument(f"--{action.__name__}", action="store_const", dest="run", const=action)
    return (parser.parse_args().run or write)()


if __name__ == "__main__":
    sys.exit(main())
