"""The exchange of histograms: its protocol in any order of events, attempts that fail, pieces that come twice or too late."""

from __future__ import annotations

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost.data.blocks import BinnedRows
from distboost.kernels import gains
from distboost.rows.messages import (
    NO_SPLITS,
    Expansion,
    HistogramQuestion,
    Root,
    RootQuestion,
    Siblings,
    SplitRules,
    Splits,
)
from distboost.rows.sums import Scale
from distboost.runtime.base import Layout
from distboost.runtime.block import Key
from distboost.runtime.cluster import exchange as exchange_module
from distboost.runtime.cluster.crew import Session
from distboost.runtime.cluster.exchange import Attempt, Bundle, Exchange, OwnedFeatures, Reply
from distboost.runtime.cluster.owners import Owners
from distboost.runtime.cluster.placement import combined
from distboost.runtime.cluster.reduce_to_owners import (
    SENT_AT_ONCE,
    Compute,
    ReduceToOwners,
    Send,
    Settle,
    SupersededError,
)
from distboost.runtime.cluster.worker_session import WorkerExchange
from distboost.runtime.shard import Shard
from distboost.threads import Threads
from distboost.weights.margin import MarginWeights, Residuals

N, D, K = 60, 4, 3
LAYOUT = Layout(np.full(D, 5), K, K, "float64")
STATISTIC = Residuals(MarginWeights(0.5))
ROOT = Root(np.arange(D), STATISTIC, None, 0.0, 4, SplitRules(gains.CODEWORD, 1, 0.0))
EXPANSION = Expansion(np.arange(D), ROOT)
QUESTION = HistogramQuestion(RootQuestion(STATISTIC, Scale(0.7, 20), None, 0.0), NO_SPLITS, EXPANSION)
PARTS = OwnedFeatures(0, 0, 1, 1), OwnedFeatures(1, 1, 4, 2)  # of two sessions


def rows(first: int) -> BinnedRows:
    rng = np.random.default_rng(first)
    labels = rng.integers(0, K, N).astype(np.int32)
    return BinnedRows(first, rng.integers(0, 6, (N, D)).astype(np.uint8), labels, np.ones(N), None)


def session(*firsts: int, number: int = 1) -> Exchange:
    """Holds blocks of rows from these on."""
    return Exchange(number, Shard([[rows(first) for first in firsts]], LAYOUT, Threads(1)), LAYOUT.n_bins)


ALONE = (1,), (2,)  # groups of one


def attempt(number: int, question: int = 1, parts=PARTS, groups=ALONE) -> Attempt:
    peers = {own: own for group in groups for own in group}
    return Attempt(number, question, question, np.arange(D), parts, groups, 1, K + 1, peers, 5.0)


def both() -> tuple[Exchange, Exchange]:
    return session(0, number=1), session(N, number=2)


@pytest.fixture
def two():
    return both()


def exchanged(exchanges, of: Attempt, question=QUESTION, seed: int = 0) -> list[Reply]:
    """An attempt in which each piece arrives, and some arrive twice. What is to be done is done in an order of the seed."""
    chooser, todo = random.Random(seed), []
    protocols = {exchange.session: ReduceToOwners(exchange) for exchange in exchanges}
    replies = {}

    def do(own: int, actions) -> None:
        todo.extend((own, action) for action in actions)

    def sent(own: int, action: Send) -> None:
        to, heard = protocols[action.session], []

        def arrived(answer: Settle) -> None:
            assert answer.error is None
            if not heard:
                do(own, protocols[own].done(action))
            heard.append(answer)

        for _ in range(chooser.randint(1, 2)):
            do(action.session, to.arrive(action.piece, arrived))

    for own, protocol in protocols.items():
        do(own, protocol.ask(question, of, partial(replies.__setitem__, own)))
    while todo:
        own, action = todo.pop(chooser.randrange(len(todo)))
        if isinstance(action, Compute):
            do(own, protocols[own].done(action, action.function(*action.arguments)))
        elif isinstance(action, Send):
            sent(own, action)
        elif isinstance(action, Settle):
            action.to(action)
    assert [*sorted(replies)] == [*sorted(protocols)]
    return [answer.value for answer in replies.values()]


def answered(exchanges, of: Attempt, seed: int = 0):
    """The answer of all sessions, after an attempt in which each piece arrives."""
    return reduce(combined, exchanged(exchanges, of, seed=seed)).expanded


def computed(protocol: ReduceToOwners, actions):
    """Compute all that is to be computed; return what else is to be done."""
    left, todo = [], [*actions]
    for action in todo:
        if isinstance(action, Compute):
            todo += protocol.done(action, action.function(*action.arguments))
        else:
            left.append(action)
    return left


def assert_same(found, expected) -> None:
    assert_array_equal(found.sums, expected.sums)
    for mine, theirs in zip(found.best, expected.best, strict=True):
        assert_array_equal(mine, theirs)


