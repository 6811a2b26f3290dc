"""FabricService: what this server is and what the fabric has."""

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version

from fabric.api.v1 import fabric_service_pb2 as pb
from fabric.core.ids import HostName, Principal
from fabric.gateway.calls import Access, Call, Kind, Route, Routes
from fabric.gateway.limits import MODE_RANK, Limits
from fabric.gateway.ports import RegistryPort
from fabric.wire import records
from fabric.wire.methods import API_MAJOR, API_MINOR
from fabric.wire.server import ServerInfo, server_message

CAPABILITIES = (
    "terminals", "tasks", "wait_for", "bytes", "tail", "follow", "snapshot", "resize", "events",
    "cancel_call", "write", "attach", "shared_terminal", "view_ticket",
)  # fmt: skip


def own_version() -> str:
    """Return the version of this installation."""
    try:
        return version("pty-fabric")
    except PackageNotFoundError:  # a checkout on the path, not installed
        return "0"


class FabricService:
    """Describe the server and its nodes."""

    name = "FabricService"

    def __init__(
        self,
        registry: RegistryPort,
        limits: Limits,
        host: HostName,
        is_draining: Callable[[], bool],
    ) -> None:
        self._registry = registry
        self._is_draining = is_draining
        self._info = ServerInfo(
            version=own_version(),
            api_major=API_MAJOR,
            api_minor=API_MINOR,
            host=host,
            principal=Principal(""),
            max_mode=limits.max_mode,
            capabilities=CAPABILITIES,
            types=limits.types,
            max_message_bytes=limits.max_message_bytes,
            max_send_bytes=limits.max_send_bytes,
            max_result_bytes=limits.max_result_bytes,
            max_wait_s=limits.max_wait_s,
            send_timeout_s=limits.send_timeout_s,
            lease_s=limits.lease_s,
            request_retention_s=limits.request_retention_s,
            max_waits_per_owner=limits.max_waits_per_owner,
            max_sessions_per_owner=limits.max_sessions_per_owner,
            max_tasks_per_owner=limits.max_tasks_per_owner,
            pty_backend_type=limits.pty.backend_type,
            pty_tail_lines=limits.pty.tail_lines,
        )

    def routes(self) -> Routes:
        """Return the handlers by the names of their RPCs."""
        return {
            "GetServerInfo": Route(self.info, Access.PRINCIPAL, Kind.QUICK, while_draining=True),
            "ListNodes": Route(self.nodes, Access.PRINCIPAL, Kind.QUICK, while_draining=True),
        }

    async def info(self, call: Call, message: pb.GetServerInfoRequest) -> pb.GetServerInfoResponse:
        """Introduce the server."""
        bound = call.identity.max_mode
        info = replace(
            self._info,
            principal=call.identity.principal,
            max_mode=min(
                bound or self._info.max_mode, self._info.max_mode, key=lambda mode: MODE_RANK[mode]
            ),
            draining=self._is_draining(),
        )
        return server_message(info)

    async def nodes(self, call: Call, message: pb.ListNodesRequest) -> pb.ListNodesResponse:
        """List the nodes."""
        nodes = sorted(await self._registry.nodes(), key=lambda node: node.host)
        return pb.ListNodesResponse(nodes=[records.node_message(node) for node in nodes])
