"""Frames: closed, versioned, understood whole or not at all."""

import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.core.shared import SharedStatus
from fabric.web import frames

GOOD = [
    ('{"v":1,"generation":3,"type":"human.begin"}', frames.Begin()),
    ('{"v":1,"generation":3,"type":"human.begin","data":"l"}', frames.Begin(b"l")),
    ('{"v":1,"generation":3,"type":"human.takeover","target":7}', frames.TakeOver(7)),
    ('{"v":1,"generation":3,"type":"human.input","data":"ü😀"}', frames.Input("ü😀".encode())),
    ('{"v":1,"generation":3,"type":"human.input","data":"\\u0003"}', frames.Input(b"\x03")),
    ('{"v":1,"generation":3,"type":"human.cancel"}', frames.Cancel()),
    ('{"v":1,"generation":3,"type":"terminal.reset","confirmed":true}', frames.Reset()),
    ('{"v":1,"generation":3,"type":"ack","sequence":0}', frames.Ack(0)),
    ('{"v":1,"generation":3,"type":"heartbeat"}', frames.Heartbeat()),
    ('{"v":1,"generation":3,"type":"snapshot"}', frames.Again()),
    ('{"v":1,"generation":3,"type":"watch","session":"ses_x"}', frames.Watch("ses_x")),
]
BAD = [
    "", "null", "[]", "3", '"x"', "{", '{"v":1}', "\x00", "[" * 100_000, '{"v":' + "1" * 5000 + "}",
    '{"generation":3,"type":"heartbeat"}',
    '{"v":2,"generation":3,"type":"heartbeat"}',
    '{"v":true,"generation":3,"type":"heartbeat"}',
    '{"v":1.0,"generation":3,"type":"heartbeat"}',
    '{"v":"1","generation":3,"type":"heartbeat"}',
    '{"v":1,"type":"heartbeat"}',
    '{"v":1,"generation":2,"type":"heartbeat"}',
    '{"v":1,"generation":4,"type":"heartbeat"}',
    '{"v":1,"generation":true,"type":"heartbeat"}',
    '{"v":1,"generation":3.0,"type":"heartbeat"}',
    '{"v":1,"generation":-3,"type":"heartbeat"}',
    '{"v":1,"generation":null,"type":"heartbeat"}',
    '{"v":1,"generation":3}',
    '{"v":1,"generation":3,"type":null}',
    '{"v":1,"generation":3,"type":""}',
    '{"v":1,"generation":3,"type":"hello","ticket":"x"}',
    '{"v":1,"generation":3,"type":"human.grant"}',
    '{"v":1,"generation":3,"type":"heartbeat","more":1}',
    '{"v":1,"generation":3,"type":"heartbeat","type":"heartbeat"}',
    '{"v":1,"generation":3,"type":"human.begin","data":""}',
    '{"v":1,"generation":3,"type":"human.begin","data":null}',
    '{"v":1,"generation":3,"type":"human.input"}',
    '{"v":1,"generation":3,"type":"human.input","data":3}',
    '{"v":1,"generation":3,"type":"human.input","data":["a"]}',
    '{"v":1,"generation":3,"type":"human.input","data":"a","lease":1}',
    '{"v":1,"generation":3,"type":"human.input","data":"\\ud800"}',
    '{"v":1,"generation":3,"type":"human.takeover"}',
    '{"v":1,"generation":3,"type":"human.takeover","target":"7"}',
    '{"v":1,"generation":3,"type":"human.takeover","target":-1}',
    '{"v":1,"generation":3,"type":"human.takeover","target":9007199254740993}',
    '{"v":1,"generation":3,"type":"human.takeover","target":7,"data":"x"}',
    '{"v":1,"generation":3,"type":"human.cancel","data":"x"}',
    '{"v":1,"generation":3,"type":"terminal.reset"}',
    '{"v":1,"generation":3,"type":"terminal.reset","confirmed":false}',
    '{"v":1,"generation":3,"type":"terminal.reset","confirmed":1}',
    '{"v":1,"generation":3,"type":"ack","sequence":NaN}',
    '{"v":1,"generation":3,"type":"ack","sequence":1e3}',
    '{"v":1,"generation":3,"type":"watch","session":""}',
    '{"v":1,"generation":3,"type":"watch","session":"' + "x" * 200 + '"}',
]  # fmt: skip
BAD_HELLOS = [
    "", "{}", '{"v":1,"type":"hello"}', '{"v":1,"type":"hello","ticket":""}',
    '{"v":1,"type":"hello","ticket":"a","resume":"b"}', '{"v":1,"type":"hello","ticket":1}',
    '{"v":1,"type":"hello","ticket":"a","generation":1}', '{"v":2,"type":"hello","ticket":"a"}',
    '{"v":1,"type":"hello","ticket":"a","ticket":"b"}', '{"v":1,"type":"heartbeat","ticket":"a"}',
    '{"v":1,"type":"hello","resume":null}', '{"v":1,"type":"hello","ticket":"' + "a" * 129 + '"}',
]  # fmt: skip


