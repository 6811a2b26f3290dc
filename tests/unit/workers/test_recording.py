"""A recording is an asciicast of what the terminal printed, less the secrets."""

import json

from fabric.core.clock import ManualClock
from fabric.core.settings import TranscriptSettings
from tests.support.local_worker import spec_for
from workers.recording import Recording


def recorded(folder):
    (path,) = folder.glob("*/*.cast")
    header, *events = (json.loads(line) for line in path.read_text().splitlines())
    return header, events


def test_output_and_sizes_with_their_times(tmp_path):
    clock = ManualClock()
    spec = spec_for(rows=24, cols=80)
    recording = Recording.begun(TranscriptSettings(dir=str(tmp_path)), spec, clock)
    clock.advance(1.5)
    recording.output("$ \x1b[1m漢".encode()[:-1])
    clock.advance(0.5)
    recording.output("漢".encode()[-1:] + b"\r\n\xff")
    recording.resized(50, 132)
    recording.close()
    recording.output(b"too late")
    header, events = recorded(tmp_path)
    assert (header["version"], header["width"], header["height"]) == (2, 80, 24)
    assert header["env"] == {"TERM": "dumb"}
    assert events == [
        [1.5, "o", "$ \x1b[1m"],
        [2.0, "o", "漢\r\n�"],
        [2.0, "r", "132x50"],
    ]


def test_values_of_credentials_are_hidden_wherever_the_output_is_cut(tmp_path, monkeypatch):
    monkeypatch.setenv("SERVICE_API_KEY", "ambient-secret")
    spec = spec_for(env=(("DB_PASSWORD", "given-secret"), ("PLAIN", "given-plain")))
    recording = Recording.begun(TranscriptSettings(dir=str(tmp_path)), spec, ManualClock())
    for piece in (b"ambient-", b"secret given-s", b"ecret given-plain ambient-"):
        recording.output(piece)
    recording.close()
    _, events = recorded(tmp_path)
    assert "".join(text for _, _, text in events) == "*** *** given-plain ambient-"


def test_nothing_is_recorded_unless_it_is_wanted():
    assert Recording.begun(TranscriptSettings(), spec_for(), ManualClock()) is None
