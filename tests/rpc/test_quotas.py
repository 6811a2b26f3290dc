"""What was laid down for a principal binds its calls at a gateway."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from fabric.client import FabricClient
from fabric.core.errors import InputTooLargeError, LimitReachedError
from fabric.core.policy import parse
from fabric.core.settings import GatewaySettings
from fabric.gateway.bearer import token_hash
from fabric.gateway.limits import Limits
from fabric.gateway.server import Gateway
from tests.support.eventually import eventually
from tests.support.fake_fabric import HOST

ROW = "bound max_waits=3 max_send_bytes=10"


@pytest.fixture
async def gateway(fabric, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"bound {token_hash('b')}\nfree {token_hash('f')}\n")
    gateway = Gateway(
        GatewaySettings("127.0.0.1:0", token_file=str(tokens)),
        fabric,
        fabric,
        host=HOST,
        limits=Limits(policies=parse((ROW,))),
    )
    await gateway.start()
    yield gateway
    await gateway.stop(0.5)


async def test_waits_are_counted_over_all_owners_of_the_principal(gateway):
    async with AsyncExitStack() as stack:
        shells = []
        for token, agent in (("b", "1"), ("b", "2"), ("f", "1")):
            client = FabricClient.connect(gateway.address, token=token, agent=agent)
            shells.append(await (await stack.enter_async_context(client)).open())
        one, two, free = shells
        waits = [
            asyncio.create_task(shell.wait_for("never", timeout_s=60)) for shell in (one, one, two)
        ]
        await eventually(lambda: gateway.active_calls == 3)
        with pytest.raises(LimitReachedError, match="bound has 3 waiting calls"):
            await two.wait_for("never", timeout_s=60)
        assert (await free.wait_for("never", timeout_s=0.01)).matched == "timeout"
        waits[0].cancel()
        await eventually(lambda: gateway.active_calls == 2)
        assert (await two.wait_for("never", timeout_s=0.01)).matched == "timeout"
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)


async def test_input_of_one_send_is_bound(gateway, fabric):
    async with (
        FabricClient.connect(gateway.address, token="b") as bound,
        FabricClient.connect(gateway.address, token="f") as free,
    ):
        with pytest.raises(InputTooLargeError, match="at most 10"):
            await (await bound.open()).send("x" * 11)
        assert fabric.sends == []
        assert (await (await free.open()).send("echo " + "x" * 50)).viewport
