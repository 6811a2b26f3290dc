"""Policies of principals, read from rows."""

import pytest

from fabric.core.model import Network, SandboxMode
from fabric.core.policy import OwnerPolicy, parse
from fabric.core.settings import RegistrySettings, SettingsError

ROWS = (
    "alice run_as=alice network=none workspace_root=/srv/alice pids_max=64",
    "* run_as=nobody memory_max_bytes=0 cpu_weight=50",
    "bob",
)


def test_a_principals_own_row_replaces_the_one_for_everybody():
    policies = parse(ROWS)
    assert policies.of("alice") == OwnerPolicy("alice", Network.NONE, "/srv/alice", pids_max=64)
    assert policies.of("carol") == OwnerPolicy("nobody", memory_max_bytes=0, cpu_weight=50)
    assert policies.of("bob") == OwnerPolicy()
    assert parse(()).of("alice") == OwnerPolicy()


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("", "must begin with a principal"),
        ("run_as=x", "must begin with a principal"),
        ("alice network=some", "must be shared or none"),
        ("alice pids_max=-1", "must be a whole number"),
        ("alice memory_max_bytes=1G", "must be a whole number"),
        ("alice workspace_root=srv", "must be an absolute path"),
        ("alice run_as=", "has no value"),
        ("alice mode=read-only", "which no policy has"),
        ("alice run_as", "has no value"),
    ],
)
def test_a_faulty_row_is_named(row, fault):
    with pytest.raises(ValueError, match=fault):
        parse([row])
    with pytest.raises(SettingsError, match=fault):
        RegistrySettings(policies=(row,))


def test_two_rows_for_one_principal_are_refused():
    with pytest.raises(ValueError, match="two rows"):
        parse(["alice", "alice network=none"])


def test_quotas_are_numbers_above_zero_and_a_mode():
    row = (
        "ci max_mode=read-only max_sessions=4 max_opens=2 max_tasks=1 max_waits=9 max_send_bytes=7"
    )
    assert parse((row,)).of("ci") == OwnerPolicy(
        max_mode=SandboxMode.READ_ONLY,
        max_sessions=4,
        max_opens=2,
        max_tasks=1,
        max_waits=9,
        max_send_bytes=7,
    )
    for wrong in ("max_tasks=0", "max_waits=-1", "max_sessions=x", "max_mode=root"):
        with pytest.raises(ValueError, match="must be"):
            parse((f"ci {wrong}",))
