"""Results as text for a person; pure functions of values."""

import time
from collections.abc import Sequence

from fabric.cli.output import visible
from fabric.core.model import (
    CloseOutcome,
    CloseResult,
    ExitStatus,
    NodeState,
    OpenResult,
    Outcome,
    OwnerEvent,
    ReadPage,
    SendResult,
    SessionInfo,
    SessionStatus,
    SignalDelivered,
    SignalName,
    TaskOutput,
    TaskRecord,
)

_GIB = 1024**3
UNKNOWN = "unknown; it may have run, in part or whole: read the session before repeating it"


def status_text(status: SessionStatus) -> str:
    """``running``, or how it ended."""
    if status.exit is None:
        return "running"
    return f"exited {exit_text(status.exit)}"


def exit_text(status: ExitStatus) -> str:
    """``code=0``, ``signal=SIGKILL``, or what else is known."""
    if status.signal is not None:
        text = f"signal={status.signal}"
    elif status.exit_code is not None:
        text = f"code={status.exit_code}"
    else:
        text = "for an unknown reason"
    return f"{text} ({visible(status.detail)})" if status.detail else text


def session_line(info: SessionInfo) -> str:
    """One line about a session."""
    parts: list[str] = [info.session_id]
    if info.name:
        parts.append(f"({visible(info.name)})")
    parts += [f"[{visible(info.type)}]", status_text(info.status)]
    if info.pid is not None:
        parts.append(f"pid={info.pid}")
    if info.host:
        parts.append(f"on {visible(info.host)}")
    if info.busy:
        parts.append("busy")
    return " ".join(parts)


def opened(result: OpenResult) -> str:
    """What ``open`` prints."""
    info = result.info
    name = f" ({visible(info.name)})" if info.name else ""
    head = f"started terminal session {info.session_id}{name} [type: {visible(info.type)}]"
    return f"{head}\n{result.motd or '(no startup output)'}"


def sent(result: SendResult) -> str:
    """What ``send`` prints: its output and the verdict."""
    lines = [result.viewport.rstrip("\n") or "(no new output)", f"[wait: {result.wait_reason}]"]
    if result.exit_code is not None:
        lines.append(f"[exit code: {result.exit_code}]")
    lines.append(f"[session: {status_text(result.status)}]")
    if result.outcome is not Outcome.COMPLETED:
        lines.append(f"[outcome: {UNKNOWN if result.outcome is Outcome.UNKNOWN else 'cancelled'}]")
    if result.truncated:
        lines.append(f"[output truncated: {result.omitted_bytes} bytes omitted]")
    return "\n".join(lines)


def page(result: ReadPage) -> str:
    """What ``read`` prints."""
    text = result.text.rstrip("\n") or "(no retained output)"
    rows = [text, f"[lines: {result.line_begin}-{result.line_end} of {result.total_lines}]"]
    if result.dropped_lines:
        rows.append(f"[{result.dropped_lines} older lines are no longer kept]")
    if result.truncated:
        rows.append("[output truncated]")
    return "\n".join(rows)


def signalled(name: SignalName, result: SignalDelivered) -> str:
    """What ``signal`` prints."""
    return f"delivered {name} to foreground process group {result.target_pgid}"


def closed(result: CloseResult) -> str:
    """What ``close`` prints: the session and what ended with it."""
    if result.outcome is CloseOutcome.ALREADY_CLOSING:
        return f"terminal session {result.session_id} was already closing"
    rows = [f"closed terminal session {result.session_id}"]
    if result.receipt is not None:
        rows += [
            f"  ended {item.pid} {visible(item.name)}"
            + (f" by {item.last_signal}" if item.last_signal else "")
            for item in result.receipt.ended
        ]
    return "\n".join(rows)


def sessions(rows: Sequence[SessionInfo]) -> str:
    """What ``list`` prints."""
    return "\n".join(map(session_line, rows)) or "(no terminal sessions)"


def nodes(rows: Sequence[NodeState]) -> str:
    """What ``nodes`` prints: one line a node."""
    return "\n".join(map(_node_line, rows)) or "(no nodes)"


def _node_line(node: NodeState) -> str:
    if not node.alive:
        return f"{visible(node.host)} down"
    parts = [
        visible(node.host),
        "draining" if node.draining else "up",
        visible(f"{node.os}/{node.arch}" if node.arch else node.os),
        f"sessions={node.sessions}/{node.max_sessions}",
        f"warm={node.warm}",
        f"ptys_free={node.ptys_free}",
        f"memory_free={node.memory_free_bytes / _GIB:.1f}GiB",
        f"sandbox={','.join(node.sandbox_kinds) or 'none'}",
    ]
    if node.gateway:
        parts.append(f"gateway={visible(node.gateway)}")
    return " ".join(parts)


def task_line(record: TaskRecord) -> str:
    """One line about a background send."""
    detail = f", {visible(record.detail)}" if record.detail else ""
    return f"{record.task_id} {record.state.value}{detail} — {visible(record.label)}"


def tasks(rows: Sequence[TaskRecord]) -> str:
    """What ``tasks`` prints."""
    return "\n".join(map(task_line, rows)) or "(no background tasks)"


def task_output(result: TaskOutput) -> str:
    """What ``output`` prints: the text and how the task stands."""
    record = result.record
    detail = f", {visible(record.detail)}" if record.detail else ""
    head = "[… some output was dropped …]\n" if result.truncated else ""
    text = result.text.rstrip("\n") or "(no output)"
    return f"{head}{text}\n[status: {record.state.value}{detail}]"


def killed(record: TaskRecord, *, requested: bool) -> str:
    """What ``kill`` prints."""
    if requested:
        return f"requested cancellation of task {record.task_id}"
    return f"task {record.task_id} had already finished [status: {record.state.value}]"


def event(value: OwnerEvent) -> str:
    """One line about an event."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(value.at))
    about = [part for part in (value.session_id, value.task_id) if part]
    detail = [f"({visible(value.detail)})"] if value.detail else []
    return " ".join([f"{value.sequence:>4}", at, value.kind.value, *about, *detail])
