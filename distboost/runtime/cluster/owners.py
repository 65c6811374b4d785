"""The coordinator's side of the exchange of histograms: which worker owns which features, and what becomes of lost ones."""

from __future__ import annotations

import itertools
import logging
import math
from collections import Counter
from collections.abc import Collection
from itertools import pairwise

import numpy as np

from distboost.rows.messages import (
    NO_SPLITS,
    BestSplits,
    Expanded,
    Expansion,
    HistogramQuestion,
    Root,
    UpdateQuestion,
)
from distboost.runtime.cluster.crew import Crew
from distboost.runtime.cluster.exchange import Attempt, OwnedFeatures, Reply
from distboost.runtime.cluster.questions import Questions

log = logging.getLogger("distboost")

# To send so many bytes to the coordinator takes less time than the exchange of messages among the workers.
FEW_BYTES = 2**21
# Fewer workers than this send their sums to the owners directly.
LEAST_GROUPED = 6


def exchange_pays(n_bytes: int, n_workers: int) -> bool:
    """Whether workers add and search histograms faster than the coordinator; `n_bytes`: of the largest question of a tree."""
    return n_workers * n_bytes > FEW_BYTES


def group_size(n_workers: int) -> int:
    """Return the number of workers in a group: each sends about as many messages to its group as to other groups.

    >>> [group_size(n) for n in (2, 4, 8, 16, 1000)]
    [1, 1, 3, 4, 32]
    """
    return round(math.sqrt(n_workers)) if n_workers >= LEAST_GROUPED else 1


def grouped(sessions: list[int]) -> tuple[tuple[int, ...], ...]:
    """Divide sessions into groups.

    If each session owns one part, in this order, then each collects the part that it owns.
    """
    n = -(-len(sessions) // group_size(len(sessions)))
    return tuple(tuple(sessions[k::n]) for k in range(n))


class Owners:
    """The workers that own the histograms of the growing tree.

    The features are divided into parts when a tree begins. A part that is lost with its owner gets another one: the nodes of the
    tree that may still be split are summed again for its features.

    Parameters
    ----------
    crew : Crew
    questions : Questions
    n_bins : ndarray of shape (n_features,), int64
        Bins per feature, without the bin for missing values.
    n_classes : int
    """

    def __init__(self, crew: Crew, questions: Questions, n_bins: np.ndarray, n_classes: int):
        self._crew, self._questions = crew, questions
        self._n_bins, self._n_classes = n_bins, n_classes
        # Of each part: the positions of its features among the tree's.
        self._bounds: list[tuple[int, int]] = []
        self._owners: dict[int, int] = {}  # the session's id of each part that is not lost
        self._open: set[int] = set()  # the nodes that have histograms
        self._weight = 0
        self._numbers, self._attempts = itertools.count(1), itertools.count(1)

    # Questions.

    def expand(self, stage: str, question: HistogramQuestion | UpdateQuestion) -> Reply:
        """Sum the nodes of the question's expansion over all rows and search them."""
        self._crew.begin(stage)
        expansion = question.expansion
        assert expansion is not None, "a histogram is wanted"
        if expansion.root is not None:
            self._begin(expansion.root, expansion.features)
        reply = self._exchange(question, range(len(self._bounds)), next(self._numbers))
        assert reply.expanded is not None
        self._follow(expansion, reply.expanded)
        return reply

    def search(self, node: int, context: np.ndarray) -> BestSplits:
        """Find the best split of a node."""
        self._crew.begin("search")
        while True:
            self._settle(next(self._numbers))
            found: Expanded | None = self._questions.attempt("search", dict(self._owners), node, context)
            if found is not None:
                assert found.best is not None
                return found.best

    # An exchange.

    def _exchange(
        self,
        question: HistogramQuestion | UpdateQuestion,
        parts: Collection[int],
        number: int,
        keep: int | None = None,
    ) -> Reply:
        """Repeat attempts until all rows have contributed and all parts have been searched."""
        assert question.expansion is not None, "a histogram is wanted"
        keep = number if keep is None else keep
        begins = parts if question.expansion.root is not None else ()
        failed: Counter[int] = Counter()
        while True:
            self._settle(keep, begins)
            attempt = Attempt(
                next(self._attempts), number, keep,
                self._features,
                tuple(OwnedFeatures(n, *self._bounds[n], self._owners[n]) for n in parts),
                grouped([session.id for session in self._crew.sessions if session.keys]),
                len(question.expansion.build),
                self._n_channels,
                {session.id: self._crew.workers.peer(session.id) for session in self._crew.sessions},
                self._crew.workers.timeout,
            )  # fmt: skip
            reply: Reply | None = self._questions.attempt("expand", question, attempt)
            if reply is None:
                continue
            if reply.unreachable is None:
                return reply
            failed[reply.unreachable] += 1
            if failed[reply.unreachable] > 1:
                self._crew.cut_off(reply.unreachable)

    def _settle(self, keep: int, begins: Collection[int] = ()) -> None:
        """See that all blocks are held, and that all parts have an owner with the histograms of the open nodes.

        Parts that begin a tree need none.
        """
        while True:
            self._crew.settle()
            there = {session.id for session in self._crew.sessions if session.keys}
            lost = [n for n in range(len(self._bounds)) if self._owners.get(n) not in there]
            if not lost:
                return
            for n in lost:
                self._owners[n] = min(there, key=lambda id: (sum(o == id for o in self._owners.values()), id))
            lost = [n for n in lost if n not in begins]
            if lost and self._open:
                self._restore(lost, keep)

    def _restore(self, parts: list[int], keep: int) -> None:
        """Sum the open nodes again for parts whose owner was lost."""
        nodes = tuple(sorted(self._open))
        log.info(
            "the histograms of %d nodes are summed again for %d lost parts of the features",
            len(nodes),
            len(parts),
        )
        features = np.concatenate([self._features[slice(*self._bounds[n])] for n in sorted(parts)])
        expansion = Expansion(
            features, self._root, search=False, nodes=nodes, weight=self._weight, restores=True
        )
        self._exchange(HistogramQuestion(None, NO_SPLITS, expansion), parts, next(self._numbers), keep)

    # The tree.

    def _begin(self, root: Root, features: np.ndarray) -> None:
        """Divide the features among the workers that have rows, with equal numbers of bins."""
        assert root.statistic is not None
        self._root, self._features, self._open = root, features, set()
        self._n_channels = root.statistic.n_sums(self._n_classes) + 1 + (root.weight_factor > 0)
        self._crew.settle()
        sessions = [session.id for session in self._crew.sessions if session.keys]
        bins = np.cumsum(self._n_bins[features] + 1)
        n = min(len(sessions), len(features))
        ends = np.searchsorted(bins, bins[-1] * np.arange(1, n) / n)
        edges = [0, *ends.tolist(), len(features)]
        self._bounds = [(first, stop) for first, stop in pairwise(edges) if first < stop]
        self._owners = dict(enumerate(sessions[: len(self._bounds)]))

    def _follow(self, expansion: Expansion, expanded: Expanded) -> None:
        """Note which nodes have histograms, and the weight of the tree's rows."""
        if expansion.nodes:
            self._open, self._weight = {*expansion.nodes}, expansion.weight
            return
        if expansion.root is not None:
            assert expanded.sums is not None
            self._open = {0}
            self._weight = int(expanded.sums[-1])
            return
        self._open -= {*expansion.forgotten, *(pair.parent for pair in expansion.siblings)}
        for pair in expansion.siblings:
            self._open |= {pair.smaller, pair.larger}