@pytest.mark.parametrize(("text", "frame"), GOOD)
def test_a_frame_is_understood(text, frame):
    assert frames.parse(text, 3) == frame


@pytest.mark.parametrize("text", BAD)
def test_anything_else_breaks_the_protocol(text):
    with pytest.raises(frames.FrameError):
        frames.parse(text, 3)


def test_hello_has_a_ticket_or_a_pass():
    assert frames.parse_hello('{"v":1,"type":"hello","ticket":"a"}') == frames.Hello(ticket="a")
    assert frames.parse_hello('{"type":"hello","v":1,"resume":"b"}') == frames.Hello(resume="b")


@pytest.mark.parametrize("text", BAD_HELLOS)
def test_any_other_hello_breaks_the_protocol(text):
    with pytest.raises(frames.FrameError):
        frames.parse_hello(text)


@given(st.text(max_size=200))
def test_no_text_is_more_than_a_broken_promise(text):
    for read in (frames.parse_hello, lambda text: frames.parse(text, 1)):
        with contextlib.suppress(frames.FrameError):
            read(text)


@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=["Cs"])))
def test_what_is_typed_arrives(text):
    frame = {"v": 1, "generation": 1, "type": "human.input", "data": text}
    for as_ascii in (True, False):
        found = frames.parse(json.dumps(frame, ensure_ascii=as_ascii), 1)
        assert found == frames.Input(text.encode())


def test_the_largest_input_fits_its_frame():
    frame = {"v": 1, "generation": 2**40, "type": "human.input", "data": "\x01" * 1000}
    assert len(json.dumps(frame)) <= frames.max_frame_bytes(1000)


def test_errors_do_not_repeat_what_was_typed():
    text = '{"v":1,"generation":3,"type":"human.input","data":"hunter2","x":1}'
    with pytest.raises(frames.FrameError) as caught:
        frames.parse(text, 3)
    assert "hunter2" not in str(caught.value)


def _read(text):
    frame = json.loads(text)
    assert frame.pop("v") == 1
    assert frame.pop("generation") == 3
    return frame


def test_attached():
    shown = frames.Shown("shared", "n", "shell", "h", 40, 160, 10_000, 65_536, 15.0, 15.0, 262_144)
    frame = _read(frames.attached(3, shown, reason="", resume="r"))
    assert frame.pop("settings") == {
        "rows": 40, "cols": 160, "scrollback_lines": 10_000, "max_input_bytes": 65_536,
        "heartbeat_s": 15.0, "grace_s": 15.0, "window_bytes": 262_144,
    }  # fmt: skip
    session = {"name": "n", "program": "shell", "node": "h"}
    expected = {"type": "attached", "kind": "shared", "resume": "r", "session": session}
    assert frame == expected | {"role": "controller"}
    reader = _read(frames.attached(3, shown, reason="occupied", resume="r"))
    assert (reader["role"], reader["reason"]) == ("readonly", "occupied")


def test_what_is_shown():
    data = bytes(range(256))
    text = base64.b64encode(data).decode()
    assert _read(frames.output(3, 256, data)) == {"type": "output", "sequence": 256, "data": text}
    assert _read(frames.snapshot(3, 9, data, rows=4, cols=5, truncated=True)) == {
        "type": "snapshot", "sequence": 9, "data": text, "rows": 4, "cols": 5, "truncated": True,
    }  # fmt: skip


def test_status_and_error():
    status = SharedStatus(3, "busy", "model-send", 2, 17, None, False, 4)
    assert _read(frames.status(3, status, 99)) == {
        "type": "status", "process": "running", "queue": "busy", "holder": "model-send",
        "pending": 2, "takeover": 17, "sequence": 99,
    }  # fmt: skip
    ended = SharedStatus(3, "exited", None, 0, None, None, True)
    assert _read(frames.status(3, ended, 0))["process"] == "exited"
    assert _read(frames.fault(3, "R", "a \ud800 b")) == {
        "type": "error", "reason": "R", "message": "a \ud800 b",
    }  # fmt: skip
