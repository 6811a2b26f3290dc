"""A recording is played, described, or refused with the line that is wrong."""

import json

import pytest

from fabric.cli.main import main
from fabric.cli.replay import load
from fabric.core.errors import InvalidRequestError

HEADER = {"version": 2, "width": 80, "height": 24, "title": "shell ses_x", "timestamp": 7}
EVENTS = [[0.1, "o", "one\r\n"], [0.2, "r", "100x30"], [3600.0, "o", "\x1b[31mtwo"]]


@pytest.fixture
def cast(tmp_path):
    path = tmp_path / "a.cast"
    path.write_text("\n".join(map(json.dumps, [HEADER, *EVENTS])) + "\n")
    return path


def test_all_at_once(cast, capsys):
    assert main(["replay", str(cast), "--no-wait"]) == 0
    assert capsys.readouterr().out == "one\r\n\x1b[31mtwo"


def test_played_with_its_pauses_cut(cast, capsys):
    assert main(["replay", str(cast), "--idle", "0.01", "--speed", "10"]) == 0
    assert capsys.readouterr().out == "one\r\n\x1b[31mtwo"


def test_described(cast, capsys):
    assert main(["replay", str(cast), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["cols"], facts["rows"], facts["seconds"], facts["events"]) == (80, 24, 3600.0, 3)


def test_a_last_line_that_was_never_finished_is_left_out(cast):
    with cast.open("a") as file:
        file.write('[9.0, "o", "hal')
    assert len(load(str(cast)).events) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no asciicast"),
        ("[]", "no asciicast"),
        ('{"version": 1}', "no asciicast"),
        ('{"version": 2}\n[1, "o"]\n[2, "o", "x"]\n', "line 2"),
        ('{"version": 2}\n{}\n\n', "line 2"),
    ],
)
def test_what_is_no_recording_is_refused(tmp_path, text, words):
    path = tmp_path / "a.cast"
    path.write_text(text)
    with pytest.raises(InvalidRequestError, match=words):
        load(str(path))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InvalidRequestError, match="cannot read"):
        load(str(tmp_path / "none"))
