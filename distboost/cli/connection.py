"""The cluster that a command runs on."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distboost.errors import ClusterError

CONNECT_DEADLINE = 8.0  # seconds
START_DEADLINE = 60.0

# What a folder of certificates holds.
CA_FILE, CERTIFICATE_FILE, KEY_FILE = "ca.pem", "cert.pem", "key.pem"


@contextmanager
def connect(scheduler: str | None, workers: int | None, tls: str | None = None) -> Iterator[Any]:
    """A client of the scheduler at an address, or of so many new local processes; None: in this process.

    `tls` is the folder of the certificates with which the scheduler is spoken to.
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
    """What a client of a cluster with TLS needs, of a folder of certificates; raises if they cannot be used."""
    from distributed.security import Security

    ca, certificate, key = (os.path.join(folder, name) for name in (CA_FILE, CERTIFICATE_FILE, KEY_FILE))
    found = Security(require_encryption=True, tls_ca_file=ca, tls_client_cert=certificate, tls_client_key=key)
    try:
        found.get_connection_args("client")
    except OSError as error:  # as an ssl.SSLError is, too
        raise ClusterError(
            f"the certificates in {folder} cannot be used: {error}. It needs {CA_FILE}, {CERTIFICATE_FILE} and {KEY_FILE}, as "
            "'python -m cluster.certificates' makes them for the whole cluster."
        ) from error
    return found


@contextmanager
def _connected(address: str, security: Any) -> Iterator[Any]:
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT_DEADLINE, security=security)
    except Exception as error:  # another kind of server may answer anything
        reason = str(error) or repr(error.__cause__)
        raise ClusterError(
            f"no Dask scheduler answers at {address} (waited up to {CONNECT_DEADLINE:.0f} s: {reason}). Check the address and "
            f"the network, or start one with 'dask scheduler'; or run on this machine with --workers N. "
            f"{_hint(address, security)}"
        ) from error
    with client:
        yield client


def _hint(address: str, security: Any) -> str:
    """A scheduler that refuses us closes the connection, and says no more."""
    if not address.startswith("tls://"):
        return "A scheduler with TLS answers only at tls://..., with --tls FOLDER."
    if security is None:
        return "Without --tls FOLDER, certificates are those of Dask's configuration (distributed.comm.tls)."
    return (
        "A scheduler with TLS answers none but certificates of its own authority that have not expired: "
        f"is {security.tls_client_cert} one?"
    )


@contextmanager
def _started(n_workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    n_threads = max(1, (os.cpu_count() or 1) // n_workers)
    # No dashboard; the scheduler serves its health on some free port all the same, and 8787 may be taken.
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
                f"{n_workers} worker processes were not up within {START_DEADLINE:.0f} s. Give fewer with --workers, or run in "
                "this process, without it."
            ) from error
        yield client


def dask_setup(worker: Any) -> None:
    """Called by each worker process that we start: Ctrl-C, which a terminal tells all of them, is for us, who end them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
