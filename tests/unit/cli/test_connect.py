import argparse
import io

import pytest

from fabric.cli.connect import gateway_of, tls_of, token_of
from fabric.cli.context import Context
from fabric.cli.output import Output
from fabric.cli.state import Record
from fabric.core.errors import GatewayUnavailableError, InvalidRequestError

HERE = "127.0.0.1:9"


@pytest.fixture
def make(tmp_path):
    def build(environ=None, **arguments):
        given = argparse.Namespace(state_dir=str(tmp_path / "state"), **arguments)
        output = Output(stdout=io.StringIO(), stderr=io.StringIO(), environ={})
        return Context(given, output, environ or {})

    return build


@pytest.fixture
def up(make):
    """A fabric of the state folder is up at HERE, with a token."""
    state = make().state.prepare()
    state.write_record(Record(1, 2, HERE, "c", True, 3.0, "0"))
    state.new_token("local")
    with state.holding(state.lock_file, wait=False):
        yield state


def test_flag_before_environment_before_the_local_fabric(make, up):
    environ = {"FABRIC_GATEWAY": "b:2"}
    assert gateway_of(make(environ, gateway="a:1")) == "a:1"
    assert gateway_of(make(environ)) == "b:2"
    assert gateway_of(make()) == HERE


def test_nothing_up_and_nothing_named(make):
    with pytest.raises(GatewayUnavailableError, match="none is named"):
        gateway_of(make())


def test_a_fabric_that_starts_says_so(make, up):
    up.write_record(Record(1, 2, "", "", True, 3.0, "0"))
    with pytest.raises(GatewayUnavailableError, match="still starting"):
        gateway_of(make())


def test_the_local_token_goes_to_the_local_gateway_only(make, up):
    assert token_of(make(), HERE) == up.token_file.read_text().strip()
    assert token_of(make(), "elsewhere:9") is None


def test_a_named_token_goes_where_it_is_told(make, up, tmp_path):
    file = tmp_path / "token"
    file.write_text("from-file\n")
    named = {"FABRIC_TOKEN_FILE": str(file)}
    assert token_of(make(named), "elsewhere:9") == "from-file"
    assert token_of(make(named | {"FABRIC_TOKEN": "direct"}), HERE) == "direct"


def test_a_token_file_that_cannot_be_read_is_named(make, tmp_path):
    with pytest.raises(InvalidRequestError, match="no-such-file"):
        token_of(make({"FABRIC_TOKEN_FILE": str(tmp_path / "no-such-file")}), HERE)


def test_tls_only_where_it_is_asked_for(make):
    assert tls_of(make()) is None
    assert tls_of(make({"FABRIC_CA_FILE": "system"})).ca_file is None
    tls = tls_of(
        make({"FABRIC_CA_FILE": "ca", "FABRIC_CERT_FILE": "cert", "FABRIC_KEY_FILE": "key"})
    )
    assert (tls.ca_file, tls.cert_file, tls.key_file) == ("ca", "cert", "key")
