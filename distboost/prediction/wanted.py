"""Cooperative cancellation: threads cannot be stopped, so long calls check between pieces if their result is still needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from distributed import get_worker

from distboost import threads


class UnwantedError(Exception):
    """The result is not needed any more."""


def check_wanted() -> None:
    """Raise UnwantedError if the caller that this thread works for was interrupted, or if its Dask task was cancelled."""
    if threads.is_given_up() or _is_cancelled():
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


def _is_cancelled() -> bool:
    """Whether this thread runs a Dask task that was cancelled."""
    try:
        worker = get_worker()
    except ValueError:
        return False
    key = worker.active_threads.get(threading.get_ident())
    if key is None:
        return False
    task = worker.state.tasks.get(key)
    return task is None or task.state == "cancelled"
