"""Every RPC of ``fabric.api.v1``, read from the descriptors.

Server and client build their calls from this table instead of the generated stubs: the
bytes pass through, so the guard authorises a call before it parses it, and both sides
know the size of each message without serialising twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from fabric.api.v1 import (
    event_service_pb2,
    fabric_service_pb2,
    owner_service_pb2,
    pty_service_pb2,
    shared_terminal_service_pb2,
    task_service_pb2,
    terminal_service_pb2,
    tool_service_pb2,
)

API_MAJOR = 1
API_MINOR = 2
PACKAGE = "fabric.api.v1"


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC: its path on the wire and its two message classes."""

    service: str
    name: str
    path: str
    request: Any
    response: Any
    client_streaming: bool
    server_streaming: bool


def _methods() -> dict[str, Method]:
    found: dict[str, Method] = {}
    for module in (
        owner_service_pb2,
        terminal_service_pb2,
        task_service_pb2,
        pty_service_pb2,
        shared_terminal_service_pb2,
        event_service_pb2,
        tool_service_pb2,
        fabric_service_pb2,
    ):
        for service in module.DESCRIPTOR.services_by_name.values():
            for item in service.methods:
                method = Method(
                    service.full_name,
                    item.name,
                    f"/{service.full_name}/{item.name}",
                    GetMessageClass(item.input_type),
                    GetMessageClass(item.output_type),
                    bool(item.client_streaming),
                    bool(item.server_streaming),
                )
                found[f"{service.name}.{item.name}"] = method
    return found


METHODS: Mapping[str, Method] = _methods()
SERVICES: tuple[str, ...] = tuple(dict.fromkeys(method.service for method in METHODS.values()))