GROUPS = {
    "alone": ((1,), (2,), (3,), (4,), (5,)),
    "groups": ((1, 3, 5), (2, 4)),
    "one group": ((1, 2, 3, 4, 5),),
    "some alone": ((1,), (2, 3), (4, 5)),
}
DIVISIONS = {
    "a part for each": (
        OwnedFeatures(0, 0, 1, 1),
        OwnedFeatures(1, 1, 2, 2),
        OwnedFeatures(2, 2, 3, 3),
        OwnedFeatures(3, 3, 4, 4),
    ),
    "owned by others": (
        OwnedFeatures(0, 0, 1, 5),
        OwnedFeatures(1, 1, 2, 4),
        OwnedFeatures(2, 2, 3, 5),
        OwnedFeatures(3, 3, 4, 1),
    ),
    "fewer parts than members": (OwnedFeatures(0, 0, 3, 2), OwnedFeatures(1, 3, 4, 4)),
    "some have answers": (OwnedFeatures(0, 0, 1, 1), OwnedFeatures(3, 3, 4, 4)),
}


@pytest.mark.parametrize("parts", DIVISIONS.values(), ids=DIVISIONS)
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_the_answers_are_those_of_all_rows(groups, parts, monkeypatch):
    """However the workers are grouped, whoever owns what, and in whichever order things happen."""
    monkeypatch.setattr(exchange_module, "PIECE_BYTES", 1)  # of one node
    firsts = range(0, 5 * N, N)
    whole = tuple(part._replace(owner=1) for part in parts)
    expected = answered([session(*firsts)], attempt(1, parts=whole, groups=((1,),)))
    for seed in range(5):
        exchanges = [session(first, number=own) for own, first in enumerate(firsts, 1)]
        assert_same(answered(exchanges, attempt(1, parts=parts, groups=groups), seed), expected)


def test_a_piece_counts_once(two):
    """And the owner searches while its own pieces are under way."""
    expected = answered(both(), attempt(1, parts=PARTS[:1]))
    owner, other = map(ReduceToOwners, two)
    [sent] = computed(other, other.ask(QUESTION, attempt(1), "other"))
    begin, contribute = owner.ask(QUESTION, attempt(1), "owner")
    assert owner.arrive(sent.piece, "early") == []
    assert computed(owner, [begin]) == [Settle("early")]
    assert computed(owner, owner.arrive(sent.piece, "again")) == [Settle("again")]
    [sending] = computed(owner, [contribute])
    [answer] = owner.done(sending)
    assert answer.to == "owner"
    assert_same(answer.value.expanded, expected)
    assert owner.arrive(sent.piece, "late") == [Settle("late")]


def test_what_belongs_to_an_ended_attempt_is_of_no_consequence(two):
    owner, other = map(ReduceToOwners, two)
    [sent] = computed(other, other.ask(QUESTION, attempt(1, parts=PARTS[:1]), "other"))
    [begin, contribute] = owner.ask(QUESTION, attempt(1, parts=PARTS[:1]), "first")
    owner.arrive(sent.piece, "sender")
    refused, heard, begins, _ = owner.ask(QUESTION, attempt(2), "second")
    assert (refused.to, type(refused.error)) == ("first", SupersededError)
    assert heard == Settle("sender")
    assert owner.done(begin, {0}) == owner.done(contribute) == owner.failed(contribute, OSError()) == []
    computed(owner, [begins])
    assert owner.arrive(sent.piece, "sender") == [Settle("sender")]


def test_few_sessions_are_sent_pieces_at_a_time():
    """The next one is when a piece was added; the answer comes when all were."""
    others = range(2, SENT_AT_ONCE + 4)
    parts = tuple(OwnedFeatures(n, 0, 1, other) for n, other in enumerate(others))
    protocol = ReduceToOwners(session(0))
    of = attempt(1, parts=parts, groups=tuple((own,) for own in (1, *others)))
    sent = computed(protocol, protocol.ask(QUESTION, of, "asked"))
    assert len(sent) == SENT_AT_ONCE
    for action in sent:
        if isinstance(action, Send):
            sent += computed(protocol, protocol.done(action))
    *pieces, answer = sent
    assert [action.session for action in pieces] == [*others]
    assert (answer.to, answer.value.expanded) == ("asked", None)


@pytest.mark.parametrize("groups", [ALONE, ((1, 2),)], ids=["alone", "a group"])
def test_sums_of_an_earlier_attempt_are_refused(two, groups):
    """A thread may still be at it when another one begins; what a group had collected is gone."""
    former, newer = (attempt(number, groups=groups) for number in (1, 2))
    expected = answered(both(), former)
    one, found = two[0], [exchange.contribute(former, QUESTION) for exchange in two]
    for exchange in two:
        exchange.begin(former, QUESTION)
    own, other = (former.collected(1) if former.gathers(1) else Bundle.of(PARTS[0])), Bundle.of(PARTS[1])
    late = two[1].piece(former, own, found[1], range(1))
    one.begin(newer, QUESTION)
    calls = [
        partial(one.begin, former, QUESTION),
        partial(one.receive, former, late),
        partial(one.keep, former, own, found[0]),
        partial(one.answer, former),
    ]
    for call in [*calls, *[partial(one.piece, former, other, found[0], range(1))] * former.gathers(1)]:
        with pytest.raises(RuntimeError, match="another attempt has begun"):
            call()
    assert_same(answered(two, newer), expected)


