"""Bearer tokens, certificates and the doors they open."""

import asyncio
import ssl
import time
import warnings
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fabric.cli.authority import dev_ca
from fabric.client import FabricClient, Tls
from fabric.client.peer import PeerSessions, peer_tls
from fabric.core.errors import (
    GatewayUnavailableError,
    InvalidRequestError,
    PermissionDeniedError,
    SessionNotFoundError,
    UnauthenticatedError,
)
from fabric.core.ids import Principal, new_owner_id, new_session_id
from fabric.core.model import Caller, SandboxMode
from fabric.core.settings import GatewaySettings, SettingsError
from fabric.gateway.bearer import new_signing_key, sign_token, token_hash
from fabric.gateway.server import Gateway
from tests.support.certificates import Authority
from tests.support.fake_fabric import HOST

LISTEN = "127.0.0.1:0"


@asynccontextmanager
async def _gateway(fabric, **settings):
    gateway = Gateway(GatewaySettings(LISTEN, **settings), fabric, fabric, host=HOST)
    await gateway.start()
    try:
        yield gateway.address
    finally:
        await gateway.stop(0.2)


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    path = tmp_path / "tokens"
    path.write_text(
        f"# who  what  how far\nalice {token_hash('alice-token')}\nbob bob-token read-only\n"
        "build-7 - workspace-write\n"
    )
    return str(path)


async def test_a_listed_token_names_its_principal(fabric, token_file):
    async with _gateway(fabric, token_file=token_file) as address:
        async with FabricClient.connect(address, token="alice-token") as client:
            assert client.server.principal == client.owner.principal == "alice"
            assert "hi" in (await (await client.open()).send("echo hi")).viewport
        for token in (None, "wrong", "alice", token_hash("alice-token")):
            with pytest.raises(UnauthenticatedError):
                async with FabricClient.connect(address, token=token):
                    pass


async def test_a_principal_stays_within_its_mode(fabric, token_file):
    async with _gateway(fabric, token_file=token_file) as address:
        with pytest.raises(PermissionDeniedError, match="at most sandbox mode read-only"):
            async with FabricClient.connect(address, token="bob-token", mode="workspace-write"):
                pass
        async with FabricClient.connect(address, token="bob-token") as client:
            assert client.owner.mode is SandboxMode.READ_ONLY
            assert client.server.max_mode is SandboxMode.READ_ONLY
            with pytest.raises(PermissionDeniedError):
                await client.set_mode("danger-full-access")


async def test_an_owner_token_counts_only_with_its_principal(fabric, token_file):
    async with (
        _gateway(fabric, token_file=token_file) as address,
        FabricClient.connect(address, token="alice-token") as alice,
    ):
        with pytest.raises(PermissionDeniedError, match="another principal"):
            async with FabricClient.connect(
                address, token="bob-token", owner_token=alice.owner_token
            ):
                pass


async def test_a_token_taken_off_the_list_stops_counting(fabric, token_file, monkeypatch):
    monkeypatch.setattr("fabric.gateway.bearer.LOOK_EVERY_S", 0.0)
    async with (
        _gateway(fabric, token_file=token_file) as address,
        FabricClient.connect(address, token="alice-token", keep=True) as client,
    ):
        await client.list()
        _write(token_file, "not a line of three words, is it\n")
        await client.list()  # an unreadable list changes nothing
        _write(token_file, "bob bob-token\n")
        with pytest.raises(UnauthenticatedError):
            await client.list()


async def test_signed_tokens_rotate_expire_and_are_revoked(fabric, tmp_path, monkeypatch):
    monkeypatch.setattr("fabric.gateway.bearer.LOOK_EVERY_S", 0.0)
    keys, revoked = tmp_path / "keys", tmp_path / "revoked"
    first, second = new_signing_key(), new_signing_key()
    keys.write_text(first + "\n")
    revoked.write_text("")
    now = time.time()
    old, _ = sign_token(keys, Principal("ci"), SandboxMode.WORKSPACE_WRITE, 60, now)
    keys.write_text(f"{second}\n{first}\n")
    new, new_id = sign_token(keys, Principal("ci"), None, 60, now)
    expired, _ = sign_token(keys, Principal("ci"), None, -1, now)
    async with _gateway(fabric, signing_key_file=str(keys), revoked_file=str(revoked)) as address:

        async def try_token(token: str) -> str:
            async with FabricClient.connect(address, token=token) as client:
                return client.server.max_mode

        assert await try_token(old) == "workspace-write"
        assert await try_token(new) == "danger-full-access"
        with pytest.raises(UnauthenticatedError, match="expired"):
            await try_token(expired)
        with pytest.raises(UnauthenticatedError, match="not valid"):
            await try_token(new[:-4] + "AAAA")
        revoked.write_text(new_id + "\n")
        with pytest.raises(UnauthenticatedError, match="revoked"):
            await try_token(new)
        assert await try_token(old)
        keys.write_text(second + "\n")
        with pytest.raises(UnauthenticatedError, match="unknown key"):
            await try_token(old)
        revoked.write_text("principal:ci\n")
        fresh, _ = sign_token(keys, Principal("ci"), None, 60, now)
        with pytest.raises(UnauthenticatedError, match="revoked"):
            await try_token(fresh)


