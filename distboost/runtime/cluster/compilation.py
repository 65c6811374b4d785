"""Workers that compile kernels: they say so in the heartbeats that they send to the scheduler anyway."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from distributed import Worker

from distboost.io.phases import Phase, Phases
from distboost.kernels._jit import n_missed

METRIC = "distboost_kernels_compiled"  # among the metrics of a worker's heartbeat

_reporting = threading.Lock()


def report_compilation(worker: Worker) -> None:
    """Have a worker's heartbeats tell how many kernels its process has compiled."""
    with _reporting:
        if METRIC not in worker.metrics:
            # A new mapping: the event loop may be iterating over the old one.
            worker.metrics = {**worker.metrics, METRIC: lambda worker: n_missed()}


class CompilationWatch:
    """Tells once that workers compile kernels.

    Parameters
    ----------
    phases : Phases
    """

    def __init__(self, phases: Phases):
        self._phases = phases
        self._before: dict[str, int] = {}
        self._seen = self._told = False

    def look(self, workers: Mapping[str, Mapping[str, Any]]) -> None:
        """Compare the numbers in the scheduler's description of each worker with those of the last look."""
        for address, described in workers.items():
            n = described.get("metrics", {}).get(METRIC, 0)
            # What a worker compiled before it was first seen belongs to earlier runs.
            self._seen |= n > self._before.get(address, n)
            self._before[address] = n

    def tell(self) -> None:
        """Tell, unless there is nothing to tell or it was told.

        The thread that waits for workers calls this, not the event loop: listeners may wait for Dask.
        """
        if self._seen and not self._told:
            self._told = True
            self._phases.tell(Phase("compile on workers", 0, None, "kernels", 0.0))
