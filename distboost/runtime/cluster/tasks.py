"""Functions run as Dask tasks, which are submitted again when their workers are lost."""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import wait
from dataclasses import dataclass
from typing import Any

import numpy as np
from distributed import KilledWorker

from distboost.data.blocks import Result
from distboost.data.source import load
from distboost.data.sparse import SparseRows
from distboost.errors import ClusterError, DistboostError
from distboost.inputs.dask_array import DaskPart
from distboost.inputs.frame import FrameRows
from distboost.io.phases import SILENT, Phases
from distboost.runtime.cluster.crew import WorkerLostError
from distboost.runtime.cluster.link import POLL_INTERVAL, Link
from distboost.runtime.cluster.monitor import WorkerMonitor
from distboost.runtime.cluster.worker_session import run_task

log = logging.getLogger("distboost")

TASK_DEADLINE = 3600.0  # seconds, from submission to result
MAX_ATTEMPTS = 10  # at a task whose workers are lost


def _identity(value: Any) -> Any:
    return value


@dataclass(eq=False)
class Shared:
    """A value that is an argument of many tasks: sent to the cluster once, and again if it was lost."""

    value: Any
    future: Any = None  # Dask's


@dataclass(eq=False)
class Call:
    """A submitted task, and what is needed to submit it again.

    Attributes
    ----------
    function, arguments
        What the caller wants computed.
    slot : str or None
        The worker that the task was planned for.
    workers : list of str or None
        The workers that Dask should run it on; None for any.
    inputs : list
        The arguments as they were sent. Futures among them are kept until Dask knows the task, else it would forget theirs.
    future : distributed.Future
    since : float
        When it was submitted (`time.monotonic`).
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    slot: str | None
    workers: list[str] | None
    inputs: list[Any]
    future: Any
    since: float

    @property
    def own_inputs(self) -> list[Any]:
        """The inputs that no other call uses."""
        pairs = zip(self.arguments, self.inputs, strict=True)
        return [sent for argument, sent in pairs if not isinstance(argument, Shared)]


class ClusterTasks:
    """Runs functions on the workers of a cluster.

    Parameters
    ----------
    link : Link
    monitor : WorkerMonitor
    workers : dict of str to int
        The addresses of the workers, with their numbers of threads.
    phases : Phases, optional

    Attributes
    ----------
    name : str
        The prefix of all keys: several runs may share a cluster.
    """

    on_cluster = True

    def __init__(self, link: Link, monitor: WorkerMonitor, workers: dict[str, int], phases: Phases = SILENT):
        self.link, self.monitor, self.workers, self.phases = link, monitor, workers, phases
        self.n_parallel = sum(workers.values())
        self.n_processes = len(workers)
        self.name = f"distboost-{uuid.uuid4().hex[:12]}"

    def run_everywhere(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Run a task on each worker; return the results by address, without those of workers that are lost meanwhile."""
        calls = {
            worker: self._submit(function, arguments, worker, pinned=True)
            for worker in self.monitor.members()
        }
        results = {}
        for worker, call in calls.items():
            try:
                results[worker] = self._wait(call)
            except WorkerLostError:
                self.monitor.suspect(worker)
        return results

    def map(
        self,
        function: Callable[..., Result],
        calls: Iterable[tuple[Any, ...]],
        at_once: int | None = None,
    ) -> list[Result]:
        """Return function(*call) for each call, in order."""
        return list(self.each(function, calls, at_once))

    def each(
        self,
        function: Callable[..., Result],
        calls: Iterable[tuple[Any, ...]],
        at_once: int | None = None,
    ) -> Generator[Result, None, None]:
        """Yield function(*call) for each call, in order.

        With `at_once`, each worker has at most so many calls that run or whose results are not yet taken. Calls of a lost worker
        go to the others, in addition to their own.
        """
        # By default a few calls per thread, so that the parts of a large array are never all in memory.
        slots = deque(list(self.workers) * at_once if at_once else [None] * (4 * self.n_parallel))
        window: deque[Call] = deque()
        try:
            for arguments in calls:
                if not slots:
                    # It stays in the window until it is done: the window is released after an interrupt.
                    result = self._result(window[0])
                    slots.append(window.popleft().slot)
                    yield result
                window.append(self._submit(function, arguments, slots.popleft()))
            while window:
                result = self._result(window[0])
                window.popleft()
                yield result
        finally:
            self.link.release(call.future for call in window)

    def share(self, value: Any) -> Shared:
        """Return what stands for a value among the arguments of many calls."""
        return Shared(value)

    def _submit(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        slot: str | None,
        pinned: bool = False,
        suffix: str = "",
    ) -> Call:
        members = self.monitor.members()
        workers = [slot] if slot in members else self._preferred(members)
        inputs = [self._send(argument, workers, suffix) for argument in arguments]
        future = self.link.submit(
            run_task,
            function,
            *inputs,
            workers=workers,
            allow_other_workers=workers is not None and not pinned,
            key=f"{self.name}-{function.__name__}-{uuid.uuid4().hex}",
        )
        return Call(function, arguments, slot, workers, inputs, future, time.monotonic())

    def _preferred(self, members: dict[str, int]) -> list[str] | None:
        """Return the workers that respond, or None (any worker) if all workers of the scheduler do."""
        return None if len(members) == len(self.monitor.known()) else list(members) or None

    def _send(self, argument: Any, workers: list[str] | None, suffix: str) -> Any:
        """Return what to pass to the task: futures of dask arrays, shared values and large arrays; else the argument itself."""
        if isinstance(argument, DaskPart):
            return self.link.compute(argument, workers, suffix or self.monitor.generation)
        if isinstance(argument, Shared):
            if argument.future is None:
                preferred = self._preferred(self.monitor.members())
                argument.future = self.link.submit(
                    _identity,
                    argument.value,
                    workers=preferred,
                    allow_other_workers=preferred is not None,
                    key=f"{self.name}-shared-{uuid.uuid4().hex}",
                )
            return argument.future
        if isinstance(argument, SparseRows):
            return self._scatter(argument, workers)
        if isinstance(argument, np.ndarray | FrameRows):
            return self._scatter(load(argument), workers)
        return argument

    def _scatter(self, array: np.ndarray | SparseRows, workers: list[str] | None) -> Any:
        try:
            return self.link.run(self.link.scatter(array, workers), self.monitor.check)
        except WorkerLostError:  # the worker is gone: the scheduler chooses another
            return array

    def _result(self, call: Call) -> Any:
        """Wait for a result; submit the call again if its worker is lost."""
        for attempt in range(MAX_ATTEMPTS):
            try:
                return self._wait(call)
            except WorkerLostError as lost:
                self.link.release([call.future, *call.own_inputs])
                if attempt == MAX_ATTEMPTS - 1:
                    raise ClusterError(
                        f"{call.future.key} was lost {MAX_ATTEMPTS} times with its workers, the last time because of: {lost}.",
                        remedy="Check the workers' logs: they may run out of memory.",
                    ) from lost
                log.warning("%s was lost (%s): it is submitted again", call.future.key, lost)
                for argument in call.arguments:
                    if isinstance(argument, Shared):
                        argument.future = None
                # New keys: Dask may still know the old tasks, and that they are meant for the lost worker.
                again = self._submit(call.function, call.arguments, None, suffix=uuid.uuid4().hex)
                call.workers, call.inputs = again.workers, again.inputs
                call.future, call.since = again.future, again.since
        raise AssertionError

    def _wait(self, call: Call) -> Any:
        """Wait for a result; raise WorkerLostError if the worker is lost."""
        answer = self.link.start(self.link.result(call.future))
        while not wait([answer], timeout=POLL_INTERVAL).done:
            self._check(call)
        try:
            return answer.result()
        except (DistboostError, ValueError, TypeError):
            raise
        except WorkerLostError as lost:
            if isinstance(lost.__cause__, KilledWorker):  # Dask has tried several workers
                raise ClusterError(
                    f"every worker that ran {call.future.key} was lost ({lost}).",
                    remedy="Check the workers' logs: they may run out of memory.",
                ) from lost
            raise
        except Exception as error:
            raise ClusterError(
                f"{call.future.key} failed on the cluster: {type(error).__name__}: {error}"
            ) from error

    def _check(self, call: Call) -> None:
        """Raise an error if an unfinished call will never finish."""
        self.monitor.check()
        if call.workers and all(map(self.monitor.failure_reason, call.workers)):
            raise WorkerLostError(f"{' and '.join(call.workers)} left or did not respond")
        self.monitor.check_tasks({str(call.future.key): call.since})
        if self.monitor.generation_began > call.since:
            raise WorkerLostError("its inputs may be on a worker that does not respond")
        if time.monotonic() - call.since > TASK_DEADLINE:
            raise ClusterError(
                f"{call.future.key} was not done within {TASK_DEADLINE:.0f} s.",
                remedy="Check the workers' logs.",
            )
