"""What a Ray node is known by: its labels and the resource that counts its terminals."""

import platform
import socket
from collections.abc import Iterable

from fabric.core.ids import HostName
from fabric.core.settings import ClusterSettings

LABEL_HOST, LABEL_OS, LABEL_ARCH = "ptyfabric.host", "ptyfabric.os", "ptyfabric.arch"
LABEL_SANDBOX = "ptyfabric.sandbox"
PTY_RESOURCE = "pty"


def this_host(settings: ClusterSettings) -> HostName:
    """Name this machine: as set, else by its own name."""
    return HostName(settings.host or socket.gethostname().partition(".")[0] or "localhost")


def node_labels(host: str, sandbox_kinds: Iterable[str] = ()) -> dict[str, str]:
    """The labels of a node: host, system, architecture, and what it can confine with.

    The last one is for people and for other programs of the cluster; what a node tells the
    registry of itself is what its sessions are placed by.
    """
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system(), platform.system())
    machine = platform.machine().lower()
    arch = {"amd64": "x86_64", "aarch64": "arm64"}.get(machine, machine)
    sandbox = ".".join(sandbox_kinds) or "none"
    return {LABEL_HOST: host, LABEL_OS: system, LABEL_ARCH: arch, LABEL_SANDBOX: sandbox}
