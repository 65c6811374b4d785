"""Whether the result of a running Dask task is still needed: threads cannot be stopped, so long tasks look themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from distributed import Status, get_worker

from distboost import threads

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


class UnwantedError(Exception):
    """The result is not needed any more."""


def check_wanted() -> None:
    """Raise UnwantedError if the caller that this thread works for was interrupted, or if its Dask task was cancelled."""
    if threads.is_given_up() or is_cancelled():
        raise UnwantedError


def ends_if_unwanted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function so that it returns None if `check_wanted` raises, as Dask would log an error."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except UnwantedError:
            return None

    return call
