import os
from pathlib import Path

import pytest

from fabric.actors.labels import (
    LABEL_ARCH,
    LABEL_HOST,
    LABEL_OS,
    LABEL_SANDBOX,
    node_labels,
    this_host,
)
from fabric.actors.names import claim_node_dir, node_dir, node_dirs, node_name
from fabric.actors.plan import Plan
from fabric.actors.rayenv import daemon_environment
from fabric.core.errors import InvalidRequestError
from fabric.core.settings import ClusterSettings, GatewaySettings, Settings
from workers.slot import MAX_SOCKET_PATH_BYTES, new_slot


def test_a_node_s_folder_lies_in_the_state_folder_while_that_is_short(tmp_path):
    short = tmp_path / "s"
    assert node_dir(short, "h1") == short / "nodes" / "h1"


def test_a_long_state_folder_gets_a_short_private_place_that_is_the_same_every_time(tmp_path):
    deep = tmp_path / ("x" * 80)
    deep.mkdir()
    folder = claim_node_dir(deep, "h1")
    assert folder == node_dir(deep, "h1")
    assert folder != node_dir(deep, "h2")
    socket = new_slot("slt_aaaaaaaaaaaaaaaa", folder, "h1").channel_path
    assert len(os.fsencode(socket)) <= MAX_SOCKET_PATH_BYTES
    assert node_dirs(deep) == [folder]


@pytest.mark.parametrize("host", ["", "a/b", "..", ".hidden"])
def test_a_host_name_cannot_leave_the_state_folder(tmp_path, host):
    with pytest.raises(InvalidRequestError):
        node_dir(tmp_path, host)


def test_a_folder_without_nodes_has_none(tmp_path):
    assert node_dirs(tmp_path) == []


def test_labels_name_host_system_and_architecture():
    labels = node_labels("build7", ("bubblewrap", "network-none"))
    assert labels[LABEL_SANDBOX] == "bubblewrap.network-none"
    assert node_labels("build7")[LABEL_SANDBOX] == "none"
    assert labels[LABEL_HOST] == "build7"
    assert labels[LABEL_OS] in ("linux", "darwin")
    assert labels[LABEL_ARCH] in ("x86_64", "arm64")


def test_the_host_is_named_by_the_settings_else_by_the_machine():
    assert this_host(ClusterSettings(host="build7")) == "build7"
    assert this_host(ClusterSettings())
    assert "." not in this_host(ClusterSettings())


def test_actor_names():
    assert node_name("build7") == "node:build7"


def test_workers_mask_the_state_folder():
    gateway = GatewaySettings(token_file="/etc/fabric/tokens", signing_key_file="~/fabric/keys")
    plan = Plan(Settings(gateway=gateway), "/var/lib/fabric")
    masked = plan.worker.sandbox.masked_paths
    home = str(Path.home())
    assert {"/var/lib/fabric", "/etc/fabric/tokens", f"{home}/fabric/keys"} <= set(masked)
    assert any(path.startswith("/tmp/ptyfabric-") for path in masked)
    assert "" not in masked


def test_foreign_ray_settings_do_not_reach_an_embedded_cluster(monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "theirs")
    monkeypatch.setenv("RAY_worker_niceness", "15")
    monkeypatch.setenv("HOME", "/home/me")
    env = daemon_environment("/state/ray.token", "/tmp/pf-1")
    assert "RAY_ADDRESS" not in env
    assert "RAY_AUTH_TOKEN" not in env
    assert env["RAY_AUTH_MODE"] == "token"
    assert env["RAY_AUTH_TOKEN_PATH"] == "/state/ray.token"
    assert env["RAY_worker_niceness"] == "0"
    assert env["RAY_worker_oom_score_adjustment"] == "0"
    assert env["RAY_memory_monitor_refresh_ms"] == "0"
    assert env["HOME"] == "/home/me"
