"""A session worker as a plain class that Ray can wrap; it imports no more than it must."""

from typing import Any

from fabric.core import log
from fabric.core.settings import WorkerSettings
from workers.actor import SessionActor
from workers.slot import SlotConfig


class SessionHost:
    """A session worker; its calls are the control path beside its socket."""

    def __init__(self, config: SlotConfig, settings: WorkerSettings, level: str) -> None:
        log.configure(level)
        self._actor = SessionActor(config, settings)

    def ready(self) -> bool:
        """Say that the worker serves its socket: the constructor has ended."""
        return True

    def call(self, method: str, args: dict[str, Any]) -> Any:
        """Make a call of the session channel."""
        return self._actor.call(method, args)
