"""The settings of the web server."""

from dataclasses import dataclass

from fabric.core.checking import positive

MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The browser's way in; part of the gateway's process, with the gateway's TLS files.

    ``listen`` empty means off; beyond loopback TLS is needed, unless ``gateway.insecure``.
    ``url`` is how browsers reach it (``https://build1:8443``), where that is not what it
    listens on; pages of that origin and of ``origins`` may connect, no others.
    A ticket counts once, for ``ticket_s``; a page that lost its connection may come back
    for ``return_s``. ``window_bytes`` of output are on their way to a page at most, and one
    that shows nothing of them for ``stall_s`` is cut off; a page out of sight may need a minute.
    """

    listen: str = "127.0.0.1:0"
    url: str = ""
    origins: tuple[str, ...] = ()
    ticket_s: float = 10.0
    max_tickets_per_owner: int = 64
    max_tickets: int = 1024
    return_s: float = 600.0
    max_views: int = 256
    heartbeat_s: float = 15.0
    hello_s: float = 5.0
    stall_s: float = 90.0
    window_bytes: int = 262_144
    overview_s: float = 2.0

    def __post_init__(self) -> None:
        """Check ranges and forms. Raises: SettingsError."""
        faults = positive("web", self)
        host, _, port = self.listen.rpartition(":")
        faults.check(
            not self.listen or (bool(host) and port.isdecimal() and int(port) <= MAX_PORT),
            "listen",
            self.listen,
            f"must be empty (off) or address:port, with a port of at most {MAX_PORT}",
        )
        for name, values in (("url", (self.url,)), ("origins", self.origins)):
            for value in values:
                scheme, separator, rest = value.partition("://")
                faults.check(
                    (name == "url" and not value)
                    or (
                        (scheme in ("http", "https") and bool(separator and rest))
                        and not set(rest) & set("/?#@ ")
                    ),
                    name,
                    value,
                    "must read http(s)://host[:port], without a path",
                )
        faults.raise_if_any()
