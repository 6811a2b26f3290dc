import hashlib
import os
import stat

import pytest

from fabric.cli.state import Record, StateDir, default_folder, start_time_of
from fabric.core.errors import InvalidRequestError

RECORD = Record(1, 2, "127.0.0.1:9", "127.0.0.1:8", True, 3.0, "0.1.0", 4, 5)


@pytest.fixture
def state(tmp_path):
    return StateDir(tmp_path / "deep" / "state").prepare()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_folder_is_private_and_an_open_one_is_closed(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir(mode=0o755)
    StateDir(folder).prepare()
    assert mode(folder) == 0o700


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequestError) as caught:
        StateDir(tmp_path / "file" / "state").prepare()
    assert "FABRIC_STATE_DIR" in caught.value.metadata["hint"]


def test_a_record_is_read_as_it_was_written(state):
    assert state.record() is None
    state.write_record(RECORD)
    assert state.record() == RECORD
    assert mode(state.folder / "fabric.json") == 0o600
    state.forget_record()
    state.forget_record()
    assert state.record() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', '{"unknown": 1}'])
def test_a_broken_record_is_no_record(state, text):
    (state.folder / "fabric.json").write_text(text)
    assert state.record() is None


def test_the_lock_tells_whether_a_supervisor_lives(state):
    assert not state.is_up()
    with state.holding(state.lock_file, wait=False) as held:
        assert held
        assert state.is_up()
        with state.holding(state.lock_file, wait=False) as second:
            assert not second
    assert not state.is_up()


def test_tokens_and_owners_are_private_and_replaced_whole(state):
    cached = state.owner_file("a/b ü", "127.0.0.1:9")
    umask = os.umask(0)
    try:
        first = state.new_token("local").read_text()
        assert state.new_token("local").read_text() != first
        state.write_owner(cached, {"token": "t"})
    finally:
        os.umask(umask)
    assert mode(state.token_file) == mode(state.principals_file) == 0o600
    token, row = state.token_file.read_text().strip(), state.principals_file.read_text()
    assert row == f"local sha256:{hashlib.sha256(token.encode()).hexdigest()}\n"
    state.forget_token()
    assert not state.token_file.exists()
    assert mode(cached) == 0o600
    assert state.read_owner(cached) == {"token": "t"}
    assert state.read_owner(state.owner_file("a/b ü", "127.0.0.1:8")) == {}
    state.forget_owners()
    assert state.read_owner(cached) == {}
    assert not [path for path in state.folder.iterdir() if path.name.startswith(".")]


def test_an_agent_cannot_name_a_file_elsewhere(state):
    for agent in ("../../x", "..", "/x"):
        assert state.owner_file(agent, "g:1").parent == state.folder / "owners"


def test_default_folder(monkeypatch, tmp_path):
    assert str(default_folder({"FABRIC_STATE_DIR": "/x"})) == "/x"
    assert str(default_folder({"XDG_STATE_HOME": "/s"})) == "/s/pty-fabric"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder({}) == tmp_path / ".local" / "state" / "pty-fabric"


def test_a_process_is_its_pid_and_start_time():
    assert start_time_of(os.getpid()) > 0
    assert start_time_of(0) == 0
    assert start_time_of(2**22 + 5) == 0
