"""Workers in this process and in virtual time: one seed decides what becomes of its workers and its messages.

Workers die, freeze, leave, join, and come back under their old address; messages are late, overtake each other, are lost or
come twice. The hosts are real, and so is all that they compute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import reduce
from typing import Any

from distboost.data.blocks import BinnedSet
from distboost.errors import ClusterError, WorkerError
from distboost.runtime.base import Allotment, Layout, Reading, readings
from distboost.runtime.block import Key
from distboost.runtime.cluster.coordinator import DistributedRows
from distboost.runtime.cluster.crew import WorkerLostError
from distboost.runtime.cluster.host import Host
from distboost.runtime.cluster.placement import combined
from distboost.runtime.local import LocalRuntime
from tests.runtime.simulated_exchanges import SimulatedExchanges
from tests.runtime.simulated_machines import (
    TIMEOUT,
    WORKERS_DEADLINE,
    Machine,
    Message,
    Peer,
    SimulatedRequest,
    Trouble,
)

N_BLOCKS = 7  # of the training rows
RECOVERY = ("open_session", "set_replay_log", "take")
DEADLY = ("killed before", "killed after", "frozen", "request lost", "answer lost")
HARMLESS = ("request twice", "answer twice")


class SimulatedWorkers(SimulatedExchanges):
    """Simulated workers, for one run.

    Parameters
    ----------
    seed : int
    trouble : Trouble
    items : mapping of Key to Reading
    layout, n_sets, allotment
        As for `Host`.

    Attributes
    ----------
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
        super().__init__(seed, trouble)
        self.items = items
        self.n_requests = 0
        self._host = layout, n_sets, allotment, 1
        self._asked_since_loss = True
        self.blocks_given: Counter[str] = Counter()
        self.timeout = TIMEOUT

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

    def answers(self, session_id: int) -> bool:
        machine = self._machines.get(self._sessions[session_id])
        return machine is not None and machine.thaws <= self.now

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

    def finished(
        self, requests: Collection[SimulatedRequest], together: bool = False
    ) -> list[SimulatedRequest]:
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

    @staticmethod
    def _worked(host: Host, message: Message) -> Any:
        return None if message.method == "open_session" else getattr(host, message.method)(*message.arguments)


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
