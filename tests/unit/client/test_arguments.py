"""What the client refuses before it calls anybody."""

import pytest

from fabric.client import FabricClient, Tls
from fabric.client.link import Link
from fabric.client.session import as_bytes, as_signal
from fabric.core.errors import InvalidRequestError
from fabric.core.model import SandboxMode, SignalName


def test_text_is_utf8_and_bytes_are_themselves():
    assert as_bytes("é") == b"\xc3\xa9"
    assert as_bytes(b"\xff\x00") == b"\xff\x00"
    with pytest.raises(InvalidRequestError, match="valid Unicode"):
        as_bytes("\ud800")


def test_a_signal_goes_by_its_name():
    assert as_signal("SIGINT") is as_signal(SignalName.SIGINT) is SignalName.SIGINT
    with pytest.raises(InvalidRequestError, match="SIGINT, SIGTERM, SIGKILL, SIGTSTP, SIGHUP"):
        as_signal("INT")


def test_a_mode_goes_by_its_name():
    with pytest.raises(InvalidRequestError, match="mode must be one of read-only"):
        FabricClient.connect(mode="sudo")
    assert FabricClient.connect(mode=SandboxMode.READ_ONLY).keep is False


def test_an_owner_of_earlier_is_kept():
    assert FabricClient.connect(owner_token="t").keep is True


def test_two_clients_without_a_name_are_two_agents():
    first, second = FabricClient.connect(), FabricClient.connect()
    assert first._agent != second._agent


def test_nothing_is_there_before_connecting():
    client = FabricClient.connect()
    for name in ("calls", "server", "owner"):
        with pytest.raises(InvalidRequestError, match="connected"):
            getattr(client, name)
    assert client.owner_token == ""


@pytest.mark.parametrize("addresses", [(), ("",), ("a:1", "")])
def test_an_address_must_be_given(addresses):
    with pytest.raises(InvalidRequestError, match="address"):
        Link(addresses)


def test_tls_files_must_be_readable(tmp_path):
    with pytest.raises(InvalidRequestError, match="cannot read"):
        Link(("a:1",), Tls(ca_file=str(tmp_path / "missing")))
