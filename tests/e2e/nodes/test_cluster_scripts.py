"""The operator's scripts where Ray is run by others: `ray start`, then a gateway beside it.

By its name it runs before the package's three machines are up, which come and go by themselves.
"""

import pytest

from tests.e2e.nodes.conftest import GATEWAY_PORT, RAY_PORT, Machines
from tests.support.netns import Net, why_not

pytestmark = pytest.mark.timeout(300)


async def test_ray_by_its_own_command_and_a_gateway_by_ours():
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Net(("h1",)) as net:
        made, host = Machines(net), net["h1"]
        made.write_principals()
        host.script(
            "start-ray", "head", "--node-ip-address", host.ip, "--temp-dir", str(net.state / "r"),
            PTY_HOST="h1", PTY_SESSIONS="4",
        )  # fmt: skip
        host.script("start-gateway", f"{host.ip}:{RAY_PORT}", "--detach", *made.flags(host))
        async with made.client(host.door(GATEWAY_PORT)) as client:
            session = await client.open()
            assert "h1" in (await session.send("hostname")).viewport.split()
        done = host.fabric("doctor", "--set", f"cluster.address={host.ip}:{RAY_PORT}", check=False)
        assert "versions of h1" in done.stdout, done.stdout
