"""A round as the processes take part in it: who asks whom, and the ways of adding histograms.

Who sends whom which sums is decided by the protocol of distboost. Here is what its actions cost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import simpy

from distboost.runtime.cluster.exchange import Attempt, Bundle, OwnedFeatures
from distboost.runtime.cluster.gathering import Piece
from distboost.runtime.cluster.reduce_to_owners import Actions, Compute, ReduceToOwners, Send, Settle
from tests.benchmarks.simulation.costs import Costs
from tests.benchmarks.simulation.engine import Cores, Jitter, Link, Node, Steps, transfer
from tests.benchmarks.simulation.job import QUESTION_BYTES, Job, Level

REPLY_BYTES = 300


@dataclass(frozen=True)
class Setting:
    """How histograms are added, and how questions travel.

    Attributes
    ----------
    star : bool
        The client adds all histograms; else owners do, each for its features.
    group : int
        Workers in a group, within which sums are added before they go to the owners; 1: there are no groups.
    fan_out : int
        The workers that a process asks itself; these ask the others. 0: the client asks all. With relays, the client asks one
        worker for the sums per leaf, and each process two others: tables are large.
    """

    star: bool = False
    group: int = 1
    fan_out: int = 0

    def tree(self, is_table: bool) -> tuple[int, int]:
        """The workers that the client asks, and that each of these asks; 0: all."""
        return (1, 2) if is_table and self.fan_out else (self.fan_out, self.fan_out)


@dataclass(frozen=True)
class Cluster:
    """The machines.

    Attributes
    ----------
    workers : int
    threads : int
        Of each worker.
    shared_cores : float
        The cores that all workers and the client share; 0: each worker has a core for each thread, and the client has two.
    """

    workers: int
    threads: int = 1
    link: Link = field(default_factory=Link)
    shared_cores: float = 0.0


@dataclass(frozen=True)
class Measured:
    """A simulated round."""

    seconds: float
    stages: dict[str, float]  # seconds of each question
    client_cpu: float
    client_bytes: float  # that the client sends and receives
    worker_cpu: float  # of all workers
    sent: float  # bytes of all processes
    received: float
    most_sent: float  # bytes of one worker
    pieces: float  # messages that a worker sends to others, on average


@dataclass(frozen=True)
class Question:
    """A question to all workers: what each of them does, the size of the answers, and how many workers a relay asks."""

    work: Callable[[int], Steps]
    answer_bytes: float
    fan_out: int


def split(items: Sequence[int], n: int) -> list[Sequence[int]]:
    """Divide a sequence into at most n parts of about equal length."""
    n = min(n, len(items))
    edges = [len(items) * k // n for k in range(n + 1)] if n else [0]
    return [items[first:stop] for first, stop in pairwise(edges)]


class Round:
    """Simulates a round.

    Parameters
    ----------
    job, cluster, setting, costs
    """

    def __init__(self, job: Job, cluster: Cluster, setting: Setting, costs: Costs):
        self.job, self.cluster, self.setting = job, cluster, setting
        self.env = simpy.Environment()
        self._vary = Jitter(costs.jitter)
        n, idle = cluster.workers, costs.idle
        # Processes that share a core find its caches filled by others.
        crowd = 1 + costs.crowd * max(n / cluster.shared_cores - 1, 0) if cluster.shared_cores else 1.0
        self.costs = costs = costs.crowded(crowd)
        left = max(cluster.shared_cores - n * idle - costs.client_idle, 0.1)
        shared = Cores(self.env, left) if cluster.shared_cores else None
        self.workers = [
            Node(
                self.env,
                shared or Cores(self.env, cluster.threads - idle),
                cluster.threads,
                cluster.threads + 1,
            )
            for _ in range(n)
        ]
        self.client = Node(self.env, shared or Cores(self.env, 2), 1, 1)
        n_groups = math.ceil(n / setting.group)
        self.groups = [list(range(k, n, n_groups)) for k in range(n_groups)]
        self.n_parts = min(n, job.features)  # a feature has one owner, the session of the part's number

    def run(self) -> Measured:
        """Simulate the round."""
        stages: dict[str, float] = {}

        def steps() -> Steps:
            for level in [*self.job.levels, None, self.job.root]:
                began = self.env.now
                yield from self._question(level)
                stages["leaf sums" if level is None else level.name] = self.env.now - began
            began = self.env.now
            yield self.client.compute(self.costs.client_round)
            stages["step"] = self.env.now - began

        self.env.run(self.env.process(steps()))
        nodes = [self.client, *self.workers]
        return Measured(
            self.env.now,
            stages,
            self.client.busy + self.costs.client_idle * self.env.now,
            self.client.up.n_bytes + self.client.down.n_bytes,
            sum(worker.busy for worker in self.workers) + self.costs.idle * self.env.now * len(self.workers),
            sum(node.up.n_bytes for node in nodes),
            sum(node.down.n_bytes for node in nodes),
            max(worker.up.n_bytes for worker in self.workers),
            sum(worker.n_sent for worker in self.workers) / len(self.workers),
        )

    # Questions travel to the workers, and answers back.

    def _question(self, level: Level | None) -> Steps:
        """Ask all workers; None: for the sums per leaf."""
        everyone = range(self.cluster.workers)
        heads, fan_out = self.setting.tree(is_table=level is None)
        if level is None:
            question = Question(self._leaf_sums, self.job.leaf_bytes, fan_out)
        elif self.setting.star:
            n_bytes = 500 + 8 * self.job.numbers(level.n_nodes, self.job.features, padded=False)
            question = Question(lambda worker: self._sum_for_client(worker, level), n_bytes, fan_out)
        else:
            question = Question(
                SimulatedExchange(self, level).take_part, self.job.answer_bytes(level), fan_out
            )
        yield from self._ask(None, split(everyone, heads or len(everyone)), question)
        if level is not None and self.setting.star:
            searched = self.job.numbers(level.n_searched, self.job.features)
            yield self.client.compute(self._vary(self.costs.search_number * searched))

    def _ask(self, asker: int | None, branches: list[Sequence[int]], question: Question) -> Steps:
        """A process asks the first worker of each branch, which asks the others, and combines the answers."""
        asked = [self.env.process(self._asked(asker, branch, question)) for branch in branches]
        if asked:
            yield simpy.AllOf(self.env, asked)

    def _asked(self, asker: int | None, branch: Sequence[int], question: Question) -> Steps:
        head, costs, answer = self.workers[branch[0]], self.costs, question.answer_bytes
        node = self.client if asker is None else self.workers[asker]
        ask = costs.ask if asker is None else costs.send
        answering = costs.answer if asker is None else costs.receive
        yield node.on_loop(ask / 2)
        yield from transfer(node, head, self.cluster.link, QUESTION_BYTES)
        yield head.on_loop(answering / 2)
        branches = split(branch[1:], question.fan_out or len(branch))
        below = self.env.process(self._ask(branch[0], branches, question))
        yield self.env.process(question.work(branch[0])) & below
        yield head.on_loop(answering / 2 + answer * costs.send_byte)
        yield from transfer(head, node, self.cluster.link, answer)
        yield node.on_loop(ask / 2 + answer * costs.receive_byte)
        # Answers of best splits and of leaves are combined, histograms are added.
        add = costs.add_star if self.setting.star else costs.add_number
        yield node.compute(answer / 8 * add)

    # What workers do.

    def compute(self, worker: int, seconds: float, parallel: bool = False) -> simpy.Event:
        """Work of a worker."""
        return self.workers[worker].compute(self._vary(seconds), parallel)

    def _leaf_sums(self, worker: int) -> Steps:
        yield self.compute(worker, self.job.leaf_seconds(self.costs), parallel=True)

    def _sum_for_client(self, worker: int, level: Level) -> Steps:
        numbers = self.job.numbers(level.n_nodes, self.job.features)
        yield self.compute(worker, self.job.sum_seconds(level, self.costs), parallel=True)
        yield self.compute(worker, self.costs.pack_number * numbers)


class Work(NamedTuple):
    """What a computation costs, and its result."""

    seconds: float
    parallel: bool = False
    found: object = None


class SimulatedSums:
    """In place of distboost's `Exchange`: of what a worker computes, only the costs are known."""

    def __init__(self, round: Round, level: Level, worker: int):
        self.session, self._level, self._job, self._costs = worker, level, round.job, round.costs
        self._part = round.job.features / round.n_parts  # features of one part

    def begin(self, attempt: Attempt, level: Level) -> Work:
        return Work(0.0, found={part.number for part in attempt.parts if part.owner == self.session})

    def contribute(self, attempt: Attempt, level: Level) -> Work:
        found = SimpleNamespace(totals=0, losses=None)
        return Work(self._job.sum_seconds(level, self._costs), parallel=True, found=found)

    def keep(self, attempt: Attempt, bundle: Bundle, found: object) -> Work:
        numbers = self._job.numbers(self._level.n_nodes, len(bundle.parts) * self._part)
        return Work(self._costs.own_number * numbers)

    def spans(self, attempt: Attempt, bundle: Bundle) -> list[range]:
        n = self._job.n_messages(self._level, len(bundle.parts) * self._part)
        return [range(k, k + 1) for k in range(n)]

    def piece(self, attempt: Attempt, bundle: Bundle, found: object, nodes: range) -> Work:
        """The sums of the worker, or of its group. A piece has their bytes and numbers in place of the sums."""
        summed = 1 if bundle.number is None else len(attempt.group(self.session))
        n, call = (
            len(self.spans(attempt, bundle)),
            (self._level, len(bundle.parts) * self._part, self._costs, summed),
        )
        n_bytes, numbers = self._job.piece(*call)
        piece = Piece(1, bundle.number, self.session, nodes.start, n_bytes / n, numbers / n)
        return Work(self._job.pack_seconds(*call) / n, found=piece)

    def receive(self, attempt: Attempt, piece: Piece) -> Work:
        return Work(self._costs.add_number * piece.sums)

    def answer(self, attempt: Attempt) -> Work:
        n_owned = sum(part.owner == self.session for part in attempt.parts)
        searched = self._job.numbers(self._level.n_searched, n_owned * self._part)
        return Work(self._costs.search_number * searched, parallel=True)


