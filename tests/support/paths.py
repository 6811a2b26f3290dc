"""Where things are in this checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
PACKAGES = ("fabric", "workers")


def sources(*folders: str) -> list[Path]:
    """The Python files of these folders that people write (generated code left out)."""
    return sorted(
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
        if "_pb2" not in path.name and "__pycache__" not in path.parts
    )
