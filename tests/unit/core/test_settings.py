import pickle

import pytest

from fabric.core import settings as s
from fabric.core.errors import InvalidRequestError


def test_defaults_are_valid_and_travel():
    whole = s.Settings()
    assert pickle.loads(pickle.dumps(whole)) == whole


@pytest.mark.parametrize(
    ("cls", "values", "named"),
    [
        (s.ReadinessSettings, {"timeout_s": 0}, ["timeout_s = 0"]),
        (s.ReadinessSettings, {"idle_silence_s": 40.0}, ["idle_silence_s <= timeout_s"]),
        (
            s.ScrollbackSettings,
            {"read_max_bytes": 9, "max_bytes": 8},
            ["must not exceed max_bytes"],
        ),
        (s.InputSettings, {"max_send_bytes": -1}, ["max_send_bytes = -1"]),
        (s.TeardownSettings, {"grace_s": 0}, ["grace_s = 0"]),
        (s.SandboxSettings, {"pids_max": -1}, ["pids_max = -1"]),
        (s.ShellSettings, {"prompt": "  "}, ["prompt"]),
        (s.ShellSettings, {"programs": ("shell=/bin/sh",)}, ["the name shell is taken"]),
        (s.ShellSettings, {"programs": ("python",)}, ["name=program"]),
        (s.NodeSettings, {"warm_sessions": -1}, ["warm_sessions = -1"]),
        (s.RegistrySettings, {"lease_s": 1.0}, ["min_lease_s <= lease_s"]),
        (s.TaskSettings, {"wait_timeout_s": 601.0}, ["max_wait_timeout_s"]),
        (s.ReadinessSettings, {"handoff_grace_s": 0.049}, ["must not be below poll_interval_s"]),
        (s.GatewaySettings, {"listen": "localhost"}, ["address:port"]),
        (s.GatewaySettings, {"listen": "127.0.0.1:65536"}, ["a port of at most 65535"]),
        (s.GatewaySettings, {"listen": "127.0.0.1:²"}, ["address:port"]),
        (s.GatewaySettings, {"max_result_bytes": 63}, ["at least 64"]),
        (s.GatewaySettings, {"tls_key_file": "k"}, ["go together"]),
        (s.ClusterSettings, {"call_timeout_s": 0}, ["call_timeout_s"]),
        (s.LogSettings, {"level": "loud"}, ["level = 'loud'"]),
        (
            s.InputSettings,
            {"max_send_bytes": 0, "write_stall_s": -1.0, "max_request_ids": 0},
            ["max_send_bytes = 0", "write_stall_s = -1.0", "max_request_ids = 0"],
        ),
    ],
)
def test_faults_name_key_value_and_rule_all_at_once(cls, values, named):
    with pytest.raises(s.SettingsError) as caught:
        cls(**values)
    for part in named:
        assert part in caught.value.message


def test_a_settings_error_is_an_invalid_request():
    assert issubclass(s.SettingsError, InvalidRequestError)


def test_none_is_a_limit_for_some_values():
    assert s.NodeSettings(warm_sessions=0).warm_sessions == 0
    assert s.SandboxSettings(memory_max_bytes=0).memory_max_bytes == 0


def test_a_secret_is_hidden_when_shown():
    secret = s.Secret("hunter2")
    assert secret == "hunter2"
    assert "hunter2" not in repr(secret)
    assert "hunter2" not in repr({"token": secret})
