"""Measures on this machine what the work of a round costs: rows in a small training, histograms by their kernels."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from scipy.optimize import nnls

from distboost import GDMCBoostClassifier
from distboost.kernels import exchange
from distboost.rows.summands import Summands
from distboost.runtime.cluster.gathering import Sums
from distboost.runtime.shard import Shard
from distboost.runtime.tally import Tally
from distboost.runtime.whole_trees import WholeTrees
from distboost.splits.tree_histograms import TreeHistograms
from tests.benchmarks.scale_out import problem
from tests.benchmarks.simulation import check, messages
from tests.benchmarks.simulation.costs import Costs
from tests.benchmarks.simulation.job import LANES, Job

FEATURES, CLASSES, DEPTH, BINS = 64, 10, 6, 256
SIZES = 12_500, 25_000, 50_000, 100_000, 200_000  # rows
ROUNDS, SKIPPED = 12, 3
JITTER = 0.03  # assumed
NODES = 16  # of histograms that the caches do not hold


class Stage(NamedTuple):
    """A part of a round: the nodes whose rows it summed, the number of these rows, and its CPU time."""

    method: str
    n_nodes: int
    n_rows: int
    seconds: float


class Stages:
    """Notes the CPU time of the parts of a round, in this process."""

    def __init__(self) -> None:
        self.noted: list[Stage] = []
        self._updating = False

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note what happens meanwhile."""
        with ExitStack() as patches:
            for owner, method, name, count in (
                (Shard, "histogram", "histogram", lambda question, *_: len(question.expansion.build)),
                (Shard, "update", "update", lambda *_: 1),
                (Shard, "sums", "sums", lambda *_: 0),
                (TreeHistograms, "answer", "answer", lambda expansion: len(expansion.build)),
            ):
                timed = self._timed(name, getattr(owner, method), count)
                patches.enter_context(patch.object(owner, method, timed))
            patches.enter_context(patch.object(WholeTrees, "suits", lambda *_: False))  # as on workers
            patches.enter_context(patch.object(Tally, "_add", self._timed_sums(Tally._add)))
            yield

    def _timed(self, name: str, method: Callable[..., Any], count: Callable[..., int]) -> Callable[..., Any]:
        def timed(owner: Any, *arguments: Any) -> Any:
            if isinstance(owner, Shard):
                self._updating = name == "update"
            began = time.process_time()
            found = method(owner, *arguments)
            self.noted.append(Stage(name, count(*arguments), 0, time.process_time() - began))
            return found

        return timed

    def _timed_sums(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """The kernels of a question about histograms. With one thread and few features, there is one call for each question."""

        def timed(tally: Tally, summands: list[Summands], *arguments: Any, **fresh: Any) -> None:
            began = time.process_time()
            method(tally, summands, *arguments, **fresh)
            seconds = time.process_time() - began
            n_rows = sum(some.n_rows for some in summands)
            name = "root" if self._updating else "tally"
            self.noted.append(Stage(name, len(summands[0].spans), n_rows, seconds))

        return timed


def trained(n_rows: int) -> dict[tuple[str, int], Stage]:
    """Medians over the rounds of a training run on one thread."""
    X, y = problem(n_rows, FEATURES, CLASSES)
    stages, marks, rounds = Stages(), [0.0], []

    def mark(progress: Any) -> None:
        rounds.append([*stages.noted, Stage("round", 0, 0, time.process_time() - marks[-1])])
        stages.noted.clear()
        marks.append(time.process_time())

    with stages.watching():
        GDMCBoostClassifier(n_estimators=ROUNDS, max_depth=DEPTH, n_jobs=1, callbacks=[mark]).fit(X, y)
    found = defaultdict(list)
    for noted in rounds[SKIPPED:]:
        asked = sum(stage.seconds for stage in noted if stage.method in ("histogram", "update", "sums"))
        for stage in [*noted, Stage("client", 0, 0, noted[-1].seconds - asked)]:
            found[stage.method, stage.n_nodes].append(stage)
    return {
        key: Stage(
            *key, int(np.median([s.n_rows for s in same])), float(np.median([s.seconds for s in same]))
        )
        for key, same in found.items()
    }


def rows(clear_number: float) -> dict[str, float]:
    """What rows cost: from trainings of several sizes."""
    equations, seconds = [], []
    noted = defaultdict(list)
    for n_rows in SIZES:
        job, stages = Job(n_rows, FEATURES, CLASSES, DEPTH, BINS), trained(n_rows)
        for level in (job.root, *job.levels):
            is_root = level == job.root
            tally = stages["root" if is_root else "tally", level.n_nodes]
            terms, numbers = job.row_terms(tally.n_rows), job.numbers(level.n_nodes, FEATURES)
            filled = (1 - math.exp(-tally.n_rows / level.n_nodes / BINS)) * numbers
            equations.append([terms * is_root, terms * (not is_root), terms * job.far(level), filled])
            # The sums replace the memory's content as they are stored, which takes as long as to clear it.
            seconds.append(max(tally.seconds - clear_number * numbers, tally.seconds / 2))
            question = stages["update" if is_root else "histogram", level.n_nodes]
            rest = (question.seconds - tally.seconds - stages["answer", level.n_nodes].seconds) / n_rows
            if is_root:
                noted["update_row"].append(rest / CLASSES)
            else:
                noted["split_row"].append(rest)
                noted["smaller"].append(tally.n_rows / n_rows)
            if level.n_nodes > 1:  # the root's search is noted with that of the first level
                noted["search_number"].append(stages["answer", level.n_nodes].seconds / (2 * numbers))
        noted["client_round"].append(stages["client", 0].seconds)
        noted["leaf_row"].append(stages["sums", 0].seconds / n_rows / math.ceil(CLASSES / LANES))
    # Errors count relative to the times.
    scale = 1 / np.array(seconds)
    found, _ = nnls(np.array(equations) * scale[:, None], np.ones(len(seconds)))
    fitted = zip(("root_row", "node_row", "far_row", "fill_number"), found.tolist(), strict=True)
    return {**dict(fitted), **{name: float(np.mean(values)) for name, values in noted.items()}}


def seconds_of(work: Callable[[], Any], repeats: int = 7) -> float:
    """The median CPU time of some work, after it has run once."""
    work()
    found = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return float(np.median(found))


def histograms() -> dict[str, float]:
    """What histograms cost that lie in memory, not in a cache."""
    job = Job(0, FEATURES, CLASSES, DEPTH, BINS)
    rng = np.random.default_rng(0)
    n_bins = FEATURES * BINS
    values = rng.integers(-(2**20), 2**20, (NODES, n_bins, job.padded))
    pool, slots = np.zeros_like(values), np.arange(NODES)
    features, offsets = np.arange(FEATURES), np.arange(FEATURES + 1) * BINS
    sums = Sums(values, offsets)
    occupied, packed = sums.packed(features, range(NODES), job.channels)
    wide = values[:, :, : job.channels].copy()
    no_slots, all_slots = np.zeros(NODES, bool), np.ones(NODES, bool)

    def clear() -> None:
        pool[slots] = 0

    def add_star() -> None:
        pool[:, :, : job.channels] += wide

    return {
        "clear_number": seconds_of(clear) / values.size,
        "pack_number": seconds_of(lambda: sums.packed(features, range(NODES), job.channels)) / values.size,
        "add_number": seconds_of(lambda: exchange.add_packed(occupied, packed, slots, pool, no_slots))
        / packed.size,
        "own_number": seconds_of(
            lambda: exchange.add_features(values, features, offsets, slots, pool, all_slots.copy())
        )
        / values.size,
        "add_star": seconds_of(add_star) / wide.size,
    }


@contextmanager
def busy_cores() -> Iterator[None]:
    """Have the other cores train meanwhile: cores share the memory's bandwidth and a cache."""
    program = f"from {__name__} import trained\nwhile True: trained({SIZES[-1]})"
    others = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(check.cores() - 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def all_costs() -> Costs:
    """Everything that the simulation needs."""
    with busy_cores():
        found = histograms()
        found |= rows(found["clear_number"])
    found |= messages.of_bytes()
    unknown = dict.fromkeys(("send", "receive", "ask", "answer", "crowd"), 0.0)
    return messages.of_messages(Costs(**found, **unknown, jitter=JITTER))
