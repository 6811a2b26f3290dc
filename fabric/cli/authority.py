"""A certificate authority for development: its own, a server's and callers' certificates.

Not for production: the CA's key lies unencrypted beside the certificates. Elliptic curve
P-256, a short life, names as subject alternative names as TLS demands them.
"""

import datetime
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fabric.core.errors import InvalidRequestError
from fabric.core.ids import parse_label

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_SKEW = datetime.timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A caller's certificate; its common name is the principal."""

    principal: str
    cert_file: str
    key_file: str


@dataclass(frozen=True, slots=True)
class DevCa:
    """The files that were made; ``is_new`` False says that the CA was there before."""

    ca_file: str
    cert_file: str
    key_file: str
    clients: tuple[ClientCertificate, ...]
    is_new: bool


def dev_ca(
    folder: Path, hosts: Sequence[str] = (), clients: Sequence[str] = (), days: int = 30
) -> DevCa:
    """Make, or go on with, a CA in ``folder`` and certificates that last ``days``.

    The server's names are ``hosts`` and those of this machine's loopback.
    Raises: InvalidRequestError, OSError.
    """
    if not 0 < days <= 825:
        raise InvalidRequestError("days must lie between 1 and 825", field="days")
    for name in clients:
        if "/" in parse_label(name, "principal") or name in ("ca", "server"):
            raise InvalidRequestError(f"a certificate's principal cannot be {name!r}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    ca_file, ca_key_file = folder / "ca.pem", folder / "ca.key"
    is_new = not (ca_file.exists() and ca_key_file.exists())
    if is_new:
        _make_ca(ca_file, ca_key_file, days)
    ca = _Ca(ca_file, ca_key_file)
    names = tuple(dict.fromkeys((*hosts, *LOCAL_NAMES)))
    cert_file, key_file = ca.issue(folder, "server", names[0], names, days)
    made = [ClientCertificate(name, *ca.issue(folder, name, name, (), days)) for name in clients]
    return DevCa(str(ca_file), cert_file, key_file, tuple(made), is_new)


def _make_ca(cert_file: Path, key_file: Path, days: int) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pty-fabric development CA")])
    certificate = (
        _builder(name, name, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(key_file, _pem(key), 0o600)
    _write(cert_file, certificate.public_bytes(serialization.Encoding.PEM), 0o644)


class _Ca:
    def __init__(self, cert_file: Path, key_file: Path) -> None:
        try:
            self._certificate = x509.load_pem_x509_certificate(cert_file.read_bytes())
            key = serialization.load_pem_private_key(key_file.read_bytes(), None)
        except ValueError as error:
            raise InvalidRequestError(f"{cert_file.parent} holds no usable CA: {error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise InvalidRequestError(f"{key_file} was not made by this command")
        self._key = key

    def issue(
        self, folder: Path, file: str, subject: str, names: Sequence[str], days: int
    ) -> tuple[str, str]:
        """Make a certificate and its key; return their files."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)])
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
        # A gateway calls other gateways with the server's certificate: it is both.
        uses = [purpose, ExtendedKeyUsageOID.CLIENT_AUTH] if names else [purpose]
        builder = (
            _builder(name, self._certificate.subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if names:
            alternatives = x509.SubjectAlternativeName([_general(item) for item in names])
            builder = builder.add_extension(alternatives, critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        cert_file, key_file = folder / f"{file}.pem", folder / f"{file}.key"
        _write(key_file, _pem(key), 0o600)
        _write(cert_file, certificate.public_bytes(serialization.Encoding.PEM), 0o644)
        return str(cert_file), str(key_file)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    if not name.isascii() or not name or any(char.isspace() for char in name):
        raise InvalidRequestError(f"{name!r} is not the name or address of a host")
    return x509.DNSName(name)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(file: Path, data: bytes, mode: int) -> None:
    file.unlink(missing_ok=True)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as out:
        out.write(data)
