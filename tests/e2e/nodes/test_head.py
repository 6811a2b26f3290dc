"""A head that dies and comes back with what it knew, from Redis, under sessions that live on."""

import os
import shutil
import signal
import time
from collections.abc import Iterator

import pytest

from fabric.core.errors import FabricError
from tests.e2e.nodes.conftest import GATEWAY_PORT, Machines
from tests.support.eventually import eventually
from tests.support.netns import Net, why_not

pytestmark = pytest.mark.timeout(400)
REDIS_PORT = 6380


@pytest.fixture(scope="module")
def shared_fabric() -> Iterator[Machines]:
    reason = why_not() or ("" if shutil.which("redis-server") else "redis-server is not installed")
    if reason:
        pytest.skip(reason)
    with Net(("h1", "h2")) as net:
        made = Machines(net, {"cluster.redis_address": f"127.0.0.1:{REDIS_PORT}"})
        net["h1"].service(
            "redis-server", "--port", str(REDIS_PORT), "--bind", "127.0.0.1", "--save", "",
            "--dir", str(net.state),
        )  # fmt: skip
        made.up_head()
        made.up("h2")
        yield made


async def answered(work):
    """What a call answers, None while it fails."""
    try:
        return await work()
    except FabricError:
        return None


async def test_sessions_outlive_the_death_of_the_head_s_control(shared_fabric):
    net = shared_fabric.net
    doors = [net[name].door(GATEWAY_PORT) for name in ("h2", "h1")]
    async with shared_fabric.client(*doors, lease_s=600.0) as client:
        far = await client.open(host="h2", name="far")
        near = await client.open(host="h1", name="near")
        before = {session.id: (await session.status()).pid for session in (far, near)}
        for session in (far, near):
            await session.send("X=kept")
        raylets = net["h2"].pids("raylet")
        (gcs,) = net["h1"].pids("gcs_server")
        os.kill(gcs, signal.SIGKILL)
        began = time.monotonic()
        # The other machine's session needs no head: it answers while there is none.
        assert "kept" in (await far.send("echo $X")).viewport
        went_on = time.monotonic() - began
        assert went_on < 5

        async def use(session):
            result = await answered(lambda: session.send("echo $X", timeout_s=10))
            return result is not None and "kept" in result.viewport

        await eventually(lambda: use(near), within=90, what="the head's own session is back")
        back = time.monotonic() - began
        for host in ("h1", "h2"):
            fresh = await eventually(
                lambda host=host: answered(lambda: client.open(host=host)),
                within=90,
                what=f"{host} takes sessions",
            )
            assert "ok" in (await fresh.send("echo ok")).viewport
        opens = time.monotonic() - began
        for session in (far, near):
            assert (await session.status()).pid == before[session.id]
        assert {item.name for item in await client.list()} >= {"far", "near"}
        assert net["h2"].pids("raylet") == raylets, "the other machine's Ray was started again"
    print(  # noqa: T201
        f"\nh2 answered {went_on:.2f} s after the GCS died, h1's session was back after"
        f" {back:.1f} s, both machines took sessions after {opens:.1f} s"
    )
