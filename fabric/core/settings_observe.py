"""Settings of what is seen from outside: metrics and traces."""

import ipaddress
from dataclasses import dataclass

from fabric.core.errors import SettingsError

MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Metrics over HTTP at ``/metrics`` of each gateway, for Prometheus and ``fabric top``.

    ``listen`` with port 0 takes any free one (``fabric status`` says which); empty is off.
    They hold counts and host names, no secret, but an address beyond loopback is refused
    unless ``allow_remote`` says so. ``refresh_s`` is how old the registry's figures may be.
    ``ray`` hands the numbers of registry, nodes and workers to Ray's exporter too.
    """

    listen: str = "127.0.0.1:0"
    allow_remote: bool = False
    refresh_s: float = 2.0
    ray: bool = False

    def __post_init__(self) -> None:
        """Check forms and ranges. Raises: SettingsError."""
        if self.refresh_s <= 0:
            raise SettingsError(f"metrics.refresh_s = {self.refresh_s!r}: must be greater than 0")
        if not self.listen:
            return
        host, _, port = self.listen.rpartition(":")
        if not host or not port.isascii() or not port.isdecimal() or int(port) > MAX_PORT:
            raise SettingsError(
                f"metrics.listen = {self.listen!r}: must read address:port, or be empty"
            )
        if not self.allow_remote and not _is_loopback(host):
            raise SettingsError(
                f"metrics.listen = {self.listen!r}: is not loopback; metrics.allow_remote = true"
                " lets everybody who reaches it read the counts"
            )


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """OpenTelemetry traces (extra ``pty-fabric[otel]``): OTLP over HTTP to ``endpoint``.

    Empty is off, and then nothing of it is imported. ``share`` of the traces that begin here
    are kept; a caller that sends a ``traceparent`` decides for its own.
    """

    endpoint: str = ""
    share: float = 1.0

    def __post_init__(self) -> None:
        """Check forms and ranges. Raises: SettingsError."""
        if not 0 <= self.share <= 1:
            raise SettingsError(f"trace.share = {self.share!r}: must lie between 0 and 1")
        if self.endpoint and not self.endpoint.startswith(("http://", "https://")):
            raise SettingsError(
                f"trace.endpoint = {self.endpoint!r}: must begin with http:// or https://"
            )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
