"""A gateway on loopback before a fabric; `fabric` says which fabric."""

from collections.abc import AsyncIterator

import pytest
import uvloop

from fabric.client import FabricClient
from fabric.core.settings import GatewaySettings
from fabric.gateway.server import Gateway
from tests.support.fake_fabric import HOST, FakeFabric

# The first uvloop of a process opens a pipe for signals that lasts; the check for what a
# test leaves behind must not take it for the test's.
uvloop.new_event_loop().close()


@pytest.fixture
async def fabric() -> FakeFabric:
    return FakeFabric()


@pytest.fixture
def settings() -> GatewaySettings:
    return GatewaySettings(listen="127.0.0.1:0", drain_s=2.0)


@pytest.fixture
async def gateway(fabric: FakeFabric, settings: GatewaySettings) -> AsyncIterator[Gateway]:
    gateway = Gateway(settings, fabric, fabric, host=HOST)
    await gateway.start()
    yield gateway
    await gateway.stop(drain_s=0.5)


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[FabricClient]:
    async with FabricClient.connect(gateway.address, agent="me") as client:
        yield client
