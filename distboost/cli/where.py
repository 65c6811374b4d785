"""The cluster that a command runs on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distboost.errors import ClusterError

CONNECT_DEADLINE = 8.0  # seconds
START_DEADLINE = 60.0


@contextmanager
def cluster(scheduler: str | None, workers: int | None) -> Iterator[Any]:
    """A client of the scheduler at an address, or of so many new local processes; None: in this process."""
    if scheduler and workers:
        raise ValueError("--scheduler and --workers exclude each other: give the one or the other.")
    if scheduler:
        with _connected(scheduler) as client:
            yield client
    elif workers:
        with _started(workers) as client:
            yield client
    else:
        yield None


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT_DEADLINE)
    except Exception as error:  # another kind of server may answer anything
        raise ClusterError(
            f"no Dask scheduler answers at {address} (waited up to {CONNECT_DEADLINE:.0f} s). Check the address and the network, "
            "or start one with 'dask scheduler'; or run on this machine with --workers N."
        ) from error
    with client:
        yield client


@contextmanager
def _started(n_workers: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    n_threads = max(1, (os.cpu_count() or 1) // n_workers)
    # No dashboard; the scheduler serves its health on some free port all the same, and 8787 may be taken.
    quiet = {"dashboard_address": "127.0.0.1:0", "scheduler_kwargs": {"dashboard": False}}
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
