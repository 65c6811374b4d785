"""The certificates that a process shows on a cluster with TLS."""

from __future__ import annotations

import os
from typing import Any

from distboost.errors import ClusterError

# Files of a folder of certificates.
CA_FILE, CERTIFICATE_FILE, KEY_FILE = "ca.pem", "cert.pem", "key.pem"
DAYS = 365  # for which they are valid


def tls_security(folder: str | os.PathLike[str]) -> Any:
    """Return the Security that a client of a TLS cluster needs, from a folder of certificates; raise ClusterError if invalid."""
    from distributed.security import Security

    ca, certificate, key = (os.path.join(folder, name) for name in (CA_FILE, CERTIFICATE_FILE, KEY_FILE))
    found = Security(require_encryption=True, tls_ca_file=ca, tls_client_cert=certificate, tls_client_key=key)
    try:
        found.get_connection_args("client")
    except OSError as error:  # includes ssl.SSLError
        raise ClusterError(
            f"the certificates in {os.fspath(folder)} cannot be used: {error}. The folder must hold {CA_FILE}, "
            f"{CERTIFICATE_FILE} and {KEY_FILE}; 'distboost cluster certificates' makes them for the whole cluster.",
            where=folder,
        ) from error
    return found
