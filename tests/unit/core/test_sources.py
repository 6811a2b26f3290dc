import re
import tomllib

import pytest

from fabric.core import sources
from fabric.core.model import SandboxMode
from fabric.core.settings import Settings, SettingsError
from fabric.core.sources import known_keys, load
from tests.support.paths import ROOT

EXAMPLE = ROOT / "cluster" / "settings.example.toml"


def faults_of(**kwargs) -> str:
    with pytest.raises(SettingsError) as caught:
        load(**kwargs)
    return caught.value.message


def test_no_source_gives_the_defaults():
    loaded = load()
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {"default"}


def test_later_sources_win_and_origins_say_so(tmp_path):
    file = tmp_path / "fabric.toml"
    file.write_text(
        "[node]\nwarm_sessions = 7\nmax_sessions = 8\n[worker.readiness]\ntimeout_s = 9\n"
    )
    loaded = load(
        config=str(file),
        environ={"FABRIC_NODE__MAX_SESSIONS": "18", "FABRIC_WORKER_READINESS__TIMEOUT_S": "19"},
        flags={"worker.readiness.timeout_s": "29.5"},
    )
    assert loaded.settings.node.warm_sessions == 7
    assert loaded.settings.node.max_sessions == 18
    assert loaded.settings.worker.readiness.timeout_s == 29.5
    assert loaded.origins["node.warm_sessions"] == str(file)
    assert loaded.origins["node.max_sessions"] == "env FABRIC_NODE__MAX_SESSIONS"
    assert loaded.origins["worker.readiness.timeout_s"] == "flag"
    assert loaded.origins["node.min_free_ptys"] == "default"


def test_config_file_may_come_from_the_environment(tmp_path):
    file = tmp_path / "fabric.toml"
    file.write_text("[log]\nlevel = 'DEBUG'\n")
    loaded = load(environ={"FABRIC_CONFIG": str(file)})
    assert loaded.settings.log.level == "DEBUG"
    assert loaded.config_file == str(file)


def test_every_key_can_come_from_the_environment():
    for key in known_keys():
        assert re.fullmatch(r"FABRIC_[A-Z]+(_[A-Z]+)*__[A-Z0-9_]+", key.variable)
    names = [key.variable for key in known_keys()]
    assert len(names) == len(set(names))


def test_all_faults_are_reported_at_once_with_key_value_source_and_rule():
    text = faults_of(
        environ={
            "FABRIC_WORKER_READINESS__IDLE_SILENC_S": "2",
            "FABRIC_GATEWAY__LISTEN": "nowhere",
            "FABRIC_NODE__MAX_SESSIONS": "many",
        },
        flags={"log.level": "LOUD", "node.max_session": "3"},
    )
    assert "did you mean FABRIC_WORKER_READINESS__IDLE_SILENCE_S?" in text
    assert "gateway.listen = 'nowhere' (env FABRIC_GATEWAY__LISTEN): must read address:port" in text
    assert "node.max_sessions = 'many' (env FABRIC_NODE__MAX_SESSIONS): must be a whole" in text
    assert "node.max_session (flag): unknown key (did you mean node.max_sessions?)" in text
    assert "log.level = 'LOUD' (flag): must be one of" in text


def test_a_key_in_the_wrong_section_is_a_fault_that_names_the_right_one(tmp_path):
    file = tmp_path / "fabric.toml"
    file.write_text("[node]\nlease_s = 4\n")
    assert "unknown key (did you mean registry.lease_s?)" in faults_of(config=str(file))


def test_relations_between_values_of_two_sources_are_checked(tmp_path):
    file = tmp_path / "fabric.toml"
    file.write_text("[registry]\nmin_lease_s = 50\n")
    text = faults_of(config=str(file), environ={"FABRIC_REGISTRY__LEASE_S": "20"})
    assert "registry.lease_s = 20.0 (env FABRIC_REGISTRY__LEASE_S)" in text
    assert "min_lease_s <= lease_s" in text


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[node", "not valid TOML"),
        ("node = 3", "node"),
        ("[node]\nmax_sessions = '3x'", "must be a whole number"),
        ("[node]\nmax_sessions = 3.5", "must be a whole number"),
        ("[node]\nmax_sessions = true", "must be a whole number"),
        ("[node]\nmax_sessions = []", "must be a whole number"),
        ("[node]\nmax_sessions = -3", "must be greater than 0"),
        ("[worker.readiness]\nexact = 'maybe'", "must be true or false"),
        ("[worker.readiness]\nexact = 3", "must be true or false"),
        ("[worker.readiness]\ntimeout_s = inf", "must be finite"),
        ("[worker.readiness]\ntimeout_s = 'nan'", "must be finite"),
        ("[registry]\ndefault_mode = 'root'", "must be one of read-only, workspace-write"),
        ("[gateway]\nlisten = 7", "must be a string"),
        ("[worker.sandbox]\nallowed_roots = [1]", "must be a list of strings"),
    ],
)
def test_wrong_values_in_a_file(tmp_path, text, fault):
    file = tmp_path / "fabric.toml"
    file.write_text(text)
    assert fault in faults_of(config=str(file))


def test_a_missing_file_is_a_fault_that_names_it(tmp_path):
    assert str(tmp_path / "no.toml") in faults_of(config=str(tmp_path / "no.toml"))


def test_values_are_converted_from_text():
    loaded = load(
        environ={
            "FABRIC_WORKER_READINESS__EXACT": "off",
            "FABRIC_WORKER_SHELL__PROGRAMS": "a=b c;d=e",
            "FABRIC_WORKER_SCROLLBACK__BYTELOG_BYTES": "16_777_216",
            "FABRIC_REGISTRY__DEFAULT_MODE": "danger-full-access",
        }
    )
    assert loaded.settings.worker.readiness.exact is False
    assert loaded.settings.worker.shell.programs == ("a=b c", "d=e")
    assert loaded.settings.worker.scrollback.bytelog_bytes == 16_777_216
    assert loaded.settings.registry.default_mode is SandboxMode.DANGER_FULL_ACCESS


def test_other_variables_are_left_alone():
    environ = dict.fromkeys(sources.ENV_OTHERS, "x") | {"FABRIC_OTHER": "1", "PATH": "/bin"}
    environ.pop("FABRIC_CONFIG")
    assert load(environ=environ).settings == Settings()


def test_a_secret_is_hidden_in_faults_and_refused_as_a_flag(monkeypatch):
    from fabric.core.settings import Secret

    key = sources.Key("gateway.password", Secret, "")
    monkeypatch.setattr(sources, "known_keys", lambda: (*known_keys(), key))
    text = faults_of(flags={"gateway.password": "hunter2"})
    assert "FABRIC_GATEWAY__PASSWORD" in text
    assert "hunter2" not in text


def test_the_example_file_equals_the_defaults():
    text = EXAMPLE.read_text()
    assert text == sources.example(), "write it anew: fabric config example"
    loaded = load(config=str(EXAMPLE))
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {str(EXAMPLE)}


def test_the_example_has_no_key_but_the_known_ones():
    tables = tomllib.loads(EXAMPLE.read_text())
    assert set(tables) == {key.name.split(".")[0] for key in known_keys()}


def test_rows_show_every_key_with_its_origin():
    rows = list(load(flags={"log.level": "DEBUG"}).rows())
    assert [row[0] for row in rows] == [key.name for key in known_keys()]
    assert ("log.level", "DEBUG", "flag") in rows
