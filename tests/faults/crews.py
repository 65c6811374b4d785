"""Workers that may be killed, stopped, and replaced within a moment."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from itertools import count

from distributed import Client, Scheduler, Worker

DEADLINE = 30.0  # seconds, for what takes one or two
FORKS = multiprocessing.get_context("forkserver")


def until(true: Callable[[], object], what: str, seconds: float = DEADLINE) -> None:
    """Waits, and fails at the deadline."""
    last = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < last, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


def work(scheduler: str, folder: str, options: dict) -> None:
    """A worker's process: as `dask worker --no-nanny`."""
    logging.disable(logging.ERROR)

    async def run() -> None:
        async with Worker(scheduler, local_directory=folder, death_timeout=DEADLINE, **options) as worker:
            await worker.finished()

    asyncio.run(run())


def schedule(host: str, file: str) -> None:
    """A scheduler's process; its address is written to a file."""
    logging.disable(logging.ERROR)

    async def run() -> None:
        async with Scheduler(host=host, port=0, dashboard_address=":0") as scheduler:
            with open(f"{file}.new", "w") as out:
                out.write(scheduler.address)
            os.replace(f"{file}.new", file)
            await scheduler.finished()

    asyncio.run(run())


class Workers:
    """A scheduler, and workers in processes of their own."""

    def __init__(self, folder: os.PathLike, host: str = "127.0.0.1"):
        self.folder = str(folder)
        file = os.path.join(self.folder, "scheduler")
        self.scheduler = FORKS.Process(target=schedule, args=(host, file), daemon=True)
        self.scheduler.start()
        until(lambda: os.path.exists(file), "a scheduler")
        with open(file) as found:
            address = found.read()
        self.client = Client(address, set_as_default=False)
        self._processes: dict[str, multiprocessing.process.BaseProcess] = {}
        self._names = map("worker-{}".format, count())

    def begin(self, n: int = 1, **options) -> list[str]:
        """The names of new workers, which may not be there yet."""
        begun = []
        for _ in range(n):
            name = next(self._names)
            how = {"name": name, "nthreads": 1, "dashboard": False, **options}
            process = self._process(self.client.scheduler.address, self.folder, how)
            process.start()
            self._processes[name] = process
            begun.append(name)
        return begun

    def _process(self, *arguments) -> multiprocessing.process.BaseProcess:
        return FORKS.Process(target=work, args=arguments, daemon=True)

    def restore(self, n: int = 3) -> None:
        """Has n workers that can take work, as the scheduler knows, and no others: one that has just come cannot for a moment."""
        for name in self.alive():
            with suppress(ProcessLookupError):  # it may die meanwhile
                self.signal(name, signal.SIGCONT)
        alive = self.alive()
        for name in alive[n:]:
            self.kill(name)
        alive = {*alive[:n], *self.begin(max(n - len(alive), 0))}
        ready = dict.fromkeys(alive, "running")
        until(
            lambda: {worker["name"]: worker["status"] for worker in self._known().values()} == ready,
            f"{n} workers",
        )

    def there(self) -> dict[str, str]:
        """The names of the workers that the scheduler knows, with their addresses."""
        return {worker["name"]: address for address, worker in self._known().items()}

    def _known(self) -> dict[str, dict]:
        """What the scheduler says of each worker."""
        # Not `scheduler_info`: what it returns may be the answer to the client's own question, which is without workers.
        return self.client.sync(self.client.scheduler.identity, n_workers=-1)["workers"]

    def alive(self) -> list[str]:
        return [name for name, process in self._processes.items() if process.is_alive()]

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def signal(self, name: str, number: int) -> None:
        os.kill(self.pid(name), number)

    def kill(self, name: str) -> None:
        """Returns when it is dead."""
        process = self._processes[name]
        process.kill()
        process.join(DEADLINE)
        assert process.exitcode == -signal.SIGKILL

    def exit_of(self, pid: int) -> int | None:
        """How the process ended, once it has."""
        [process] = [process for process in self._processes.values() if process.pid == pid]
        process.join(DEADLINE)
        return process.exitcode

    def close(self) -> None:
        self.scheduler.kill()  # it may be stopped: then the client would wait for it
        self.client.close(timeout=DEADLINE)
        for process in [*self._processes.values(), self.scheduler]:
            process.kill()
            process.join(DEADLINE)


@contextmanager
def replaced(workers: Workers, n: int):
    """For each of n workers that dies another one comes."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            workers.begin(n - len(workers.alive()))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(10)
