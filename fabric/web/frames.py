"""What a page and the server say to each other: closed, versioned frames of JSON text.

Theory
    The first frame is ``hello`` with a ticket or a pass and nothing else. Each later one
    carries the version, the generation of the terminal it is about and exactly the fields
    of its type: what is missing, unknown, doubled or of another type is a broken promise,
    and so is a generation that is not the present one. There is no room for a frame that
    is understood in part. Nothing here knows who may say what; ``fabric.web.bridge`` does.

The table of all frames is in the README of this room.
"""

import base64
import json
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from fabric.core.shared import SharedStatus

VERSION = 1
PROTOCOL = "pty-fabric.v1"
MAX_SECRET = 128
MAX_ID = 140
MAX_NUMBER = 2**53
OVERHEAD_BYTES = 1024
ESCAPE_BYTES = 6  # one byte of input takes at most this much as JSON


class Close(IntEnum):
    """Why a connection is closed; the codes below 4000 are those of RFC 6455."""

    GOING_AWAY = 1001
    INVALID_UTF8 = 1007
    VIOLATION = 1008
    TOO_BIG = 1009
    FAILURE = 1011
    SLOW = 1013
    RESET = 4001
    DISPOSED = 4002
    REFUSED = 4003
    REPLACED = 4004


class FrameError(Exception):
    """A frame that breaks the protocol."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame: a ticket, which a page may take for reading only, or a pass."""

    ticket: str = ""
    resume: str = ""
    readonly: bool = False


@dataclass(frozen=True, slots=True)
class Begin:
    """Take the idle terminal and type ``data``."""

    data: bytes = b""


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Take over the model's operation ``target``."""

    target: int


@dataclass(frozen=True, slots=True)
class Input:
    """Type under the lease."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Cancel:
    """Interrupt the program of the lease and give the lease up."""


@dataclass(frozen=True, slots=True)
class Reset:
    """End the shell and start the next one; confirmed."""


@dataclass(frozen=True, slots=True)
class Ack:
    """The page has shown everything up to ``sequence``."""

    sequence: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The page lives, and asks whether the server does."""


@dataclass(frozen=True, slots=True)
class Again:
    """Send a new snapshot."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Give a ticket for one session of the overview."""

    session: str


Frame = Begin | TakeOver | Input | Cancel | Reset | Ack | Heartbeat | Again | Watch


def max_frame_bytes(max_input_bytes: int) -> int:
    """Return how large a frame of a page can be, in bytes."""
    return max_input_bytes * ESCAPE_BYTES + OVERHEAD_BYTES


# -- from the page ------------------------------------------------------------------------


def parse_hello(text: str) -> Hello:
    """Read the first frame. Raises: FrameError."""
    found = _object(text)
    if _word(found, "type", MAX_SECRET) != "hello":
        raise FrameError("the first frame must be hello")
    names = found.keys() - {"v", "type"}
    if names == {"ticket"}:
        return Hello(ticket=_word(found, "ticket", MAX_SECRET))
    if names == {"ticket", "readonly"} and found["readonly"] is True:
        return Hello(ticket=_word(found, "ticket", MAX_SECRET), readonly=True)
    if names == {"resume"}:
        return Hello(resume=_word(found, "resume", MAX_SECRET))
    raise FrameError("hello has a ticket, which readonly may go with, or a resume")


def parse(text: str, generation: int) -> Frame:
    """Read a later frame. Raises: FrameError."""
    found = _object(text)
    kind = _word(found, "type", MAX_SECRET)
    if _number(found, "generation") != generation:
        raise FrameError("the generation is not the present one")
    names = frozenset(found.keys() - {"v", "type", "generation"})
    fields = _FIELDS.get(kind)
    if fields is None:
        raise FrameError("the type is unknown")
    if not any(names == known for known in fields):
        raise FrameError(f"{kind} has other fields")
    return _made(kind, found)


_NONE: frozenset[str] = frozenset()
_DATA = frozenset({"data"})
_FIELDS: dict[str, tuple[frozenset[str], ...]] = {
    "human.begin": (_NONE, _DATA),
    "human.takeover": (frozenset({"target"}),),
    "human.input": (_DATA,),
    "human.cancel": (_NONE,),
    "terminal.reset": (frozenset({"confirmed"}),),
    "ack": (frozenset({"sequence"}),),
    "heartbeat": (_NONE,),
    "snapshot": (_NONE,),
    "watch": (frozenset({"session"}),),
}


