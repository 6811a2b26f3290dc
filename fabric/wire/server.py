"""What a server says of itself, as a value and as a message."""

from dataclasses import dataclass

from fabric.api.v1 import fabric_service_pb2 as pb
from fabric.core.ids import HostName, Principal
from fabric.core.model import SandboxMode
from fabric.wire import scalars
from fabric.wire.scalars import duration, seconds_of


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A server: its versions, what it offers, and its bounds (bytes, seconds)."""

    version: str
    api_major: int
    api_minor: int
    host: HostName
    principal: Principal
    max_mode: SandboxMode
    capabilities: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    draining: bool = False
    max_message_bytes: int = 0
    max_send_bytes: int = 0
    max_result_bytes: int = 0
    max_wait_s: float = 0.0
    send_timeout_s: float = 0.0
    lease_s: float = 0.0
    request_retention_s: float = 0.0
    max_waits_per_owner: int = 0
    max_sessions_per_owner: int = 0
    max_tasks_per_owner: int = 0
    pty_backend_type: str = "shell"
    pty_tail_lines: int = 200


def server_message(value: ServerInfo) -> pb.GetServerInfoResponse:
    """Convert what a server says of itself."""
    return pb.GetServerInfoResponse(
        version=value.version,
        api_major=value.api_major,
        api_minor=value.api_minor,
        capabilities=value.capabilities,
        limits=pb.Limits(
            max_message_bytes=value.max_message_bytes,
            max_send_bytes=value.max_send_bytes,
            max_result_bytes=value.max_result_bytes,
            max_wait=duration(value.max_wait_s),
            send_timeout=duration(value.send_timeout_s),
            lease=duration(value.lease_s),
            request_retention=duration(value.request_retention_s),
            max_waits_per_owner=value.max_waits_per_owner,
            max_sessions_per_owner=value.max_sessions_per_owner,
            max_tasks_per_owner=value.max_tasks_per_owner,
            pty_backend_type=value.pty_backend_type,
            pty_tail_lines=value.pty_tail_lines,
        ),
        host=value.host,
        principal=value.principal,
        max_mode=scalars.SANDBOX_MODE.numbers[value.max_mode],
        draining=value.draining,
        types=value.types,
    )


def server_of(message: pb.GetServerInfoResponse) -> ServerInfo:
    """Convert what a server says of itself."""
    limits = message.limits
    return ServerInfo(
        version=message.version,
        api_major=message.api_major,
        api_minor=message.api_minor,
        host=HostName(message.host),
        principal=Principal(message.principal),
        max_mode=scalars.SANDBOX_MODE.known_or(message.max_mode, SandboxMode.READ_ONLY),
        capabilities=tuple(message.capabilities),
        types=tuple(message.types),
        draining=message.draining,
        max_message_bytes=limits.max_message_bytes,
        max_send_bytes=limits.max_send_bytes,
        max_result_bytes=limits.max_result_bytes,
        max_wait_s=seconds_of(limits.max_wait),
        send_timeout_s=seconds_of(limits.send_timeout),
        lease_s=seconds_of(limits.lease),
        request_retention_s=seconds_of(limits.request_retention),
        max_waits_per_owner=limits.max_waits_per_owner,
        max_sessions_per_owner=limits.max_sessions_per_owner,
        max_tasks_per_owner=limits.max_tasks_per_owner,
        pty_backend_type=limits.pty_backend_type or "shell",
        pty_tail_lines=limits.pty_tail_lines or 200,
    )
