"""Questions to all workers that hold rows: they are repeated until all have answered."""

from __future__ import annotations

import itertools
import logging
from typing import Any

from distboost.runtime.cluster.crew import Crew, Request, Session, WorkerLostError
from distboost.runtime.cluster.placement import combined
from distboost.runtime.cluster.relay import subtrees

log = logging.getLogger("distboost")

FAN_OUT = 8  # messages per question that the coordinator sends, and each relay, at most

# Questions that workers below a relay did not answer, although none of them was lost.
MOST_RELAYS_IN_VAIN = 2


class Questions:
    """Asks all sessions of a crew that hold rows, and combines their answers.

    If there are many sessions, a few of them are asked, and each relays the question to some of the others. If a relay does not
    answer, it is not known which worker is lost: then all are asked directly.

    Parameters
    ----------
    crew : Crew
    """

    def __init__(self, crew: Crew):
        self._crew = crew
        self._numbers = itertools.count(1)
        self._relays = True  # whether the next question may be relayed
        self._relays_in_vain = self._lost_before = 0

    def ask(self, method: str, *arguments: Any, heads: int | None = None, fan_out: int | None = None) -> Any:
        """Return the answer of all rows, each counted once, even if workers are lost meanwhile.

        Parameters
        ----------
        method : str
            Of `Host`.
        *arguments
        heads : int, default=FAN_OUT
            If there are more sessions than this, so many are asked, and these ask the others.
        fan_out : int, default=FAN_OUT
            The sessions that each of them asks at most.
        """
        self._crew.begin(method)
        number = next(self._numbers)
        while True:
            self._crew.settle()
            answer = self.attempt("answer", number, method, *arguments, heads=heads, fan_out=fan_out)
            if answer is not None:
                return answer

    def attempt(
        self, method: str, *arguments: Any, heads: int | None = None, fan_out: int | None = None
    ) -> Any | None:
        """Ask all sessions that hold rows, and return their combined answer; None if not all have answered.

        A session that has answered may be asked the same question again. Late replies are discarded.
        """
        sessions = [session for session in self._crew.sessions if session.keys]
        if self._relays and len(sessions) > (heads or FAN_OUT):
            return self._relayed(sessions, method, arguments, heads or FAN_OUT, fan_out or FAN_OUT)
        found = self._asked(sessions, method, arguments)
        if found is not None and not self._relays:
            self._relays = self._may_relay()
        return found

    def _asked(self, sessions: list[Session], method: str, arguments: tuple[Any, ...]) -> Any | None:
        """Ask each of the sessions, until one is lost."""
        asked: dict[Request, tuple[Session, None]] = {
            self._crew.workers.ask(session.id, method, *arguments): (session, None) for session in sessions
        }
        n_answers, found = 0, None
        for _, _, answer in self._crew.answers(asked, until_loss=True):
            if getattr(answer, "failed", False):
                return answer
            n_answers, found = n_answers + 1, combined(found, answer)
        return found if n_answers == len(sessions) else None

    def _relayed(
        self, sessions: list[Session], method: str, arguments: tuple[Any, ...], heads: int, fan_out: int
    ) -> Any | None:
        """Ask the heads of subtrees."""
        workers = self._crew.workers
        asked: set[Request] = {
            workers.relay([session.id for session in subtree], fan_out, method, *arguments)
            for subtree in subtrees(sessions, heads)
        }
        found = None
        while asked:
            for request in asked.intersection(workers.finished(asked, together=True)):
                asked.remove(request)
                try:
                    answer = request.result()
                except WorkerLostError as lost:
                    log.info("a relayed question is asked again directly: %s", lost)
                    self._relays, self._lost_before = False, self._crew.losses.total()
                    return None
                if getattr(answer, "failed", False):
                    return answer
                found = combined(found, answer)
        return found

    def _may_relay(self) -> bool:
        """After a relayed question had to be asked directly: whether the next ones may be relayed."""
        if self._crew.losses.total() == self._lost_before:
            self._relays_in_vain += 1
            if self._relays_in_vain == MOST_RELAYS_IN_VAIN:
                log.warning(
                    "workers cannot reach each other: from now on, this process asks each of them itself. Check the network "
                    "between the workers."
                )
        return self._relays_in_vain < MOST_RELAYS_IN_VAIN
