"""Questions to all workers: through relays, and directly if a relay does not answer."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from itertools import chain

import numpy as np
import pytest
from distributed.comm.core import CommClosedError
from numpy.testing import assert_array_equal

from distboost.rows.messages import BestSplits, Expanded
from distboost.rows.sums import Best, Reduced
from distboost.runtime.cluster import questions
from distboost.runtime.cluster.crew import Session, WorkerLostError
from distboost.runtime.cluster.exchange import Reply
from distboost.runtime.cluster.placement import combined
from distboost.runtime.cluster.questions import Questions
from distboost.runtime.cluster.relay import Peer, UnansweredError, forwarder, gathered, subtrees


class Answers:
    """A request with its answer."""

    def __init__(self, answer):
        self.answer = answer

    def result(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Crew:
    """Sessions that answer 1 each, and as many as are below a relay; `broken` are those that no relay reaches."""

    def __init__(self, n: int):
        self.sessions = [Session(number, f"worker {number}", 1, {number}) for number in range(n)]
        self.workers, self.losses, self.broken, self.lost = self, Counter(), set(), set()
        self.asked: list[list[int]] = []
        self.numbers: list[int] = []

    def begin(self, stage): ...

    def settle(self): ...

    def ask(self, session_id, method, *arguments):
        return self.relay([session_id], 1, method, *arguments)

    def relay(self, session_ids, fan_out, method, *arguments):
        self.asked.append(session_ids)
        self.numbers.append(arguments[0])
        unreachable = self.broken if len(session_ids) > 1 else self.lost
        return Answers(WorkerLostError("gone") if unreachable & {*session_ids} else len(session_ids))

    def finished(self, requests, together):
        return list(requests)

    def answers(self, asked, until_loss):
        for request, (session, about) in asked.items():
            try:
                yield session, about, request.result()
            except WorkerLostError:
                self.sessions.remove(session)
                self.losses["sums"] += 1
                return


def test_many_sessions_are_asked_by_a_few():
    crew = Crew(20)
    assert Questions(crew).ask("sums") == 20
    assert [len(asked) for asked in crew.asked] == [3, 3, 3, 3, 2, 2, 2, 2]
    assert sorted(chain(*crew.asked)) == [*range(20)]


def test_few_sessions_are_asked_directly_unless_one_is_to_add_up():
    crew = Crew(questions.FAN_OUT)
    asking = Questions(crew)
    assert asking.ask("sums") == 8
    assert crew.asked == [[number] for number in range(8)]
    assert asking.ask("sums", heads=1, fan_out=2) == 8
    assert crew.asked[8:] == [[*range(8)]]


def test_a_silent_relay_loses_no_other_session():
    """All are asked directly, under the same number; who is lost, is known then."""
    crew = Crew(20)
    crew.broken, crew.lost = {7}, {7}
    asking = Questions(crew)
    assert asking.ask("sums") == 19
    assert crew.losses == {"sums": 1}
    assert {*crew.numbers} == {1}
    del crew.asked[:]
    assert asking.ask("sums") == 19
    assert len(crew.asked) == questions.FAN_OUT


def test_relays_that_fail_without_a_loss_are_given_up(caplog):
    crew = Crew(20)
    crew.broken = {7}
    asking = Questions(crew)
    with caplog.at_level(logging.WARNING, "distboost"):
        for _ in range(questions.MOST_RELAYS_IN_VAIN):
            assert not caplog.text
            assert asking.ask("sums") == 20
    assert caplog.text.count("workers cannot reach each other") == 1
    del crew.asked[:]
    assert asking.ask("sums") == 20
    assert len(crew.asked) == 20
    assert not crew.losses


def test_a_failed_answer_ends_an_attempt():
    for n in (3, 20):
        crew = Crew(n)
        failed = Reply(np.zeros(0), None, None, unreachable=2)
        crew.relay = lambda *_, failed=failed: Answers(failed)
        assert Questions(crew).attempt("expand", 1) is failed


@pytest.mark.parametrize("n", range(1, 12))
@pytest.mark.parametrize("fan_out", [1, 2, 8])
def test_subtrees(n, fan_out):
    found = subtrees(range(n), fan_out)
    assert sorted(chain(*found)) == [*range(n)]
    assert len(found) == min(n, fan_out)
    assert max(map(len, found)) - min(map(len, found)) <= 1


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 10))


async def value(of):
    if isinstance(of, Exception):
        raise of
    return of


def test_answers_are_combined_on_the_way_back():
    asked = []

    async def forward(subtree):
        asked.append(subtree)
        return sum(subtree)

    assert run(gathered(value(100), forward, [1, 2, 3, 4, 5], 2)) == 115
    assert sorted(asked) == [[1, 3, 5], [2, 4]]


@pytest.mark.parametrize("error", [UnansweredError("3 is gone"), ValueError("no rows")])
def test_the_first_error_ends_the_wait(error):
    """The others may never answer: they may wait for a lost one."""

    async def forward(subtree):
        if subtree == [2, 4]:
            raise error
        await asyncio.sleep(60)

    async def never():
        await asyncio.sleep(60)

    with pytest.raises(type(error), match=str(error)):
        run(gathered(never(), forward, [1, 2, 3, 4], 2))


def test_a_failed_answer_ends_the_wait():
    failed = Reply(np.zeros(0), None, None, unreachable=2)

    async def forward(subtree):
        await asyncio.sleep(60)

    assert run(gathered(value(failed), forward, [1], 2)) is failed


class Rpc:
    """A worker's connections; whoever is asked replies the same."""

    def __init__(self, reply, takes=0.0, responds=True):
        self.reply, self.takes, self.responds = reply, takes, responds
        self.messages, self.pings = [], 0

    def rpc(self, address):
        self.address = address
        return self

    async def handler(self, **message):
        self.messages.append(message)
        await asyncio.sleep(self.takes)
        return await value(self.reply)

    async def identity(self):
        self.pings += 1
        await asyncio.sleep(0 if self.responds else 60)


