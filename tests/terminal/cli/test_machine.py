"""`fabric doctor` on this machine and its files, without a fabric."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabric.cli import authority, machine
from fabric.cli.findings import Verdict
from fabric.core.settings import GatewaySettings, Settings
from fabric.gateway.bearer import new_signing_key
from tests.support.command import Command


def verdicts(rows):
    return {item.check: item.verdict for item in rows}


def test_every_look_at_this_machine_ends_and_leaves_nothing(tmp_path):
    found = list(machine.findings_here(Settings(), tmp_path))
    names = [item.check for item in found]
    assert len(names) == len(set(names)) >= 13
    assert verdicts(found)["python"] is Verdict.OK
    assert verdicts(found)["ray"] is Verdict.OK


@pytest.mark.skipif(not Path("/proc/self/syscall").exists(), reason="needs /proc/PID/syscall")
def test_the_wait_of_a_process_that_is_no_child_of_ours_is_seen():
    assert machine.sees_foreign_wait() is True


def test_credentials_are_looked_at_as_the_gateway_would(tmp_path):
    made = authority.dev_ca(tmp_path / "tls", days=30)
    keys = tmp_path / "keys"
    keys.write_text(new_signing_key() + "\n")
    keys.chmod(0o600)
    tokens = tmp_path / "tokens"
    tokens.write_text("me sha256:zz\n")
    gateway = GatewaySettings(
        signing_key_file=str(keys),
        token_file=str(tokens),
        tls_cert_file=made.cert_file,
        tls_key_file=made.key_file,
        tls_client_ca_file=made.ca_file,
    )
    settings = replace(Settings(), gateway=gateway)
    found = verdicts(machine.findings_of_credentials(settings, tmp_path))
    assert found[f"signing keys {keys}"] is Verdict.OK
    assert found[f"TLS key {made.key_file}"] is Verdict.OK
    assert found[f"certificate {made.cert_file}"] is Verdict.OK
    assert found[f"tokens {tokens}"] is Verdict.FAIL
    keys.chmod(0o644)
    (tmp_path / "tls" / "server.pem").write_text("no certificate")
    found = verdicts(machine.findings_of_credentials(settings, tmp_path))
    assert found[f"signing keys {keys}"] is Verdict.FAIL
    assert found[f"certificate {made.cert_file}"] is Verdict.FAIL


def test_a_certificate_that_ends_soon_is_a_warning(tmp_path):
    made = authority.dev_ca(tmp_path, days=3)
    gateway = GatewaySettings(tls_cert_file=made.cert_file, tls_key_file=made.key_file)
    settings = replace(Settings(), gateway=gateway)
    found = verdicts(machine.findings_of_credentials(settings, tmp_path))
    assert found[f"certificate {made.cert_file}"] is Verdict.WARN


def test_the_command_fails_for_a_fault_and_prints_what_to_do(tmp_path):
    command = Command(tmp_path)
    assert command("doctor").code == 0
    done = command("doctor", "--json", "--set", f"gateway.tls_cert_file={tmp_path}/no.pem",
                   "--set", f"gateway.tls_key_file={tmp_path}/no.key")  # fmt: skip
    assert done.code == 1
    faults = [item for item in done.json["findings"] if item["verdict"] == "fail"]
    assert {item["check"] for item in faults} == {
        f"certificate {tmp_path}/no.pem", f"TLS key {tmp_path}/no.key"
    }  # fmt: skip
    assert all(item["why"] and item["remedy"] for item in faults)


def test_a_gateway_that_is_away_is_a_fault(tmp_path):
    done = Command(tmp_path)("doctor", "--gateway", "127.0.0.1:1")
    assert done.code == 1
    assert "GATEWAY_UNAVAILABLE" in done.out
