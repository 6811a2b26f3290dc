"""The text of every answer, complete and within its bound.

The forms are fixed: models learn them, and scripts compare them. What a terminal said is
never quoted or escaped; everything around it is on lines of its own in brackets.
"""

import json
from typing import Any

from fabric.core.errors import FabricError
from fabric.core.model import (
    CloseOutcome,
    CloseResult,
    OpenResult,
    Outcome,
    ReadPage,
    SendResult,
    SessionInfo,
    SessionStatus,
    SignalDelivered,
    SignalName,
    TailPage,
    TaskOutput,
    TaskRecord,
    TaskState,
    WaitResult,
)
from fabric.tools.bound import (
    RESULT_TRUNCATED,
    TRUNCATED,
    finalize,
    keep_ends,
    keep_head,
    keep_tail,
    reserve,
    reserve_prefix,
    size,
)

NOTICE_ACTION = "Done; task_output."
UNKNOWN = "unknown; it may have run, in part or whole: read before you repeat it"


def status(value: SessionStatus) -> str:
    """Say ``running`` or how it exited, absent facts as ``null``."""
    if value.exit is None:
        return "running"
    code = "null" if value.exit.exit_code is None else str(value.exit.exit_code)
    return f"exited code={code} signal={value.exit.signal or 'null'}"


def opened(result: OpenResult, max_bytes: int) -> str:
    """Render an open: id, name, type and what was printed before the first prompt."""
    info = result.info
    name = f" ({info.name})" if info.name else ""
    prefix = f"started terminal session {info.session_id}{name} [type: {info.type}]\n"
    motd = result.motd or "(no startup output)"
    return reserve_prefix(prefix, motd, max_bytes, truncated=result.truncated)


def sent(result: SendResult, max_bytes: int) -> str:
    """Render a foreground send."""
    suffix = f"\n[wait: {result.wait_reason.value}]\n[session: {status(result.status)}]"
    if result.outcome is Outcome.UNKNOWN:
        suffix += f"\n[outcome: {UNKNOWN}]"
    body = result.viewport or "(no new output)"
    return reserve(body, suffix, max_bytes, truncated=result.truncated, ends=True)


def started(record: TaskRecord, max_bytes: int) -> str:
    """Render the acknowledgement of a background send."""
    return finalize(f"started background task {record.task_id}", max_bytes)


def page(value: ReadPage, max_bytes: int) -> str:
    """Render a page of scrollback."""
    suffix = f"\n[lines: {value.line_begin}-{value.line_end} of {value.total_lines}]"
    body = value.text or "(no retained output)"
    return reserve(body, suffix, max_bytes, truncated=value.truncated)


def tailed(value: TailPage, max_bytes: int) -> str:
    """Render the new lines of a tail."""
    return reserve(value.text or "(no new output)", "", max_bytes, truncated=value.truncated)


def as_json(value: dict[str, Any], field: str, max_bytes: int) -> str:
    """Render a value as one JSON text; its long ``field`` gives way so that it stays JSON."""
    text = json.dumps(value, ensure_ascii=False)
    if size(text) <= max_bytes or not field:
        return finalize(text, max_bytes)
    least, most, text = 0, max_bytes, _cut_json(value, field, 0)
    while least < most:  # escapes take room, so what fits is found by trying
        room = (least + most + 1) // 2
        tried = _cut_json(value, field, room)
        if size(tried) <= max_bytes:
            least, text = room, tried
        else:
            most = room - 1
    return finalize(text, max_bytes)


def _cut_json(value: dict[str, Any], field: str, room: int) -> str:
    cut = {**value, field: keep_ends(value[field], room), "truncated": True}
    return json.dumps(cut, ensure_ascii=False)


def signalled(name: SignalName, value: SignalDelivered, max_bytes: int) -> str:
    """Render a delivered signal."""
    text = f"delivered {name.value} to foreground process group {value.target_pgid}"
    return finalize(text, max_bytes)


