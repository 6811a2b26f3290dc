import pytest

from tests.support.local_fabric import local_fabric


@pytest.fixture
async def fabric():
    async with local_fabric(node__warm_sessions="2") as fabric:
        yield fabric


@pytest.fixture
async def client(fabric):
    async with fabric.client() as client:
        yield client
