"""Rules of the house that no tool checks."""

import ast
import re
import subprocess

import pytest

from tests.support.paths import ROOT, sources

# `tests/support/eventually.py` is where waiting is done; measurements keep their own time.
MAY_SLEEP = ("tests/support/eventually.py", "tests/load/")
MACHINE_PATHS = re.compile(
    r"(?<![\w.])/(?:work|farm|home/[a-z]\w*|Users/[A-Za-z]\w*)/[\w.]"
    + r"|\.pyenv|/opt/(?:wheels|pypi)"
)
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def _naps(tree: ast.AST) -> list[int]:
    """Lines that call sleep with a time: `sleep(0)` only lets others run."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) == "sleep"
        and not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)
    ]


def test_tests_wait_for_events_and_never_sleep():
    naps = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sources("tests")
        if not str(path.relative_to(ROOT)).startswith(MAY_SLEEP)
        if "sleep" in (text := path.read_text())
        for line in _naps(ast.parse(text))
    ]
    assert not naps, "use tests.support.eventually instead"


def test_a_sleep_would_be_found():
    assert _naps(ast.parse("import time\ntime.sleep(1)\nsleep(0)\nawait_ = asyncio.sleep(x)")) == [
        2,
        4,
    ]


def _tracked_text() -> list[tuple[str, str]]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listing.returncode:
        pytest.skip("not a git checkout")
    names = [name for name in listing.stdout.split("\0") if name and "_pb2" not in name]
    return [
        (name, (ROOT / name).read_text(errors="replace"))
        for name in names
        if (ROOT / name).is_file() and name != "tests/unit/test_house.py"
    ]


def test_no_file_names_a_path_of_somebodys_machine():
    found = [
        f"{name}: {match.group()}"
        for name, text in _tracked_text()
        for match in MACHINE_PATHS.finditer(text)
    ]
    assert not found


def test_nothing_is_left_unfinished():
    found = [
        f"{name}: {match.group()}"
        for name, text in _tracked_text()
        if name.endswith((".py", ".proto", ".toml", ".yaml"))
        for match in UNFINISHED.finditer(text)
    ]
    assert not found


def test_makefile_targets_are_few_and_explained():
    text = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z%-]+):(?!=)(.*)$", text, re.MULTILINE)
    assert len(targets) <= 19
    assert all("##" in rest for _, rest in targets), "each target says what it does"
