"""The schemas of what tools give beside their text: closed objects, by the name of the tool.

Optional facts are absent, never null; ``exitCode`` and ``signal`` are null when they cannot
be known or the other one holds. A failed call has the shape of ``FAILURE`` instead.
"""

from typing import Any

from fabric.core.model import Evidence, Outcome, PromptKind, TaskState, WaitReason

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer"}
FLAG: Schema = {"type": "boolean"}
TIME: Schema = {"type": "number"}


def closed(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    """Give the schema of a closed object."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
    }


def one_of(*names: str) -> Schema:
    """Give the schema of a closed set of words."""
    return {"type": "string", "enum": list(names)}


STATUS: Schema = {
    "oneOf": [
        closed({"kind": {"const": "running"}}),
        closed(
            {
                "kind": {"const": "exited"},
                "exitCode": {"type": ["integer", "null"]},
                "signal": {"type": ["string", "null"]},
            }
        ),
    ]
}
WAIT_REASONS = (
    WaitReason.STDIN_READ,
    WaitReason.INFERRED_IDLE,
    WaitReason.TIMEOUT,
    WaitReason.SESSION_EXIT,
)
_SESSION = {"sessionId": TEXT, "type": TEXT, "status": STATUS}
_SESSION_MORE = {"name": TEXT, "pid": COUNT}
TASK = closed(
    {
        "id": TEXT,
        "kind": TEXT,
        "label": TEXT,
        "status": one_of(*TaskState),
        "startedAt": TIME,
    },
    {"detail": TEXT, "finishedAt": TIME},
)
_FOREGROUND = closed(
    {
        "kind": {"const": "foreground"},
        "viewport": TEXT,
        "waitReason": one_of(*WAIT_REASONS),
        "sessionStatus": STATUS,
        "truncated": FLAG,
        "evidence": one_of(*Evidence),
        "promptKind": one_of(*PromptKind),
        "outcome": one_of(*Outcome),
    },
    {"exitCode": COUNT},
)
_BACKGROUND = closed({"kind": {"const": "background"}, "taskId": TEXT})
FAILURE: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"reason": TEXT, "message": TEXT},
            "required": ["reason", "message"],
        }
    },
    "required": ["error"],
    "additionalProperties": False,
}

_SHARED = {
    "generation": COUNT,
    "sequence": COUNT,
    "rows": COUNT,
    "cols": COUNT,
    "viewport": TEXT,
    "cursor": closed({"x": COUNT, "y": COUNT}),
    "status": STATUS,
    "queueStatus": one_of("ready", "busy", "blocked", "exited", "disposed"),
    "holder": {
        "enum": ["model-send", "human", "signal", "reset", "disconnect-recovery", None],
    },
    "pendingCount": COUNT,
    "truncated": FLAG,
}
_SHARED_DONE = _SHARED | {
    "queueTimeMs": COUNT,
    "waitReason": one_of(
        WaitReason.PROMPT,
        WaitReason.STDIN_READ,
        WaitReason.SESSION_EXIT,
        WaitReason.TIMEOUT,
        WaitReason.CANCELLED,
        WaitReason.HUMAN_HANDOFF,
    ),
}

VALUES: dict[str, Schema] = {
    "shared_terminal_send": closed(_SHARED_DONE | {"output": TEXT}),
    "shared_terminal_read": closed(
        _SHARED | {"text": TEXT, "totalLines": COUNT, "lineBegin": COUNT, "lineEnd": COUNT}
    ),
    "shared_terminal_signal": closed(
        _SHARED_DONE | {"output": TEXT, "processGroupId": {"type": ["integer", "null"]}}
    ),
    "shared_terminal_reset": closed(_SHARED_DONE),
    "terminal_open": closed(_SESSION | {"motd": TEXT}, _SESSION_MORE),
    "terminal_send": {"type": "object", "oneOf": [_FOREGROUND, _BACKGROUND]},
    "terminal_read": closed(
        {
            "text": TEXT,
            "totalLines": COUNT,
            "lineBegin": COUNT,
            "lineEnd": COUNT,
            "truncated": FLAG,
            "droppedLines": COUNT,
            "droppedBytes": COUNT,
        }
    ),
    "terminal_signal": closed({"delivered": {"const": True}, "targetPgid": COUNT}),
    "terminal_wait": closed(
        {
            "matched": one_of("pattern", "quiet", "ready", "exit", "timeout"),
            "text": TEXT,
            "nextOffset": COUNT,
            "truncated": FLAG,
            "sessionStatus": STATUS,
        },
        {"matchText": TEXT},
    ),
    "terminal_close": closed({"sessionId": TEXT, "outcome": one_of("closed", "already-closing")}),
    "terminal_list": closed(
        {"sessions": {"type": "array", "items": closed(_SESSION, _SESSION_MORE)}}
    ),
    "task_output": closed({"text": TEXT, "truncated": FLAG, "task": TASK}),
    "task_list": closed({"tasks": {"type": "array", "items": TASK}}),
    "task_kill": closed(
        {"outcome": one_of("cancellation-requested", "already-finished"), "task": TASK}
    ),
    "pty_open": closed(
        {"sessionId": TEXT, "status": STATUS, "initialOutput": TEXT}, {"pid": COUNT}
    ),
    "pty_send": closed({"delta": TEXT, "status": STATUS}),
    "pty_tail": closed({"text": TEXT, "lines": COUNT, "truncated": FLAG}),
    "pty_close": closed({"closed": FLAG}),
}