def test_an_answer_that_was_not_heard_is_given_again(two):
    """Its owner has searched the histograms and may not add to them again."""
    expected = answered(two, attempt(1))
    assert_same(answered(two, attempt(2)), expected)


def test_own_sums_are_computed_once(two):
    [exchange, _] = two
    found = exchange.contribute(attempt(1), QUESTION)
    assert exchange.contribute(attempt(2), QUESTION) is found
    assert exchange._shard.passes["histogram"] == N
    exchange._shard.take([(Key(0, 7), rows(N))])  # of a lost worker
    more = exchange.contribute(attempt(3), QUESTION)
    assert exchange._shard.passes["histogram"] == 2 * N
    both = session(0, N).contribute(attempt(1), QUESTION)
    assert_array_equal(more.sums.values, both.sums.values)
    assert_array_equal(more.totals, both.totals)
    assert exchange.contribute(attempt(4, question=2), QUESTION) is not more


def worker(exchange: Exchange, send) -> WorkerExchange:
    return WorkerExchange(exchange, ThreadPoolExecutor(2), send)


def test_a_newer_attempt_ends_the_one_that_waits(two):
    async def run() -> None:
        async def silent(peer, piece):
            await asyncio.sleep(60)

        first = worker(two[0], silent)
        waiting = asyncio.ensure_future(first.expand(QUESTION, attempt(1)))
        await asyncio.sleep(0.1)
        alone = attempt(2, parts=(PARTS[0],), groups=((1,),))
        assert (await first.expand(QUESTION, alone)).expanded is not None
        with pytest.raises(SupersededError):
            await waiting
        with pytest.raises(SupersededError):
            await first.expand(QUESTION, attempt(2))

    asyncio.run(run())


@pytest.mark.parametrize("error", [OSError("no route"), TimeoutError()])
def test_an_owner_that_cannot_be_reached_is_named(two, error):
    async def run() -> None:
        async def broken(peer, piece):
            raise error

        reply = await worker(two[0], broken).expand(QUESTION, attempt(1))
        assert (reply.unreachable, reply.failed, reply.expanded) == (2, True, None)

    asyncio.run(run())


def test_errors_are_not_taken_for_losses(two, monkeypatch):
    def fail(*arguments):
        raise MemoryError("no room")

    monkeypatch.setattr(two[0], "piece", fail)

    async def run() -> None:
        with pytest.raises(MemoryError, match="no room"):
            await worker(two[0], partial(asyncio.sleep, 0)).expand(QUESTION, attempt(1))

    asyncio.run(run())


class OneLoss:
    """A crew of two sessions. The first one answers the first question, and is lost before the other one has answered."""

    timeout = 5.0

    def __init__(self, loses: bool):
        self.workers, self.loses = self, loses
        self.hosts = {number: session(first, number=number) for number, first in ((1, 0), (2, N))}
        self.sessions = [Session(1, "a", 1, {Key(0, 0)}), Session(2, "b", 1, {Key(0, 0)})]

    def begin(self, stage: str) -> None: ...

    def settle(self) -> None: ...

    def peer(self, session_id: int) -> int:
        return session_id

    def attempt(self, method, question, of):
        own = [self.hosts[each.id] for each in self.sessions]
        reply = reduce(combined, exchanged(own, of, question))
        if not self.loses:
            return reply
        self.loses = False
        self.sessions.pop(0)
        self.hosts[3] = session(0, number=3)  # reads its rows again
        self.sessions.append(Session(3, "c", 1, {Key(0, 0)}))
        return None


def owners_of(crew: OneLoss) -> Owners:
    return Owners(crew, crew, LAYOUT.n_bins, K)


def test_the_answer_of_an_owner_that_is_lost_is_found_again():
    """It was heard, but its histograms are gone: a new owner needs those of this question, too."""
    expected, found = (owners_of(OneLoss(loses)) for loses in (False, True))
    first = [each.expand("histogram", QUESTION).expanded.best for each in (expected, found)]
    best = first[0]
    splits = Splits.of([(0, int(best.feature[0]), int(best.bin[0]), bool(best.missing_left[0]), 1, 2)])
    children = Expansion(np.arange(D), siblings=(Siblings(0, 1, 2),))
    question = HistogramQuestion(None, splits, children)
    second = [each.expand("histogram", question).expanded.best for each in (expected, found)]
    for pair in (first, second):
        for ours, theirs in zip(*pair, strict=True):
            assert_array_equal(ours, theirs)
