"""Workers in this process and in virtual time: one seed decides what becomes of its workers and its messages.

Workers die, freeze, leave, join, and come back under their old address; messages are late, overtake each other, are lost or
come twice. The hosts are real, and so is all that they compute.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from distboost.data.blocks import BinnedSet
from distboost.errors import ClusterError, WorkerError
from distboost.runtime.block import Key
from distboost.runtime.cluster.answers import combined
from distboost.runtime.cluster.coordinator import DistributedRows
from distboost.runtime.cluster.crew import MOST_RECENT_LOSSES, WorkerLostError
from distboost.runtime.cluster.exchange import Attempt, Contribution, Reply
from distboost.runtime.cluster.gathering import Piece
from distboost.runtime.cluster.host import Host
from distboost.runtime.layout import Allotment, Layout, Reading, readings
from distboost.runtime.local import LocalRuntime

# Virtual seconds.
DELAY = 1.0  # a message takes as long, on average
TIMEOUT = 30.0
WORKERS_DEADLINE = 600.0

MOST_MACHINES = 5
N_BLOCKS = 7  # of the training rows
RECOVERY = ("open_session", "set_replay_log", "take")
DEADLY = ("killed before", "killed after", "frozen", "request lost", "answer lost")
HARMLESS = ("request twice", "answer twice")


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


@dataclass(eq=False)
class Attending:
    """A session that takes part in an attempt at an exchange."""

    machine: Machine
    host: Host
    message: Message
    contribution: Contribution
    undelivered: int = 0
    passed_on: bool = False
    replied: bool = False

    @property
    def attempt(self) -> Attempt:
        return self.message.arguments[2]

    @property
    def n_nodes(self) -> int:
        return len(self.message.arguments[1].build)

    @property
    def session_id(self) -> int:
        return self.message.session_id


class SimulatedWorkers:
    """Simulated workers, for one training.

    Parameters
    ----------
    seed : int
    trouble : Trouble
    items : mapping of Key to Reading
    layout, n_sets, allotment
        As for `Host`.

    Attributes
    ----------
    story : list of Events
    blocks_given : Counter
        By address.
    """

    def __init__(
        self,
        seed: int,
        trouble: Trouble,
        items: Mapping[Key, Reading],
        layout: Layout,
        n_sets: int,
        allotment: Allotment | None,
    ):
        self.random = random.Random(seed)
        self.trouble, self.items = trouble, items
        self.losses_left = trouble.losses
        self.story: list[Event] = []
        self.now = 0.0
        self.n_requests = 0
        self._host = layout, n_sets, allotment, 1
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._addresses = (f"worker-{n}" for n in itertools.count())
        self._former: list[str] = []  # addresses that are free again
        self._machines: dict[str, Machine] = {}
        self._joining = 0
        self._sessions: dict[int, str] = {}  # the address of each session
        self._again: list[SimulatedRequest] = []  # what comes late, or once more
        self._asked_since_loss = True
        self.blocks_given: Counter[str] = Counter()
        self.timeout = TIMEOUT
        self._attending: dict[Host, Attending] = {}
        self._early: dict[
            Host, list[tuple[Attending, int, Piece, bool]]
        ] = {}  # pieces of attempts that have not begun there
        for _ in range(self.random.randint(1, 4)):
            self.add_worker()

    # What the coordinator calls.

    def members(self) -> dict[str, int]:
        self._happen()
        found = [machine for machine in self._machines.values() if self._is_well(machine)]
        return {machine.address: machine.threads for machine in found}

    def wait(self, excluded: Collection[str]) -> None:
        last = self.now + WORKERS_DEADLINE
        while not any(self._is_well(m) and m.address not in excluded for m in self._machines.values()):
            if not self._events or self.now > last:
                raise ClusterError("no worker has come")
            self._step()

    def leaving(self, worker: str) -> bool:
        machine = self._machines.get(worker)
        return machine is None or machine.leaving

    def open_session(self, worker: str, session_id: int) -> SimulatedRequest:
        assert worker not in self._sessions.values(), f"{worker} has a session already"
        self._sessions[session_id] = worker
        return self._send(session_id, "open_session")

    def batches(self, keys: list[Key]) -> list[list[Key]]:
        n = self.random.randint(1, 3)
        return [keys[i : i + n] for i in range(0, len(keys), n)]

    def load(self, session_id: int, keys: list[Key]) -> SimulatedRequest:
        self.blocks_given[self._sessions[session_id]] += len(keys)
        return self._send(session_id, "take", [(key, self.items[key]) for key in keys])

    def ask(self, session_id: int, method: str, *arguments: Any) -> SimulatedRequest:
        if method not in RECOVERY:
            self._asked_since_loss = True
        return self._send(session_id, method, *arguments)

    def relay(self, session_ids: list[int], fan_out: int, method: str, *arguments: Any) -> SimulatedRequest:
        """The others of the first one's subtree are asked a little later, each as if by itself; one that is lost, all are."""
        whole = SimulatedRequest()
        parts = [self.ask(session_id, method, *arguments) for session_id in session_ids]

        def look() -> None:
            settled = [part for part in parts if part.settled]
            answers = [part.result() for part in settled if not part.is_lost]
            failed = [answer for answer in answers if getattr(answer, "failed", False)]
            if len(answers) < len(settled):
                self._tell(f"relay failed: {arguments[1] if method == 'answer' else method}", "a relay")
                whole.settle(error=WorkerLostError("a worker below it has not answered"))
            elif failed or len(settled) == len(parts):
                whole.settle(failed[0] if failed else reduce(combined, answers))
            else:
                self._at(self._delay(), look)

        self._at(self._delay(), look)
        return whole

    def peer(self, session_id: int) -> Peer:
        return Peer(self._sessions[session_id], session_id)

    def finished(self, requests: Collection[SimulatedRequest]) -> list[SimulatedRequest]:
        while not (done := [request for request in requests if request.settled]):
            self._step()
        self.random.shuffle(done)
        again, self._again = self._again, []
        return [*again, *done[: self.random.randint(1, len(done))]]

    def close_session(self, session_id: int, lost: bool) -> None:
        address = self._sessions.pop(session_id)
        machine = self._machines.get(address)
        if lost:
            self._asked_since_loss = False
        if machine is None:
            return
        if lost:
            machine.suspected = True
            self._at(max(machine.thaws - self.now, 0) + self._delay(), lambda: self._believe(machine))
        self._at(
            max(machine.thaws - self.now, 0) + self._delay(), lambda: machine.sessions.pop(session_id, None)
        )

    def close(self) -> None:
        self._sessions.clear()
        for machine in self._machines.values():
            for host in machine.sessions.values():
                host.close()

    # Messages.

    def _send(self, session_id: int, method: str, *arguments: Any) -> SimulatedRequest:
        message = Message(SimulatedRequest(), self._sessions[session_id], session_id, method, arguments)
        self.n_requests += 1
        fault = self._fault(method)
        if fault in DEADLY and not self._asked_since_loss and method in RECOVERY:
            self._tell("lost while another's rows are read", message.address)
        self._at(self._delay(), lambda: self._arrive(message, fault))
        return message.request

    def _fault(self, method: str) -> str | None:
        """What becomes of a message. Those of a recovery are in greater danger."""
        if self.n_requests >= self.trouble.doomed:
            return self.random.choice(DEADLY)
        danger = 3 if method == "drop" or (method in RECOVERY and not self._asked_since_loss) else 1
        if self.losses_left and self.random.random() < danger * self.trouble.chance:
            self.losses_left -= 1
            return self.random.choice(DEADLY)
        if self.random.random() < 0.05 and method != "open_session":
            return self.random.choice(HARMLESS)
        return None

    def _arrive(self, message: Message, fault: str | None) -> None:
        machine, request = self._machines.get(message.address), message.request
        if machine is None:
            self._lose(request, "nobody is there", after=self._delay())
        elif fault == "request lost":
            self._tell(f"request lost: {message.what}", machine.address)
            self._lose(request, "the connection broke", after=self._delay())
        elif fault == "frozen":
            self._freeze(machine, message.what)
            self._arrive(message, None)
        elif machine.thaws > self.now:
            self._lose(request, "no response", after=TIMEOUT)
            self._at(machine.thaws - self.now + self._delay(), lambda: self._arrive(message, None))
        elif fault == "killed before":
            self._kill(machine, message.what)
            self._lose(request, "it was killed", after=self._delay())
        else:
            self._answer(machine, message, fault)

    def _answer(self, machine: Machine, message: Message, fault: str | None) -> None:
        host = machine.sessions.get(message.session_id)
        if message.method == "open_session" and machine.address in self.trouble.unfit:
            message.request.settle(error=WorkerError("it has another version"))
            return
        if message.method == "open_session" and message.session_id in self._sessions:
            host = machine.sessions[message.session_id] = Host(message.session_id, *self._host)
        if host is None:
            self._tell("refused", machine.address)
            self._lose(message.request, "it was restarted, or given up before", after=self._delay())
            return
        if message.method == "expand":
            self._attend(machine, host, message, fault)
            return
        answer = self._worked(host, message)
        if fault == "request twice":
            self._tell(f"request twice: {message.what}", machine.address)
            answer = self._worked(host, message)
        if fault == "killed after":
            self._kill(machine, message.what)
        if fault in ("killed after", "answer lost"):
            self._tell(f"answer lost: {message.what}", machine.address)
            self._lose(message.request, "the connection broke", after=self._delay())
            return
        self._at(self._delay(), lambda: self._hear(message, answer))
        if fault == "answer twice":
            self._at(TIMEOUT * self.random.random(), lambda: self._hear(message, answer))

    # Exchanges.

    def _attend(self, machine: Machine, host: Host, message: Message, fault: str | None) -> None:
        """Take part in an attempt; whatever goes wrong does so while pieces are under way."""
        question, expansion, attempt = message.arguments
        session = message.session_id
        former = self._attending.get(host)
        if former is not None and former.attempt.number >= attempt.number:
            self._tell("attempt refused", machine.address)
            return
        host.exchange.begin(attempt, expansion)
        contribution = host.exchange.contribute(attempt, question, len(expansion.build))
        mine = self._attending[host] = Attending(machine, host, message, contribution)
        host.exchange.collect(attempt, contribution)
        for other in attempt.group(session):
            if other != session and attempt.collected(other):
                for nodes in host.exchange.spans(attempt, attempt.collected(other), mine.n_nodes):
                    piece = host.exchange.group_piece(attempt, other, contribution, nodes)
                    self._send_piece(mine, other, piece)
        for sent in self._early.pop(host, []):
            self._deliver(*sent)
        self._go_on(mine)
        if fault == "request twice":
            self._tell("request twice: expand", machine.address)
            self._attend(machine, host, message, None)
        elif fault == "killed after":
            self._at(2 * self._delay(), lambda: self._kill(machine, "expand"))
        elif fault == "answer lost":
            self._tell("answer lost: expand", machine.address)
            self._lose(message.request, "the connection broke", after=self._delay())

    def _go_on(self, attending: Attending) -> None:
        """Pass the sums of the group on once they are complete; then answer, once all has arrived here and there."""
        if self._attending.get(attending.host) is not attending or not attending.machine.alive:
            return
        exchange, attempt, own = attending.host.exchange, attending.attempt, attending.session_id
        if exchange.has_collected and not attending.passed_on:
            attending.passed_on = True
            for part in attempt.collected(own):
                if part.owner == own:
                    exchange.keep(attempt, part, attending.contribution)
                    continue
                for nodes in exchange.spans(attempt, [part], attending.n_nodes):
                    piece = exchange.piece(attempt, part, attending.contribution, nodes)
                    self._send_piece(attending, part.owner, piece)
        ready = attending.passed_on and not attending.undelivered and exchange.has_all
        if ready and not attending.replied:
            attending.replied = True
            found = attending.contribution
            reply = Reply(found.totals, found.losses, exchange.answer())
            self._at(self._delay(), lambda: self._hear(attending.message, reply))

    def _send_piece(self, sender: Attending, to: int, piece: Piece) -> None:
        sender.undelivered += 1

        def deliver() -> None:
            if sender.machine.alive:
                self._deliver(sender, to, piece)

        if self.losses_left and self.random.random() < self.trouble.chance:
            self.losses_left -= 1
            self._tell("piece lost", sender.machine.address)
            self._at(TIMEOUT, lambda: self._unreachable(sender, to))
            return
        self._at(self._delay(), deliver)
        if self.random.random() < 0.05:
            self._tell("piece twice", sender.machine.address)
            self._at(TIMEOUT * self.random.random(), lambda: self._deliver(sender, to, piece, again=True))

    def _deliver(self, sender: Attending, to: int, piece: Piece, again: bool = False) -> None:
        address, session_id = sender.attempt.peers[to]
        machine = self._machines.get(address)
        if machine is not None and machine.thaws > self.now:
            self._at(
                machine.thaws - self.now + self._delay(), lambda: self._deliver(sender, to, piece, again)
            )
            if not again:
                self._at(TIMEOUT, lambda: self._unreachable(sender, to))
            return
        host = machine.sessions.get(session_id) if machine is not None else None
        if host is None:
            self._at(self._delay(), lambda: self._unreachable(sender, to))
            return
        receiver = self._attending.get(host)
        if receiver is None or receiver.attempt.number < piece.attempt:
            self._early.setdefault(host, []).append((sender, to, piece, again))
            return
        if receiver.attempt.number > piece.attempt:
            self._tell("piece late", address)
        host.exchange.receive(piece)
        if not again:
            sender.undelivered -= 1
        self._go_on(receiver)
        self._go_on(sender)

    def _unreachable(self, sender: Attending, to: int) -> None:
        if sender.undelivered and self._attending.get(sender.host) is sender and not sender.replied:
            sender.replied = True
            found = sender.contribution
            reply = Reply(found.totals, found.losses, None, to)
            self._at(self._delay(), lambda: self._hear(sender.message, reply))

    @staticmethod
    def _worked(host: Host, message: Message) -> Any:
        return None if message.method == "open_session" else getattr(host, message.method)(*message.arguments)

    def _hear(self, message: Message, answer: Any) -> None:
        """The coordinator is handed every answer, also what it must not listen to anymore."""
        if message.request.settled:
            late = "late" if message.session_id not in self._sessions else "twice"
            self._tell(f"answer {late}", message.address)
            self._again.append(message.request)
        message.request.settle(answer)

    def _lose(self, request: SimulatedRequest, why: str, after: float) -> None:
        def lose() -> None:
            if not request.settled:
                request.settle(error=WorkerLostError(why))

        self._at(after, lose)

    # Workers.

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
            if host in self._attending:
                self._lose(self._attending[host].message.request, "it was killed", after=self._delay())
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


class SimulatedRuntime(LocalRuntime):
    """Ingest in this process, the rows on simulated workers.

    Attributes
    ----------
    workers : SimulatedWorkers
        Once rows have been placed.
    """

    def __init__(self, seed: int, trouble: Trouble):
        super().__init__(1)
        self.n_parallel = N_BLOCKS
        self.seed, self.trouble = seed, trouble

    def place(
        self, sets: list[BinnedSet], layout: Layout, allotment: Allotment | None = None
    ) -> DistributedRows:
        items = {
            Key(number, block): reading
            for number, part in enumerate(sets)
            for block, reading in enumerate(readings(part))
        }
        self.workers = SimulatedWorkers(self.seed, self.trouble, items, layout, len(sets), allotment)
        sizes = {key: reading.n_rows for key, reading in items.items()}
        return DistributedRows(self.workers, sizes, layout, len(sets))
