"""Watches the workers of a cluster: whether they are paused or restarted, and what they spill."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client

INTERVAL = 0.5  # seconds; workers report twice a second
_ACTIONS = ("worker-status-change", "add-worker", "remove-worker")


@contextmanager
def watched(client: Client, mark: Callable[..., None]) -> Iterator[None]:
    """Marks the workers' process ids at first, and what happened in the end, be it an error."""
    with ClusterWatch(client) as watch:
        mark("workers", pids=watch.pids)
        try:
            yield
        finally:
            mark("cluster", **watch.found())


class ClusterWatch:
    """Collects the workers' own reports for as long as it is entered."""

    def __init__(self, client: Client):
        self.client = client
        self.pids = self._pids()
        self._n_events = len(self._events())
        self._peaks: dict[str, dict[str, int]] = {}
        self._statuses: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> ClusterWatch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def found(self) -> dict[str, Any]:
        """Peaks of each worker by its own account, statuses seen, restarts, events and warnings."""
        after = self._pids()
        return {
            "peaks": self._peaks,
            "statuses": sorted(self._statuses),
            "restarted": sorted(set(self.pids) - set(after)),
            "events": self._events()[self._n_events :],
            "warnings": self._warnings(),
        }

    def _pids(self) -> list[int]:
        return list(self.client.run(os.getpid).values())

    def _watch(self) -> None:
        while not self._ended.wait(INTERVAL):
            workers = self.client.cluster.scheduler.workers  # in this process
            for address, worker in list(workers.items()):
                self._statuses.add(worker.status.name)
                now = {kind: getattr(worker.memory, kind) for kind in ("process", "managed", "spilled")}
                peaks = self._peaks.setdefault(address, dict.fromkeys(now, 0))
                peaks.update({kind: max(peaks[kind], value) for kind, value in now.items()})

    def _events(self) -> list[dict[str, Any]]:
        """What the scheduler noted of workers that come, go and change their status, in the order of time."""
        topics = self.client.cluster.scheduler.get_events()  # not by the client: some events cannot be sent
        noted = [(time, event) for events in topics.values() for time, event in events]
        noted = [pair for pair in noted if isinstance(pair[1], dict) and pair[1].get("action") in _ACTIONS]
        return [{"time": time, **_plain(event)} for time, event in sorted(noted, key=lambda pair: pair[0])]

    def _warnings(self) -> list[str]:
        logs = {**self.client.get_worker_logs(), **self.client.get_worker_logs(nanny=True)}
        return [
            text
            for lines in logs.values()
            for level, text in lines
            if level in ("WARNING", "ERROR", "CRITICAL")
        ]


def _plain(event: dict) -> dict[str, str]:
    return {name: str(event[name]) for name in ("action", "worker", "prev-status", "status") if name in event}
