"""Tokens, keys, revocation and a development CA from the command line, as files."""

import json
import stat
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from fabric.cli.credentials import seconds_of
from fabric.cli.main import main
from fabric.core.clock import ManualClock, SystemClock
from fabric.core.errors import InvalidRequestError, UnauthenticatedError
from fabric.core.model import SandboxMode
from fabric.gateway.bearer import LOOK_EVERY_S, SignedTokens


@pytest.fixture
def run(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("FABRIC_STATE_DIR", str(tmp_path / "state"))

    def run(*argv: str, code: int = 0):
        assert main([*argv, "--json"]) == code
        said = capsys.readouterr()
        return json.loads(said.out if code == 0 else said.err.splitlines()[-1])

    return run


def _files(tmp_path: Path) -> tuple[str, str]:
    return str(tmp_path / "state" / "signing.keys"), str(tmp_path / "state" / "revoked")


def test_a_created_token_says_who_how_far_and_until_when(run, tmp_path):
    made = run("token", "create", "--principal", "ci", "--max-mode", "read-only", "--ttl", "8h")
    keys, _ = _files(tmp_path)
    identity = SignedTokens(keys, "", SystemClock()).verify(made["token"])
    assert identity is not None
    assert (identity.principal, identity.max_mode) == ("ci", SandboxMode.READ_ONLY)
    assert identity.expires_at == pytest.approx(made["expires_at"], abs=1)
    assert stat.S_IMODE(Path(keys).stat().st_mode) == 0o600


def test_two_keys_are_active_and_the_third_goes(run, tmp_path):
    tokens = [run("token", "create", "--principal", "ci")["token"]]
    for active in (2, 2):
        assert len(run("token", "keys", "--rotate")["keys"]) == active
        tokens.append(run("token", "create", "--principal", "ci")["token"])
    signed = SignedTokens(_files(tmp_path)[0], "", SystemClock())
    with pytest.raises(UnauthenticatedError):
        signed.verify(tokens[0])
    assert [signed.verify(token).principal for token in tokens[1:]] == ["ci", "ci"]


def test_a_key_can_be_dropped_but_not_the_last_one(run):
    run("token", "create", "--principal", "ci")
    first = run("token", "keys")["keys"][0]
    assert run("token", "keys", "--drop", first, code=2)["error"]["reason"] == "INVALID_REQUEST"
    run("token", "keys", "--rotate")
    assert run("token", "keys", "--drop", first)["dropped"] == [first]


def test_what_is_revoked_counts_no_more_while_the_gateway_runs(run, tmp_path):
    keys, revoked = _files(tmp_path)
    made = [run("token", "create", "--principal", name) for name in ("a", "b", "c", "d")]
    run("token", "revoke", made[0]["token_id"])
    clock = ManualClock()
    signed = SignedTokens(keys, revoked, clock)
    assert signed.verify(made[1]["token"]) is not None
    run("token", "revoke", made[1]["token"], "principal:c")
    clock.advance(LOOK_EVERY_S)
    for one in made[:3]:
        with pytest.raises(UnauthenticatedError, match="revoked"):
            signed.verify(one["token"])
    assert signed.verify(made[3]["token"]) is not None
    assert run("token", "revoke", "principal:c")["revoked"] == []


@pytest.mark.parametrize(
    "argv",
    [
        ("token", "create", "--principal", "a b"),
        ("token", "create", "--principal", "a", "--ttl", "soon"),
        ("token", "create", "--principal", "a", "--ttl", "0"),
        ("token", "create", "--principal", "a", "--max-mode", "root"),
        ("token", "revoke", "a b"),
        ("token", "revoke"),
        ("token", "keys", "--drop", "nobody"),
        ("tls", "dev-ca", "--client", "../x"),
        ("tls", "dev-ca", "--client", "server"),
        ("tls", "dev-ca", "--days", "0"),
        ("tls", "dev-ca", "--host", "a b"),
        ("tls", "dev-ca", "--out", "/proc/nowhere"),
    ],
)
def test_what_is_wrong_is_said_and_makes_nothing(run, argv):
    assert run(*argv, code=2)["error"]["reason"] == "INVALID_REQUEST"


def test_lengths_of_time():
    assert [seconds_of(text) for text in ("90", "30m", "8h", "1.5d")] == [90, 1800, 28800, 129600]
    with pytest.raises(InvalidRequestError):
        seconds_of("11y")


def test_a_development_ca_is_made_once_and_gone_on_with(run, tmp_path):
    folder = tmp_path / "tls"
    first = run("tls", "dev-ca", "--out", str(folder), "--host", "gw.example")
    second = run("tls", "dev-ca", "--out", str(folder), "--client", "alice")
    assert (first["is_new"], second["is_new"]) == (True, False)
    ca = x509.load_pem_x509_certificate(Path(first["ca_file"]).read_bytes())
    alice = x509.load_pem_x509_certificate(Path(second["clients"][0]["cert_file"]).read_bytes())
    alice.verify_directly_issued_by(ca)
    assert alice.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "alice"
    for file in folder.glob("*.key"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
