"""Three machines, made of network namespaces, one fabric; see `tests/support/netns.py`."""

import hashlib
import secrets
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from fabric.client import FabricClient
from fabric.core.model import SandboxMode
from tests.support.netns import Host, Net, why_not

GATEWAY_PORT, RAY_PORT = 7443, 6379
WORD_S, LOST_S, POLL_S, CALL_S = 6.0, 10.0, 0.5, 3.0
# What a silent node's sessions may take to be given up: see fabric/actors/README.md.
GIVEN_UP_S = LOST_S + POLL_S + 2 * CALL_S + 1.0
NAMES = ("h1", "h2", "h3")


@dataclass
class Machines:
    """The fabric on its hosts; ``h1`` is the head."""

    net: Net
    extra: dict[str, str] = field(default_factory=dict)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def flags(self, host: Host) -> list[str]:
        rows = {
            "cluster.host": host.name,
            "gateway.listen": f"{host.ip}:{GATEWAY_PORT}",
            "gateway.token_file": self.net.folder / "principals",
            "gateway.insecure": "true",
            "node.warm_sessions": 1,
            "node.max_starting": 1,
            "registry.default_mode": "danger-full-access",
            "registry.word_s": WORD_S,
            "registry.lost_timeout_s": LOST_S,
            "registry.node_poll_interval_s": POLL_S,
            "registry.node_call_timeout_s": CALL_S,
            **(self.extra if host.name == "h1" else {}),
        }
        return [word for key, value in rows.items() for word in ("--set", f"{key}={value}")]

    def write_principals(self) -> None:
        digest = hashlib.sha256(self.token.encode()).hexdigest()
        principals = self.net.folder / "principals"
        principals.write_text(f"me sha256:{digest}\n")
        principals.chmod(0o600)

    def up_head(self) -> None:
        self.write_principals()
        head = self.net["h1"]
        head.script("start-head", head.ip, str(RAY_PORT), "--detach", *self.flags(head))

    def up(self, name: str) -> None:
        """Let a machine join the head's."""
        host, head = self.net[name], self.net["h1"]
        host.script(
            "start-node", f"{head.name}:{RAY_PORT}", "--detach", *self.flags(host),
            RAY_TOKEN_FILE=str(head.state / "ray.token"),
        )  # fmt: skip

    def client(self, *doors: str, **options) -> FabricClient:
        options.setdefault("mode", SandboxMode.DANGER_FULL_ACCESS)
        return FabricClient.connect(doors, token=self.token, **options)


@pytest.fixture(scope="package")
def shared_fabric() -> Iterator[Machines]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Net(NAMES) as net:
        made = Machines(net)
        made.up_head()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(made.up, ("h2", "h3")))
        yield made


@pytest.fixture(scope="package")
def machines(shared_fabric: Machines) -> Machines:
    """Its pools come and go by themselves, so the leak check knows it by its common name."""
    return shared_fabric


@pytest.fixture(scope="package")
def doors(machines: Machines) -> dict[str, str]:
    """The gateways' addresses as the network sees them."""
    return {name: machines.net[name].door(GATEWAY_PORT) for name in NAMES}


@pytest.fixture
async def client(machines: Machines, doors: dict[str, str]) -> AsyncIterator[FabricClient]:
    async with machines.client(doors["h1"], lease_s=600.0) as client:
        yield client
