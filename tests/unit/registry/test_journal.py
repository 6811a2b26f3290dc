"""The journal as a file: written, read, refused."""

import sqlite3
import stat
from pathlib import Path

import pytest

from fabric.core.errors import InternalError, RegistryUnavailableError
from fabric.registry import journal as module
from fabric.registry.instructions import Drop, Kind, Put
from fabric.registry.journal import Journal


def test_rows_are_kept_replaced_and_dropped(tmp_path: Path):
    path = tmp_path / "deep" / "j.db"
    made = Journal(path)
    made.apply([Put(Kind.OWNER, "b", {"x": 1}), Put(Kind.OWNER, "a", {"ä": [None, True]})])
    made.apply([Put(Kind.OWNER, "b", {"x": 2}), Drop(Kind.OWNER, "nothing")])
    made.apply([])
    made.close()
    made.close()
    again = Journal(path)
    assert again.load()[Kind.OWNER] == {"a": {"ä": [None, True]}, "b": {"x": 2}}
    assert list(again.load()[Kind.OWNER]) == ["a", "b"]
    again.apply([Drop(Kind.OWNER, "a")])
    again.close()
    last = Journal(path)
    assert list(last.load()[Kind.OWNER]) == ["b"]
    last.close()


def test_only_the_service_may_read_it(tmp_path: Path):
    made = Journal(tmp_path / "deep" / "j.db")
    made.apply([Put(Kind.OWNER, "a", {})])
    for path in (tmp_path / "deep").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE((tmp_path / "deep").stat().st_mode) == 0o700
    made.close()


def test_a_transaction_is_written_whole_or_not_at_all(tmp_path: Path):
    made = Journal(tmp_path / "j.db")
    made._db.execute("DROP TABLE sessions")
    with pytest.raises(RegistryUnavailableError, match="cannot write"):
        made.apply([Put(Kind.OWNER, "a", {}), Put(Kind.SESSION, "s", {})])
    made._db.execute("CREATE TABLE sessions (key TEXT PRIMARY KEY, body TEXT NOT NULL)")
    assert made.load()[Kind.OWNER] == {}
    made.apply([Put(Kind.OWNER, "a", {})])
    made.close()


def test_a_killed_writer_leaves_what_it_had_committed(tmp_path: Path):
    made = Journal(tmp_path / "j.db")
    made.apply([Put(Kind.OWNER, "a", {"n": 1})])
    made._db.execute("BEGIN")
    made._db.execute("INSERT INTO owners VALUES ('b', '{}')")
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in tmp_path.glob("j.db*"):
        (copy / path.name).write_bytes(path.read_bytes())
    made.close()
    wal = copy / "j.db-wal"
    wal.write_bytes(wal.read_bytes()[:-100])  # torn in the middle of its last page
    torn = Journal(copy / "j.db")
    assert torn.load()[Kind.OWNER] in ({}, {"a": {"n": 1}})
    torn.close()


def test_two_registries_never_share_a_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "BUSY_TIMEOUT_S", 0.01)
    made = Journal(tmp_path / "j.db")
    with pytest.raises(InternalError, match="in use by another registry"):
        Journal(tmp_path / "j.db")
    made.close()
    Journal(tmp_path / "j.db").close()


def test_a_damaged_file_is_refused_with_the_way_out(tmp_path: Path):
    path = tmp_path / "j.db"
    path.write_bytes(b"this is not a database, whatever its name says" * 100)
    with pytest.raises(InternalError, match=r"damaged.*restore it from a copy, or move it away"):
        Journal(path)
    made = Journal(tmp_path / "k.db")
    made.apply([Put(Kind.OWNER, f"own_{n}", {"text": "x" * 500}) for n in range(200)])
    made.close()
    raw = bytearray((tmp_path / "k.db").read_bytes())
    raw[8192:40960] = b"\x55" * (40960 - 8192)
    (tmp_path / "k.db").write_bytes(raw)
    with pytest.raises(InternalError, match="damaged"):
        Journal(tmp_path / "k.db")
    (tmp_path / "k.db").write_bytes(raw[:5000])
    with pytest.raises(InternalError, match="damaged"):
        Journal(tmp_path / "k.db")


def test_a_row_that_is_not_plain_data_is_damage(tmp_path: Path):
    made = Journal(tmp_path / "j.db")
    made._db.execute("INSERT INTO owners VALUES ('a', 'not json')")
    with pytest.raises(InternalError, match="damaged"):
        made.load()
    made.close()


def test_a_newer_or_a_foreign_file_is_refused(tmp_path: Path):
    path = tmp_path / "j.db"
    Journal(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(InternalError, match=r"version 99, this registry knows 1"):
        Journal(path)
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as db:
        db.execute("CREATE TABLE photos (id INTEGER)")
    db.close()
    with pytest.raises(InternalError, match="not a journal of this service"):
        Journal(other)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InternalError, match="cannot be opened"):
        Journal(tmp_path / "file" / "j.db")
    with pytest.raises(InternalError, match="cannot be opened"):
        Journal(tmp_path)


def test_compacting_gives_space_back(tmp_path: Path):
    path = tmp_path / "j.db"
    made = Journal(path)
    made.apply([Put(Kind.TASK, f"t{n}", {"text": "x" * 1000}) for n in range(1000)])
    made.compact()
    full = path.stat().st_size
    made.apply([Drop(Kind.TASK, f"t{n}") for n in range(1000)])
    made.compact()
    assert path.stat().st_size < full / 5
    assert (tmp_path / "j.db-wal").stat().st_size == 0
    made.close()
