"""Exchanges of histograms among simulated workers: pieces are late, lost, or come twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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

WORK = 0.3  # what a computation takes, of the time of a message


@dataclass(eq=False)
class Attending:
    """A session that takes part in exchanges."""

    machine: Machine
    protocol: ReduceToOwners
    message: Message | None = None  # that has asked for the newest attempt


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
        self._attending: dict[Host, Attending] = {}

    def _session(self, machine: Machine, host: Host) -> Attending:
        return self._attending.setdefault(host, Attending(machine, ReduceToOwners(host.exchange)))

    def _attend(self, machine: Machine, host: Host, message: Message, fault: str | None) -> None:
        """Take part in an attempt; whatever goes wrong does so while pieces are under way."""
        session, (question, attempt) = self._session(machine, host), message.arguments
        if attempt.number > session.protocol.newest:
            session.message = message
        else:
            self._tell("attempt refused", machine.address)
        self._do(session, session.protocol.ask(question, attempt, partial(self._reply, message)))
        if fault == "request twice":
            self._tell("request twice: expand", machine.address)
            self._attend(machine, host, message, None)
        elif fault == "killed after":
            self._at(2 * self._delay(), lambda: self._kill(machine, "expand"))
        elif fault == "answer lost":
            self._tell("answer lost: expand", machine.address)
            self._lose(message.request, "the connection broke", after=self._delay())

    def _reply(self, message: Message, answer: Settle) -> None:
        if answer.error is None:
            self._at(self._delay(), lambda: self._hear(message, answer.value))
        elif not isinstance(answer.error, SupersededError):
            raise answer.error

    # What the protocol wants done. What it has cancelled is done, too, and of no consequence.

    def _do(self, session: Attending, actions: Actions) -> None:
        for action in actions:
            if isinstance(action, Settle):
                action.to(action)
            elif isinstance(action, Compute):
                self._after(WORK * self._delay(), session.machine, partial(self._compute, session, action))
            elif isinstance(action, Send):
                self._send_piece(session, action)

    def _after(self, delay: float, machine: Machine, act: Callable[[], None]) -> None:
        """Act after a while on a machine, unless it has ended; if it is frozen, once it thaws."""

        def awake() -> None:
            if machine.thaws > self.now:
                self._after(machine.thaws - self.now + self._delay(), machine, act)
            elif machine.alive:
                act()

        self._at(delay, awake)

    def _compute(self, session: Attending, action: Compute) -> None:
        try:
            found = action.function(*action.arguments)
        except Exception as error:  # noqa: BLE001 (it ends the attempt)
            self._do(session, session.protocol.failed(action, error))
        else:
            self._do(session, session.protocol.done(action, found))

    def _send_piece(self, sender: Attending, action: Send) -> None:
        heard: list[bool] = []

        def hear(event: Callable[[Send], Actions], delay: float) -> None:
            def once() -> None:
                if not heard:
                    heard.append(True)
                    self._do(sender, event(action))

            self._after(delay, sender.machine, once)

        def arrived(answer: Settle) -> None:
            hear(sender.protocol.done, self._delay())

        def nobody() -> None:
            hear(sender.protocol.unreachable, self._delay())

        hear(sender.protocol.unreachable, TIMEOUT)
        if self.losses_left and self.random.random() < self.trouble.chance:
            self.losses_left -= 1
            self._tell("piece lost", sender.machine.address)
            return
        self._at(self._delay(), lambda: self._deliver(action, arrived, nobody))
        if self.random.random() < 0.05:
            self._tell("piece twice", sender.machine.address)
            self._at(TIMEOUT * self.random.random(), lambda: self._deliver(action, arrived, nobody))

    def _deliver(self, action: Send, arrived: Callable[[Settle], None], nobody: Callable[[], None]) -> None:
        address, session_id = action.attempt.peers[action.session]
        machine = self._machines.get(address)

        def arrive() -> None:
            assert machine is not None
            host = machine.sessions.get(session_id)
            if host is None:
                nobody()
                return
            receiver = self._session(machine, host)
            if receiver.protocol.newest > action.attempt.number:
                self._tell("piece late", address)
            self._do(receiver, receiver.protocol.arrive(action.piece, arrived))

        if machine is None:
            nobody()
        else:
            self._after(0.0, machine, arrive)

    # What the coordinator hears.

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
        session = self._attending.get(host)
        if session is not None and session.message is not None:
            self._lose(session.message.request, "it was killed", after=self._delay())
