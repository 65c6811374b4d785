"""The interface of a runtime: the place where a training runs."""

from __future__ import annotations

from typing import Protocol

from distboost.data.blocks import BinnedSet, TaskRunner
from distboost.io.phases import Phases
from distboost.rows.interface import Rows
from distboost.runtime.layout import Allotment, Layout


class Runtime(TaskRunner, Protocol):
    """Runs the functions of a scan or a prediction, and holds the rows of a training run."""

    def limit(self, memory_limit: int | None) -> int | None:
        """Return the bytes that one process may use, or None if no limit is known; never more than `memory_limit`."""

    def check_shared(self, url: str) -> None:
        """Raise ClusterError unless all processes can access a path or URL."""

    def place(self, sets: list[BinnedSet], layout: Layout, allotment: Allotment | None = None) -> Rows:
        """Bin or read the rows of each set and hold them; rows beyond the allotment stay on disk."""

    def beside(self, n_threads: int | None, phases: Phases) -> Runtime | None:
        """Return a runtime on threads that this one leaves idle, of so many that the process may use (None: one per core).

        None: there are none.
        """

    def worker_peaks(self) -> list[int]:
        """Return the most memory that each worker has used since it began, in bytes; none without a cluster."""

    def close(self) -> None:
        """Release threads and connections."""