def forwarded(reply, timeout=5.0, **how):
    worker = Rpc(reply, **how)
    forward = forwarder(worker, "handler", "answer", arguments=[3, "sums"], fan_out=2, timeout=timeout)
    head, other = Peer("tcp://a:1", "s-1", "t1"), Peer("tcp://b:1", "s-2", "t2")
    return worker, forward([head, other])


def test_a_subtree_is_asked_through_its_head():
    worker, answer = forwarded({"value": 5})
    assert run(answer) == 5
    [message] = worker.messages
    assert worker.address == "tcp://a:1"
    assert (message["session"], message["token"], message["method"]) == ("s-1", "t1", "answer")
    assert message["members"] == [Peer("tcp://b:1", "s-2", "t2")]
    assert message["fan_out"] == 2


@pytest.mark.parametrize(
    "reply", [None, {"gone": True}, CommClosedError("cut"), OSError("no route")], ids=repr
)
def test_a_head_that_is_gone(reply):
    with pytest.raises(UnansweredError):
        run(forwarded(reply)[1])


def test_an_answer_may_take_longer_than_a_response():
    worker, answer = forwarded({"value": 5}, timeout=0.1, takes=0.5)
    assert run(answer) == 5
    assert worker.pings > 1


def test_a_head_that_does_not_respond_is_not_waited_for():
    with pytest.raises(UnansweredError, match="TimeoutError"):
        run(forwarded({"value": 5}, timeout=0.1, takes=60, responds=False)[1])


def test_an_error_of_a_member_is_passed_on():
    with pytest.raises(ZeroDivisionError, match="nought"):
        run(forwarded({"error": ZeroDivisionError("nought")})[1])


def splits(*rows) -> BestSplits:
    value, feature = map(np.array, zip(*rows, strict=True))
    found = BestSplits.none(len(rows), 1)
    return found._replace(gain=value * 1.0, value=value * 1.0, feature=feature, left=feature[:, None])


def test_the_better_split_remains_whoever_comes_first():
    one = splits((3, 1), (2, 7), (0, 0), (5, 4), (0, 2))
    other = splits((4, 5), (2, 6), (1, 9), (0, 0), (0, 1))
    for found in (one.combined(other), other.combined(one)):
        assert_array_equal(found.value, [4, 2, 1, 5, 0])
        assert_array_equal(found.feature, [5, 6, 9, 4, 1])
        assert_array_equal(found.left[:, 0], found.feature)
    assert_array_equal(one.value, [3, 2, 0, 5, 0])  # a session may be asked for it again


def test_combined():
    one = Reduced(np.array([1, 2]), np.array([0.5]), Best(0.1, 4, ()))
    other = Reduced(np.array([3, 4]), np.array([0.2]), Best(0.1, 3, ()))
    found, totals, root = combined((one, np.array([1]), None), (other, np.array([2]), np.ones(2)))
    assert_array_equal(found.sums, [4, 6])
    assert_array_equal(found.maxima, [0.5])
    assert found.best.row == 3
    assert_array_equal(totals, [3])
    assert_array_equal(root, np.ones(2))
    assert_array_equal(one.sums, [1, 2])
    sums = Expanded(np.array([1]), None)
    reply = Reply(np.array([1]), None, None).combined(Reply(np.array([2]), one, sums))
    assert_array_equal(reply.totals, [3])
    assert (reply.losses, reply.expanded, reply.failed) == (one, sums, False)
