"""Tasks, owners and nodes as protobuf messages and back; see ``convert`` and ``requests``."""

from typing import NamedTuple

from fabric.api.v1 import fabric_service_pb2, owner_service_pb2, task_service_pb2
from fabric.core.ids import (
    AgentId,
    HostName,
    OwnerId,
    Principal,
    RequestId,
    SessionId,
    TaskId,
    parse_label,
    parse_request_id,
)
from fabric.core.model import (
    NodeState,
    OwnerGrant,
    ReleaseReceipt,
    SandboxMode,
    TaskOutput,
    TaskRecord,
)
from fabric.wire import fields, scalars
from fabric.wire.scalars import clean, clean_or_none, duration, seconds_of, timestamp, wall_of


def task_message(value: TaskRecord) -> task_service_pb2.TaskRecord:
    """Convert a task."""
    return task_service_pb2.TaskRecord(
        task_id=value.task_id,
        owner_id=value.owner_id,
        session_id=value.session_id,
        label=clean(value.label),
        state=scalars.TASK_STATE.numbers[value.state],
        kind=value.kind,
        detail=clean_or_none(value.detail),
        started_at=timestamp(value.started_at),
        finished_at=timestamp(value.finished_at),
    )


def task_of(message: task_service_pb2.TaskRecord) -> TaskRecord:
    """Convert a task."""
    return TaskRecord(
        task_id=TaskId(message.task_id),
        owner_id=OwnerId(message.owner_id),
        session_id=SessionId(message.session_id),
        label=message.label,
        state=scalars.TASK_STATE.of(message.state),
        kind=message.kind,
        detail=message.detail if message.HasField("detail") else None,
        started_at=wall_of(message.started_at),
        finished_at=wall_of(message.finished_at) if message.HasField("finished_at") else None,
    )


def output_message(value: TaskOutput) -> task_service_pb2.TaskOutputResponse:
    """Convert a task's output."""
    return task_service_pb2.TaskOutputResponse(
        text=clean(value.text),
        task=task_message(value.record),
        next_cursor=value.next_cursor,
        truncated=value.truncated,
    )


def output_of(message: task_service_pb2.TaskOutputResponse) -> TaskOutput:
    """Convert a task's output."""
    return TaskOutput(message.text, task_of(message.task), message.next_cursor, message.truncated)


def grant_message(value: OwnerGrant) -> owner_service_pb2.OwnerGrant:
    """Convert an owner."""
    return owner_service_pb2.OwnerGrant(
        owner_id=value.owner_id,
        epoch=value.epoch,
        principal=value.principal,
        agent=value.agent,
        mode=scalars.SANDBOX_MODE.numbers[value.mode],
        lease=duration(value.lease_s),
        expires_at=timestamp(value.expires_at),
    )


def grant_of(message: owner_service_pb2.OwnerGrant) -> OwnerGrant:
    """Convert an owner."""
    return OwnerGrant(
        owner_id=OwnerId(message.owner_id),
        epoch=message.epoch,
        principal=Principal(message.principal),
        agent=AgentId(message.agent),
        mode=scalars.SANDBOX_MODE.of(message.mode),
        lease_s=seconds_of(message.lease),
        expires_at=wall_of(message.expires_at),
    )


def release_message(value: ReleaseReceipt) -> owner_service_pb2.ReleaseResponse:
    """Convert what a release closed."""
    return owner_service_pb2.ReleaseResponse(closed=value.closed, failed=value.failed)


def release_of(message: owner_service_pb2.ReleaseResponse) -> ReleaseReceipt:
    """Convert what a release closed."""
    return ReleaseReceipt(
        tuple(SessionId(item) for item in message.closed),
        tuple(SessionId(item) for item in message.failed),
    )


def node_message(value: NodeState) -> fabric_service_pb2.NodeState:
    """Convert a node; its folder stays inside the fabric."""
    return fabric_service_pb2.NodeState(
        host=value.host,
        alive=value.alive,
        os=value.os,
        arch=value.arch,
        sandbox_kinds=value.sandbox_kinds,
        sessions=value.sessions,
        max_sessions=value.max_sessions,
        warm=value.warm,
        ptys_free=value.ptys_free,
        memory_free_bytes=value.memory_free_bytes,
        fds_free=value.fds_free,
        draining=value.draining,
        gateway=value.gateway,
    )


def node_of(message: fabric_service_pb2.NodeState) -> NodeState:
    """Convert a node."""
    return NodeState(
        host=HostName(message.host),
        alive=message.alive,
        os=message.os,
        arch=message.arch,
        sandbox_kinds=tuple(message.sandbox_kinds),
        sessions=message.sessions,
        max_sessions=message.max_sessions,
        warm=message.warm,
        ptys_free=message.ptys_free,
        memory_free_bytes=message.memory_free_bytes,
        fds_free=message.fds_free,
        draining=message.draining,
        gateway=message.gateway if message.HasField("gateway") else None,
    )


class AcquireRequest(NamedTuple):
    """A request for an owner; ``lease_s`` is in seconds, None for the default."""

    request_id: RequestId
    agent: AgentId
    mode: SandboxMode | None
    lease_s: float | None


def acquire_of(message: owner_service_pb2.AcquireRequest) -> AcquireRequest:
    """Convert a request for an owner. Raises: InvalidRequestError."""
    return AcquireRequest(
        parse_request_id(message.request_id),
        AgentId(parse_label(message.agent, "agent")),
        scalars.SANDBOX_MODE.maybe(message.mode, "mode"),
        fields.positive_seconds(message, "lease"),
    )


@fields.built
def acquire_message(request: AcquireRequest) -> owner_service_pb2.AcquireRequest:
    """Convert a request for an owner. Raises: InvalidRequestError."""
    return owner_service_pb2.AcquireRequest(
        request_id=request.request_id,
        agent=request.agent,
        mode=None if request.mode is None else scalars.SANDBOX_MODE.numbers[request.mode],
        lease=duration(request.lease_s),
    )


def lease_of(
    message: owner_service_pb2.RenewRequest | owner_service_pb2.KeepAliveRequest,
) -> float | None:
    """Return the wanted lease in seconds. Raises: InvalidRequestError."""
    return fields.positive_seconds(message, "lease")


def mode_of(message: owner_service_pb2.SetModeRequest) -> tuple[SandboxMode, RequestId]:
    """Convert a change of mode. Raises: InvalidRequestError."""
    mode = scalars.SANDBOX_MODE.stated(message.mode, "mode")
    return mode, parse_request_id(message.request_id)
