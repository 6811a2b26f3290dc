"""A place for confined sessions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.confined import somewhere


@pytest.fixture
def place() -> Iterator[Path]:
    with somewhere() as folder:
        yield folder
