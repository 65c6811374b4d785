"""Where a training runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client, get_worker, worker_client

from distboost.runtime.base import Runtime
from distboost.runtime.cluster.runtime import WORKER_TIMEOUT, ClusterRuntime
from distboost.runtime.local import LocalRuntime

log = logging.getLogger("distboost")

IN_PROCESS = object()  # given as a client: this process, whatever clients there are


@contextmanager
def open_runtime(
    client: Any, n_threads: int | None, worker_timeout: float = WORKER_TIMEOUT
) -> Iterator[Runtime]:
    """The given client's cluster, else that of the Dask task we are inside, else the current client's, else threads."""
    with _resolved(client) as resolved:
        chosen = LocalRuntime(n_threads) if resolved is None else ClusterRuntime(resolved, worker_timeout)
        log.info("training %s", chosen)
        try:
            yield chosen
        finally:
            chosen.close()


@contextmanager
def _resolved(client: Any) -> Iterator[Any]:
    if client is not None:
        yield None if client is IN_PROCESS else client
        return
    try:
        get_worker()
    except ValueError:
        yield _current_client()
        return
    # Inside a task: leave the worker's pool while waiting, else the tasks of this training could not run.
    with worker_client() as inner:
        yield inner


def _current_client() -> Any:
    try:
        return Client.current()
    except ValueError:
        return None
