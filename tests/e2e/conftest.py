"""Fabrics started by `fabric up`, as a user would."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command import Command


@pytest.fixture
def state_dir() -> Iterator[Path]:
    """A short path: unix sockets live below it."""
    folder = Path(tempfile.mkdtemp(prefix="pfe", dir="/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def fabric(state_dir: Path) -> Iterator[Command]:
    """The command, before anything is up; whatever the test left up is taken down."""
    command = Command(state_dir)
    yield command
    command("down", check=True)


@pytest.fixture(scope="module")
def shared_fabric() -> Iterator[Command]:
    """One fabric for the tests of a module."""
    folder = Path(tempfile.mkdtemp(prefix="pfe", dir="/tmp"))
    command = Command(folder)
    try:
        command("up", "--detach", check=True)
        yield command
        command("down", check=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cli(shared_fabric: Command, request: pytest.FixtureRequest) -> Iterator[Command]:
    """The shared fabric as an agent of this test's own, in full access, closed at the end."""
    agent = f"t-{abs(hash(request.node.nodeid)):x}"
    command = Command(shared_fabric.state_dir, FABRIC_AGENT=agent)
    yield command
    command("close", "--all", check=True)
