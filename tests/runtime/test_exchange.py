"""One session's part in the exchange of histograms: attempts that fail, pieces that come twice or too late."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from distboost.data.blocks import BinnedRows
from distboost.kernels import gains
from distboost.rows.messages import (
    Expansion,
    HistogramQuestion,
    Root,
    RootQuestion,
    Siblings,
    SplitRules,
    Splits,
)
from distboost.rows.scales import Scale
from distboost.runtime.block import Key
from distboost.runtime.cluster import exchange as exchange_module
from distboost.runtime.cluster.crew import Session
from distboost.runtime.cluster.exchange import Attempt, Exchange, Part, Reply
from distboost.runtime.cluster.owners import Owners
from distboost.runtime.cluster.worker_exchange import SupersededError, WorkerExchange
from distboost.runtime.layout import Layout
from distboost.runtime.shard import Shard
from distboost.threads import Threads
from distboost.weights.margin import MarginWeights, Residuals

N, D, K = 60, 4, 3
LAYOUT = Layout(np.full(D, 5), K, K, "float64")
STATISTIC = Residuals(MarginWeights(0.5))
ROOT = Root(np.arange(D), STATISTIC, None, 0.0, 4, SplitRules(gains.CODEWORD, 1, 0.0))
EXPANSION = Expansion(ROOT)
QUESTION = HistogramQuestion(
    RootQuestion(STATISTIC, Scale(0.7, 20), None, 0.0), Splits.empty(), np.zeros(1, np.int64), np.arange(D)
)
PARTS = Part(0, 0, 1, 1), Part(1, 1, 4, 2)  # of two sessions


def rows(first: int) -> BinnedRows:
    rng = np.random.default_rng(first)
    labels = rng.integers(0, K, N).astype(np.int32)
    return BinnedRows(first, rng.integers(0, 6, (N, D)).astype(np.uint8), labels, np.ones(N), None)


def session(*firsts: int) -> Exchange:
    """Holds blocks of rows from these on."""
    return Exchange(Shard([[rows(first) for first in firsts]], LAYOUT, Threads(1)), LAYOUT.n_bins)


ALONE = (1,), (2,)  # groups of one


def attempt(number: int, question: int = 1, parts=PARTS, groups=ALONE) -> Attempt:
    peers = {own: own for group in groups for own in group}
    return Attempt(number, question, question, np.arange(D), parts, groups, K + 1, peers, 5.0)


def pieces(exchange: Exchange, of: Attempt, part: Part, own: int):
    found = exchange.contribute(of, QUESTION, 1)
    return [exchange.piece(of, part, found, nodes, own) for nodes in exchange.spans(of, [part], 1)]


def keep(exchange: Exchange, of: Attempt, part: Part, own: int) -> None:
    exchange.keep(of, part, exchange.contribute(of, QUESTION, 1), own)


@pytest.fixture
def two():
    return session(0), session(N)


def exchanged(exchanges, of: Attempt, question=QUESTION, expansion=EXPANSION) -> None:
    """An attempt in which each piece arrives."""
    exchanges = dict(zip(sorted(own for group in of.groups for own in group), exchanges, strict=True))
    n_nodes = len(expansion.build)
    for own, exchange in exchanges.items():
        exchange.begin(of, expansion, own)
    found = {own: exchange.contribute(of, question, n_nodes) for own, exchange in exchanges.items()}
    for own, exchange in exchanges.items():
        exchange.collect(of, found[own], own)
        for other in of.group(own):
            if other != own and of.collected(other):
                for nodes in exchange.spans(of, of.collected(other), n_nodes):
                    exchanges[other].receive(exchange.group_piece(of, other, found[own], nodes, own))
    for own, exchange in exchanges.items():
        assert exchange.has_collected
        for part in of.collected(own):
            if part.owner == own:
                exchange.keep(of, part, found[own], own)
                continue
            for nodes in exchange.spans(of, [part], n_nodes):
                exchanges[part.owner].receive(exchange.piece(of, part, found[own], nodes, own))


def answered(exchanges, of: Attempt):
    """The answers of all sessions, after an attempt in which each piece arrives."""
    exchanged(exchanges, of)
    return {number: answer for exchange in exchanges for number, answer in exchange.answers().items()}


def assert_same(found, expected) -> None:
    assert found.keys() == expected.keys()
    for number, answer in found.items():
        assert_array_equal(answer.sums, expected[number].sums)
        for mine, theirs in zip(answer.best, expected[number].best, strict=True):
            assert_array_equal(mine, theirs)


GROUPS = {
    "alone": ((1,), (2,), (3,), (4,), (5,)),
    "groups": ((1, 3, 5), (2, 4)),
    "one group": ((1, 2, 3, 4, 5),),
    "some alone": ((1,), (2, 3), (4, 5)),
}
DIVISIONS = {
    "a part for each": (Part(0, 0, 1, 1), Part(1, 1, 2, 2), Part(2, 2, 3, 3), Part(3, 3, 4, 4)),
    "owned by others": (Part(0, 0, 1, 5), Part(1, 1, 2, 4), Part(2, 2, 3, 5), Part(3, 3, 4, 1)),
    "fewer parts than members": (Part(0, 0, 3, 2), Part(1, 3, 4, 4)),
    "some have answers": (Part(0, 0, 1, 1), Part(3, 3, 4, 4)),
}


@pytest.mark.parametrize("parts", DIVISIONS.values(), ids=DIVISIONS)
@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_the_answers_are_those_of_all_rows(groups, parts, monkeypatch):
    """However the workers are grouped, and whoever owns what."""
    monkeypatch.setattr(exchange_module, "PIECE_BYTES", 1)  # of one node
    firsts = range(0, 5 * N, N)
    found = answered([session(first) for first in firsts], attempt(1, parts=parts, groups=groups))
    alone = session(*firsts)
    for part in parts:
        whole = answered([alone], attempt(1, parts=(part._replace(owner=1),), groups=((1,),)))
        assert_same({part.number: found[part.number]}, whole)
        alone = session(*firsts)


def test_a_piece_counts_once(two):
    expected = answered((session(0), session(N)), attempt(1))
    for own, exchange in enumerate(two, 1):
        exchange.begin(attempt(1), EXPANSION, own)
    [theirs] = pieces(two[1], attempt(1), PARTS[0], 2)
    for _ in range(2):
        two[0].receive(theirs)
        assert not two[0].has_all
    for _ in range(2):
        keep(two[0], attempt(1), PARTS[0], 1)
        two[0].receive(theirs)
        assert two[0].has_all
    assert_same(two[0].answers(), {0: expected[0]})


def test_pieces_of_an_earlier_attempt_are_refused(two):
    """The first attempt has brought the owner both of its sums; the second begins from zero."""
    expected = answered((session(0), session(N)), attempt(1))
    two[0].begin(attempt(1), EXPANSION, 1)
    [late] = pieces(two[1], attempt(1), PARTS[0], 2)
    keep(two[0], attempt(1), PARTS[0], 1)
    two[0].begin(attempt(2), EXPANSION, 1)
    two[0].receive(late._replace(sums=3 * late.sums))  # of other rows
    keep(two[0], attempt(1), PARTS[0], 1)
    for piece in pieces(two[1], attempt(2), PARTS[0], 2):
        two[0].receive(piece)
        two[0].receive(late)
    assert not two[0].has_all
    keep(two[0], attempt(2), PARTS[0], 1)
    assert two[0].has_all
    assert_same(two[0].answers(), {0: expected[0]})


def test_sums_of_a_group_in_an_earlier_attempt_are_refused(two):
    """They may be late, and those that were collected are gone."""
    of = [attempt(number, groups=((1, 2),)) for number in range(3)]
    expected = answered((session(0), session(N)), of[1])
    found = []
    for own, exchange in enumerate(two, 1):
        exchange.begin(of[1], EXPANSION, own)
        found.append(exchange.contribute(of[1], QUESTION, 1))
    late = two[1].group_piece(of[1], 1, found[1], range(1), 2)
    two[0].receive(late)
    two[0].begin(of[2], EXPANSION, 1)
    two[0].receive(late)
    two[0].collect(of[1], found[0], 1)
    assert not two[0].has_collected
    with pytest.raises(RuntimeError, match="another attempt has begun"):
        two[0].piece(of[1], PARTS[1], found[0], range(1), 1)
    assert_same(answered(two, of[2]), expected)


def test_another_attempt_may_begin_while_a_piece_arrives(two):
    """The piece has found its part, but is not added yet."""
    expected = answered((session(0), session(N)), attempt(1))
    two[0].begin(attempt(1), EXPANSION, 1)
    [late] = pieces(two[1], attempt(1), PARTS[0], 2)
    part = two[0]._parts[0]
    two[0].begin(attempt(2), EXPANSION, 1)
    part.add(late._replace(sums=3 * late.sums))
    with pytest.raises(RuntimeError, match="another attempt has begun"):
        two[0].answers()
    for piece in pieces(two[1], attempt(2), PARTS[0], 2):
        two[0].receive(piece)
    keep(two[0], attempt(2), PARTS[0], 1)
    assert_same(two[0].answers(), {0: expected[0]})


def test_an_answer_that_was_not_heard_is_given_again(two):
    """Its owner has searched the histograms and may not add to them again."""
    expected = answered(two, attempt(1))
    assert_same(answered(two, attempt(2)), expected)


def test_own_sums_are_computed_once(two):
    [exchange, _] = two
    found = exchange.contribute(attempt(1), QUESTION, 1)
    assert exchange.contribute(attempt(2), QUESTION, 1) is found
    assert exchange._shard.passes["histogram"] == N
    exchange._shard.take([(Key(0, 7), rows(N))])  # of a lost worker
    more = exchange.contribute(attempt(3), QUESTION, 1)
    assert exchange._shard.passes["histogram"] == 2 * N
    both = session(0, N).contribute(attempt(1), QUESTION, 1)
    assert_array_equal(more.sums.values, both.sums.values)
    assert_array_equal(more.totals, both.totals)
    assert exchange.contribute(attempt(4, question=2), QUESTION, 1) is not more


def worker(exchange: Exchange, send) -> WorkerExchange:
    return WorkerExchange(exchange, ThreadPoolExecutor(2), send)


def test_a_newer_attempt_ends_the_one_that_waits(two):
    async def run() -> None:
        async def silent(peer, piece):
            await asyncio.sleep(60)

        first = worker(two[0], silent)
        waiting = asyncio.ensure_future(first.expand(QUESTION, EXPANSION, attempt(1), 1))
        await asyncio.sleep(0.1)
        alone = attempt(2, parts=(PARTS[0],), groups=((1,),))
        assert (await first.expand(QUESTION, EXPANSION, alone, 1)).answers.keys() == {0}
        with pytest.raises(SupersededError):
            await waiting
        with pytest.raises(SupersededError):
            await first.expand(QUESTION, EXPANSION, attempt(2), 1)

    asyncio.run(run())


def test_a_piece_waits_for_its_attempt(two):
    """It may arrive before the owner has been asked."""

    async def run() -> None:
        async def nowhere(peer, piece):
            pass

        owner = worker(two[0], nowhere)
        [piece] = pieces(two[1], attempt(1), PARTS[0], 2)
        arriving = asyncio.ensure_future(owner.receive(piece))
        reply = await owner.expand(QUESTION, EXPANSION, attempt(1), 1)
        await arriving
        assert reply.answers.keys() == {0}

    asyncio.run(run())


@pytest.mark.parametrize("error", [OSError("no route"), TimeoutError()])
def test_an_owner_that_cannot_be_reached_is_named(two, error):
    async def run() -> None:
        async def broken(peer, piece):
            raise error

        reply = await worker(two[0], broken).expand(QUESTION, EXPANSION, attempt(1), 1)
        assert (reply.unreachable, reply.answers) == (2, {})

    asyncio.run(run())


def test_errors_are_not_taken_for_losses(two, monkeypatch):
    def fail(*arguments):
        raise MemoryError("no room")

    monkeypatch.setattr(two[0], "piece", fail)

    async def run() -> None:
        with pytest.raises(MemoryError, match="no room"):
            await worker(two[0], partial(asyncio.sleep, 0)).expand(QUESTION, EXPANSION, attempt(1), 1)

    asyncio.run(run())


class OneLoss:
    """A crew of two sessions. The first one answers the first question, and is lost before the other one has answered."""

    timeout = 5.0

    def __init__(self, loses: bool):
        self.workers, self.loses = self, loses
        self.hosts = {1: session(0), 2: session(N)}
        self.sessions = [Session(1, "a", 1, {Key(0, 0)}), Session(2, "b", 1, {Key(0, 0)})]

    def begin(self, stage: str) -> None: ...

    def settle(self) -> None: ...

    def peer(self, session_id: int) -> int:
        return session_id

    def ask_sessions(self, method, arguments, failed=None):
        asked = {each.id: own for each, own in arguments.items()}
        [(question, expansion, of, _), *_] = asked.values()
        exchanged([self.hosts[own] for own in sorted(asked)], of, question, expansion)
        found = {own: self.hosts[own].contribute(of, question, len(expansion.build)) for own in asked}
        replies = {
            each: Reply(found[each.id].totals, None, self.hosts[each.id].answers()) for each in arguments
        }
        if self.loses:
            self.loses = False
            lost = self.sessions.pop(0)
            self.hosts[3] = session(0)  # reads its rows again
            self.sessions.append(Session(3, "c", 1, {Key(0, 0)}))
            return {lost: replies[lost]}
        return replies


def test_the_answer_of_an_owner_that_is_lost_is_found_again():
    """It was heard, but its histograms are gone: a new owner needs those of this question, too."""
    expected, found = (Owners(OneLoss(loses), LAYOUT.n_bins, K) for loses in (False, True))
    first = [each.expand("histogram", QUESTION, EXPANSION).expanded.best for each in (expected, found)]
    best = first[0]
    splits = Splits.of([(0, int(best.feature[0]), int(best.bin[0]), bool(best.missing_left[0]), 1, 2)])
    question = HistogramQuestion(None, splits, np.ones(1, np.int64), np.arange(D))
    children = Expansion(siblings=(Siblings(0, 1, 2),))
    second = [each.expand("histogram", question, children).expanded.best for each in (expected, found)]
    for pair in (first, second):
        for ours, theirs in zip(*pair, strict=True):
            assert_array_equal(ours, theirs)
