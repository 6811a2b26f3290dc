"""What a Ray node is known by: its labels and the resource that counts its terminals."""

import platform
import socket

from fabric.core.ids import HostName
from fabric.core.settings import ClusterSettings

LABEL_HOST, LABEL_OS, LABEL_ARCH = "ptyfabric.host", "ptyfabric.os", "ptyfabric.arch"
PTY_RESOURCE = "pty"


def this_host(settings: ClusterSettings) -> HostName:
    """Name this machine: as set, else by its own name."""
    return HostName(settings.host or socket.gethostname().partition(".")[0] or "localhost")


def node_labels(host: str) -> dict[str, str]:
    """The labels a node is placed by: host, system, architecture."""
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system(), platform.system())
    machine = platform.machine().lower()
    arch = {"amd64": "x86_64", "aarch64": "arm64"}.get(machine, machine)
    return {LABEL_HOST: host, LABEL_OS: system, LABEL_ARCH: arch}