def closed(result: CloseResult, max_bytes: int) -> str:
    """Render a close."""
    if result.outcome is CloseOutcome.CLOSED:
        return finalize(f"closed terminal session {result.session_id}", max_bytes)
    return finalize(f"terminal session {result.session_id} was already closing", max_bytes)


def listed(sessions: tuple[SessionInfo, ...], max_bytes: int) -> str:
    """Render the owner's sessions, one a line."""
    rows = []
    for info in sessions:
        name = f" ({info.name})" if info.name else ""
        pid = "" if info.pid is None else f" pid={info.pid}"
        rows.append(f"{info.session_id}{name} [{info.type}] {status(info.status)}{pid}")
    return reserve("\n".join(rows) or "(no terminal sessions)", "", max_bytes, truncated=False)


def waited(result: WaitResult, max_bytes: int) -> str:
    """Render a wait beside the terminal."""
    suffix = f"\n[matched: {result.matched}]\n[session: {status(result.status)}]"
    body = result.text or "(no new output)"
    return reserve(body, suffix, max_bytes, truncated=result.truncated, ends=True)


def task_status(record: TaskRecord) -> str:
    """Say a task's state and detail in brackets."""
    detail = f", {record.detail}" if record.detail else ""
    return f"[status: {record.state.value}{detail}]"


def task_output(output: TaskOutput, max_bytes: int) -> str:
    """Render what is new of a task; the mark stands once, right before the status."""
    line = task_status(output.record)
    body = output.text or ("" if output.truncated else "(no new output)")
    whole = f"{_line(body)}{_line(TRUNCATED) if output.truncated else ''}{line}"
    if size(whole) <= max_bytes:
        return whole
    fixed = f"{TRUNCATED}\n{line}"
    room = max_bytes - size(fixed) - 1
    if room >= 0:
        return f"{_line(keep_tail(body, room))}{fixed}"
    state = f"[status: {output.record.state.value}]"  # a long detail gives way to the state
    for short in (line, f"{TRUNCATED}\n{state}", state):
        if size(short) <= max_bytes:
            return short
    return keep_tail(state, max_bytes)


def _line(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def task_list(records: tuple[TaskRecord, ...], max_bytes: int) -> str:
    """Render the owner's tasks, one a line."""
    rows = [f"{row.task_id} [{row.kind}] {row.state.value} — {row.label}" for row in records]
    return reserve("\n".join(rows) or "(no background tasks)", "", max_bytes, truncated=False)


def task_killed(record: TaskRecord, max_bytes: int) -> str:
    """Render the answer to a kill."""
    if record.state is TaskState.STOPPING:
        text = f"requested cancellation of task {record.task_id}"
    else:
        text = f"task {record.task_id} had already finished {task_status(record)}"
    return finalize(text, max_bytes, RESULT_TRUNCATED)


def failed(error: FabricError, max_bytes: int, mark: str = TRUNCATED) -> str:
    """Render an error; ``mark`` is that of the tool's family."""
    return finalize(f"Error: {error.message}", max_bytes, mark)


def notice(record: TaskRecord, max_bytes: int) -> str:
    """Render the notice that a task has settled, in the longest form that fits."""
    text = (
        f"background task {record.task_id} ({record.kind}: {record.label}) finished "
        f"{task_status(record)}. Read its output with task_output."
    )
    if size(text) <= max_bytes:
        return text
    prefix = f"background task {record.task_id}"
    closing = f"\n[notice truncated]\n{NOTICE_ACTION}"
    room = max_bytes - size(closing)
    if room >= size(prefix):
        return keep_head(text, room) + closing
    short = f"{prefix}\n{NOTICE_ACTION}"
    if size(short) <= max_bytes:
        return short
    room = max_bytes - size(NOTICE_ACTION) - 1
    if room > 0:
        return f"{keep_head(prefix, room).rstrip()}\n{NOTICE_ACTION}"
    return keep_tail(NOTICE_ACTION, max_bytes)
