"""Cooperative cancellation: threads cannot be stopped, so long calls check between pieces if their result is still needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from distboost import threads
from distboost.runtime.cluster.cancelled import is_cancelled


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
