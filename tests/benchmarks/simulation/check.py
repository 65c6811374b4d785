"""Real rounds on local worker processes, beside simulated ones."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster

from distboost import GDMCBoostClassifier
from distboost.runtime.cluster import owners, questions
from tests.benchmarks.scale_out import problem
from tests.benchmarks.simulation.costs import Costs
from tests.benchmarks.simulation.job import Job
from tests.benchmarks.simulation.protocol import Cluster, Measured, Setting, simulate

SKIPPED = 2  # rounds at the beginning: connections are opened
QUIET = 0.08  # a round counts if other programs took at most so much of the cores
ENOUGH = 8  # quiet rounds


class Mark(NamedTuple):
    """Seconds, at the end of a round: of the clock, and of CPU."""

    clock: float
    client: float
    workers: float
    machine: float


class Real(NamedTuple):
    """Medians over the quiet rounds, in seconds."""

    seconds: float
    client_cpu: float
    worker_cpu: float
    others: float  # the part of the cores that other programs took
    n_rounds: int  # that were quiet; if they are too few, the quietest half counts


def cores() -> int:
    """The cores of this machine."""
    return psutil.cpu_count() or 1


def real(n_workers: int, job: Job, n_rounds: int, window: int = 1) -> Real:
    """Train on local workers of one thread, each with the rows of the job.

    The times are medians over the quiet rounds; or, for rounds that are shorter than the system's ticks, the least mean over a
    window of several rounds.
    """
    rows = n_workers * job.rows
    X, y = problem(rows, job.features, job.classes)
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, memory_limit=0, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        chunks = -(-rows // (2 * n_workers))
        lazy = da.from_array(X, chunks=(chunks, -1)).persist(), da.from_array(y, chunks=chunks).persist()
        workers = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
        marks: list[Mark] = []

        def mark(progress: Any) -> None:
            spent = [process.cpu_times() for process in workers]
            machine = psutil.cpu_times()
            busy = sum(machine) - machine.idle - machine.iowait
            used = sum(each.user + each.system for each in spent)
            marks.append(Mark(time.perf_counter(), time.process_time(), used, busy))

        model = GDMCBoostClassifier(
            n_estimators=n_rounds, max_depth=job.depth, max_bins=job.bins - 1, n_jobs=1, callbacks=[mark]
        )
        model.client = client
        model.fit(*lazy)
    seconds, ours, theirs, machine = np.diff(np.array(marks)[SKIPPED::window], axis=0).T / window
    others = (machine - ours - theirs) / seconds / cores()
    table = np.column_stack([seconds, ours, theirs, others])
    is_quiet = others <= QUIET
    if window > 1:
        found = table[np.argmin(ours + theirs)]
    else:
        found = np.median(
            table[is_quiet if is_quiet.sum() >= ENOUGH else others <= np.median(others)], axis=0
        )
    return Real(*found.tolist(), int(is_quiet.sum()))


@contextmanager
def forced(star: bool) -> Iterator[None]:
    """Have the client add all histograms, or the workers."""
    with patch.object(owners, "exchange_pays", lambda n_bytes, n_workers: not star and n_workers > 1):
        yield


def settings(n_workers: int) -> dict[str, Setting]:
    """What distboost does on so many workers, if the client adds histograms and if workers do."""
    fan_out = questions.FAN_OUT
    return {
        "star": Setting(star=True, fan_out=fan_out),
        "owners": Setting(group=owners.group_size(n_workers), fan_out=fan_out),
    }


def simulated(n_workers: int, job: Job, setting: Setting, costs: Costs) -> Measured:
    """A round on this machine, whose cores all processes share."""
    cluster = Cluster(n_workers, shared_cores=cores())
    return simulate(job, cluster, setting, costs)
