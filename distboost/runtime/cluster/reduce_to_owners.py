"""The sums of all workers, reduced to the owners of their parts: one session's side of the protocol, without I/O.

It is told of events, and says what is to be done: compute something in a thread, send a piece, answer whoever has asked or sent.
`worker_exchange` does so on a Dask worker, and the tests in virtual time.

=============  ============================================  ======================================================
state          event or condition                            what follows
=============  ============================================  ======================================================
any            a newer attempt is asked for                  the former one ends; *beginning*: begin, and contribute
any            an older attempt is asked for                 it is refused
beginning      begun                                         *summing*: pieces that waited arrive again
summing        contributed                                   *sharing*: send the group's collectors their sums
sharing        the sums of the group are complete            *passing on*: send the owners of parts theirs
sharing, then  the sums of all own parts are complete        search them
passing on     searched, and all pieces were added           the answer; *over*
any            a session cannot be reached                   the answer that the attempt has failed; *over*
any            something else fails                          the error; *over*
any            a piece arrives before its attempt has begun  it waits
any            a piece arrives that is awaited               add it, then answer its sender
any            any other piece arrives: again, or too late   answer its sender
=============  ============================================  ======================================================

What is done for an attempt that is over is of no consequence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator
from enum import Enum, auto
from functools import partial
from typing import Any, NamedTuple

from distboost.rows.messages import Expanded, HistogramQuestion, UpdateQuestion
from distboost.runtime.cluster.exchange import Attempt, Bundle, Contribution, Exchange, Reply
from distboost.runtime.cluster.gathering import Piece

# Sessions that are sent pieces at a time, each one piece after another: pieces take memory here and there.
SENT_AT_ONCE = 4


class SupersededError(Exception):
    """A newer attempt has begun, or the session is closed."""


class Compute(NamedTuple):
    """Call a function in a thread."""

    attempt: Attempt
    then: Callable[[Any], Actions | None]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Send(NamedTuple):
    """Send a piece to a session, which answers when it was added."""

    attempt: Attempt
    then: Callable[[Any], Actions | None]
    session: int
    piece: Piece


class Settle(NamedTuple):
    """Answer whoever has asked for an attempt, or has sent a piece."""

    to: Any
    value: Reply | None = None
    error: Exception | None = None


Actions = list[Compute | Send | Settle]
Transfer = Generator[Callable[..., Compute | Send], Any, None]  # of pieces to a session
Source = tuple[int | None, int, int]  # of sums: their part (None: of the group), the sender, the first node


class State(Enum):
    """How far an attempt is."""

    BEGINNING = auto()
    SUMMING = auto()
    SHARING = auto()
    PASSING_ON = auto()
    OVER = auto()


class ReduceToOwners:
    """One session's side of the protocol. Its methods are events; each returns what is to be done.

    Parameters
    ----------
    sums : Exchange
        What is computed.
    """

    def __init__(self, sums: Exchange):
        self._sums, self._session = sums, sums.session
        self.newest = 0  # the last attempt that was asked for
        self._state = State.OVER
        self._early: list[tuple[Piece, Any]] = []  # pieces that wait, and their senders

    def ask(self, question: HistogramQuestion | UpdateQuestion, attempt: Attempt, to: Any) -> Actions:
        """Note that `to` asks for an attempt."""
        if attempt.number <= self.newest:
            return [Settle(to, error=SupersededError())]
        former = self.stop()
        self.newest, self._attempt, self._to, self._state = attempt.number, attempt, to, State.BEGINNING
        # What was computed, once it was: the contribution, and the answer over the own parts.
        self._found: list[Contribution] = []
        self._answer: list[Expanded | None] = []
        self._searching = False
        self._missing: dict[int | None, set[Source]] = {}  # by part: sums that are not added yet
        self._adding: dict[Source, Any] = {}  # and their senders
        self._transfers: deque[Transfer] = deque()  # that have not begun
        self._n_sending = 0
        return [
            *former,
            self._compute(self._begun, self._sums.begin, question),
            self._compute(self._found.append, self._sums.contribute, question),
        ]

    def arrive(self, piece: Piece, to: Any) -> Actions:
        """Note that `to` has sent a piece."""
        if piece.attempt > self.newest or self._state is State.BEGINNING:
            self._early.append((piece, to))
            return []
        source = piece.part, piece.sender, piece.first
        is_late = piece.attempt < self.newest or self._state is State.OVER
        if is_late or source in self._adding or source not in self._missing.get(piece.part, ()):
            return [Settle(to)]
        self._adding[source] = to
        return [self._compute(partial(self._added, source), self._sums.receive, piece)]

    def done(self, action: Compute | Send, found: Any = None) -> Actions:
        """Note that something was computed, or that a piece was sent and added."""
        return [*(action.then(found) or ()), *self._go_on()] if self._is_wanted(action) else []

    def unreachable(self, action: Send) -> Actions:
        """Note that a piece has not reached its session, or was not added in time."""
        return self._end(self._reply(None, action.session)) if self._is_wanted(action) else []

    def failed(self, action: Compute | Send, error: Exception) -> Actions:
        """Note an error."""
        return self._end(error=error) if self._is_wanted(action) else []

    def stop(self, to: Any = None) -> Actions:
        """Note that nobody waits for the answer; or that `to` does not."""
        is_over = self._state is State.OVER or to not in (None, self._to)
        return [] if is_over else self._end(error=SupersededError())

    # What follows.

    def _is_wanted(self, action: Compute | Send) -> bool:
        return self._state is not State.OVER and action.attempt is self._attempt

    def _compute(
        self, then: Callable[[Any], Actions | None], function: Callable[..., Any], *arguments: Any
    ) -> Compute:
        return Compute(self._attempt, then, function, (self._attempt, *arguments))

    def _begun(self, unanswered: Collection[int]) -> Actions:
        """Await the sums of the group, and those of own parts that have no answer yet."""
        attempt, self._state = self._attempt, State.SUMMING
        if attempt.gathers(self._session):
            self._await(attempt.collected(self._session), attempt.group(self._session))
        for position, part in enumerate(attempt.parts):
            if part.number in unanswered:
                self._await(Bundle.of(part), [attempt.collector(group, position) for group in attempt.groups])
        return self._retry()

    def _await(self, bundle: Bundle, senders: Collection[int]) -> None:
        """Await the pieces of some sessions; own sums are one."""
        firsts = [nodes.start for nodes in self._sums.spans(self._attempt, bundle)]
        self._missing[bundle.number] = {
            (bundle.number, sender, first)
            for sender in senders
            for first in (firsts if sender != self._session else [0])
        }

    def _retry(self) -> Actions:
        """Let pieces that wait arrive again."""
        early, self._early = self._early, []
        return [action for piece, to in early for action in self.arrive(piece, to)]

    def _added(self, source: Source, _: None) -> Actions:
        self._missing[source[0]].remove(source)
        return [Settle(self._adding.pop(source))] if source in self._adding else []

    def _go_on(self) -> Actions:
        """Do what has become possible."""
        actions: Actions = []
        if self._state is State.SUMMING and self._found:
            self._state = State.SHARING
            group = self._attempt.group(self._session)
            actions += self._bring([(other, self._attempt.collected(other)) for other in group])
        if self._state is State.SHARING and not self._missing.get(None):
            self._state = State.PASSING_ON
            parts = self._attempt.collected(self._session).parts
            actions += self._bring([(part.owner, Bundle.of(part)) for part in parts])
        own = (missing for number, missing in self._missing.items() if number is not None)
        if self._state in (State.SHARING, State.PASSING_ON) and not self._searching and not any(own):
            self._searching = True
            actions.append(self._compute(self._answer.append, self._sums.answer))
        if self._state is State.PASSING_ON and self._answer and not self._n_sending:
            actions += self._end(self._reply(self._answer[0]))
        return actions

    def _bring(self, bundles: list[tuple[int, Bundle]]) -> Actions:
        """Bring sums to sessions.

        The order begins elsewhere for each session and ends with itself. So they do not all send to the same one first, and no
        other waits while this one adds its own sums.
        """
        own, kept = self._session, []
        for session, bundle in sorted(bundles, key=lambda each: (each[0] <= own, each)):
            source = bundle.number, own, 0
            if session == own and source in self._missing.get(bundle.number, ()):
                added = partial(self._added, source)
                kept.append(self._compute(added, self._sums.keep, bundle, *self._found))
            elif session != own and bundle.parts:
                self._transfers.append(self._transfer(session, bundle))
        return [*self._send_more(), *kept]

    def _transfer(self, session: int, bundle: Bundle) -> Transfer:
        """Compute and send one piece after another."""
        for nodes in self._sums.spans(self._attempt, bundle):
            arguments = self._attempt, bundle, *self._found, nodes
            piece = yield partial(Compute, function=self._sums.piece, arguments=arguments)
            yield partial(Send, session=session, piece=piece)

    def _send_more(self) -> Actions:
        """Begin transfers, as many as may be under way."""
        actions: Actions = []
        while self._transfers and self._n_sending < SENT_AT_ONCE:
            self._n_sending += 1
            actions += self._continue(self._transfers.popleft(), None)
        return actions

    def _continue(self, transfer: Transfer, found: Any) -> Actions:
        try:
            return [transfer.send(found)(self._attempt, partial(self._continue, transfer))]
        except StopIteration:
            self._n_sending -= 1
            return self._send_more()

    def _reply(self, expanded: Expanded | None, unreachable: int | None = None) -> Reply:
        [found] = self._found
        assert found.totals is not None
        return Reply(found.totals, found.losses, expanded, unreachable)

    def _end(self, value: Reply | None = None, error: Exception | None = None) -> Actions:
        self._state = State.OVER
        unheard = [Settle(to) for to in self._adding.values()]
        return [Settle(self._to, value, error), *unheard, *self._retry()]
