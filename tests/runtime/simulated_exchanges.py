"""Exchanges of histograms among simulated workers: pieces are late, lost, or come twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from distboost.runtime.cluster.crew import WorkerLostError
from distboost.runtime.cluster.exchange import Attempt, Contribution, Reply
from distboost.runtime.cluster.gathering import Piece
from distboost.runtime.cluster.host import Host
from tests.runtime.simulated_machines import (
    TIMEOUT,
    Machine,
    Message,
    SimulatedMachines,
    SimulatedRequest,
    Trouble,
)


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
        return self.message.arguments[1]

    @property
    def n_nodes(self) -> int:
        return len(self.message.arguments[0].expansion.build)

    @property
    def session_id(self) -> int:
        return self.message.session_id


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
        # Pieces of attempts that have not begun there.
        self._early: dict[Host, list[tuple[Attending, int, Piece, bool]]] = {}

    def _attend(self, machine: Machine, host: Host, message: Message, fault: str | None) -> None:
        """Take part in an attempt; whatever goes wrong does so while pieces are under way."""
        question, attempt = message.arguments
        session = message.session_id
        former = self._attending.get(host)
        if former is not None and former.attempt.number >= attempt.number:
            self._tell("attempt refused", machine.address)
            return
        host.exchange.begin(attempt, question.expansion)
        contribution = host.exchange.contribute(attempt, question)
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
        if host in self._attending:
            self._lose(self._attending[host].message.request, "it was killed", after=self._delay())
