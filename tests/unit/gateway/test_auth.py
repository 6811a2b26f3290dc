"""The rules of the door, and the forms of the credential files."""

import pytest

from fabric.core.clock import ManualClock
from fabric.core.errors import UnauthenticatedError
from fabric.core.settings import GatewaySettings, SettingsError
from fabric.gateway.auth import LOCAL, Authenticator, check_listener, is_loopback
from fabric.gateway.bearer import (
    ListedTokens,
    WatchedFile,
    new_signing_key,
    parse_key_file,
    parse_token_file,
    token_hash,
)


@pytest.mark.parametrize("listen", ["127.0.0.1:1", "127.8.8.8:1", "[::1]:1", "localhost:1"])
def test_loopback(listen):
    assert is_loopback(listen)


@pytest.mark.parametrize("listen", ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "host:1", "localhost.x:1"])
def test_not_loopback(listen):
    assert not is_loopback(listen)


def test_settings_that_do_not_fit_together():
    with pytest.raises(SettingsError, match="tls_client_ca_file needs"):
        check_listener(GatewaySettings(tls_client_ca_file="/ca"))
    with pytest.raises(SettingsError, match="revoked_file needs"):
        check_listener(GatewaySettings(revoked_file="/r"))


def test_nobody_proves_anything_on_an_open_loopback():
    door = Authenticator(GatewaySettings(), ManualClock())
    assert door.identify({}, None) is LOCAL
    assert door.identify({"authorization": "Bearer whatever"}, None) is LOCAL


def test_every_fault_of_a_token_file_is_named(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("alice\nbob b read-only extra\ncarol c superuser\ndave sha256:12\nerin e\n")
    with pytest.raises(SettingsError) as caught:
        parse_token_file(path)
    for number in (1, 2, 3, 4):
        assert f"line {number}:" in str(caught.value)
    assert "line 5" not in str(caught.value)
    path.write_text("# nobody\n")
    with pytest.raises(SettingsError, match="names no principal"):
        parse_token_file(path)


def test_a_token_is_found_by_itself_or_its_hash(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"alice {token_hash('a').upper().replace('SHA256', 'sha256')}\nbob b\n")
    tokens = ListedTokens(str(path), ManualClock())
    assert tokens.verify("a").principal == "alice"
    assert tokens.verify("b").principal == "bob"
    assert tokens.verify("c") is None


def test_keys_are_long_and_named(tmp_path):
    path = tmp_path / "keys"
    path.write_text("k1 short\n")
    with pytest.raises(SettingsError, match="at least 32 bytes"):
        parse_key_file(path)
    path.write_text("")
    with pytest.raises(SettingsError, match="no key"):
        parse_key_file(path)
    first, second = new_signing_key(), new_signing_key()
    path.write_text(f"{first}\n{second}\n")
    assert next(iter(parse_key_file(path))) == first.split()[0]


def test_a_file_is_looked_at_again_once_a_second(tmp_path):
    clock = ManualClock()
    path = tmp_path / "f"
    path.write_text("1")
    watched = WatchedFile(str(path), lambda p: p.read_text(), clock)
    path.write_text("22")
    assert watched.get() == "1"
    clock.advance(1.0)
    assert watched.get() == "22"
    path.unlink()
    clock.advance(1.0)
    assert watched.get() == "22"
    with pytest.raises(SettingsError, match="cannot read"):
        WatchedFile(str(path), lambda p: p.read_text(), clock)


def test_a_door_with_a_list_wants_a_token(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("alice a\n")
    door = Authenticator(GatewaySettings(token_file=str(path)), ManualClock())
    assert door.identify({"authorization": "Bearer a"}, None).principal == "alice"
    with pytest.raises(UnauthenticatedError, match="needs a bearer token"):
        door.identify({}, None)
    with pytest.raises(UnauthenticatedError, match="not valid"):
        door.identify({"authorization": "Bearer x"}, None)
