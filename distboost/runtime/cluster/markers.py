"""Tasks that show Dask which workers a training run uses.

The rows of a run lie outside of Dask's own data, and its rounds are messages, not tasks. So to Dask its workers are idle:
the dashboard shows nothing, and a cluster that adapts to its load takes them away. A marker is a task that does nothing until it
is cancelled. It leaves the thread pool of its worker (`secede`), so that it takes none of the worker's threads. To Dask it is a
"long-running" task: it counts in the dashboard, and `Scheduler.workers_to_close` names no worker that has one.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
import uuid
from contextlib import suppress
from functools import partial
from typing import Any

from distributed import get_worker, secede

from distboost.errors import ClusterError
from distboost.runtime.cluster.cancelled import is_cancelled
from distboost.runtime.cluster.crew import WorkerLostError
from distboost.runtime.cluster.link import Link
from distboost.runtime.cluster.monitor import REFRESH_INTERVAL, WorkerMonitor

log = logging.getLogger("distboost")

CANCEL_INTERVAL = 0.05  # seconds between a marker's looks at its own state
END_DEADLINE = 1.0  # seconds to wait for the end of the markers
PRIORITY = 1000  # before the tasks of the training, which may occupy all threads of a worker for long


def stand() -> None:
    """Do nothing until this task is cancelled: the training is over, or its client is gone. Runs as a task."""
    key = str(get_worker().get_current_task())
    _standing.add(key)
    try:
        secede()
        while not is_cancelled():
            time.sleep(CANCEL_INTERVAL)
    finally:
        _standing.discard(key)


_standing: set[str] = set()  # keys of the markers of this process


async def has_ended(key: str) -> None:
    """Wait until a marker has ended. Runs on its worker."""
    while key in _standing:
        await asyncio.sleep(CANCEL_INTERVAL / 5)


class Markers:
    """Keeps a marker on each worker, those that join later included, until it is closed.

    If there is no worker, a marker waits for one: a cluster that adapts to its load starts a worker for it.

    Parameters
    ----------
    link : Link
    monitor : WorkerMonitor
    title : str
        The name of the training, under which the dashboard shows its markers.
    """

    def __init__(self, link: Link, monitor: WorkerMonitor, title: str):
        self._link, self._monitor, self._title = link, monitor, title
        self._placed: dict[str | None, Any] = {}  # Dask's futures by address; None: any worker
        self._closing = threading.Lock()
        self._closed = False
        self._following = link.start(self._follow())

    def close(self) -> None:
        """End all markers, and wait for a moment until they have: a worker that is closed while a task runs logs a warning."""
        with self._closing:
            self._closed = True
            self._link.release(self._placed.values())
        self._following.cancel()
        with suppress(ClusterError, WorkerLostError, TimeoutError):
            self._link.run(self._ended(), timeout=2 * END_DEADLINE)

    async def _ended(self) -> None:
        asked = [
            asyncio.wait_for(self._link.run_on(worker, partial(has_ended, str(marker.key))), END_DEADLINE)
            for worker, marker in self._placed.items()
            if worker in self._monitor.members()
        ]
        await asyncio.gather(*asked, return_exceptions=True)

    async def _follow(self) -> None:
        while not self._closed:
            try:
                with self._closing:
                    self._place()
            except ClusterError as error:  # whoever asks the workers next raises it
                log.debug("no markers: %s", error)
            await asyncio.sleep(REFRESH_INTERVAL)

    def _place(self) -> None:
        """Submit a marker for each worker that lacks one; release those of workers that leave, so that none runs elsewhere."""
        if self._closed:
            return
        members = self._monitor.members()
        stays = {worker for worker in self._monitor.known() if not self._monitor.leaving(worker)}
        wanted: set[str | None] = {None} if not stays else {*members, *(stays & self._placed.keys())}
        for worker in self._placed.keys() - wanted:
            self._link.release([self._placed.pop(worker)])
        for worker in wanted:
            # "finished" or "cancelled": the worker was started again, or somebody cleared the cluster of all tasks.
            if worker not in self._placed or self._placed[worker].status in ("finished", "cancelled", "lost"):
                self._placed[worker] = self._link.submit(
                    stand,
                    workers=None if worker is None else [worker],
                    key=f"distboost-{self._title}-{uuid.uuid4().hex}",
                    priority=PRIORITY,
                    retries=0,
                )
