"""Who calls: bearer token, client certificate, or anybody on loopback.

A gateway that listens beyond loopback needs both a credential and TLS, unless the
settings say ``insecure`` in so many words.
"""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc

from fabric.core.clock import Clock
from fabric.core.errors import UnauthenticatedError
from fabric.core.ids import Principal, parse_label
from fabric.core.settings import GatewaySettings, SettingsError
from fabric.gateway.bearer import Identity, ListedTokens, SignedTokens
from fabric.wire import metadata

LOCAL = Identity(Principal("local"))
_LOOPBACK_NAMES = frozenset({"localhost"})


def is_loopback(listen: str) -> bool:
    """Tell whether an ``address:port`` is reachable from this machine only."""
    host = listen.rpartition(":")[0].strip("[]")
    if host in _LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def has_credentials(settings: GatewaySettings) -> bool:
    """Tell whether callers have to prove who they are."""
    return bool(settings.token_file or settings.signing_key_file or settings.tls_client_ca_file)


def check_listener(settings: GatewaySettings) -> None:
    """Refuse an open door. Raises: SettingsError."""
    if settings.tls_client_ca_file and not settings.tls_cert_file:
        raise SettingsError("gateway.tls_client_ca_file needs tls_cert_file and tls_key_file")
    if settings.revoked_file and not settings.signing_key_file:
        raise SettingsError("gateway.revoked_file needs signing_key_file")
    if is_loopback(settings.listen) or settings.insecure:
        return
    missing = []
    if not has_credentials(settings):
        missing.append("credentials (token_file, signing_key_file or tls_client_ca_file)")
    if not settings.tls_cert_file:
        missing.append("TLS (tls_cert_file and tls_key_file)")
    if missing:
        raise SettingsError(
            f"refusing to listen on {settings.listen} without {' and '.join(missing)}; "
            "listen on 127.0.0.1, add them, or set gateway.insecure"
        )


def server_credentials(settings: GatewaySettings) -> grpc.ServerCredentials | None:
    """Read the TLS files, None without TLS (gRPC offers 1.2 and 1.3). Raises: SettingsError."""
    if not settings.tls_cert_file:
        return None
    chain = _read(settings.tls_cert_file)
    key = _read(settings.tls_key_file)
    roots = _read(settings.tls_client_ca_file) if settings.tls_client_ca_file else None
    return grpc.ssl_server_credentials([(key, chain)], roots, require_client_auth=roots is not None)


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error


class Authenticator:
    """Tell who calls, from the headers and the connection. Raises: SettingsError."""

    def __init__(self, settings: GatewaySettings, clock: Clock) -> None:
        check_listener(settings)
        self._open = not has_credentials(settings)
        self._certificates = bool(settings.tls_client_ca_file)
        self._listed = ListedTokens(settings.token_file, clock) if settings.token_file else None
        self._signed = (
            SignedTokens(settings.signing_key_file, settings.revoked_file, clock)
            if settings.signing_key_file
            else None
        )

    def identify(self, headers: Mapping[str, str], context: Any) -> Identity:
        """Return who calls. Raises: UnauthenticatedError."""
        if self._open:
            return LOCAL
        token = metadata.bearer_of(headers)
        if token is not None:
            identity = self._signed.verify(token) if self._signed else None
            if identity is None and self._listed:
                identity = self._listed.verify(token)
            if identity is None:
                raise UnauthenticatedError("the bearer token is not valid")
            return identity
        if self._certificates:
            return self._by_certificate(context)
        raise UnauthenticatedError("this call needs a bearer token")

    def _by_certificate(self, context: Any) -> Identity:
        names = context.auth_context().get("x509_common_name") or ()
        for name in names:
            principal = Principal(parse_label(name.decode("utf-8", "replace"), "principal"))
            known = self._listed.of_principal(principal) if self._listed else None
            return known or Identity(principal)
        raise UnauthenticatedError("the client certificate has no common name")
