"""The gRPC server of one node.

``start`` listens, joins the registry, which hands out the keys, and only then takes calls;
``stop`` shuts the door in order: health says NOT_SERVING, new calls are refused as
DRAINING, waits end at once, the rest finishes within ``drain_s``, and only what is still
there then is ended. ``evict`` before it is for the end of the whole fabric, where nothing
is worth waiting for: the sessions that the calls are about end too.
"""

import logging
from typing import Any, Protocol

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from fabric.core.clock import Clock, SystemClock
from fabric.core.errors import FabricError, UnsupportedError
from fabric.core.ids import HostName
from fabric.core.metrics import Metrics
from fabric.core.settings import GatewaySettings, MetricsSettings, SettingsError
from fabric.core.tracing import Tracer
from fabric.gateway.admin import FabricService
from fabric.gateway.auth import Authenticator, server_credentials
from fabric.gateway.calls import Routes
from fabric.gateway.events import EventService
from fabric.gateway.exposition import Exposition
from fabric.gateway.guard import Guard
from fabric.gateway.limits import Limits
from fabric.gateway.lingering import Lingering
from fabric.gateway.meters import Meters
from fabric.gateway.news import News
from fabric.gateway.observing import Observing
from fabric.gateway.owners import OwnerService
from fabric.gateway.ports import RegistryPort, SessionsPort, ViewsPort
from fabric.gateway.ptys import PtyService
from fabric.gateway.shared import SharedTerminals, SharedTerminalService
from fabric.gateway.tasks import TaskService
from fabric.gateway.terminals import TerminalService
from fabric.gateway.tokens import KeyRing
from fabric.gateway.tooling import ToolService
from fabric.gateway.transcript import CallRecord
from fabric.wire.methods import METHODS, SERVICES

CLEANUP_S = 10.0
FAREWELL_S = 0.5
FLUSH_S = 0.5
MAX_PENDING_CALLS = 100_000
_log = logging.getLogger(__name__)


class Service(Protocol):
    """One service: its name in the protos and its handlers."""

    name: str

    def routes(self) -> Routes:
        """Return the handlers by the names of their RPCs."""
        ...