async def test_tls_with_a_token(fabric, token_file, tmp_path):
    authority = Authority(tmp_path)
    cert, key = authority.issue("gateway")
    files = {"tls_cert_file": cert, "tls_key_file": key}
    async with _gateway(fabric, token_file=token_file, **files) as address:
        tls = Tls(ca_file=str(authority.ca))
        async with FabricClient.connect(address, token="alice-token", tls=tls) as client:
            assert client.owner.principal == "alice"
        with pytest.raises(GatewayUnavailableError):
            async with FabricClient.connect(address, token="alice-token"):
                pass
        stranger = Tls(ca_file=str(Authority(tmp_path, "other CA").ca))
        with pytest.raises(GatewayUnavailableError):
            async with FabricClient.connect(address, token="alice-token", tls=stranger):
                pass
        assert await _refuses_tls_1_1(address)


async def _refuses_tls_1_1(address: str) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    host, _, port = address.rpartition(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    except (ssl.SSLError, ConnectionError):
        return True
    writer.close()
    return False


async def test_a_client_certificate_names_its_principal(fabric, token_file, tmp_path):
    authority = Authority(tmp_path)
    cert, key = authority.issue("gateway")
    own_cert, own_key = authority.issue("build-7")
    settings = {
        "token_file": token_file,
        "tls_cert_file": cert,
        "tls_key_file": key,
        "tls_client_ca_file": str(authority.ca),
    }
    async with _gateway(fabric, **settings) as address:
        tls = Tls(str(authority.ca), own_cert, own_key)
        async with FabricClient.connect(address, tls=tls) as client:
            assert client.owner.principal == "build-7"
            assert client.server.max_mode is SandboxMode.WORKSPACE_WRITE
        async with FabricClient.connect(address, tls=tls, token="alice-token") as client:
            assert client.owner.principal == "alice"
        with pytest.raises(GatewayUnavailableError):
            async with FabricClient.connect(address, tls=Tls(str(authority.ca))):
                pass


async def test_a_door_beyond_loopback_needs_credentials_and_tls(fabric, token_file):
    for listen in ("0.0.0.0:0", "[::]:0", "10.1.2.3:0", "example.org:0"):
        with pytest.raises(SettingsError, match=r"credentials .* and TLS"):
            await Gateway(GatewaySettings(listen), fabric, fabric, host=HOST).start()
    settings = GatewaySettings("0.0.0.0:0", token_file=token_file)
    with pytest.raises(SettingsError, match="without TLS"):
        await Gateway(settings, fabric, fabric, host=HOST).start()
    insecure = GatewaySettings("0.0.0.0:0", insecure=True)
    gateway = Gateway(insecure, fabric, fabric, host=HOST)
    await gateway.start()
    await gateway.stop()


def test_a_token_is_not_sent_in_clear_to_another_machine():
    with pytest.raises(InvalidRequestError, match="in clear"):
        FabricClient.connect("10.0.0.1:7443", token="secret")
    FabricClient.connect("10.0.0.1:7443", token="secret", insecure=True)
    FabricClient.connect("localhost:7443", token="secret")
    FabricClient.connect("[::1]:7443", token="secret")


async def test_the_files_of_the_development_ca_serve_both_sides(fabric, tmp_path):
    made = dev_ca(tmp_path / "tls", (), ["alice"])
    alice = made.clients[0]
    async with _gateway(
        fabric,
        tls_cert_file=made.cert_file,
        tls_key_file=made.key_file,
        tls_client_ca_file=made.ca_file,
    ) as address:
        mine = Tls(made.ca_file, alice.cert_file, alice.key_file)
        async with FabricClient.connect(address, tls=mine) as client:
            assert client.owner.principal == "alice"
        with pytest.raises(GatewayUnavailableError):
            async with FabricClient.connect(address, tls=Tls(made.ca_file)):
                pass


def test_gateways_trust_the_authority_that_is_named_for_them():
    """Without client certificates there was no way to trust an authority of one's own."""
    files = {"tls_cert_file": "c", "tls_key_file": "k"}
    assert peer_tls(GatewaySettings(LISTEN)) is None
    assert peer_tls(GatewaySettings(LISTEN, **files)) == Tls()
    assert peer_tls(GatewaySettings(LISTEN, **files, tls_ca_file="own")) == Tls("own")
    both = GatewaySettings(LISTEN, **files, tls_ca_file="own", tls_client_ca_file="theirs")
    assert peer_tls(both) == Tls("own", "c", "k")


async def test_a_gateway_reaches_another_over_mutual_tls(fabric, tmp_path):
    made = dev_ca(tmp_path / "tls")
    settings = GatewaySettings(
        LISTEN,
        tls_cert_file=made.cert_file,
        tls_key_file=made.key_file,
        tls_client_ca_file=made.ca_file,
    )
    assert peer_tls(settings) == Tls(made.ca_file, made.cert_file, made.key_file)
    async with _gateway(
        fabric,
        tls_cert_file=made.cert_file,
        tls_key_file=made.key_file,
        tls_client_ca_file=made.ca_file,
    ) as address:
        peer = PeerSessions(address, fabric.keys.peer_key, peer_tls(settings))
        with pytest.raises(SessionNotFoundError):
            await peer.status(Caller(new_owner_id(), 1), new_session_id())
        await peer.close()
