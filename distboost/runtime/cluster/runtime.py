"""A Dask cluster as a runtime: tasks for ingest and prediction, and workers that hold the rows of a training run."""

from __future__ import annotations

import uuid

from distributed import Client, get_worker

from distboost.data.blocks import BinnedSet
from distboost.errors import ClusterError
from distboost.io.options import options_in_force
from distboost.io.phases import SILENT, Phases
from distboost.io.storage import exists
from distboost.rows.messages import Rows
from distboost.runtime.base import Allotment, Layout, peak_bytes, readings
from distboost.runtime.block import Key
from distboost.runtime.cluster.coordinator import DistributedRows
from distboost.runtime.cluster.link import Link
from distboost.runtime.cluster.markers import Markers
from distboost.runtime.cluster.monitor import WorkerMonitor
from distboost.runtime.cluster.tasks import ClusterTasks
from distboost.runtime.cluster.versions import check_versions
from distboost.runtime.cluster.workers import DaskWorkers

WORKER_TIMEOUT = 30.0  # seconds
SPILL_FRACTION = 0.7  # of a worker whose spilling is switched off: Dask's own default


def _spill_limit() -> int:
    """Return the bytes that this worker may hold before Dask spills; 0 if there is no limit. Runs as a task."""
    manager = get_worker().memory_manager
    fraction = float(manager.memory_spill_fraction or SPILL_FRACTION)
    return int(fraction * (manager.memory_limit or 0))


class ClusterRuntime(ClusterTasks):
    """The workers of a Dask client.

    Parameters
    ----------
    client : distributed.Client
    worker_timeout : float
        Seconds after which a worker that does not respond is given up.
    wait_for_workers : int or None, default=None
        Begin when so many workers can take work; None: when one can.
    holder : str or None, default=None
        The name of what holds the workers until the end: Dask is shown that they are in use. None: they may be taken away.
    phases : Phases, optional
        Who is told how far the work is.
    """

    def __init__(
        self,
        client: Client,
        worker_timeout: float = WORKER_TIMEOUT,
        wait_for_workers: int | None = None,
        holder: str | None = None,
        phases: Phases = SILENT,
    ):
        link = Link(client, worker_timeout)
        monitor = WorkerMonitor(link, phases)
        self._markers: Markers | None = None
        try:
            if holder is not None:
                self._markers = Markers(link, monitor, holder)
            if wait_for_workers is None:
                workers = monitor.wait_for_members()
            else:
                workers = monitor.wait_for_number(wait_for_workers)
            check_versions(link, workers)
        except BaseException:
            self._stop_watching(monitor)
            raise
        super().__init__(link, monitor, workers, phases)

    def __str__(self) -> str:
        return f"on {len(self.workers)} Dask workers with {self.n_parallel} threads ({self.link.address})"

    def limit(self, memory_limit: int | None) -> int | None:
        """Return the bytes that one worker may use: no more than it may hold before Dask spills."""
        allowed = self.run_everywhere(_spill_limit).values()
        return min([limit for limit in [*allowed, memory_limit or 0] if limit], default=None)

    def check_shared(self, url: str) -> None:
        """Raise ClusterError unless all workers can access a path or URL."""
        seen = self.run_everywhere(exists, url, options_in_force())
        blind = [address for address, sees in seen.items() if not sees]
        if blind:
            raise ClusterError(
                f"rows that do not fit in memory go to {url}, which worker {blind[0]} cannot access ({len(blind)} of "
                f"{len(seen)} workers cannot).",
                remedy="Set a directory or URL that all workers share: ``scratch=...``",
                where=url,
            )

    def place(self, sets: list[BinnedSet], layout: Layout, allotment: Allotment | None = None) -> Rows:
        """Have each worker bin or read its share of the rows and hold them."""
        items = {
            Key(number, block): reading
            for number, part in enumerate(sets)
            for block, reading in enumerate(readings(part))
        }
        sizes = {key: reading.n_rows for key, reading in items.items()}
        name = f"{self.name}-{uuid.uuid4().hex[:4]}"
        workers = DaskWorkers(
            self.link, self.monitor, items, layout=layout, n_sets=len(sets), allotment=allotment, name=name
        )
        try:
            return DistributedRows(workers, sizes, layout, len(sets), self.phases)
        except BaseException:
            workers.close()
            raise

    def beside(self, n_threads: int | None, phases: Phases) -> None:
        """Return None: a run uses all threads of the workers."""

    def worker_peaks(self) -> list[int]:
        """Return the most memory that each worker has used since it began, in bytes."""
        return [peak for peak in self.run_everywhere(peak_bytes).values() if peak is not None]

    def close(self) -> None:
        """Stop watching the workers. They and the client belong to the caller."""
        self._stop_watching(self.monitor)

    def _stop_watching(self, monitor: WorkerMonitor) -> None:
        if self._markers is not None:
            self._markers.close()
        monitor.close()
