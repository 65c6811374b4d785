"""A cluster of the commands that users start: `dask scheduler`, and `dask worker` with the nanny that starts workers again."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import psutil
from distributed import Client

from tests.faults.crews import DEADLINE, until
from tests.programs import Program

_DASK = "from dask.__main__ import main; main()"


class Processes:
    """A scheduler, and workers with nannies.

    Attributes
    ----------
    client : Client
    nannies : list of Program
        Each has one worker, or is about to have it.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._file = folder / "scheduler.json"
        self.scheduler = self._dask("scheduler", "--host", "127.0.0.1", "--port", "0")
        until(self._file.exists, "a scheduler")
        self.client = Client(scheduler_file=str(self._file), set_as_default=False)
        self.nannies: list[Program] = []
        self._seen: set[psutil.Process] = set()

    def begin(self) -> None:
        """One worker more, which may not be there yet."""
        self.nannies.append(
            self._dask("worker", "--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder))
        )

    def restore(self, n: int) -> None:
        """Has n workers that are well, and no others."""
        self.wake()
        self.n_nannies()
        for nanny in self.nannies[n:]:
            self.end(nanny)
        for _ in range(n - len(self.nannies)):
            self.begin()
        until(self._are_there, f"{n} workers", 2 * DEADLINE)

    def n_nannies(self) -> int:
        """How many there are, without those that have ended."""
        self.nannies = [nanny for nanny in self.nannies if nanny.poll() is None]
        return len(self.nannies)

    def workers(self) -> list[psutil.Process]:
        """Those that there are just now."""
        found = [worker for nanny in self.nannies for worker in _workers_of(nanny)]
        self._seen.update(found)
        return found

    def wake(self) -> None:
        """Whoever is stopped goes on, also those whose nanny is dead."""
        self.workers()
        for worker in self._seen:
            signalled(worker, signal.SIGCONT)

    def addresses(self) -> list[str]:
        return sorted(self.client.sync(self.client.scheduler.identity, n_workers=-1)["workers"])

    def end(self, nanny: Program) -> None:
        """Kills it; its worker notices by itself, unless it is stopped."""
        self.workers()
        nanny.kill()
        nanny.wait(DEADLINE)
        self.nannies.remove(nanny)

    def close(self) -> None:
        self.workers()
        for worker in self._seen:
            signalled(worker, signal.SIGKILL)
        for process in [*self.nannies, self.scheduler]:
            process.kill()
            process.wait(DEADLINE)
        self.client.close(timeout=DEADLINE)

    def _are_there(self) -> bool:
        known = self.client.sync(self.client.scheduler.identity, n_workers=-1)["workers"]
        alive = {worker.pid for worker in self.workers()}
        if len(known) != self.n_nannies() or len(alive) != len(known):
            return False
        return {*self.client.run(os.getpid, on_error="ignore").values()} == alive

    def _dask(self, command: str, *arguments: str) -> Program:
        files = ("--scheduler-file", str(self._file))
        with (self.folder / f"{command}.log").open("ab") as log:
            return Program(_DASK, command, *files, *arguments, stdout=log.fileno(), stderr=log.fileno())


def _workers_of(nanny: Program) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(nanny.pid).children()
        return [child for child in children if "--multiprocessing-fork" in child.cmdline()]  # not its helpers
    return []


def signalled(process: psutil.Process, number: int) -> None:
    with suppress(psutil.NoSuchProcess):  # it may have died, and its number be another's
        process.send_signal(number)