def _made(kind: str, found: dict[str, Any]) -> Frame:
    if kind == "human.begin":
        return Begin(_data(found) if "data" in found else b"")
    if kind == "human.takeover":
        return TakeOver(_number(found, "target"))
    if kind == "human.input":
        return Input(_data(found))
    if kind == "human.cancel":
        return Cancel()
    if kind == "terminal.reset":
        if found["confirmed"] is not True:
            raise FrameError("a reset must be confirmed")
        return Reset()
    if kind == "ack":
        return Ack(_number(found, "sequence"))
    if kind == "heartbeat":
        return Heartbeat()
    if kind == "snapshot":
        return Again()
    return Watch(_word(found, "session", MAX_ID))


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text, object_pairs_hook=_closed, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise FrameError("not a frame of JSON") from error
    if not isinstance(found, dict):
        raise FrameError("a frame is an object")
    version = found.get("v")
    if type(version) is not int or version != VERSION:
        raise FrameError("the version is not 1")
    return found


def _closed(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field is there twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _word(found: dict[str, Any], name: str, longest: int) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise FrameError(f"{name} must be a text of 1 to {longest} characters")
    return value


def _number(found: dict[str, Any], name: str) -> int:
    value = found.get(name)
    if type(value) is not int or not 0 <= value < MAX_NUMBER:
        raise FrameError(f"{name} must be a whole number")
    return value


def _data(found: dict[str, Any]) -> bytes:
    value = found["data"]
    if not isinstance(value, str) or not value:
        raise FrameError("data must be a text that is not empty")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise FrameError("data must be valid Unicode") from error


# -- to the page --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page is told of the session it shows and of the bounds it lives in."""

    kind: str
    name: str
    program: str
    node: str
    rows: int
    cols: int
    scrollback_lines: int
    max_input_bytes: int
    heartbeat_s: float
    grace_s: float
    window_bytes: int


def render(name: str, generation: int, /, **facts: Any) -> str:
    """Write a frame."""
    frame = {"v": VERSION, "generation": generation, "type": name, **facts}
    return json.dumps(frame, separators=(",", ":"))


def attached(generation: int, shown: Shown, *, reason: str, resume: str) -> str:
    """Say what the view is and may do; ``reason`` is empty for the controller."""
    facts: dict[str, Any] = {"role": "readonly" if reason else "controller"}
    if reason:
        facts["reason"] = reason
    return render(
        "attached",
        generation,
        **facts,
        resume=resume,
        kind=shown.kind,
        session={"name": shown.name, "program": shown.program, "node": shown.node},
        settings={
            "rows": shown.rows,
            "cols": shown.cols,
            "scrollback_lines": shown.scrollback_lines,
            "max_input_bytes": shown.max_input_bytes,
            "heartbeat_s": shown.heartbeat_s,
            "grace_s": shown.grace_s,
            "window_bytes": shown.window_bytes,
        },
    )


def snapshot(
    generation: int, sequence: int, data: bytes, *, rows: int, cols: int, truncated: bool
) -> str:
    """Paint the screen anew; what follows begins at ``sequence``."""
    return render(
        "snapshot",
        generation,
        sequence=sequence,
        data=base64.b64encode(data).decode(),
        rows=rows,
        cols=cols,
        truncated=truncated,
    )


def output(generation: int, sequence: int, data: bytes) -> str:
    """Go on painting; ``sequence`` is where these bytes end."""
    return render("output", generation, sequence=sequence, data=base64.b64encode(data).decode())


def status(generation: int, told: SharedStatus, sequence: int) -> str:
    """Say how the terminal and its queue stand."""
    return render(
        "status",
        generation,
        process="exited" if told.exited else "running",
        queue=told.queue_status,
        holder=told.holder,
        pending=told.pending_count,
        takeover=told.takeover,
        sequence=sequence,
    )


def fault(generation: int, reason: str, message: str) -> str:
    """Say that something asked for was not done."""
    return render("error", generation, reason=reason, message=message)
