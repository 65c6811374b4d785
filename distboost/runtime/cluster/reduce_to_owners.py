"""The sums of all workers, reduced to the owners of their parts: one session's side of the protocol, without I/O.

A session is asked to take part in an attempt. The protocol is told of events, and answers with actions: compute something in a
thread, send a piece, answer whoever has asked or sent. `worker_exchange` does these on a Dask worker, tests in virtual time.

======================  ====================================  ================================================================
state                   event or condition                    what follows
======================  ====================================  ================================================================
any                     a newer attempt is asked for          the former attempt ends; *summing*: begin, and contribute
any                     an older one is asked for             it is refused
*summing*               begun                                 pieces that were early arrive again
*summing*               begun and contributed                 *sharing*: collect, send the others of the group their parts
*sharing*               the group's sums are complete         *passing on*: keep own parts, send the others to their owners
*sharing*, *passing on* the sums of all own parts are there   search them
*passing on*            searched, and all pieces delivered    the attempt is answered, and ends
any                     a session cannot be reached           the answer is that the attempt has failed; it ends
any                     a computation fails                   so does the attempt; it ends
any                     a piece arrives: of an attempt that   it waits
                        has not begun
..                      .. that is awaited                    add it; then answer its sender
..                      .. a second time, or too late         its sender is answered
======================  ====================================  ================================================================

A session without other members in its group has complete sums at once. At most `SENT_AT_ONCE` other sessions are sent pieces at a
time, each one piece after another. What belongs to an attempt that has ended is of no consequence, whenever it is done.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import Any, NamedTuple

from distboost.rows.messages import Expanded, HistogramQuestion, UpdateQuestion
from distboost.runtime.cluster.exchange import Attempt, Contribution, Exchange, OwnedFeatures, Reply
from distboost.runtime.cluster.gathering import Piece

# Sessions to which pieces are under way: each takes memory here and there.
SENT_AT_ONCE = 4


class SupersededError(Exception):
    """A newer attempt has begun, or the session is closed."""


class Compute(NamedTuple):
    """Call a function in a thread, then `ReduceToOwners.done` with its result."""

    attempt: Attempt
    then: Callable[[Any], Actions]
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Send(NamedTuple):
    """Send a piece, then call `ReduceToOwners.done` when its receiver has answered, or `unreachable`."""

    attempt: Attempt
    then: Callable[[Any], Actions]
    session: int
    piece: Piece


class Settle(NamedTuple):
    """Answer whoever has asked for an attempt, or has sent a piece."""

    to: Any
    value: Reply | None = None
    error: BaseException | None = None


class Cancel(NamedTuple):
    """What is being computed or sent is no longer wanted."""


Actions = list[Compute | Send | Settle | Cancel]
Source = tuple[int | None, int, int]  # of sums: the part (None: of the group), the sender, and the first node


class State(Enum):
    """How far a session has come in an attempt."""

    SUMMING = auto()
    SHARING = auto()
    PASSING_ON = auto()


class Transfer(NamedTuple):
    """Pieces for one session."""

    session: int
    pack: Callable[[range], Piece]
    spans: Iterator[range]  # of nodes that are still to be sent


@dataclass(eq=False)
class Course:
    """An attempt under way, as one session takes part in it."""

    question: HistogramQuestion | UpdateQuestion
    attempt: Attempt
    to: Any  # who has asked
    state: State = State.SUMMING
    begun: bool = False
    contribution: Contribution | None = None
    awaited: set[Source] = field(default_factory=set)
    adding: dict[Source, Any] = field(default_factory=dict)  # and who has sent it
    missing: Counter[int | None] = field(default_factory=Counter)  # sums that are not added, by part
    transfers: deque[Transfer] = field(default_factory=deque)
    n_sending: int = 0
    searching: bool = False
    answer: Reply | None = None


class ReduceToOwners:
    """One session's side of the protocol.

    Parameters
    ----------
    sums : Exchange
        What is computed.
    """

    def __init__(self, sums: Exchange):
        self._sums = sums
        self._course: Course | None = None
        self.newest = 0  # the last attempt that was asked for
        self._begun = 0  # the last attempt whose pieces need not wait
        self._early: list[tuple[Piece, Any]] = []

    # Events.

    def ask(self, question: HistogramQuestion | UpdateQuestion, attempt: Attempt, to: Any) -> Actions:
        """Note that `to` asks for an attempt."""
        if attempt.number <= self.newest:
            return [Settle(to, error=SupersededError())]
        ended = self._end(error=SupersededError())
        self.newest = attempt.number
        self._course = Course(question, attempt, to)
        return [
            *ended,
            self._compute(self._has_begun, self._sums.begin, attempt, question),
            self._compute(self._has_contributed, self._sums.contribute, attempt, question),
        ]

    def arrive(self, piece: Piece, to: Any) -> Actions:
        """Note that `to` has sent a piece."""
        if piece.attempt > self._begun:
            self._early.append((piece, to))
            return []
        course, source = self._course, (piece.part, piece.sender, piece.first)
        if course is None or piece.attempt != course.attempt.number or source not in course.awaited:
            return [Settle(to)]
        course.awaited.remove(source)
        course.adding[source] = to
        return [self._compute(partial(self._has_added, source), self._sums.receive, piece)]

    def done(self, action: Compute | Send, found: Any = None) -> Actions:
        """Note that something was computed, or that a piece was sent and added."""
        if not self._is_wanted(action):
            return []
        actions = action.then(found)
        return actions + self._go_on()

    def unreachable(self, action: Send) -> Actions:
        """Note that a piece has not reached its session, or was not added in time."""
        return self._end(self._reply(None, action.session)) if self._is_wanted(action) else []

    def failed(self, action: Compute | Send, error: BaseException) -> Actions:
        """Note an error."""
        return self._end(error=error) if self._is_wanted(action) else []

    def abandoned(self, to: Any) -> Actions:
        """Note that `to` no longer waits for the answer."""
        course = self._course
        return self._end(error=SupersededError()) if course is not None and course.to is to else []

    def close(self) -> Actions:
        """Note that the session is closed."""
        ended, early, self._early = self._end(error=SupersededError()), self._early, []
        return [*ended, *(Settle(to, error=SupersededError()) for _, to in early)]

    # What follows.

    def _is_wanted(self, action: Compute | Send) -> bool:
        return self._course is not None and self._course.attempt is action.attempt

    def _compute(
        self, then: Callable[[Any], Actions], function: Callable[..., Any], *arguments: Any
    ) -> Compute:
        return Compute(self._under_way.attempt, then, function, arguments)

    @property
    def _under_way(self) -> Course:
        assert self._course is not None, "an attempt is under way"
        return self._course

    def _end(self, value: Reply | None = None, error: BaseException | None = None) -> Actions:
        """End the attempt under way, if there is one."""
        course, self._course, self._begun = self._course, None, self.newest
        if course is None:
            return []
        unheard = [Settle(to) for to in course.adding.values()]
        return [Cancel(), Settle(course.to, value, error), *unheard, *self._retry()]

    def _retry(self) -> Actions:
        """Let early pieces arrive again."""
        early, self._early = self._early, []
        return [action for piece, to in early for action in self.arrive(piece, to)]

    def _has_begun(self, incomplete: Collection[int]) -> Actions:
        """Note which sums this session awaits: those of its group, and of its own parts, unless these have an answer."""
        course, session = self._under_way, self._sums.session
        attempt = course.attempt
        if attempt.gathers(session):
            self._await(None, attempt.collected(session), attempt.group(session))
        for position, part in enumerate(attempt.parts):
            if part.number in incomplete:
                collectors = [attempt.collector(group, position) for group in attempt.groups]
                self._await(part.number, [part], collectors)
        course.begun, self._begun = True, attempt.number
        return self._retry()

    def _await(self, number: int | None, parts: Collection[OwnedFeatures], senders: Collection[int]) -> None:
        course, session = self._under_way, self._sums.session
        firsts = [nodes.start for nodes in self._spans(parts)]
        awaited = {(number, sender, first) for sender in senders if sender != session for first in firsts}
        course.awaited |= awaited
        course.missing[number] = len(awaited) + (session in senders)

    def _spans(self, parts: Collection[OwnedFeatures]) -> list[range]:
        return self._sums.spans(self._under_way.attempt, self._under_way.question, parts)

    def _has_contributed(self, contribution: Contribution) -> Actions:
        self._under_way.contribution = contribution
        return []

    def _has_added(self, source: Source, _: None) -> Actions:
        course = self._under_way
        course.missing[source[0]] -= 1
        return [Settle(course.adding.pop(source))] if source in course.adding else []

    def _go_on(self) -> Actions:
        """Do all that the state and the conditions ask for."""
        course = self._course
        if course is None or not course.begun or course.contribution is None:
            return []
        actions: Actions = []
        if course.state is State.SUMMING:
            course.state = State.SHARING
            actions += self._share(course, course.contribution)
        if course.state is State.SHARING and not course.missing[None]:
            course.state = State.PASSING_ON
            actions += self._pass_on(course, course.contribution)
        if not course.searching and not any(n for part, n in course.missing.items() if part is not None):
            course.searching = True
            actions.append(self._compute(self._has_searched, self._sums.answer, course.attempt))
        actions += self._send_more(course)
        if course.state is State.PASSING_ON and course.answer is not None and not course.n_sending:
            return actions + self._end(course.answer)
        return actions

    def _share(self, course: Course, found: Contribution) -> Actions:
        """Add this session's sums to those of its group, and bring them to the others that collect parts, in turn."""
        attempt, session = course.attempt, self._sums.session
        for other in sorted(attempt.group(session), key=lambda other: (other < session, other)):
            if other != session and attempt.collected(other):
                pack = partial(self._sums.group_piece, attempt, other, found)
                spans = self._spans(attempt.collected(other))
                course.transfers.append(Transfer(other, pack, iter(spans)))
        if not attempt.gathers(session):
            return []
        added = partial(self._has_added, (None, session, 0))
        return [self._compute(added, self._sums.collect, attempt, found)]

    def _pass_on(self, course: Course, found: Contribution) -> Actions:
        """Bring the parts that this session has collected to their owners.

        The order begins elsewhere for each session and ends with its own parts. So they do not all send to the same owner first,
        and no owner waits while others add their own sums.
        """
        attempt, session = course.attempt, self._sums.session
        kept: Actions = []
        for part in sorted(
            attempt.collected(session), key=lambda part: (part.owner <= session, part.owner, part.number)
        ):
            if part.owner != session:
                pack = partial(self._sums.piece, attempt, part, found)
                course.transfers.append(Transfer(part.owner, pack, iter(self._spans([part]))))
            elif course.missing[part.number]:
                added = partial(self._has_added, (part.number, session, 0))
                kept.append(self._compute(added, self._sums.keep, attempt, part, found))
        return [*self._send_more(course), *kept]

    def _send_more(self, course: Course) -> Actions:
        actions: Actions = []
        while course.transfers and course.n_sending < SENT_AT_ONCE:
            course.n_sending += 1
            actions += self._next_piece(course.transfers.popleft(), None)
        return actions

    def _next_piece(self, transfer: Transfer, _: None) -> Actions:
        nodes = next(transfer.spans, None)
        if nodes is None:
            self._under_way.n_sending -= 1
            return []
        return [self._compute(partial(self._has_packed, transfer), transfer.pack, nodes)]

    def _has_packed(self, transfer: Transfer, piece: Piece) -> Actions:
        return [Send(self._under_way.attempt, partial(self._next_piece, transfer), transfer.session, piece)]

    def _has_searched(self, expanded: Expanded | None) -> Actions:
        self._under_way.answer = self._reply(expanded)
        return []

    def _reply(self, expanded: Expanded | None, unreachable: int | None = None) -> Reply:
        found = self._under_way.contribution
        assert found is not None
        assert found.totals is not None
        return Reply(found.totals, found.losses, expanded, unreachable)
