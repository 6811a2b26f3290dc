"""FabricClient and its synchronous twin."""

from fabric.client.client import FabricClient
from fabric.client.link import Tls
from fabric.client.session import Session, Task
from fabric.client.sync import FabricClientSync, SessionSync, TaskSync

__all__ = [
    "FabricClient",
    "FabricClientSync",
    "Session",
    "SessionSync",
    "Task",
    "TaskSync",
    "Tls",
]
