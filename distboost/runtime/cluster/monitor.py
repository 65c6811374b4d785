"""Which workers a cluster has, and which of them respond."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from distboost.errors import ClusterError
from distboost.io.phases import SILENT, Phases
from distboost.runtime.cluster.compilation import CompilationWatch
from distboost.runtime.cluster.crew import WorkerLostError
from distboost.runtime.cluster.link import POLL_INTERVAL, Link

log = logging.getLogger("distboost")

# Seconds.
REFRESH_INTERVAL = 1.0  # between requests for the scheduler's list of workers
WORKERS_DEADLINE = 60.0  # to wait for a first worker
WAIT_DEADLINE = 600.0  # to wait for a number of workers: a cluster that scales up starts machines first
WAIT_LOG_INTERVAL = 30.0  # between messages while the number of workers stays the same

MAX_MISSED_PINGS = 3  # in a row, until a worker is given up


class UnrunnableTask(NamedTuple):
    """A task that Dask assigns to no worker."""

    key: str
    any_worker: bool  # whether any worker may run it, although it was meant for a certain one


def find_unrunnable(key: str, dask_scheduler: Any = None) -> UnrunnableTask | None:
    """Find a task that no worker will run among those that the given one waits for. Runs on the scheduler."""
    pending, seen = [dask_scheduler.tasks.get(key)], set()
    while pending and dask_scheduler.running:  # without workers, no task runs anywhere
        task = pending.pop()
        if task is None or task in seen:
            continue
        seen.add(task)
        unrunnable = [other for other in task.dependencies if other.state == "no-worker"]
        if unrunnable:
            return UnrunnableTask(str(unrunnable[0].key), bool(unrunnable[0].loose_restrictions))
        pending += [other for other in task.dependencies if other.state == "waiting"]
    return None


class WorkerMonitor:
    """Watches the workers of a cluster: it lists them and pings each of them again and again.

    Parameters
    ----------
    link : Link
        A worker is given up when it has not answered within the link's timeout.
    phases : Phases, optional
        Who is told that workers compile kernels.

    Attributes
    ----------
    generation_began : float
        When a worker was given up last, or an unrunnable task was found (`time.monotonic`).
    generation : str
        A new random name each time, "" at first. Dask may have assigned tasks to a worker that froze, and leaves them there for
        minutes: tasks submitted in a new generation need new keys, so that they do not wait for those.
    """

    def __init__(self, link: Link, phases: Phases = SILENT):
        self.link, self.timeout = link, link.timeout
        self._compilation = CompilationWatch(phases)
        self.generation_began, self.generation = -1.0, ""
        self._tasks_checked = time.monotonic()
        self._workers: dict[str, dict[str, Any]] = {}
        self._missed_pings: dict[str, int] = {}
        self._suspected: dict[str, float] = {}
        self._pings: dict[str, asyncio.Task[None]] = {}
        self._unanswered = 0  # requests to the scheduler, in a row
        self._seconds_without_workers = 0.0  # in which no worker responded, to the precision of a refresh
        link.run(self._list_workers())
        self._last_seen = dict.fromkeys(self._workers, time.monotonic())
        self._refreshing = link.start(self._refresh())

    def members(self) -> dict[str, int]:
        """Return the workers that can take work, with their numbers of threads."""
        return {
            address: info["nthreads"]
            for address, info in sorted(self._workers.items())
            if info.get("status", "running") == "running" and self._responds(address)
        }

    def known(self) -> Collection[str]:
        """Return all workers that the scheduler lists, including those that do not respond."""
        return self._workers.keys()

    def leaving(self, worker: str) -> bool:
        """Whether a worker has left or is about to leave."""
        info = self._workers.get(worker)
        return info is None or info.get("status", "running") not in ("running", "paused")

    def suspect(self, worker: str) -> None:
        """Give a worker no work until it has answered another ping."""
        self._suspected[worker] = time.monotonic()

    def answers(self, worker: str, direct: bool) -> bool:
        """Ping a worker, and wait for its answer as long as it may be there.

        Through the scheduler only if need be: it logs an error for each message to a worker that is dead.
        """

        def check() -> None:
            reason = self.failure_reason(worker)
            if reason is not None:
                raise WorkerLostError(reason)

        try:
            self.link.run(self._ping(worker, direct), check)
        except WorkerLostError:
            return False
        return self._missed_pings[worker] == 0

    def failure_reason(self, worker: str) -> str | None:
        """Return why a worker with an open request is given up; None if it is not."""
        self.check()
        if worker not in self._workers:
            return "it has left the cluster"
        if self._missed_pings.get(worker, 0) >= MAX_MISSED_PINGS:
            return f"no response for {self.timeout:g} s"
        return None

    def check(self) -> None:
        """Raise ClusterError if the scheduler is gone, or has had no worker for long."""
        if self._seconds_without_workers > WORKERS_DEADLINE:
            raise self._no_workers()
        self._check_scheduler()
        self._compilation.tell()

    def _check_scheduler(self) -> None:
        self.link.check()
        if self._unanswered >= MAX_MISSED_PINGS:
            raise self.link.scheduler_gone()

    def check_tasks(self, waiting: Mapping[str, float]) -> None:
        """Look for tasks that Dask will never run, among those that the caller waits for.

        A task may be meant for a certain worker and yet be allowed on any. If it is ready at a moment without workers, Dask does
        not assign it to workers that come later. Then a new generation begins, in which the task gets a new key.

        Parameters
        ----------
        waiting : mapping of str to float
            Since when the caller waits for each key (`time.monotonic`).

        Raises
        ------
        ClusterError
            If no worker may ever run one of them.
        """
        now = time.monotonic()
        if now < self._tasks_checked + self.timeout:
            return
        self._tasks_checked = now
        for key, since in waiting.items():
            if now < since + self.timeout:
                continue
            try:
                found = self.link.run(self.link.run_on_scheduler(find_unrunnable, key), self.check)
            except WorkerLostError:  # asked again after another timeout
                return
            if found is not None and found.any_worker:
                log.warning("no worker was given %s: it is submitted again", found.key)
                self._begin_generation()
                return
            if found is not None:
                raise ClusterError(
                    f"rows of a dask array are lost with their worker: no worker in the cluster may run {found.key}.",
                    remedy="Persist with allow_other_workers=True, or pass zarr arrays, which any worker can read again.",
                )

    def _begin_generation(self) -> None:
        # In this order: whoever sees the new time sees the new name too.
        self.generation, self.generation_began = uuid.uuid4().hex, time.monotonic()

    def wait_for_members(self, excluded: Collection[str] = ()) -> dict[str, int]:
        """Wait until there is a worker that can take work and is not excluded; return all of these."""
        deadline = time.monotonic() + WORKERS_DEADLINE
        while not (found := {name: n for name, n in self.members().items() if name not in excluded}):
            self.check()
            if time.monotonic() > deadline:
                raise self._no_workers()
            time.sleep(POLL_INTERVAL)
        return found

    def wait_for_number(self, wanted: int) -> dict[str, int]:
        """Wait until so many workers can take work; return all that can.

        Until then there may be none for longer than `WORKERS_DEADLINE`. Raises ClusterError after `WAIT_DEADLINE`.
        """
        began = logged = time.monotonic()
        n_logged = -1
        while len(found := self.members()) < wanted:
            self._check_scheduler()
            now = time.monotonic()
            if now > began + WAIT_DEADLINE:
                raise self._too_few_workers(len(found), wanted)
            if len(found) != n_logged or now > logged + WAIT_LOG_INTERVAL:
                log.info(
                    "waiting for workers at %s: %d of %d are there (waited %.0f s of at most %.0f s)",
                    self.link.address, len(found), wanted, now - began, WAIT_DEADLINE,
                )  # fmt: skip
                n_logged, logged = len(found), now
            time.sleep(POLL_INTERVAL)
        self._seconds_without_workers = 0.0  # one that was silent for long may have answered just now
        return found

    def _too_few_workers(self, n_found: int, wanted: int) -> ClusterError:
        others = len(self._workers) - n_found
        idle = (
            f"; {others} more can take no work, as they are paused, leaving or silent" if others > 0 else ""
        )
        return ClusterError(
            f"the scheduler at {self.link.address} had {n_found} of {wanted} workers after {WAIT_DEADLINE:.0f} s{idle}.",
            remedy=f"Start more (dask worker {self.link.address}), see the logs of those that did not come, or wait for "
            "fewer: ``wait_for_workers``.",
            where=self.link.address,
        )

    def _no_workers(self) -> ClusterError:
        return ClusterError(
            f"the scheduler at {self.link.address} had no worker within {WORKERS_DEADLINE:.0f} s.",
            remedy="Start workers: dask worker <scheduler address>.",
            where=self.link.address,
        )

    def close(self) -> None:
        """Stop watching."""
        self._refreshing.cancel()

    def _responds(self, worker: str) -> bool:
        last_seen = self._last_seen.get(worker)
        return (
            last_seen is not None
            and last_seen > self._suspected.get(worker, -1.0)
            and self._missed_pings.get(worker, 0) < MAX_MISSED_PINGS
        )

    async def _refresh(self) -> None:
        try:
            while True:
                await self._list_workers()
                # Ping large clusters less often than once a second.
                pause = max(REFRESH_INTERVAL, len(self._workers) / 200)
                if any(self._missed_pings.get(address, 0) < MAX_MISSED_PINGS for address in self._workers):
                    self._seconds_without_workers = 0.0
                elif not self._unanswered:
                    self._seconds_without_workers += pause
                for address in self._workers:
                    if address not in self._pings or self._pings[address].done():
                        self._pings[address] = asyncio.ensure_future(self._ping(address))
                for gone in self._pings.keys() - self._workers.keys():
                    self._pings.pop(gone).cancel()
                await asyncio.sleep(pause)
        finally:
            for ping in self._pings.values():
                ping.cancel()

    async def _list_workers(self) -> None:
        try:
            self._workers = await asyncio.wait_for(self.link.workers(), self.timeout / MAX_MISSED_PINGS)
        except (ClusterError, WorkerLostError, TimeoutError) as error:
            log.debug("the scheduler did not answer: %r", error)
            self._unanswered += 1
        else:
            self._unanswered = 0
            self._compilation.look(self._workers)

    async def _ping(self, worker: str, direct: bool = False) -> None:
        began = time.monotonic()
        try:
            await asyncio.wait_for(
                self.link.send(worker, "identity", direct), self.timeout / MAX_MISSED_PINGS
            )
        except (ClusterError, WorkerLostError, TimeoutError):
            self._missed_pings[worker] = self._missed_pings.get(worker, 0) + 1
            if self._missed_pings[worker] == MAX_MISSED_PINGS:
                self._begin_generation()
        else:
            self._missed_pings[worker], self._last_seen[worker] = 0, began
