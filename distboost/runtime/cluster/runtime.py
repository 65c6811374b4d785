"""A Dask cluster as a place to train: tasks for ingest and prediction, and workers that hold the rows of a training."""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Any

import fsspec
import numpy as np
from distributed import Client, Future, KilledWorker, get_worker

from distboost.data.blocks import BinnedSet
from distboost.data.graphs import renamed
from distboost.data.sources import is_dask
from distboost.errors import ClusterError, DistboostError
from distboost.rows.interface import Rows
from distboost.runtime.block import Key
from distboost.runtime.cluster.coordinator import DistributedRows, LostError
from distboost.runtime.cluster.link import POLL_INTERVAL, Link
from distboost.runtime.cluster.monitor import WorkerMonitor
from distboost.runtime.cluster.versions import check_versions
from distboost.runtime.cluster.worker_session import run_task
from distboost.runtime.cluster.workers import DaskWorkers
from distboost.runtime.shard import Allotment, Layout, readings

log = logging.getLogger("distboost")

# Seconds. Every wait has a deadline: past it, the worker is reported instead of waited for.
WORKER_TIMEOUT = 30.0
INGEST_DEADLINE = 3600.0

MAX_ATTEMPTS = 10  # at a task whose workers are lost
SPILL_FRACTION = 0.7  # Dask's own default, for workers whose spilling is switched off


def _spill_limit() -> int:
    """Bytes that this worker may take before it spills; 0: as many as there are."""
    manager = get_worker().memory_manager
    return int((manager.memory_spill_fraction or SPILL_FRACTION) * (manager.memory_limit or 0))


def _exists(url: str) -> bool:
    filesystem, path = fsspec.core.url_to_fs(url)
    return filesystem.exists(path)


def _identity(value: Any) -> Any:
    return value


@dataclass(eq=False)
class Shared:
    """A value that many tasks take: sent once, and again if it was lost."""

    value: Any
    future: Future | None = None


@dataclass(eq=False)
class Call:
    """A task under way, and what it takes to send it again."""

    function: Callable[..., Any]
    arguments: tuple
    slot: str | None
    workers: list[str] | None  # that it was meant for; None: any
    inputs: list[Any]  # futures among them, that Dask would let go of before the task is known
    future: Future
    since: float

    @property
    def parts(self) -> list[Any]:
        """Of the inputs, those that no other call takes."""
        pairs = zip(self.arguments, self.inputs, strict=True)
        return [given for argument, given in pairs if not isinstance(argument, Shared)]


