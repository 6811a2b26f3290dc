"""Results of the shared terminal: one JSON text, bounded as a whole.

The bound counts the escaped text as it is sent. What is cut is the beginning of the long
texts, so the newest valid suffix stays; the screen may take half of the room, the rest is
for what the operation printed or the page that was read. Numbers and states are never cut.
"""

import json
from typing import Any

from fabric.core.shared import SharedPage, SharedResult, SharedState

Value = dict[str, Any]


def state_value(state: SharedState) -> Value:
    """Return the facts every result has."""
    end = state.status.exit
    status: Value = {"kind": "running"}
    if end is not None:
        status = {"kind": "exited", "exitCode": end.exit_code, "signal": end.signal}
    return {
        "generation": state.generation,
        "sequence": state.sequence,
        "rows": state.rows,
        "cols": state.cols,
        "viewport": state.viewport,
        "cursor": {"x": state.cursor_x, "y": state.cursor_y},
        "status": status,
        "queueStatus": state.queue_status,
        "holder": state.holder,
        "pendingCount": state.pending_count,
        "truncated": state.truncated,
    }


def result_value(result: SharedResult, *, with_group: bool = False) -> Value:
    """Return the facts of an operation."""
    value = state_value(result.state)
    value |= {"queueTimeMs": result.queue_time_ms, "waitReason": result.wait_reason.value}
    if result.output is not None:
        value["output"] = result.output
    if with_group:
        value["processGroupId"] = result.process_group
    return value


def page_value(page: SharedPage) -> Value:
    """Return the facts of a page of history."""
    value = state_value(page.state)
    value |= {
        "text": page.text,
        "totalLines": page.total_lines,
        "lineBegin": page.line_begin,
        "lineEnd": page.line_end,
    }
    value["truncated"] = value["truncated"] or page.truncated
    return value


def bounded(value: Value, max_bytes: int) -> tuple[str, Value]:
    """Return the JSON text within ``max_bytes`` and the value it says."""
    text = _json(value)
    if _size(text) <= max_bytes:
        return text, value
    long = "text" if "text" in value else "output" if "output" in value else ""
    kept = dict(value) | {"viewport": "", "truncated": True}
    if long:
        kept[long] = ""
    room = max_bytes - _size(_json(kept))
    screen = value["viewport"]
    if not long:
        kept["viewport"] = suffix(screen, room)
    else:
        screen_room = min(_cost(screen), room // 2)
        kept[long] = suffix(value[long], room - screen_room)
        kept["viewport"] = suffix(screen, room - _cost(kept[long]))
    if long == "text":
        lost = value["text"].count("\n") - kept["text"].count("\n")
        kept["lineBegin"] = value["lineEnd"] if not kept["text"] else value["lineBegin"] + lost
    return _json(kept), kept


def suffix(text: str, max_bytes: int) -> str:
    """Return the newest characters whose escaped form fits."""
    left, at = max_bytes, len(text)
    while at > 0:
        left -= _cost(text[at - 1])
        if left < 0:
            break
        at -= 1
    return text[at:]


def _json(value: Value) -> str:
    return json.dumps(value, ensure_ascii=False)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _cost(text: str) -> int:
    return _size(_json_text(text)) - 2


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
