"""The certificates of a cluster with TLS, made once and copied to every machine of it.

A certificate authority of the cluster's own signs one certificate, and is then forgotten: its key is written nowhere, so that
nobody can make a certificate more that the cluster would take.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from distboost.cluster.security import CA_FILE, CERTIFICATE_FILE, DAYS, KEY_FILE
from distboost.errors import MissingPackageError
from distboost.io.packages import install_command

try:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError as error:
    raise MissingPackageError(
        f"certificates are made with the package cryptography, which cannot be imported here ({error}).",
        remedy=f"Run: {install_command('tls')}",
    ) from error

NAMES = ("localhost", "127.0.0.1")
CLOCKS_DIFFER = timedelta(hours=1)  # between machines, at most


class Authority:
    """A new certificate authority. Its key exists as long as this object."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("distboost cluster authority")
        # It ends with the certificates that it signs: they say for how long.
        builder = _builder(
            self._name,
            self._name,
            self._key,
            issuer_key=self._key,
            start=datetime.now(UTC),
            period=timedelta(days=36500),
        )
        self._certificate = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(key_cert_sign=True, crl_sign=True), critical=True)
            .sign(self._key, SHA256())
        )

    def issue(
        self, folder: Path, names: Sequence[str] = NAMES, days: int = DAYS, start: datetime | None = None
    ) -> None:
        """Write the authority's certificate, a new one that it signs, and that one's key.

        Parameters
        ----------
        folder : Path
        names : sequence of str
            Hosts and IP addresses of the machines.
        days : int
            For which the certificate is valid.
        start : datetime or None, default=None
            From when it is valid; None: from now on.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(
            _named("distboost cluster"),
            self._name,
            key,
            issuer_key=self._key,
            start=start or datetime.now(UTC),
            period=timedelta(days=days),
        )
        both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]  # all are both on Dask
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage(both), critical=False)
            .add_extension(
                x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False
            )
            .sign(self._key, SHA256())
        )
        folder.mkdir(parents=True, exist_ok=True)
        _write(
            folder / KEY_FILE,
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
            mode=0o600,
        )
        _write(folder / CERTIFICATE_FILE, certificate.public_bytes(Encoding.PEM))
        _write(folder / CA_FILE, self._certificate.public_bytes(Encoding.PEM))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    *,
    issuer_key: ec.EllipticCurvePrivateKey,
    start: datetime,
    period: timedelta,
) -> x509.CertificateBuilder:
    """Return a builder with what every certificate says."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - CLOCKS_DIFFER)
        .not_valid_after(start + period)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
    )


def _named(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(**allowed: bool) -> x509.KeyUsage:
    usages = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "key_cert_sign",
        "crl_sign",
        "encipher_only",
        "decipher_only",
    )
    return x509.KeyUsage(**{**dict.fromkeys(usages, False), **allowed})


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a new file: one that was there might be readable by others, or a link to elsewhere."""
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
