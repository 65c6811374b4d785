"""Whether the result of a running Dask task is still needed: threads cannot be stopped, so long tasks look themselves."""

from __future__ import annotations

import threading

from distributed import Status, get_worker

_ENDING = (Status.closing, Status.closed, Status.failed)


def is_cancelled() -> bool:
    """Whether this thread runs a Dask task that was cancelled, or whose worker closes."""
    try:
        worker = get_worker()
    except ValueError:
        return False
    key = worker.active_threads.get(threading.get_ident())
    if key is None:
        return False
    task = worker.state.tasks.get(key)
    return task is None or task.state == "cancelled" or worker.status in _ENDING