class SimulatedExchange:
    """The exchange of the histograms of one question."""

    def __init__(self, round: Round, level: Level):
        self._round, self._level = round, level
        workers = range(round.cluster.workers)
        parts = tuple(OwnedFeatures(n, n, n + 1, n) for n in range(round.n_parts))
        groups, features = tuple(map(tuple, round.groups)), np.arange(round.n_parts)
        self._attempt = Attempt(
            1, 1, 1, features, parts, groups, level.n_nodes, round.job.channels, {}, math.inf
        )
        self._protocols = [ReduceToOwners(SimulatedSums(round, level, worker)) for worker in workers]

    def take_part(self, worker: int) -> Steps:
        """All that a worker does in the exchange."""
        done = self._round.env.event()
        self._do(worker, self._protocols[worker].ask(self._level, self._attempt, done))
        yield done

    def _do(self, worker: int, actions: Actions) -> None:
        for action in actions:
            if isinstance(action, Settle):
                action.to.succeed()
            elif isinstance(action, Compute):
                self._round.env.process(self._compute(worker, action))
            elif isinstance(action, Send):
                self._round.env.process(self._send(worker, action))

    def _compute(self, worker: int, action: Compute) -> Steps:
        work = action.function(*action.arguments)
        if work.seconds:
            yield self._round.compute(worker, work.seconds, work.parallel)
        self._do(worker, self._protocols[worker].done(action, work.found))

    def _send(self, worker: int, action: Send) -> Steps:
        """A message between workers, which is answered when the receiver has added the sums."""
        costs, link, n_bytes = self._round.costs, self._round.cluster.link, action.piece.occupied
        one, other = self._round.workers[worker], self._round.workers[action.session]
        one.n_sent += 1
        yield one.on_loop(costs.send + costs.send_byte * n_bytes)
        yield from transfer(one, other, link, n_bytes)
        yield other.on_loop(costs.receive + costs.receive_byte * n_bytes)
        added = self._round.env.event()
        self._do(action.session, self._protocols[action.session].arrive(action.piece, added))
        yield added
        yield from transfer(other, one, link, REPLY_BYTES)
        self._do(worker, self._protocols[worker].done(action))


def simulate(job: Job, cluster: Cluster, setting: Setting, costs: Costs) -> Measured:
    """Simulate a round of a training run."""
    return Round(job, cluster, setting, costs).run()
