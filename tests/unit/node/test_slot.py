import stat
from dataclasses import replace

import pytest

from fabric.core.errors import InvalidRequestError
from fabric.core.model import OpenSpec, SandboxMode
from workers import slot as files
from workers.slot import MAX_SOCKET_PATH_BYTES, SlotRecord

SPEC = OpenSpec(
    session_id="ses_aaaaaaaaaaaaaaaa",
    owner_id="own_aaaaaaaaaaaaaaaa",
    epoch=3,
    principal="me",
    agent="test",
    type="shell",
    mode=SandboxMode.WORKSPACE_WRITE,
    env=(("A", "b"),),
)


@pytest.fixture
def node_dir(tmp_path):
    files.prepare(tmp_path / "n")
    return tmp_path / "n"


def fresh(node_dir):
    return files.new_slot("slt_aaaaaaaaaaaaaaaa", node_dir, "h1")


def test_a_slot_s_file_gives_back_what_was_saved(node_dir):
    record = SlotRecord(fresh(node_dir), SPEC, opened=True)
    files.save(record)
    assert list(files.records(node_dir)) == [record]


def test_nobody_else_can_read_a_slot_s_key(node_dir):
    config = fresh(node_dir)
    files.save(SlotRecord(config))
    assert stat.S_IMODE(config.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(node_dir.stat().st_mode) == 0o700


def test_every_slot_has_a_key_of_its_own(node_dir):
    assert fresh(node_dir).key != fresh(node_dir).key


def test_a_file_that_is_none_of_ours_is_put_aside_and_stops_nothing(node_dir):
    good = SlotRecord(fresh(node_dir))
    files.save(good)
    for number, text in enumerate(("", "{}", "[1]", '{"version": 99}', "null")):
        (node_dir / "slots" / f"x{number}.json").write_text(text)
    assert list(files.records(node_dir)) == [good]
    assert len(list((node_dir / "slots").glob("*.bad"))) == 5


def test_removing_a_slot_removes_all_it_had_and_may_be_repeated(node_dir):
    config = fresh(node_dir)
    files.save(SlotRecord(config))
    config.channel_path.touch()
    config.shim_path.touch()
    files.remove(config)
    files.remove(config)
    assert not [path for path in node_dir.rglob("*") if path.is_file()]


def test_a_folder_too_long_for_sockets_is_refused_with_its_limit(tmp_path):
    with pytest.raises(InvalidRequestError, match=str(MAX_SOCKET_PATH_BYTES)):
        files.prepare(tmp_path / ("x" * 90))


def test_a_location_names_socket_key_and_owner(node_dir):
    config = fresh(node_dir)
    place = config.location(replace(SPEC, owner_id="own_bbbbbbbbbbbbbbbb"))
    assert (place.host, place.socket, place.key, place.owner_id) == (
        "h1",
        str(config.channel_path),
        config.key,
        "own_bbbbbbbbbbbbbbbb",
    )
