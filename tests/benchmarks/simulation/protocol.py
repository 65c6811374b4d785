"""A round as the processes take part in it: who asks whom, and the ways of adding histograms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import simpy

from tests.benchmarks.simulation.costs import Costs
from tests.benchmarks.simulation.engine import Cores, Jitter, Link, Node, Steps, transfer
from tests.benchmarks.simulation.job import QUESTION_BYTES, Job, Level

SENT_AT_ONCE = 4  # pieces under way from a worker
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
            question = Question(Exchange(self, level).take_part, self.job.answer_bytes(level), fan_out)
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

    def deliver(
        self, sender: int, receiver: int, n_bytes: float, work: Callable[[], Iterable[float]]
    ) -> Steps:
        """A message between workers, which is answered when the receiver has done the work."""
        one, other, costs = self.workers[sender], self.workers[receiver], self.costs
        one.n_sent += 1
        yield one.on_loop(costs.send + costs.send_byte * n_bytes)
        yield from transfer(one, other, self.cluster.link, n_bytes)
        yield other.on_loop(costs.receive + costs.receive_byte * n_bytes)
        yield from work()
        yield from transfer(other, one, self.cluster.link, REPLY_BYTES)


class Gathering:
    """Sums that a worker is to receive: an event occurs when none is missing."""

    def __init__(self, env: simpy.Environment, missing: int):
        self._missing, self.complete = missing, env.event()
        if not missing:
            self.complete.succeed()

    def received(self) -> None:
        """Note sums that were added."""
        self._missing -= 1
        if not self._missing:
            self.complete.succeed()


class Exchange:
    """The exchange of the histograms of one question."""

    def __init__(self, round: Round, level: Level):
        self.round, self.level, self.job, self.costs = round, level, round.job, round.costs
        env, n = round.env, round.cluster.workers
        self.begun = [env.event() for _ in range(n)]
        self.group_of = {worker: group for group in round.groups for worker in group}
        self.parts: dict[int, list[int]] = {worker: [] for worker in range(n)}
        for group in round.groups:
            for part in range(round.n_parts):
                self.parts[group[part * len(group) // round.n_parts]].append(part)
        self.features = self.job.features / round.n_parts  # of one part
        self.collected = [
            Gathering(env, len(self.group_of[w]) if len(self.group_of[w]) > 1 and self.parts[w] else 0)
            for w in range(n)
        ]
        self.owned = [Gathering(env, len(round.groups) if w < round.n_parts else 0) for w in range(n)]
        self.slots = [simpy.Resource(env, SENT_AT_ONCE) for _ in range(n)]

    def take_part(self, worker: int) -> Steps:
        """All that a worker does in the exchange."""
        job, costs, level, compute = self.job, self.costs, self.level, self.round.compute
        group, mine = self.group_of[worker], self.parts[worker]
        grouped = len(group) > 1
        numbers = job.numbers(level.n_nodes, self.features)
        self.begun[worker].succeed()
        yield compute(worker, job.sum_seconds(level, costs), parallel=True)
        if grouped and mine:
            yield compute(worker, costs.own_number * numbers * len(mine))
            self.collected[worker].received()
        start = group.index(worker)
        others = (
            [other for other in (*group[start:], *group[:start])[1:] if self.parts[other]] if grouped else []
        )
        turned = [part for part in mine if part >= worker] + [part for part in mine if part < worker]
        env = self.round.env
        sending = [
            env.process(self._send(worker, other, self.parts[other], 1, self.collected)) for other in others
        ]
        sending += [env.process(self._pass_on(worker, part)) for part in turned]
        if sending:
            yield simpy.AllOf(env, sending)
        if worker < self.round.n_parts:
            yield self.owned[worker].complete
            searched = job.numbers(level.n_searched, self.features)
            yield compute(worker, costs.search_number * searched, parallel=True)

    def _pass_on(self, worker: int, part: int) -> Steps:
        """Bring the sums of the group to the owner of a part."""
        yield self.collected[worker].complete
        if part == worker:
            numbers = self.job.numbers(self.level.n_nodes, self.features)
            yield self.round.compute(worker, self.costs.own_number * numbers)
            self.owned[worker].received()
        else:
            yield from self._send(worker, part, [part], len(self.group_of[worker]), self.owned)

    def _send(
        self, worker: int, receiver: int, parts: list[int], summed: int, gatherings: list[Gathering]
    ) -> Steps:
        """Send the sums of so many workers over some parts, one message after another."""
        features = len(parts) * self.features
        n_messages = self.job.n_messages(self.level, features)
        n_bytes, n = (
            total / n_messages for total in self.job.piece(self.level, features, self.costs, summed)
        )
        pack = self.job.pack_seconds(self.level, features, self.costs, summed) / n_messages
        with self.slots[worker].request() as slot:
            yield slot
            for _ in range(n_messages):
                yield self.round.compute(worker, pack)
                yield from self.round.deliver(worker, receiver, n_bytes, lambda: self._add(receiver, n))
        gatherings[receiver].received()

    def _add(self, receiver: int, n: float) -> Steps:
        yield self.begun[receiver]
        yield self.round.compute(receiver, self.costs.add_number * n)


def simulate(job: Job, cluster: Cluster, setting: Setting, costs: Costs) -> Measured:
    """Simulate a round of a training run."""
    return Round(job, cluster, setting, costs).run()
