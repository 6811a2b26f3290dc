"""A session worker as a plain class that Ray can wrap; it imports no more than it must."""

import os
from collections.abc import Callable
from typing import Any

from fabric.core import log
from fabric.core.model import OpenResult, OpenSpec
from fabric.core.plain import from_plain
from fabric.core.settings import TraceSettings, WorkerSettings
from fabric.core.tracing import Tracer
from workers.actor import SessionActor
from workers.sandbox import environment
from workers.session import Session
from workers.slot import SlotConfig


class SessionHost:
    """A session worker; its calls are the control path beside its socket."""

    def __init__(
        self,
        config: SlotConfig,
        settings: WorkerSettings,
        level: str,
        trace: TraceSettings,
        export: bool = False,
    ) -> None:
        log.configure(level)
        log.always(node=config.host, slot=config.slot_id)
        _prime(settings)
        self._actor = SessionActor(
            config, settings, _tracer(trace, config.host), _counted(config.host) if export else None
        )

    def ready(self) -> bool:
        """Say that the worker serves its socket: the constructor has ended."""
        return True

    def call(self, method: str, args: dict[str, Any]) -> Any:
        """Make a call of the session channel."""
        return self._actor.call(method, args)


def _tracer(settings: TraceSettings, host: str) -> Tracer | None:
    if not settings.endpoint:
        return None  # and nothing of it is imported
    from fabric.tracing.otel import tracer_of

    return tracer_of(settings, {"fabric.host": host, "fabric.process": "worker"})


def _counted(host: str) -> Callable[[Session], None]:
    from fabric.actors.exporter import RayExporter, WorkerExport

    return WorkerExport(RayExporter(), host).changed


def _prime(settings: WorkerSettings) -> None:
    """Do now what only the first open would pay for: every worker has just one.

    Compiling the patterns of the environment and the decoders costs 10 ms.
    """
    environment.inherit(os.environ, settings.sandbox.env_allow)
    for kind in (OpenSpec, OpenResult):
        try:
            from_plain(kind, {})
        except TypeError:
            continue  # the decoder is kept; there was nothing to decode
