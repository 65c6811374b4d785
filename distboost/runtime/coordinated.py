"""The coordinator's side of a round, the same for every runtime.

`CoordinatedRows` keeps the scale of the integer sums, the queue of splits, the histograms of the growing tree and the losses.
A runtime supplies `_histogram`, `_sums` and `_update`: each asks all shards the same question and adds the answers.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence

import numpy as np

from distboost.rows.interface import Rows
from distboost.rows.messages import (
    BestSplits,
    GivenScores,
    HistogramQuestion,
    Losses,
    Root,
    RootQuestion,
    RowCounts,
    Siblings,
    SplitRules,
    Splits,
    Step,
    SumsQuestion,
    UpdateQuestion,
)
from distboost.rows.protocols import Reduction, Statistic, Weighting
from distboost.rows.reduced import Best, Reduced
from distboost.rows.scales import ENOUGH_BITS, HISTOGRAM_BITS, LOST_BITS, Scale, fine_bits
from distboost.splits.histograms import Histograms
from distboost.splits.tree_histograms import TreeHistograms
from distboost.threads import Threads

NO_FEATURES = np.zeros(0, np.int64)


class CoordinatedRows(Rows):
    """Rows whose shards answer questions.

    Parameters
    ----------
    n_bins : ndarray of shape (n_features,)
        Bins per feature, the one for missing values not counted.
    n_classes : int
    counts : tuple of RowCounts
        Of the training rows and, if there are any, of the evaluation rows.
    threads : Threads
        For the coordinator's own work.
    """

    def __init__(self, n_bins: np.ndarray, n_classes: int, counts: tuple[RowCounts, ...], threads: Threads):
        self.n_bins = n_bins
        self.n_features = len(n_bins)
        self.n_classes = n_classes
        self.counts = counts
        self.threads = threads
        self.calls = Counter()
        self.roots_asked = 0
        self.round = 1
        self.tree = TreeHistograms(n_bins, n_classes, threads)
        self._queue = Splits.empty()
        self._root: RootQuestion | None = None
        self._next_root: Root | None = None  # whose histogram came with the last update

    # What a runtime supplies.

    @abstractmethod
    def _histogram(self, question: HistogramQuestion, histograms: Histograms, slots: list[int]) -> np.ndarray:
        """Fills the slots with the histograms of ``question.build``, summed over all shards; a new tree's totals."""

    @abstractmethod
    def _sums(self, question: SumsQuestion) -> Reduced:
        """The reduction over the rows of all shards."""

    @abstractmethod
    def _update(
        self, question: UpdateQuestion, histograms: Histograms | None, slots: list[int]
    ) -> tuple[Reduced, np.ndarray]:
        """Updates all shards; fills the slot with the histogram of ``question.root``, if it has one, and gives its totals."""

    # A training.

    def begin(self, weighting: Weighting) -> None:
        """All scores are 0."""
        self.weighting = weighting
        self.round = 1
        self._initial = np.array(weighting.initial_shifts(self.n_classes), np.float64)
        self._shifts = [self._initial] * len(self.counts)
        self._bound = self._initial

    # A round.

    def start_tree(self, root: Root) -> None:
        shifts = self._bound if self.keeps_precision(root.statistic) else self._shifts[0]
        self._root = self._root_question(root, shifts)

    def init_root(
        self, root: Root, rules: SplitRules, search: bool = True
    ) -> tuple[np.ndarray, BestSplits | None]:
        came_with_update, self._next_root = self._next_root, None
        if not (root.same(came_with_update) and self.keeps_precision(root.statistic)):
            self.start_tree(root)
            self._ask_histograms([0], [self.tree.begin(root)])
            self.roots_asked += 1
        sums = self.tree.init_root(rules)
        return sums, self.tree.search([0]) if search else None

    def best_splits(self, siblings: Sequence[Siblings], search: bool = True) -> BestSplits | None:
        slots = self.tree.take_children(siblings)
        self._ask_histograms([pair.smaller for pair in siblings], slots)
        if search:
            return self.tree.search_children(siblings)
        self.tree.subtract_children(siblings)
        return None

    def best_split(self, node: int, context: np.ndarray) -> BestSplits:
        return self.tree.search([node], context)

    def forget(self, nodes: Sequence[int]) -> None:
        self.tree.forget(nodes)

    def keeps_precision(self, statistic: Statistic | None) -> bool:
        """Whether the statistic keeps its digits when it is scaled by the bound of the weights that the last update was given.

        So it can be computed in the update's own pass. But a large step may raise the bound far above the largest weight that
        the update reported: then that is the scale, whether or not the tree was begun already.
        """
        if statistic is None:
            return True
        above = statistic.shift(self._bound.tolist()) - statistic.shift(self._shifts[0].tolist())
        return above <= math.log(2) * max(LOST_BITS, self._bits(statistic) - ENOUGH_BITS)

    def _bits(self, statistic: Statistic) -> int:
        bits = fine_bits(self.counts[0].weight)
        return bits if statistic.wide else min(HISTOGRAM_BITS, bits)

    def _root_question(self, root: Root, shifts: np.ndarray) -> RootQuestion:
        """What it takes to begin a tree; its statistic is scaled by the shifts."""
        scale = Scale(0.0, 0)
        if root.statistic is not None:
            scale = Scale(root.statistic.shift(shifts.tolist()), self._bits(root.statistic))
        self._features, self.histogram_scale = root.features, scale
        self._queue = Splits.empty()
        return RootQuestion(root.statistic, scale, root.subsample, root.weight_factor)

    def split(self, splits: Splits) -> None:
        """The splits travel with the next question: they cost no round trip."""
        self._queue = Splits(*(np.concatenate(pair) for pair in zip(self._queue, splits, strict=True)))

    def _take_queue(self) -> Splits:
        queue, self._queue = self._queue, Splits.empty()
        return queue

    def _take_root(self) -> RootQuestion | None:
        root, self._root = self._root, None
        return root

    def _ask_histograms(self, nodes: list[int], slots: list[int]) -> None:
        """Sums the tree's statistics over the rows of each node, by feature and bin, into the slots."""
        self.calls["histogram"] += 1
        question = HistogramQuestion(
            self._take_root(), self._take_queue(), np.array(nodes, np.int64), self._features
        )
        totals = self._histogram(question, self.tree.histograms, slots)
        if question.root is not None:
            self.totals = totals

    def sums(self, reduction: Reduction, leaves: np.ndarray) -> np.ndarray:
        """The reduction over the rows of each leaf: real numbers, in units of e^shift."""
        return self.reduce(reduction, leaves)[0]

    def reduce(self, reduction: Reduction, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray, Best | None]:
        """The reduction's sums, maxima and best row."""
        self.calls["sums"] += 1
        scale = Scale.fine(reduction.shift(self._shifts[0].tolist()), self.counts[0].weight)
        question = SumsQuestion(self._take_root(), self._take_queue(), leaves, reduction, scale)
        answer = self._sums(question)
        return scale.real(answer.sums), answer.maxima, answer.best

    @property
    def shifts(self) -> np.ndarray:
        """The weighting's shifts on the training rows."""
        return self._shifts[0]

    def shift_of(self, reduction: Reduction) -> float:
        """The logarithm of the unit that the reduction's sums come in."""
        return reduction.shift(self._shifts[0].tolist())

    def update(
        self,
        steps: Sequence[Step],
        from_zero: bool = False,
        growth: np.ndarray | None = None,
        next_root: Root | None = None,
    ) -> list[Losses]:
        self.calls["update"] += 1
        before = self._shifts
        if growth is None:
            growth = np.sum([self.weighting.growth(step.values) for step in steps], axis=0)
            before = [self._initial] * len(before) if from_zero else before
        shifts = tuple(shift + growth for shift in before)
        factors = tuple(float(2 ** fine_bits(count.weight)) for count in self.counts)
        splits, self._bound = self._take_queue(), shifts[0]
        root, histograms, slots = None, None, []
        self._next_root = next_root
        if next_root is not None:
            root = self._root_question(next_root, self._bound)
            slots = [self.tree.begin(next_root)]
            histograms = self.tree.histograms
        question = UpdateQuestion(
            self.round, splits, tuple(steps), from_zero, self.weighting, shifts, factors, root,
            NO_FEATURES if next_root is None else next_root.features,
        )  # fmt: skip
        self.round += 1
        answer, totals = self._update(question, histograms, slots)
        if root is not None:
            self.totals = totals
        losses = []
        for m, count in enumerate(self.counts):
            errors, *sums = answer.sums[m]
            logs = self.weighting.log_totals(np.array(sums) / factors[m], shifts[m])
            losses.append(Losses(logs, int(errors) / count.weight_units, count.weight))
            self._shifts[m] = self.weighting.next_shifts(shifts[m], answer.maxima[m])
        if from_zero:
            self._round_shifts_up()
        return losses

    # Between trainings.

    def replay(self, steps: Sequence[Step], corrected: bool = False) -> list[Losses]:
        """An earlier round again: its steps are known, perhaps as later rounds have corrected them."""
        self._queue = Splits.empty()
        losses = self.update(steps)
        if corrected:
            self._round_shifts_up()
        return losses

    def continue_from(self, scores: np.ndarray, n_rounds: int) -> None:
        """The scores (n_rows, n_scores) that so many rounds have given to the training rows, of which there are no others."""
        if n_rounds:
            self.round = n_rounds
            self.replay([GivenScores(scores)])

    def _round_shifts_up(self) -> None:
        """Rounds the shifts up: scores computed anew and scores added up reach theirs in two ways, whose last digits differ."""
        self._shifts = [np.ceil(shift * 2**10) / 2**10 for shift in self._shifts]
        self._bound = self._shifts[0]
