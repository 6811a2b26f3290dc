"""A session's results as protobuf messages and back; no message passes this room.

Every function comes in two directions: ``x_message(value)`` and ``x_of(message)``. A value
that went out and came back is equal, apart from times, which keep nanoseconds.
"""

from fabric.api.v1 import (
    pty_service_pb2,
    terminal_service_pb2,
    types_pb2,
)
from fabric.core.ids import HostName, OwnerId, SessionId
from fabric.core.model import (
    BytesPage,
    CloseReceipt,
    CloseResult,
    Confinement,
    EndedProcess,
    Evidence,
    ExitStatus,
    Network,
    OpenResult,
    Outcome,
    PromptKind,
    ReadPage,
    ScreenSnapshot,
    SendResult,
    SessionInfo,
    SessionStatus,
    TailPage,
    WaitResult,
)
from fabric.wire import scalars
from fabric.wire.scalars import clean, clean_or_none, duration, seconds_of, timestamp, wall_of

_RUNNING = types_pb2.SessionStatus()
_RUNNING_STATUS = SessionStatus()


def exit_message(value: ExitStatus | None) -> types_pb2.ExitStatus | None:
    """Convert how a process ended."""
    if value is None:
        return None
    return types_pb2.ExitStatus(
        exit_code=value.exit_code, signal=value.signal, detail=clean_or_none(value.detail)
    )


def exit_of(message: types_pb2.ExitStatus) -> ExitStatus:
    """Convert how a process ended."""
    return ExitStatus(
        message.exit_code if message.HasField("exit_code") else None,
        message.signal if message.HasField("signal") else None,
        message.detail if message.HasField("detail") else None,
    )


def status_message(value: SessionStatus) -> types_pb2.SessionStatus:
    """Convert a session's status."""
    if value.exit is None:
        return _RUNNING
    return types_pb2.SessionStatus(exit=exit_message(value.exit))


def status_of(message: types_pb2.SessionStatus) -> SessionStatus:
    """Convert a session's status."""
    return SessionStatus(exit_of(message.exit)) if message.HasField("exit") else _RUNNING_STATUS


def info_message(value: SessionInfo) -> types_pb2.SessionInfo:
    """Convert the description of a session."""
    confinement = value.confinement
    return types_pb2.SessionInfo(
        session_id=value.session_id,
        owner_id=value.owner_id,
        type=value.type,
        status=status_message(value.status),
        name=clean_or_none(value.name),
        pid=value.pid,
        host=value.host,
        cwd=clean_or_none(value.cwd),
        confinement=types_pb2.Confinement(
            mode=scalars.SANDBOX_MODE.numbers[confinement.mode],
            network=scalars.NETWORK.numbers[confinement.network],
            kind=confinement.kind,
            partial=confinement.partial,
            workspace_root=clean_or_none(confinement.workspace_root),
            run_as=clean_or_none(confinement.run_as),
            limited_by=confinement.limited_by,
            limits=confinement.limits,
            unmet_limits=confinement.unmet_limits,
        ),
        rows=value.rows,
        cols=value.cols,
        created_at=timestamp(value.created_at),
        last_activity_at=timestamp(value.last_activity_at),
        adoption=value.adoption,
        busy=value.busy,
    )


def info_of(message: types_pb2.SessionInfo) -> SessionInfo:
    """Convert the description of a session."""
    confinement = message.confinement
    return SessionInfo(
        session_id=SessionId(message.session_id),
        owner_id=OwnerId(message.owner_id),
        type=message.type,
        status=status_of(message.status),
        name=message.name if message.HasField("name") else None,
        pid=message.pid if message.HasField("pid") else None,
        host=HostName(message.host) if message.HasField("host") else None,
        cwd=message.cwd if message.HasField("cwd") else None,
        confinement=Confinement(
            mode=scalars.SANDBOX_MODE.of(confinement.mode),
            network=scalars.NETWORK.known_or(confinement.network, Network.SHARED),
            kind=confinement.kind,
            partial=confinement.partial,
            workspace_root=(
                confinement.workspace_root if confinement.HasField("workspace_root") else None
            ),
            run_as=confinement.run_as if confinement.HasField("run_as") else None,
            limited_by=confinement.limited_by or "none",
            limits=tuple(confinement.limits),
            unmet_limits=tuple(confinement.unmet_limits),
        ),
        rows=message.rows,
        cols=message.cols,
        created_at=wall_of(message.created_at),
        last_activity_at=wall_of(message.last_activity_at),
        adoption=message.adoption,
        busy=message.busy,
    )