class ClusterRuntime:
    """The workers of a Dask client.

    Parameters
    ----------
    client : distributed.Client
    worker_timeout : float
        Seconds without a sign of life after which a worker is given up.
    """

    def __init__(self, client: Client, worker_timeout: float = WORKER_TIMEOUT):
        self.link = Link(client, worker_timeout)
        self.monitor = WorkerMonitor(self.link)
        try:
            self.workers = self.monitor.wait_for_members()
            check_versions(self.link, self.workers)
        except BaseException:
            self.close()
            raise
        self.n_parallel = sum(self.workers.values())
        self.n_processes = len(self.workers)
        self.name = f"distboost-{uuid.uuid4().hex[:12]}"  # several trainings may share a cluster

    on_cluster = True

    def limit(self, memory_limit: int | None) -> int | None:
        """What a worker may take: no more than what Dask lets it have before it spills."""
        allowed = self._run_everywhere(_spill_limit).values()
        return min([limit for limit in [*allowed, memory_limit or 0] if limit], default=None)

    def check_shared(self, url: str) -> None:
        """Raises unless all workers see what is at a path or URL."""
        seen = self._run_everywhere(_exists, url)
        blind = [address for address, sees in seen.items() if not sees]
        if blind:
            raise ClusterError(
                f"what does not fit in memory goes to {url}, which worker {blind[0]} does not see ({len(blind)} of {len(seen)} "
                "workers). Give a directory or URL that all workers share: scratch=..."
            )

    def __str__(self) -> str:
        return f"on {len(self.workers)} Dask workers with {self.n_parallel} threads ({self.link.address})"

    # Tasks.

    def _run_everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """The answers of all workers; those that are lost meanwhile have none."""
        calls = {
            worker: self._call(function, arguments, worker, pinned=True) for worker in self.monitor.members()
        }
        answers = {}
        for worker, call in calls.items():
            try:
                answers[worker] = self._wait(call)
            except LostError:
                self.monitor.suspect(worker)
        return answers

    def map(
        self, function: Callable[..., Any], calls: Iterable[tuple], at_once: int | None = None
    ) -> list[Any]:
        return list(self.each(function, calls, at_once))

    def each(
        self, function: Callable[..., Any], calls: Iterable[tuple], at_once: int | None = None
    ) -> Generator[Any, None, None]:
        """The answers in order. With `at_once`, each worker has so many calls at most, the untaken answers among them.

        (The calls of a worker that is lost go to the others, beside their own.)
        """
        # Else a few calls per thread, so that the parts of a large array are never all in memory.
        slots = deque(list(self.workers) * at_once if at_once else [None] * (4 * self.n_parallel))
        window: deque[Call] = deque()
        try:
            for arguments in calls:
                if not slots:
                    result = self._result(
                        window[0]
                    )  # it stays there: if this is interrupted, it is to be cancelled
                    slots.append(window.popleft().slot)
                    yield result
                window.append(self._call(function, arguments, slots.popleft()))
            while window:
                result = self._result(window[0])
                window.popleft()
                yield result
        finally:
            self.link.release(call.future for call in window)

    def share(self, value: Any) -> Shared:
        return Shared(value)

    def _call(
        self,
        function: Callable[..., Any],
        arguments: tuple,
        slot: str | None,
        pinned: bool = False,
        suffix: str = "",
    ) -> Call:
        members = self.monitor.members()
        workers = [slot] if slot in members else self._healthy(members)
        inputs = [self._send_argument(argument, workers, suffix) for argument in arguments]
        future = self.link.submit(
            run_task,
            function,
            *inputs,
            workers=workers,
            allow_other_workers=workers is not None and not pinned,
            key=f"{self.name}-{function.__name__}-{uuid.uuid4().hex}",
        )
        return Call(function, arguments, slot, workers, inputs, future, time.monotonic())

    def _healthy(self, members: dict[str, int]) -> list[str] | None:
        """Any worker, unless Dask knows some that give no sign of life."""
        return None if len(members) == len(self.monitor.known()) else list(members) or None

    def _send_argument(self, argument: Any, workers: list[str] | None, suffix: str) -> Any:
        """An argument as it travels: parts of dask arrays are computed, large arrays go straight to the worker."""
        if is_dask(argument):
            return self.link.compute(renamed(argument, suffix or self.monitor.generation), workers)
        if isinstance(argument, Shared):
            if argument.future is None:
                well = self._healthy(self.monitor.members())
                argument.future = self.link.submit(
                    _identity,
                    argument.value,
                    workers=well,
                    allow_other_workers=well is not None,
                    key=f"{self.name}-shared-{uuid.uuid4().hex}",
                )
            return argument.future
        if isinstance(argument, np.ndarray):
            return self._scatter(argument, workers)
        return argument

    def _scatter(self, array: np.ndarray, workers: list[str] | None) -> Any:
        try:
            return self.link.answer(self.link.scatter(array, workers), self.monitor.check)
        except LostError:  # that worker is gone: the scheduler finds another
            return array

    def _result(self, call: Call) -> Any:
        """The answer; a call whose worker is lost is made again."""
        for attempt in range(MAX_ATTEMPTS):
            try:
                return self._wait(call)
            except LostError as lost:
                self.link.release([call.future, *call.parts])
                if attempt == MAX_ATTEMPTS - 1:
                    raise ClusterError(
                        f"{call.future.key} was lost {MAX_ATTEMPTS} times with its workers, the last time by {lost}. "
                        "Look at the workers' logs: they may run out of memory."
                    ) from lost
                log.warning("%s was lost (%s): it is done again", call.future.key, lost)
                for argument in call.arguments:
                    if isinstance(argument, Shared):
                        argument.future = None
                # Names of its own: Dask may still know the tasks of before, and that they are meant for the lost worker.
                again = self._call(call.function, call.arguments, None, suffix=uuid.uuid4().hex)
                call.workers, call.inputs = again.workers, again.inputs
                call.future, call.since = again.future, again.since
        raise AssertionError

    def _wait(self, call: Call) -> Any:
        answer = self.link.start(self.link.result(call.future))
        while not wait([answer], timeout=POLL_INTERVAL).done:
            self._check(call)
        try:
            return answer.result()
        except (DistboostError, ValueError, TypeError):
            raise
        except LostError as lost:
            if isinstance(lost.__cause__, KilledWorker):  # Dask has had several workers try it
                raise ClusterError(
                    f"{call.future.key} was lost with each worker that took it ({lost}). Look at the workers' logs: they may run "
                    "out of memory."
                ) from lost
            raise
        except Exception as error:
            raise ClusterError(
                f"{call.future.key} failed on the cluster: {type(error).__name__}: {error}"
            ) from error

    def _check(self, call: Call) -> None:
        """Raises if a call that is not done will never be."""
        self.monitor.check()
        if call.workers and all(map(self.monitor.failure_reason, call.workers)):
            raise LostError(f"{' and '.join(call.workers)} left or gave no sign of life")
        self.monitor.check_tasks({str(call.future.key): call.since})
        if self.monitor.generation_began > call.since:
            raise LostError("what it takes may lie on a worker that gives no sign of life")
        if time.monotonic() - call.since > INGEST_DEADLINE:
            raise ClusterError(
                f"{call.future.key} was not done within {INGEST_DEADLINE:.0f} s. Look at the workers' logs."
            )

    # Trainings.

    def place(self, sets: list[BinnedSet], layout: Layout, allotment: Allotment | None = None) -> Rows:
        """Has the workers bin or read the rows, each its share."""
        items = {
            Key(number, block): reading
            for number, part in enumerate(sets)
            for block, reading in enumerate(readings(part))
        }
        sizes = {key: reading.n_rows for key, reading in items.items()}
        name = f"{self.name}-{uuid.uuid4().hex[:4]}"
        workers = DaskWorkers(self.link, self.monitor, items, layout, len(sets), allotment, name)
        try:
            return DistributedRows(workers, sizes, layout, len(sets))
        except BaseException:
            workers.close()
            raise

    def close(self) -> None:
        """The client and its workers are the caller's."""
        self.monitor.close()
