"""Which workers a cluster has, and which of them are well."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from distboost.errors import ClusterError
from distboost.runtime.cluster.coordinator import LostError
from distboost.runtime.cluster.link import POLL_INTERVAL, Link

log = logging.getLogger("distboost")

# Seconds.
REFRESH_INTERVAL = 1.0  # between looks at the scheduler's list of workers
WORKERS_DEADLINE = 60.0  # for the first worker

MAX_MISSED_PINGS = 3  # signs of life that fail to come, one after another, until a worker is given up


class UnrunnableTask(NamedTuple):
    """A task that Dask gives to no worker."""

    key: str
    any_worker: bool  # any worker may run it, whichever it was meant for


def find_unrunnable(key: str, dask_scheduler: Any = None) -> UnrunnableTask | None:
    """A task on the scheduler that the given one waits for and that no worker will run, if there is one."""
    todo, seen = [dask_scheduler.tasks.get(key)], set()
    while todo and dask_scheduler.running:  # without workers, no task runs anywhere
        task = todo.pop()
        if task is None or task in seen:
            continue
        seen.add(task)
        lacking = [other for other in task.dependencies if other.state == "no-worker"]
        if lacking:
            return UnrunnableTask(str(lacking[0].key), bool(lacking[0].loose_restrictions))
        todo += [other for other in task.dependencies if other.state == "waiting"]
    return None


class WorkerMonitor:
    """Which workers there are, and which of them give signs of life.

    Parameters
    ----------
    link : Link
        A worker is given up after its timeout without a sign of life.

    Attributes
    ----------
    generation_began : float
        When a worker was given up last, or tasks were found that no worker can run (`time.monotonic`).
    generation : str
        Another one since then; "" before the first time. A worker that froze may have been given tasks, which Dask leaves
        there for minutes: what is sent in another generation is to have other names, and not to wait for them.
    """

    def __init__(self, link: Link):
        self.link, self.timeout = link, link.timeout
        self.generation_began, self.generation = -1.0, ""
        self._checked = time.monotonic()
        self._workers: dict[str, dict] = {}
        self._missed_pings: dict[str, int] = {}
        self._suspected: dict[str, float] = {}
        self._pings: dict[str, asyncio.Task] = {}
        self._unanswered = 0  # looks, one after another, that the scheduler did not answer
        self._without_workers_for = 0.0  # seconds in which no worker gave a sign of life, by looks
        link.answer(self._list_workers())
        self._last_seen = dict.fromkeys(self._workers, time.monotonic())
        self._refreshing = link.start(self._refresh())

    def members(self) -> dict[str, int]:
        """The workers that can work, with their threads."""
        return {
            address: info["nthreads"]
            for address, info in sorted(self._workers.items())
            if info.get("status", "running") == "running" and self._is_well(address)
        }

    def known(self) -> Collection[str]:
        """The workers that the scheduler knows, those among them that give no sign of life too."""
        return self._workers.keys()

    def leaving(self, worker: str) -> bool:
        """Whether it is gone, or about to go."""
        info = self._workers.get(worker)
        return info is None or info.get("status", "running") not in ("running", "paused")

    def suspect(self, worker: str) -> None:
        """It has no work until it gives a new sign of life."""
        self._suspected[worker] = time.monotonic()

    def failure_reason(self, worker: str) -> str | None:
        """Why a worker that owes an answer is given up, if it is."""
        self.check()
        if worker not in self._workers:
            return "it has left the cluster"
        if self._missed_pings.get(worker, 0) >= MAX_MISSED_PINGS:
            return f"no sign of life for {self.timeout:g} s"
        return None

    def check(self) -> None:
        """Raises if the scheduler is gone, or has been without workers for long."""
        if self._without_workers_for > WORKERS_DEADLINE:
            raise self._no_workers()
        self.link.check()
        if self._unanswered >= MAX_MISSED_PINGS:
            raise self.link.scheduler_gone()

    def check_tasks(self, waiting: Mapping[str, float]) -> None:
        """Looks after tasks that are waited for, each since a time, where Dask does not; raises if one can never be run.

        Where a task may run on any worker but should run on a certain one, and no worker is there for a moment, Dask never
        gives it to those that come later: another generation begins, in which it has another name.
        """
        now = time.monotonic()
        if now < self._checked + self.timeout:
            return
        self._checked = now
        for key, since in waiting.items():
            if now < since + self.timeout:
                continue
            try:
                found = self.link.answer(self.link.run_on_scheduler(find_unrunnable, key), self.check)
            except LostError:  # asked again later
                return
            if found is not None and found.any_worker:
                log.warning("no worker was given %s: it is sent again", found.key)
                self._begin_generation()
                return
            if found is not None:
                raise ClusterError(
                    f"rows of a dask array are lost with their worker: {found.key} may run on no worker that there is. Persist "
                    "with allow_other_workers=True, or give fit zarr arrays, which any worker can read again."
                )

    def _begin_generation(self) -> None:
        self.generation, self.generation_began = uuid.uuid4().hex, time.monotonic()  # in this order

    def wait_for_members(self, besides: Collection[str] = ()) -> dict[str, int]:
        """The workers that can work, without these, once there is one."""
        last = time.monotonic() + WORKERS_DEADLINE
        while not (found := {name: n for name, n in self.members().items() if name not in besides}):
            self.check()
            if time.monotonic() > last:
                raise self._no_workers()
            time.sleep(POLL_INTERVAL)
        return found

    def _no_workers(self) -> ClusterError:
        return ClusterError(
            f"the scheduler at {self.link.address} had no worker within {WORKERS_DEADLINE:.0f} s. "
            "Start some: dask worker <scheduler address>."
        )

    def close(self) -> None:
        self._refreshing.cancel()

    def _is_well(self, worker: str) -> bool:
        heard = self._last_seen.get(worker)
        return (
            heard is not None
            and heard > self._suspected.get(worker, -1.0)
            and self._missed_pings.get(worker, 0) < MAX_MISSED_PINGS
        )

    async def _refresh(self) -> None:
        try:
            while True:
                await self._list_workers()
                # A thousand workers need not be asked every second.
                pause = max(REFRESH_INTERVAL, len(self._workers) / 200)
                if any(self._missed_pings.get(address, 0) < MAX_MISSED_PINGS for address in self._workers):
                    self._without_workers_for = 0.0
                elif not self._unanswered:
                    self._without_workers_for += pause
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
        except (ClusterError, LostError, TimeoutError) as error:
            log.debug("the scheduler did not answer: %r", error)
            self._unanswered += 1
        else:
            self._unanswered = 0

    async def _ping(self, worker: str) -> None:
        began = time.monotonic()
        try:
            await asyncio.wait_for(self.link.send(worker, "identity"), self.timeout / MAX_MISSED_PINGS)
        except (ClusterError, LostError, TimeoutError):
            self._missed_pings[worker] = self._missed_pings.get(worker, 0) + 1
            if self._missed_pings[worker] == MAX_MISSED_PINGS:
                self._begin_generation()
        else:
            self._missed_pings[worker], self._last_seen[worker] = 0, began
