"""Files of transcripts are private, bounded, and do not stay for ever."""

import os
import stat

import pytest

from fabric.core.settings import SettingsError, TranscriptSettings
from fabric.core.transcripts import TranscriptFile, sweep

OWNER = "own_x"


def settings(folder, **facts):
    return TranscriptSettings(dir=str(folder / "t"), **facts)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_its_owners_alone(tmp_path):
    file = TranscriptFile(settings(tmp_path), OWNER, "a.cast")
    file.write(b"line\n")
    file.close()
    path = tmp_path / "t" / OWNER / "a.cast"
    assert path.read_bytes() == b"line\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_second_file_of_a_name_gets_a_number(tmp_path):
    for _ in range(2):
        TranscriptFile(settings(tmp_path), OWNER, "a.cast").close()
    assert names_in(tmp_path / "t" / OWNER) == ["a.1.cast", "a.cast"]


def test_a_file_takes_whole_lines_up_to_its_bound(tmp_path):
    file = TranscriptFile(settings(tmp_path, max_file_bytes=10), OWNER, "a.cast")
    for line in (b"12345\n", b"6789\n", b"1\n"):
        file.write(line)
    assert file.is_full
    assert not file.is_open
    assert (tmp_path / "t" / OWNER / "a.cast").read_bytes() == b"12345\n"


@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_was_laid_in_the_way_is_not_followed(tmp_path, what):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    root = tmp_path / "t"
    root.mkdir()
    if what == "folder":
        (root / OWNER).symlink_to(elsewhere)
    else:
        (root / OWNER).mkdir()
        (root / OWNER / "a.cast").symlink_to(elsewhere / "stolen")
    file = TranscriptFile(settings(tmp_path), OWNER, "a.cast")
    file.write(b"secret\n")
    file.close()
    assert list(elsewhere.iterdir()) == []


def test_old_files_go_and_the_oldest_beyond_the_size(tmp_path):
    given = settings(tmp_path, retention_s=100.0, max_file_bytes=10, max_total_bytes=25)
    for name, age_s in (("old", 101), ("third", 3), ("second", 2), ("first", 1)):
        file = TranscriptFile(given, OWNER, name)
        file.write(b"123456789\n")
        file.close()
        os.utime(tmp_path / "t" / OWNER / name, (1000 - age_s, 1000 - age_s))
    assert sweep(given, now=1000.0) == 2
    assert names_in(tmp_path / "t" / OWNER) == ["first", "second"]


def test_settings_are_checked():
    for wrong in ({"dir": "relative"}, {"retention_s": 0.0}, {"max_file_bytes": 2**40}):
        with pytest.raises(SettingsError, match=r"worker\.transcript"):
            TranscriptSettings(**wrong)
