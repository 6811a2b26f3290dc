"""Values of the fabric as the plain data that tools answer with."""

from typing import Any, Protocol

from fabric.core.model import (
    SessionInfo,
    SessionStatus,
    TaskRecord,
)
from fabric.core.plain import to_plain


class HasStatus(Protocol):
    """Whatever has a session's status."""

    @property
    def status(self) -> SessionStatus:
        """Whether it runs, or how it ended."""
        ...


def status_value(source: HasStatus) -> dict[str, Any]:
    """Say whether it runs, or how it ended."""
    end = source.status.exit
    if end is None:
        return {"kind": "running"}
    return {"kind": "exited", "exitCode": end.exit_code, "signal": end.signal}


def session_value(info: SessionInfo) -> dict[str, Any]:
    """Describe a session; what is not known is left out."""
    value: dict[str, Any] = {"sessionId": info.session_id, "type": info.type}
    if info.name is not None:
        value["name"] = info.name
    if info.pid is not None:
        value["pid"] = info.pid
    value["status"] = status_value(info)
    return value


def task_value(record: TaskRecord) -> dict[str, Any]:
    """Describe a background send; what is not known is left out."""
    plain: dict[str, Any] = to_plain(record)
    value = {
        "id": plain["task_id"],
        "kind": plain["kind"],
        "label": plain["label"],
        "status": plain["state"],
        "startedAt": plain["started_at"],
    }
    if plain["detail"] is not None:
        value["detail"] = plain["detail"]
    if plain["finished_at"] is not None:
        value["finishedAt"] = plain["finished_at"]
    return value