def _ended_message(value: EndedProcess) -> types_pb2.EndedProcess:
    return types_pb2.EndedProcess(
        pid=value.pid, name=clean(value.name), last_signal=value.last_signal
    )


def _ended_of(message: types_pb2.EndedProcess) -> EndedProcess:
    signal = message.last_signal if message.HasField("last_signal") else None
    return EndedProcess(message.pid, message.name, signal)


def close_message(value: CloseResult) -> terminal_service_pb2.CloseResponse:
    """Convert the answer to a close."""
    receipt = value.receipt
    return terminal_service_pb2.CloseResponse(
        session_id=value.session_id,
        outcome=scalars.CLOSE_OUTCOME.numbers[value.outcome],
        receipt=None
        if receipt is None
        else types_pb2.CloseReceipt(
            root_exit=exit_message(receipt.root_exit),
            ended=[_ended_message(item) for item in receipt.ended],
            survivors=[_ended_message(item) for item in receipt.survivors],
            elapsed=duration(receipt.elapsed_s),
        ),
    )


def close_of(message: terminal_service_pb2.CloseResponse) -> CloseResult:
    """Convert the answer to a close."""
    receipt = None
    if message.HasField("receipt"):
        raw = message.receipt
        receipt = CloseReceipt(
            root_exit=exit_of(raw.root_exit) if raw.HasField("root_exit") else None,
            ended=tuple(_ended_of(item) for item in raw.ended),
            survivors=tuple(_ended_of(item) for item in raw.survivors),
            elapsed_s=seconds_of(raw.elapsed),
        )
    outcome = scalars.CLOSE_OUTCOME.of(message.outcome)
    return CloseResult(SessionId(message.session_id), outcome, receipt)


def open_message(value: OpenResult) -> terminal_service_pb2.OpenResponse:
    """Convert the answer to an open."""
    return terminal_service_pb2.OpenResponse(
        session=info_message(value.info),
        motd=clean(value.motd),
        wait_reason=scalars.WAIT_REASON.numbers[value.wait_reason],
        truncated=value.truncated,
        next_offset=value.next_offset,
    )


def open_of(message: terminal_service_pb2.OpenResponse) -> OpenResult:
    """Convert the answer to an open."""
    return OpenResult(
        info=info_of(message.session),
        motd=message.motd,
        wait_reason=scalars.WAIT_REASON.of(message.wait_reason),
        truncated=message.truncated,
        next_offset=message.next_offset,
    )


def send_message(value: SendResult) -> terminal_service_pb2.SendResponse:
    """Convert the result of a send."""
    return terminal_service_pb2.SendResponse(
        viewport=clean(value.viewport),
        wait_reason=scalars.WAIT_REASON.numbers[value.wait_reason],
        status=status_message(value.status),
        evidence=scalars.EVIDENCE.numbers[value.evidence],
        prompt_kind=scalars.PROMPT_KIND.numbers[value.prompt_kind],
        exit_code=value.exit_code,
        truncated=value.truncated,
        omitted_bytes=value.omitted_bytes,
        first_offset=value.first_offset,
        next_offset=value.next_offset,
        outcome=scalars.OUTCOME.numbers[value.outcome],
        canonical=value.canonical,
        echo=value.echo,
        cwd=clean_or_none(value.cwd),
        elapsed=duration(value.elapsed_s),
        other_input=value.other_input,
    )


