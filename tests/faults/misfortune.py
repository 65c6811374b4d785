"""What befalls the workers of a cluster, as a seed decides."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from tests.faults.processes import Processes, signalled

MOST_WORKERS = 5
MOST_STRIKES = 8
BETWEEN = 0.5  # seconds between two strikes, on average
DEADLINE = 10.0  # seconds for what Dask is asked to do


class Misfortune:
    """Strikes workers.

    Attributes
    ----------
    story : list of str
        What was done.
    """

    def __init__(self, processes: Processes, chance: random.Random):
        self._processes, self._chance = processes, chance
        self._strikes = {
            "killed": (5, lambda: self._signal(signal.SIGKILL)),
            "stopped": (3, lambda: self._signal(signal.SIGSTOP)),
            "woken": (4, self._wake),
            "retired": (2, self._retire),
            "nanny killed": (2, self._end_nanny),
            "joined": (2, self._join),
            "all killed": (1, self._kill_all),
            "restarted": (1, self._restart),
        }
        self.story: list[str] = []

    def strike(self) -> None:
        [what] = self._chance.choices([*self._strikes], [weight for weight, _ in self._strikes.values()])
        try:
            self._strikes[what][1]()
        except Exception as error:  # noqa: BLE001 (Dask may fail at what was asked of it amid all this)
            what = f"{what} ({type(error).__name__})"
        self.story.append(what)

    def _signal(self, number: int) -> None:
        if workers := self._processes.workers():
            signalled(self._chance.choice(workers), number)

    def _wake(self) -> None:
        stopped = [each for each in self._processes.workers() if each.status() == psutil.STATUS_STOPPED]
        if stopped:
            signalled(self._chance.choice(stopped), signal.SIGCONT)

    def _retire(self) -> None:
        if addresses := self._processes.addresses():
            self._processes.client.retire_workers([self._chance.choice(addresses)], callback_timeout=DEADLINE)
            self._join()

    def _end_nanny(self) -> None:
        if nannies := self._processes.nannies:
            self._processes.end(self._chance.choice(nannies))
            self._join()

    def _join(self) -> None:
        if self._processes.n_nannies() < MOST_WORKERS:
            self._processes.begin()

    def _kill_all(self) -> None:
        for worker in self._processes.workers():
            signalled(worker, signal.SIGKILL)

    def _restart(self) -> None:
        self._processes.client.restart(timeout=DEADLINE, wait_for_workers=False)


@contextmanager
def struck(processes: Processes, seed: int) -> Iterator[list[str]]:
    """Strikes workers a few times, and wakes them all in the end; gives what was done so far."""
    chance = random.Random(seed)
    misfortune, over = Misfortune(processes, chance), threading.Event()

    def work() -> None:
        for _ in range(chance.randint(1, MOST_STRIKES)):
            if over.wait(chance.expovariate(1 / BETWEEN)):
                return
            misfortune.strike()
        over.wait(chance.expovariate(1 / BETWEEN))
        processes.wake()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield misfortune.story
    finally:
        over.set()
        thread.join(6 * DEADLINE)
        assert not thread.is_alive()
