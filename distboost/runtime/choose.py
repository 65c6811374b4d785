"""Choose the runtime of a training run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from typing import Any

from distributed import Client, get_worker, worker_client

from distboost.errors import ClusterError
from distboost.inputs.forks import check_process
from distboost.io.phases import SILENT, Phase, Phases
from distboost.io.retry import quoted
from distboost.kernels._jit import compilation_watched
from distboost.runtime.base import Runtime
from distboost.runtime.cluster.runtime import WORKER_TIMEOUT, ClusterRuntime
from distboost.runtime.local import LocalRuntime

log = logging.getLogger("distboost")

IN_PROCESS = object()  # passed as a client: use this process even if there is a client


@contextmanager
def open_runtime(
    client: Any,
    n_threads: int | None,
    worker_timeout: float = WORKER_TIMEOUT,
    *,
    wait_for_workers: int | None = None,
    loads: Sequence[Callable[[], None]] = (),
    holder: str | None = None,
    phases: Phases = SILENT,
) -> Iterator[Runtime]:
    """Open the runtime of a training run, and close it at the end.

    It is the cluster of the given client, or of the scheduler at the given address, as soon as `wait_for_workers` of its workers
    can take work (None: one). Without a client, it is the cluster of the current Dask task or of the current client; if there is
    none, threads of this process.

    `loads` load kernels that this process will need. On a cluster, they run in the background: while workers start, read rows
    and load kernels of their own, this process would only wait.

    `holder` is the name of a run that holds the workers of a cluster until its end (`Markers`). `phases` are told how far
    the work is.
    """
    with (
        compilation_watched(_told_once(phases)),
        _resolved(client) as resolved,
        nullcontext() if resolved is None else _background(loads),
    ):
        if resolved is None:
            chosen: Runtime = LocalRuntime(n_threads, phases)
        else:
            chosen = ClusterRuntime(resolved, worker_timeout, wait_for_workers, holder, phases)
        log.info("%s %s", "working" if holder is None else "training", chosen)
        try:
            yield chosen
        finally:
            chosen.close()


def _told_once(phases: Phases) -> Callable[[], None]:
    """Return a function that tells, at its first call, that kernels are compiled: with an empty cache, that takes seconds."""
    telling, told = threading.Lock(), False

    def tell() -> None:
        nonlocal told
        with telling:
            first, told = not told, True
        if first:
            phases.tell(Phase("compile", 0, None, "kernels", 0.0))

    return tell


@contextmanager
def _background(calls: Sequence[Callable[[], None]]) -> Iterator[None]:
    """Run calls one after another in a thread; those that have not begun by the end are left out.

    Their errors are ignored: what fails there also fails where it is needed.
    """
    pool = ThreadPoolExecutor(1, "distboost-load")
    for call in calls:
        pool.submit(call)
    try:
        yield
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _resolved(client: Any) -> Iterator[Any]:
    """Yield the client of the cluster to use, or None for this process."""
    if client is IN_PROCESS:
        yield None
        return
    check_process(client)
    if isinstance(client, Client):
        yield client
        return
    if client is not None:
        with _connected(client) as own:
            yield own
        return
    try:
        get_worker()
    except ValueError:
        yield _current_client()
        return
    # Inside a task: leave the worker's thread pool while waiting; otherwise the tasks of this run might not run.
    with worker_client() as inner:
        yield inner


@contextmanager
def _connected(address: Any) -> Iterator[Client]:
    """Connect to the scheduler at an address, or of a cluster object; the connection ends with the context."""
    try:
        client = Client(address, set_as_default=False)
    except (
        Exception
    ) as error:  # an address that is none, or a server that is no scheduler, may cause any error
        raise ClusterError(
            f"client is {address!r}, but no Dask scheduler answers there ({quoted(error)}).",
            remedy="Pass the address of one, such as 'tcp://host:8786', or a connected client: distributed.Client(...).",
            where="client",
            value=address,
        ) from error
    with client:
        yield client


def _current_client() -> Any:
    current: Callable[[], Any] = Client.current
    try:
        found = current()
    except ValueError:
        return None
    check_process(found)
    return found