class Gateway:
    """Serve the fabric on one address. Make and use it inside one running event loop."""

    def __init__(
        self,
        settings: GatewaySettings,
        registry: RegistryPort,
        sessions: SessionsPort,
        *,
        host: HostName,
        limits: Limits | None = None,
        clock: Clock | None = None,
        metrics: MetricsSettings | None = None,
        views: ViewsPort | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._sessions = sessions
        self._host = host
        self._views = views
        self.shared = SharedTerminals(registry, sessions)
        self._limits = limits or Limits(max_message_bytes=settings.max_message_bytes)
        self._clock = clock or SystemClock()
        self.metrics = Metrics()
        self._metrics_settings = metrics
        self._tracer = tracer
        self._meters = Meters(self.metrics)
        self._exposition: Exposition | None = None
        self._observing: Observing | None = None
        self._server: grpc.aio.Server | None = None
        self._health = health.aio.HealthServicer()
        self._guard: Guard | None = None
        self._joined = ""
        self._record = CallRecord.begun(self._limits.transcript, host)
        self.address = ""

    async def start(self) -> str:
        """Join the registry, listen, and return the address.

        Raises: SettingsError when the settings or the address are no good,
        RegistryUnavailableError.
        """
        settings = self._settings
        authenticator = Authenticator(settings, self._clock)
        credentials = server_credentials(settings)
        server = grpc.aio.server(options=self._options())
        self.address = self._bind(server, credentials)
        advertised = settings.advertise or self.address
        keys = KeyRing(self._clock)

        async def join() -> None:
            keys.replace(await self._registry.join(self._host, advertised))

        guard = Guard(
            settings,
            authenticator,
            keys,
            join,
            self._meters,
            self._limits.policies,
            self._tracer,
        )
        guard.draining = True  # until the keys are there
        self._register(server, guard, keys)
        await self._say(health_pb2.HealthCheckResponse.NOT_SERVING)
        await server.start()
        try:
            await join()
            await self._expose(guard)
        except BaseException:
            await server.stop(None)
            raise
        self._joined = advertised
        guard.draining = False
        await self._say(health_pb2.HealthCheckResponse.SERVING)
        self._server, self._guard = server, guard
        _log.info("gateway listens", extra={"address": self.address, "node": self._host})
        return self.address

    async def _expose(self, guard: Guard) -> None:
        settings = self._metrics_settings
        if settings is None:
            return
        self._observing = Observing(
            self.metrics,
            self._registry,
            refresh_s=settings.refresh_s,
            running=guard.running,
            in_line=lambda: guard.in_line,
            draining=lambda: guard.draining,
        )
        if settings.listen:
            self._exposition = Exposition(settings.listen, self._observing.text)
            await self._exposition.start()

    @property
    def metrics_address(self) -> str:
        """Where metrics are served, empty when they are not."""
        return "" if self._exposition is None else self._exposition.address

    async def _say(self, status: Any) -> None:
        for name in ("", *SERVICES):
            await self._health.set(name, status)

    def _options(self) -> list[tuple[str, int]]:
        # A message somewhat above the limit is received, so that it can be refused with a reason.
        return [
            ("grpc.max_receive_message_length", 2 * self._settings.max_message_bytes),
            ("grpc.max_send_message_length", -1),
            # Beyond a thousand calls that wait to be looked at gRPC drops some by lot, whoever's
            # they are; who waits, and how many, is decided behind the guard.
            ("grpc.server.max_pending_requests", MAX_PENDING_CALLS),
            ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING_CALLS),
            ("grpc.so_reuseport", 0),  # a second gateway on the port must fail, not share it
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.keepalive_timeout_ms", 10_000),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ("grpc.http2.max_ping_strikes", 0),
        ]

    def _bind(self, server: grpc.aio.Server, credentials: grpc.ServerCredentials | None) -> str:
        listen = self._settings.listen
        try:
            if credentials is None:
                port = server.add_insecure_port(listen)
            else:
                port = server.add_secure_port(listen, credentials)
        except RuntimeError as error:
            raise SettingsError(
                f"cannot listen on {listen}: the address is in use or not this machine's, "
                "or the TLS files do not fit together"
            ) from error
        return f"{listen.rpartition(':')[0]}:{port}"

    def _register(self, server: grpc.aio.Server, guard: Guard, keys: KeyRing) -> None:
        lingering = Lingering(self._settings.abandon_grace_s)
        shared = self.shared
        services: list[Service] = [
            OwnerService(self._registry, keys, self._limits),
            TerminalService(
                self._registry,
                self._sessions,
                self._limits,
                lingering,
            ),
            TaskService(self._registry, self._sessions, self._limits),
            PtyService(self._sessions, self._limits),
            SharedTerminalService(shared, self._registry, self._sessions, lingering, self._views),
            EventService(self._registry, News(self._registry)),
            ToolService(
                self._registry,
                self._sessions,
                self._limits,
                lingering,
                self._record,
                shared,
                self._meters,
            ),
            FabricService(self._registry, self._limits, self._host, lambda: guard.draining),
        ]
        for service in services:
            handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
            full_name = ""
            for name, route in service.routes().items():
                method = METHODS[f"{service.name}.{name}"]
                handlers[name] = guard.handler(method, route)
                full_name = method.service
            generic = grpc.method_handlers_generic_handler(full_name, handlers)
            server.add_generic_rpc_handlers((generic,))
            server.add_registered_method_handlers(full_name, handlers)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        if self._settings.reflection:
            names = (*SERVICES, health.SERVICE_NAME, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, server)

    @property
    def active_calls(self) -> int:
        """How many calls run."""
        return 0 if self._guard is None else self._guard.active

    async def evict(self) -> None:
        """End every call with DRAINING, since the fabric goes down for good; then ``stop``."""
        if self._guard is not None:
            await self._guard.evict(FAREWELL_S)

    async def stop(self, drain_s: float | None = None) -> None:
        """Drain for at most ``drain_s`` seconds (None: the setting) and end. May be repeated."""
        server, guard = self._server, self._guard
        if server is None or guard is None:
            return
        self._server = None
        await self._health.enter_graceful_shutdown()
        await self._leave()
        left = await guard.drain(self._settings.drain_s if drain_s is None else drain_s, CLEANUP_S)
        if left:
            _log.warning("calls left behind by the drain", extra={"calls": left})
        await server.stop(FLUSH_S)
        if self._exposition is not None:
            await self._exposition.stop()
        if self._observing is not None:
            await self._observing.close()
        if self._record is not None:
            self._record.close()
        _log.info("gateway stopped", extra={"address": self.address})

    async def _leave(self) -> None:
        joined, self._joined = self._joined, ""
        if joined:
            try:
                await self._registry.leave(self._host, joined)
            except FabricError as error:
                _log.warning("registry not told of the end", extra={"reason": error.reason})

    async def wait_stopped(self) -> None:
        """Return when the server has ended. Raises: UnsupportedError before ``start``."""
        if self._server is None:
            raise UnsupportedError("the gateway was not started")
        await self._server.wait_for_termination()