def send_of(message: terminal_service_pb2.SendResponse) -> SendResult:
    """Convert the result of a send."""
    return SendResult(
        viewport=message.viewport,
        wait_reason=scalars.WAIT_REASON.of(message.wait_reason),
        status=status_of(message.status),
        evidence=scalars.EVIDENCE.known_or(message.evidence, Evidence.NONE),
        prompt_kind=scalars.PROMPT_KIND.known_or(message.prompt_kind, PromptKind.NONE),
        exit_code=message.exit_code if message.HasField("exit_code") else None,
        truncated=message.truncated,
        omitted_bytes=message.omitted_bytes,
        first_offset=message.first_offset,
        next_offset=message.next_offset,
        outcome=scalars.OUTCOME.known_or(message.outcome, Outcome.UNKNOWN),
        canonical=message.canonical if message.HasField("canonical") else None,
        echo=message.echo if message.HasField("echo") else None,
        cwd=message.cwd if message.HasField("cwd") else None,
        elapsed_s=seconds_of(message.elapsed),
        other_input=message.other_input,
    )


def read_message(value: ReadPage) -> terminal_service_pb2.ReadResponse:
    """Convert a page of lines."""
    return terminal_service_pb2.ReadResponse(
        text=clean(value.text),
        total_lines=value.total_lines,
        line_begin=value.line_begin,
        line_end=value.line_end,
        truncated=value.truncated,
        dropped_lines=value.dropped_lines,
        dropped_bytes=value.dropped_bytes,
    )


def read_of(message: terminal_service_pb2.ReadResponse) -> ReadPage:
    """Convert a page of lines."""
    return ReadPage(
        text=message.text,
        total_lines=message.total_lines,
        line_begin=message.line_begin,
        line_end=message.line_end,
        truncated=message.truncated,
        dropped_lines=message.dropped_lines,
        dropped_bytes=message.dropped_bytes,
    )


def snapshot_message(value: ScreenSnapshot) -> terminal_service_pb2.SnapshotResponse:
    """Convert a screen."""
    return terminal_service_pb2.SnapshotResponse(
        rows=value.rows,
        cols=value.cols,
        lines=[clean(line) for line in value.lines],
        cursor_row=value.cursor_row,
        cursor_col=value.cursor_col,
        cursor_visible=value.cursor_visible,
        alternate=value.alternate,
        offset=value.offset,
        title=clean(value.title),
    )


def snapshot_of(message: terminal_service_pb2.SnapshotResponse) -> ScreenSnapshot:
    """Convert a screen."""
    return ScreenSnapshot(
        rows=message.rows,
        cols=message.cols,
        lines=tuple(message.lines),
        cursor_row=message.cursor_row,
        cursor_col=message.cursor_col,
        cursor_visible=message.cursor_visible,
        alternate=message.alternate,
        offset=message.offset,
        title=message.title,
    )


def wait_message(value: WaitResult) -> terminal_service_pb2.WaitForResponse:
    """Convert the result of a wait."""
    return terminal_service_pb2.WaitForResponse(
        matched=scalars.WAIT_MATCHES[value.matched],
        text=clean(value.text),
        status=status_message(value.status),
        match_text=clean_or_none(value.match_text),
        next_offset=value.next_offset,
        truncated=value.truncated,
    )


def wait_of(message: terminal_service_pb2.WaitForResponse) -> WaitResult:
    """Convert the result of a wait."""
    return WaitResult(
        matched=scalars.WAIT_MATCH_NAMES.get(message.matched, "unknown"),
        text=message.text,
        status=status_of(message.status),
        match_text=message.match_text if message.HasField("match_text") else None,
        next_offset=message.next_offset,
        truncated=message.truncated,
    )


def bytes_message(value: BytesPage) -> pty_service_pb2.ReadBytesResponse:
    """Convert a run of bytes."""
    return pty_service_pb2.ReadBytesResponse(
        offset=value.offset,
        data=value.data,
        next_offset=value.next_offset,
        oldest_offset=value.oldest_offset,
        ended=value.ended,
    )


def bytes_of(message: pty_service_pb2.ReadBytesResponse) -> BytesPage:
    """Convert a run of bytes."""
    return BytesPage(
        message.offset, message.data, message.next_offset, message.oldest_offset, message.ended
    )


def tail_message(value: TailPage) -> pty_service_pb2.TailResponse:
    """Convert new lines."""
    return pty_service_pb2.TailResponse(
        text=clean(value.text),
        lines=value.lines,
        truncated=value.truncated,
        next_line=value.next_line,
    )


def tail_of(message: pty_service_pb2.TailResponse) -> TailPage:
    """Convert new lines."""
    return TailPage(message.text, message.lines, message.truncated, message.next_line)
