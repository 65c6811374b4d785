"""Machines of a simulated cluster, in virtual time: one seed decides which join, leave, freeze and die."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from distboost.runtime.cluster.crew import MOST_RECENT_LOSSES, WorkerLostError
from distboost.runtime.cluster.host import Host

# Virtual seconds.
DELAY = 1.0  # a message takes as long, on average
TIMEOUT = 30.0
WORKERS_DEADLINE = 600.0

MOST_MACHINES = 5


@dataclass(frozen=True)
class Trouble:
    """How much goes wrong.

    Attributes
    ----------
    losses : int
        Workers that are lost, at the most.
    chance : float
        Of each message, to end with the loss of its worker.
    bustle : float
        Of something to happen to an idle worker, whenever it is asked which there are.
    doomed : float
        The number of the request from which on every one ends with the loss of its worker.
    unfit : frozenset of str
        The addresses of workers that no rows can be given.
    """

    losses: int = 0
    chance: float = 0.0
    bustle: float = 0.0
    doomed: float = math.inf
    unfit: frozenset[str] = frozenset()

    @classmethod
    def any(cls, chooser: random.Random) -> Trouble:
        """As many losses as a single question survives, in quick succession or spread out."""
        return cls(
            chooser.randint(1, MOST_RECENT_LOSSES),
            chooser.choice((0.01, 0.04, 0.15)),
            chooser.choice((0.05, 0.2)),
        )


class Event(NamedTuple):
    """Something out of the ordinary."""

    time: float
    what: str
    worker: str


class SimulatedRequest:
    """An answer that is to come; of one that was given up, or has come before, more may be heard later."""

    def __init__(self) -> None:
        self.settled = False
        self._answer: Any = None
        self._error: Exception | None = None

    def settle(self, answer: Any = None, error: Exception | None = None) -> None:
        self.settled, self._answer, self._error = True, answer, error

    @property
    def is_lost(self) -> bool:
        return isinstance(self._error, WorkerLostError)

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._answer


@dataclass(eq=False)
class Machine:
    """A worker process: its sessions are gone when it is."""

    address: str
    threads: int
    sessions: dict[int, Host] = field(default_factory=dict)
    alive: bool = True
    leaving: bool = False
    suspected: bool = False
    thaws: float = 0.0  # until then it is frozen


class Message(NamedTuple):
    """A message to the machine that is at an address when it arrives."""

    request: SimulatedRequest
    address: str
    session_id: int
    method: str
    arguments: tuple

    @property
    def what(self) -> str:
        """What is asked for."""
        return self.arguments[1] if self.method == "answer" else self.method


class Peer(NamedTuple):
    """How a session is addressed by others."""

    address: str
    session_id: int


class SimulatedMachines:
    """The machines of a cluster, and what befalls them.

    Parameters
    ----------
    seed : int
    trouble : Trouble

    Attributes
    ----------
    story : list of Events
    """

    def __init__(self, seed: int, trouble: Trouble):
        self.random = random.Random(seed)
        self.trouble, self.losses_left = trouble, trouble.losses
        self.story: list[Event] = []
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._addresses = (f"worker-{n}" for n in itertools.count())
        self._former: list[str] = []  # addresses that are free again
        self._machines: dict[str, Machine] = {}
        self._joining = 0
        for _ in range(self.random.randint(1, 4)):
            self.add_worker()

    def add_worker(self) -> None:
        self._add(next(self._addresses))

    def _add(self, address: str) -> None:
        self._machines[address] = Machine(address, self.random.choice((1, 1, 2)))

    def _join(self) -> None:
        """Somebody comes: under an address that was another's, perhaps."""
        self._joining += 1

        def arrive() -> None:
            self._joining -= 1
            back = bool(self._former) and self.random.random() < 0.6
            address = self._former.pop() if back else next(self._addresses)
            self._tell("came back" if back else "joined", address)
            self._add(address)

        # Soon enough to be there before its predecessor is missed, or much later.
        self._at(self.random.choice((0.1, 1.0, 10.0)) * self._delay(), arrive)

    def _kill(self, machine: Machine, at: str) -> None:
        if not machine.alive:
            return
        self._tell(f"killed: {at}", machine.address)
        self._end(machine)

    def _end(self, machine: Machine) -> None:
        machine.alive = False
        del self._machines[machine.address]
        self._former.append(machine.address)
        for host in machine.sessions.values():
            host.close()
            self._host_gone(host)
        stays = [other for other in self._machines.values() if not other.leaving]
        if len(stays) + self._joining < 1 or self.random.random() < 0.5:
            self._join()

    def _freeze(self, machine: Machine, at: str) -> None:
        self._tell(f"frozen: {at}", machine.address)
        machine.thaws = self.now + TIMEOUT * self.random.choice((1.0, 1.02, 1.1, 3.0))

    def _leave(self, machine: Machine) -> None:
        """It says that it goes, and goes, whether or not its rows are wanted still."""
        self._tell("leaves", machine.address)
        machine.leaving = True

        def go() -> None:
            if machine.alive:
                self._end(machine)

        self._at(self.random.choice((1.0, 20.0)) * self._delay(), go)
        self._join()

    def _is_well(self, machine: Machine) -> bool:
        return not machine.leaving and not machine.suspected

    def _believe(self, machine: Machine) -> None:
        machine.suspected = False

    def _happen(self) -> None:
        """Something befalls a worker that has nothing to do."""
        if self.random.random() >= self.trouble.bustle:
            return
        what = self.random.choice(("join", "leave", "kill", "freeze"))
        if what == "join":
            if len(self._machines) + self._joining < MOST_MACHINES:
                self._join()
            return
        stays = [machine for machine in self._machines.values() if self._is_well(machine)]
        if not self.losses_left or not stays:
            return
        self.losses_left -= 1
        machine = self.random.choice(stays)
        if what == "leave":
            self._leave(machine)
        elif what == "kill":
            self._kill(machine, "idle")
        else:
            self._freeze(machine, "idle")

    def _host_gone(self, host: Host) -> None:
        """Called for each session of a machine that has ended."""

    # Time.

    def _delay(self) -> float:
        return self.random.expovariate(1 / DELAY)

    def _at(self, after: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + after, next(self._numbers), action))

    def _step(self) -> None:
        if not self._events:
            raise AssertionError("the coordinator waits for what will never happen")
        self.now, _, action = heapq.heappop(self._events)
        action()

    def _tell(self, what: str, worker: str) -> None:
        self.story.append(Event(round(self.now, 3), what, worker))
