"""Exchanges of histograms among simulated workers: pieces are late, lost, or come twice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from distboost.runtime.cluster.crew import WorkerLostError
from distboost.runtime.cluster.host import Host
from distboost.runtime.cluster.reduce_to_owners import (
    Actions,
    Compute,
    ReduceToOwners,
    Send,
    Settle,
    SupersededError,
)
from tests.runtime.simulated_machines import (
    TIMEOUT,
    Machine,
    Message,
    SimulatedMachines,
    SimulatedRequest,
    Trouble,
)

WORK = 0.3  # how long a computation takes, beside a message


class SimulatedExchanges(SimulatedMachines):
    """Machines whose sessions send each other pieces of histograms.

    Parameters
    ----------
    seed : int
    trouble : Trouble
    """

    def __init__(self, seed: int, trouble: Trouble):
        super().__init__(seed, trouble)
        self._sessions: dict[int, str] = {}  # the address of each session
        self._again: list[SimulatedRequest] = []  # what comes late, or once more
        self._protocols: dict[Host, ReduceToOwners] = {}
        self._asked: dict[Host, Message] = {}  # for the newest attempt

    def _protocol(self, host: Host) -> ReduceToOwners:
        return self._protocols.setdefault(host, ReduceToOwners(host.exchange))

    def _attend(self, machine: Machine, host: Host, message: Message, fault: str | None) -> None:
        """Take part in an attempt; whatever goes wrong does so while pieces are under way."""
        protocol, (question, attempt) = self._protocol(host), message.arguments
        if attempt.number > protocol.newest:
            self._asked[host] = message
        else:
            self._tell("attempt refused", machine.address)
        self._do(machine, protocol, protocol.ask(question, attempt, partial(self._reply, message)))
        if fault == "request twice":
            self._tell("request twice: expand", machine.address)
            self._attend(machine, host, message, None)
        elif fault == "killed after":
            self._at(2 * self._delay(), lambda: self._kill(machine, "expand"))
        elif fault == "answer lost":
            self._tell("answer lost: expand", machine.address)
            self._lose(message.request, "the connection broke", after=self._delay())

    def _do(self, machine: Machine, protocol: ReduceToOwners, actions: Actions) -> None:
        """Do what a session's protocol says, also what is no longer wanted."""
        for action in actions:
            if isinstance(action, Settle):
                action.to(action)
            elif isinstance(action, Compute):
                compute = partial(self._compute, machine, protocol, action)
                self._after(WORK * self._delay(), machine, compute)
            else:
                self._send_piece(machine, protocol, action)

    def _after(self, delay: float, machine: Machine, act: Callable[[], None]) -> None:
        """Act on a machine after some time, once it has thawed, unless it has ended."""

        def look() -> None:
            if machine.thaws > self.now:
                self._after(machine.thaws - self.now + self._delay(), machine, act)
            elif machine.alive:
                act()

        self._at(delay, look)

    def _compute(self, machine: Machine, protocol: ReduceToOwners, action: Compute) -> None:
        try:
            actions = protocol.done(action, action.function(*action.arguments))
        except Exception as error:  # noqa: BLE001 (it ends the attempt)
            actions = protocol.failed(action, error)
        self._do(machine, protocol, actions)

    def _send_piece(self, machine: Machine, protocol: ReduceToOwners, action: Send) -> None:
        heard: list[bool] = []

        def hear(event: Callable[[Send], Actions]) -> None:
            if not heard:
                heard.append(True)
                self._do(machine, protocol, event(action))

        def settle(answer: Settle | None) -> None:
            event = protocol.unreachable if answer is None else protocol.done
            self._after(self._delay(), machine, partial(hear, event))

        self._after(TIMEOUT, machine, partial(hear, protocol.unreachable))
        if self.losses_left and self.random.random() < self.trouble.chance:
            self.losses_left -= 1
            self._tell("piece lost", machine.address)
            return
        self._at(self._delay(), partial(self._deliver, action, settle))
        if self.random.random() < 0.05:
            self._tell("piece twice", machine.address)
            self._at(TIMEOUT * self.random.random(), partial(self._deliver, action, settle))

    def _deliver(self, action: Send, settle: Callable[[Settle | None], None]) -> None:
        address, session_id = action.attempt.peers[action.session]
        machine = self._machines.get(address)

        def arrive() -> None:
            host = machine.sessions.get(session_id)
            if host is None:
                settle(None)
                return
            protocol = self._protocol(host)
            if protocol.newest > action.attempt.number:
                self._tell("piece late", address)
            self._do(machine, protocol, protocol.arrive(action.piece, settle))

        if machine is None:
            settle(None)
        else:
            self._after(0.0, machine, arrive)

    def _reply(self, message: Message, answer: Settle) -> None:
        if answer.error is None:
            self._at(self._delay(), lambda: self._hear(message, answer.value))
        elif not isinstance(answer.error, SupersededError):
            raise answer.error

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

    def _host_gone(self, host: Host) -> None:
        if host in self._asked:
            self._lose(self._asked[host].request, "it was killed", after=self._delay())
