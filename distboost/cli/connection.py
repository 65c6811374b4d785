"""Connect a command to the cluster that it runs on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distboost.errors import ClusterError

CONNECT_DEADLINE = 8.0  # seconds
START_DEADLINE = 60.0

# Files of a folder of certificates.
CA_FILE, CERTIFICATE_FILE, KEY_FILE = "ca.pem", "cert.pem", "key.pem"


@contextmanager
def connect(scheduler: str | None, workers: int | None, tls: str | None = None) -> Iterator[Any]:
    """Yield a client of the scheduler at an address or of new local worker processes, or None for this process.

    `tls` is the folder of the certificates for the connection to the scheduler.
    """
    if scheduler and workers:
        raise ValueError("--scheduler and --workers exclude each other: give the one or the other.")
    if tls and not (scheduler or "").startswith("tls://"):
        raise ValueError(
            f"--tls {tls} is for a scheduler at an address such as tls://host:8786; --scheduler is {scheduler or 'not given'}."
        )
    if scheduler:
        with _connected(scheduler, tls_security(tls) if tls else None) as client:
            yield client
    elif workers:
        with _started(workers) as client:
            yield client
    else:
        yield None


def tls_security(folder: str | os.PathLike[str]) -> Any:
    """Return the Security that a client of a TLS cluster needs, from a folder of certificates; raise ClusterError if invalid."""
    from distributed.security import Security

    ca, certificate, key = (os.path.join(folder, name) for name in (CA_FILE, CERTIFICATE_FILE, KEY_FILE))
    found = Security(require_encryption=True, tls_ca_file=ca, tls_client_cert=certificate, tls_client_key=key)
    try:
        found.get_connection_args("client")
    except OSError as error:  # includes ssl.SSLError
        raise ClusterError(
            f"the certificates in {folder} cannot be used: {error}. The folder must hold {CA_FILE}, {CERTIFICATE_FILE} "
            f"and {KEY_FILE}; 'python -m cluster.certificates' makes them for the whole cluster."
        ) from error
    return found


@contextmanager
def _connected(address: str, security: Any) -> Iterator[Any]:
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT_DEADLINE, security=security)
    except Exception as error:  # a server that is no scheduler may cause any error
        reason = str(error) or repr(error.__cause__)
        raise ClusterError(
            f"no Dask scheduler answers at {address} (waited up to {CONNECT_DEADLINE:.0f} s: {reason}). Check the address and "
            f"the network, or start one with 'dask scheduler'; or run on this machine with --workers N. "
            f"{_hint(address, security)}"
        ) from error
    with client:
        yield client


def _hint(address: str, security: Any) -> str:
    """Return a hint on TLS: a scheduler that refuses a connection just closes it, without a reason."""
    if not address.startswith("tls://"):
        return "A scheduler that uses TLS answers only at tls://..., with --tls FOLDER."
    if security is None:
        return "Without --tls FOLDER, the certificates come from Dask's configuration (distributed.comm.tls)."
    return (
        "A scheduler that uses TLS accepts only unexpired certificates of its own authority: "
        f"is {security.tls_client_cert} one?"
    )


@contextmanager
def _started(n_workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    n_threads = max(1, (os.cpu_count() or 1) // n_workers)
    # No dashboard. The scheduler still serves its health page, on any free port, as 8787 may be taken.
    quiet = {
        "dashboard_address": "127.0.0.1:0",
        "scheduler_kwargs": {"dashboard": False},
        "preload": [__name__],
    }
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=n_threads, **quiet) as local,
        Client(local, timeout=CONNECT_DEADLINE) as client,
    ):
        try:
            client.wait_for_workers(n_workers, timeout=START_DEADLINE)
        except TimeoutError as error:
            raise ClusterError(
                f"{n_workers} worker processes did not start within {START_DEADLINE:.0f} s. Start fewer with --workers, or leave "
                "it out to run in this process."
            ) from error
        yield client


def dask_setup(worker: Any) -> None:
    """Ignore Ctrl-C in a worker process: a terminal sends it to all processes, and this command ends its workers itself.

    Dask calls this in each worker, as the module is preloaded.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
