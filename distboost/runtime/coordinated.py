"""The coordinator's side of a round, the same for every runtime.

`CoordinatedRows` keeps the scale of the integer sums, the queue of splits and the losses. A runtime supplies `_expand`,
`_search`, `_sums` and `_update`: each asks all shards the same question and adds the answers. Where the histograms of the growing
tree lie, and who searches them, is the runtime's affair.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from distboost.errors import LimitError
from distboost.kernels import simd
from distboost.rows.messages import (
    NO_SPLITS,
    BestSplits,
    Draw,
    Expanded,
    Expansion,
    GivenScores,
    HistogramQuestion,
    Losses,
    Root,
    RootQuestion,
    RowCounts,
    Rows,
    Siblings,
    Splits,
    Step,
    SumsQuestion,
    UpdateQuestion,
)
from distboost.rows.row_metrics import N_SUMS, RowMetric, mean
from distboost.rows.sampling import SampleBits, sample_bits, threshold
from distboost.rows.sums import Best, Reduced, Reduction, Scale, Statistic, Weighting, fine_bits, most_bits
from distboost.runtime.base import Layout
from distboost.threads import Threads
from distboost.weights.sampled import LeafSums, Magnitudes, Sampled


class Windows:
    """Divides questions about histograms into several, none of which needs more than the given memory.

    No histogram is kept. So both children of a split are summed, and nothing is subtracted.

    Parameters
    ----------
    n_bytes : int
        Of the sums of a question in one process.
    n_bins : ndarray of shape (n_features,), int64
        Bins per feature, without the bin for missing values.
    """

    def __init__(self, n_bytes: int, n_bins: np.ndarray):
        self._n_bytes, self._n_bins = n_bytes, n_bins

    def begin(self, root: Root, n_classes: int) -> None:
        """Begin a new tree."""
        assert root.statistic is not None
        n_channels = root.statistic.n_sums(n_classes) + 1 + (root.weight_factor > 0)
        self._root, self._bin_bytes = root._replace(is_window=True), 8 * simd.padded_sums(n_channels)
        self._weight = 0

    def expanded(self, ask: Callable[[Expansion], Expanded]) -> Expanded:
        """Return the answer to the question that begins the tree."""
        found = None
        for window in self._windows(1):
            answer = ask(Expansion(window, self._root, search=self._root.search))
            found = answer if found is None else found.combined(answer)
        assert found is not None
        assert found.sums is not None
        self._weight = int(found.sums[-1])
        return found

    def best_splits(
        self, ask: Callable[[Expansion], Expanded], siblings: Sequence[Siblings]
    ) -> BestSplits | None:
        """Return the best splits of the smaller children, then those of the larger ones."""
        nodes = [pair.smaller for pair in siblings] + [pair.larger for pair in siblings]
        found: BestSplits | None = None
        most = self._most_nodes()
        for some in (nodes[n : n + most] for n in range(0, len(nodes), most)):
            best: BestSplits | None = None
            for window in self._windows(len(some)):
                answer = ask(Expansion(window, self._root, nodes=tuple(some), weight=self._weight)).best
                assert answer is not None
                best = answer if best is None else best.combined(answer)
            assert best is not None
            found = best if found is None else found.followed_by(best)
        return found

    def best_split(
        self,
        ask: Callable[[Expansion], Expanded],
        search: Callable[[int, np.ndarray], BestSplits],
        node: int,
        context: np.ndarray,
    ) -> BestSplits:
        """Return the best split of a node, with a gain that depends on the rest of the tree."""
        best: BestSplits | None = None
        for window in self._windows(1):
            ask(Expansion(window, self._root, search=False, nodes=(node,), weight=self._weight))
            answer = search(node, context)
            best = answer if best is None else best.combined(answer)
        assert best is not None
        return best

    def _most_nodes(self) -> int:
        """Return the number of nodes that can be summed over one feature."""
        return max(self._n_bytes // (self._bin_bytes * int((self._n_bins[self._root.features] + 1).max())), 1)

    def _windows(self, n_nodes: int) -> Iterator[np.ndarray]:
        """Yield as many features as fit, (m,) int64, until all had their turn."""
        features = self._root.features
        ends = np.cumsum(self._n_bins[features] + 1)
        most = self._n_bytes // (self._bin_bytes * n_nodes)
        first, before = 0, 0
        while first < len(features):
            stop = max(int(np.searchsorted(ends, before + most, side="right")), first + 1)
            yield features[first:stop]
            first, before = stop, int(ends[stop - 1])


NO_LEAVES = np.zeros(0, np.int64)
NOT_EXPANDED = Expanded(None, None)


class CoordinatedRows(Rows):
    """Rows whose shards answer questions.

    Parameters
    ----------
    layout : Layout
    counts : tuple of RowCounts
        The training rows and each set of evaluation rows.
    threads : Threads
        The threads of the coordinator.
    """

    def __init__(self, layout: Layout, counts: tuple[RowCounts, ...], threads: Threads):
        self.n_bins, self.n_classes = layout.n_bins, layout.n_classes
        self.categorical, self.n_features = layout.categorical, len(layout.n_bins)
        self.weight_scale, self.whole_weights = layout.weight_scale, layout.whole_weights
        self._windows = None if layout.window_bytes is None else Windows(layout.window_bytes, layout.n_bins)
        self.counts = counts
        _check_weights(counts)
        self._weight = counts[0].weight
        self._factors = tuple(float(2 ** fine_bits(count.weight)) for count in counts)
        self.threads = threads
        self.calls = Counter()
        self.roots_asked = 0
        self.round = 1
        self._queue = NO_SPLITS
        self._root: RootQuestion | None = None
        self._next_root: Root | None = None  # whose histogram came with the last update
        self._root_expanded = NOT_EXPANDED
        self._forgotten: list[int] = []  # nodes whose histograms are dropped with the next question

    # To be implemented by a runtime.

    @abstractmethod
    def _expand(self, question: HistogramQuestion) -> tuple[np.ndarray, Expanded]:
        """Sum the histograms over all shards, and change them by the question's expansion, if it has one.

        Return the totals of a new tree's statistic, (n_totals,) int64, and the answer to the expansion.
        """

    @abstractmethod
    def _search(self, node: int, context: np.ndarray) -> BestSplits:
        """Find the best split of a node that has a histogram."""

    @abstractmethod
    def _sums(self, question: SumsQuestion) -> Reduced:
        """Compute the reduction over the rows of all shards."""

    @abstractmethod
    def _update(self, question: UpdateQuestion) -> tuple[Reduced, np.ndarray, Expanded]:
        """Update all shards; if the question has an expansion, sum the histogram of the next root and change the histograms.

        Return the losses of all shards, the totals of the root's statistic, (n_totals,) int64, and the answer to the expansion.
        """

    def _grows(self, root: Root) -> bool:
        """Whether the tree that begins with this root will be grown by `grow`: its histogram is not needed before."""
        return False

    # A training run.

    def begin(self, weighting: Weighting, metrics: Sequence[RowMetric] = ()) -> None:
        """Begin a training run with all scores 0."""
        self.weighting, self._metrics = weighting, tuple(metrics)
        self.round = 1
        self._initial = np.array(weighting.initial_shifts(self.n_classes), np.float64)
        self._shifts = [self._initial] * len(self.counts)
        self._bound = self._before = self._initial

    # A round.

    def start_tree(self, root: Root) -> None:
        self._root = self._root_question(root, self._best_shifts(root.statistic))

    def init_root(self, root: Root) -> Expanded:
        announced = self._is_announced(root)
        if _is_by_weight(root) or not announced or self._root_expanded is NOT_EXPANDED:
            if _is_by_weight(root):
                self._start_sampled_tree(root, announced)
            elif not announced:
                self.start_tree(root)
            if self._windows is None:
                self._root_expanded = self._ask_histograms(Expansion(root.features, root, search=root.search))
            else:
                self._windows.begin(root, self.n_classes)
                self._root_expanded = self._windows.expanded(self._ask_histograms)
            self.calls["histogram"] += 1
            self.roots_asked += 1
        return self._root_expanded

    def _is_announced(self, root: Root) -> bool:
        """Whether the last update has begun this tree, and precisely enough."""
        came_with_update, self._next_root = self._next_root, None
        return root.same(came_with_update) and self._keeps_precision(root.statistic, self.histogram_scale)

    def _start_sampled_tree(self, root: Root, announced: bool) -> None:
        """Begin a tree on rows that are drawn by weight, from their magnitudes, which may have come with the last update."""
        assert root.statistic is not None
        assert root.subsample is not None
        shifts = self._best_shifts(root.statistic)
        if not announced:
            magnitudes = self._magnitudes_question(root, shifts)
            self.totals, _ = self._expand(HistogramQuestion(magnitudes, NO_SPLITS))
            self.calls["magnitudes"] += 1
            self.roots_asked += 1
        wanted = root.subsample.fraction * self.counts[0].n_rows
        bits, question = _sample_bits(root, self.counts[0]), self._root_question(root, shifts)
        found = min(threshold(self.totals.reshape(-1, 2), wanted), bits.largest)
        draw = Draw(root.subsample.key, found, bits.unit)
        scale = replace(question.scale, bits=bits.prepared)
        self._root = replace(question, statistic=Sampled(root.statistic, draw), subsample=draw, scale=scale)
        self.histogram_scale = replace(scale, bits=bits.summed)

    def best_splits(self, siblings: Sequence[Siblings], search: bool = True) -> BestSplits | None:
        self.calls["histogram"] += 1  # one question, into however many it is divided
        if self._windows is not None:
            return self._windows.best_splits(self._ask_histograms, siblings) if search else None
        forgotten, self._forgotten = tuple(self._forgotten), []
        expansion = Expansion(self._features, None, forgotten, tuple(siblings), search)
        best = self._ask_histograms(expansion).best
        if best is not None:
            nodes = [pair.smaller for pair in siblings] + [pair.larger for pair in siblings]
            self.forget([node for node, gain in zip(nodes, best.gain.tolist(), strict=True) if not gain > 0])
        return best

    def best_split(self, node: int, context: np.ndarray) -> BestSplits:
        if self._windows is not None:
            return self._windows.best_split(self._ask_histograms, self._search, node, context)
        return self._search(node, context)

    def forget(self, nodes: Sequence[int]) -> None:
        self._forgotten += nodes

    def _best_shifts(self, statistic: Statistic | None) -> np.ndarray:
        """Return the shifts that scale a tree's statistic: those of the bound of the last update, or the exact ones."""
        bound = self._scale(statistic, self._bound)
        return self._bound if self._keeps_precision(statistic, bound) else self._shifts[0]

    def _keeps_precision(self, statistic: Statistic | None, bound: Scale) -> bool:
        """Whether the statistic is precise enough when it is scaled by the bound on the weights of the last update.

        If so, the update computes it in its own pass. But a large step may raise the bound far above the largest weight that
        the update reports. Then the largest weight is the scale, whether or not the tree was begun already.
        """
        if statistic is None:
            return True
        exact = self._scale(statistic, self._shifts[0])
        above = bound.shift - exact.shift - math.log(2) * (bound.bits - exact.bits)
        return above <= math.log(2) * statistic.bits_to_lose(exact.bits)

    def _scale(self, statistic: Statistic | None, shifts: np.ndarray) -> Scale:
        """Return the scale of a statistic if the weighting's shifts are at most `shifts`."""
        if statistic is None:
            return Scale(0.0, 0)
        return statistic.scale(shifts.tolist(), self._before.tolist(), self._weight, self.counts[0].n_rows)

    def _root_question(self, root: Root, shifts: np.ndarray) -> RootQuestion:
        """Return the question that begins a tree, whose statistic is scaled by the shifts."""
        self._features, self._queue = root.features, NO_SPLITS
        self.histogram_scale = scale = self._scale(root.statistic, shifts)
        return RootQuestion(root.statistic, scale, root.subsample, root.weight_factor)

    def _magnitudes_question(self, root: Root, shifts: np.ndarray) -> RootQuestion:
        """Return the question for the magnitudes from which the root's rows are drawn."""
        assert root.statistic is not None
        self.histogram_scale = self._scale(root.statistic, shifts)
        scale = Scale(self.histogram_scale.shift, _sample_bits(root, self.counts[0]).prepared)
        return RootQuestion(Magnitudes(root.statistic), scale, None, root.weight_factor)

    def split(self, splits: Splits) -> None:
        """Queue the splits: they travel with the next question and cost no round trip."""
        queued = zip(self._queue, splits, strict=True)
        self._queue = Splits._make(map(np.concatenate, queued)) if len(self._queue.node) else splits

    def _taken(self) -> tuple[RootQuestion | None, Splits]:
        """Return the new tree and the queue of splits, which travel with the next question."""
        found = self._root, self._queue
        self._root, self._queue = None, NO_SPLITS
        return found

    def _ask_histograms(self, expansion: Expansion) -> Expanded:
        if expansion.root is not None:
            self._forgotten = []  # the new tree drops all histograms
        question = HistogramQuestion(*self._taken(), expansion)
        totals, expanded = self._expand(question)
        if question.root is not None:
            self.totals = totals
        return expanded

    def sums(self, reduction: Reduction, leaves: np.ndarray) -> np.ndarray:
        """Return the sums of a reduction over the rows of each leaf, (n_leaves, ..) float64, in units of e^shift."""
        return self.reduce(reduction, leaves)[0]

    def leaf_sums(self, root: Root, leaves: np.ndarray) -> np.ndarray:
        assert root.statistic is not None
        self.calls["sums"] += 1
        reduction = LeafSums(root.statistic, root.weight_factor)
        sums = self._sums(SumsQuestion(*self._taken(), leaves, reduction, self.histogram_scale)).sums
        self.totals = sums[-1, : root.statistic.n_totals]
        return sums[:-1]

    def reduce(self, reduction: Reduction, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray, Best | None]:
        """Return the sums, the maxima and the best row of a reduction."""
        self.calls["sums"] += 1
        scale = Scale.fine(reduction.shift(self._shifts[0].tolist()), self._weight)
        answer = self._sums(SumsQuestion(*self._taken(), leaves, reduction, scale))
        return scale.real(answer.sums), answer.maxima, answer.best

    def evaluated(self, reduction: Reduction, number: int = -1) -> Reduced:
        at = range(len(self.counts))[number]
        return self._sums(SumsQuestion(None, NO_SPLITS, NO_LEAVES, reduction, Scale(0.0, 0), at))

    @property
    def shifts(self) -> np.ndarray:
        """The weighting's shifts on the training rows, (n_shifts,) float64."""
        return self._shifts[0]

    def shift_of(self, reduction: Reduction) -> float:
        """Return the logarithm of the unit of the reduction's sums."""
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
            growth = np.add.reduce([self.weighting.growth(step.values) for step in steps])
            before = [self._initial] * len(before) if from_zero else before
        shifts, factors, splits = tuple([shift + growth for shift in before]), self._factors, self._queue
        self._queue, self._bound, self._before = NO_SPLITS, shifts[0], before[0]
        root, expansion, by_weight = None, None, _is_by_weight(next_root)
        if self._windows is not None and not by_weight:
            next_root = None  # its histogram does not fit in one question
        self._next_root = next_root
        if next_root is not None and by_weight:
            root = self._magnitudes_question(next_root, self._bound)
        elif next_root is not None:
            root = self._root_question(next_root, self._bound)
            if not self._grows(next_root):
                expansion = Expansion(next_root.features, next_root, search=next_root.search)
            self._forgotten = []
        question = UpdateQuestion(
            self.round, splits, tuple(steps), from_zero, self.weighting, shifts, factors, root,
            expansion, self._metrics,
        )  # fmt: skip
        self.round += 1
        answer, totals, expanded = self._update(question)
        if root is not None:
            self.totals, self._root_expanded = totals, expanded
        losses, first = [], answer.sums.shape[1] - len(self._metrics) * N_SUMS
        for m, count in enumerate(self.counts):
            sums, units = answer.sums[m], count.weight_units
            logs = self.weighting.log_totals(sums[1:first] / factors[m], shifts[m])
            metrics = sums[first:].reshape(-1, N_SUMS)
            means = tuple(mean(one, units) for one in metrics) if m > 0 else ()
            losses.append(Losses(logs, int(sums[0]) / units, count.weight, means))
            self._shifts[m] = self.weighting.next_shifts(shifts[m], answer.maxima[m])
        if from_zero:
            self._round_shifts_up()
        return losses

    # Between runs.

    def replay(self, steps: Sequence[Step], corrected: bool = False) -> list[Losses]:
        """Replay an earlier round from its steps, which later rounds may have `corrected`."""
        self._queue = NO_SPLITS
        losses = self.update(steps)
        if corrected:
            self._round_shifts_up()
        return losses

    def continue_from(self, scores: np.ndarray, n_rounds: int) -> None:
        """Set the scores of the training rows, (n_rows, n_scores) float64, to those after `n_rounds` rounds.

        There must be no evaluation rows.
        """
        if n_rounds:
            self.round = n_rounds
            self.replay([GivenScores(scores)])

    def _round_shifts_up(self) -> None:
        """Round the shifts up, so that a resumed training has the same ones.

        Scores that are computed from zero and scores that are added up round by round lead to different last digits.
        """
        self._shifts = [np.ceil(shift * 2**10) / 2**10 for shift in self._shifts]
        self._bound = self._before = self._shifts[0]


def _check_weights(counts: Sequence[RowCounts]) -> None:
    """Raise LimitError if the weights of a set of rows are too small beside the largest weight."""
    for count in counts:
        if count.n_rows and not count.weight_units:
            raise LimitError(
                f"the weights of {count.n_rows} rows are so far below the largest weight of the training rows that their sum "
                "is rounded to 0.",
                remedy="Choose weights that differ less, or set the weights of these rows to 0.",
                value=count.n_rows,
            )


def _sample_bits(root: Root, count: RowCounts) -> SampleBits:
    """Return the bits of the statistic of a tree whose rows are drawn by weight."""
    assert root.statistic is not None
    assert root.subsample is not None
    wide = root.statistic.wide
    return sample_bits(most_bits(count.weight, wide), wide, count, root.subsample.fraction)


def _is_by_weight(root: Root | None) -> bool:
    """Whether the rows of a tree are drawn by weight."""
    return root is not None and root.subsample is not None and root.subsample.by_weight
