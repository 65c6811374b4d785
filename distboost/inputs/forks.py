"""Clients of Dask in a forked process: those of its parent have no thread there, and whatever waits for them waits forever."""

from __future__ import annotations

import os
import weakref
from typing import Any

from dask.base import get_scheduler
from distributed import Client, SpecCluster

from distboost.errors import ClusterError
from distboost.process import after_fork

_of_parent: weakref.WeakSet[Any] = weakref.WeakSet()


def _note_those_of_parent() -> None:
    for kind in (Client, SpecCluster):
        _of_parent.update(kind._instances)


after_fork(_note_those_of_parent)


def check_process(connection: Any) -> None:
    """Raise ClusterError if a client or a cluster is that of the process from which this one was forked."""
    if isinstance(connection, Client | SpecCluster) and connection in _of_parent:
        raise ClusterError(
            f"this process, {os.getpid()}, was forked from the one of {connection!r}, which would never answer here.",
            remedy="Connect again with Client(address), start processes by the method 'spawn', or compute before the fork; "
            "for a lazy array, dask.config.set(scheduler='threads') does without a cluster.",
            value=connection,
        )


def check_default_scheduler() -> None:
    """Raise ClusterError if what is computed without naming a scheduler would go to such a client."""
    check_process(getattr(get_scheduler(), "__self__", None))
