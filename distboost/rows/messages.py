"""The algorithm's interface to the training data, `Rows`: sums and best splits, but no rows and no histograms. And its messages.

These go between the coordinator and the shards: small values, the same for every runtime.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from distboost.kernels.gains import Gain
from distboost.rows.block import BlockRows
from distboost.rows.row_metrics import RowMetric
from distboost.rows.sums import ERROR_FACTOR, Best, Reduced, Reduction, Scale, Statistic, Weighting

# (m, SET_WORDS) uint64: one set of bins for each split of categories, or no words if no feature has categories.
NO_SETS = np.zeros((0, 0), np.uint64)


class Splits(NamedTuple):
    """Splits to apply: the rows of node[m] are divided between left[m] and right[m]."""

    node: np.ndarray
    feature: np.ndarray
    bin: np.ndarray
    missing_left: np.ndarray
    left: np.ndarray
    right: np.ndarray
    sets: np.ndarray = NO_SETS  # of the bins that go left where `bin` is -1: see `BestSplits`

    @classmethod
    def of(cls, rows: Sequence[tuple[int, int, int, bool, int, int]]) -> Splits:
        """Return the splits; each row has the fields of one."""
        node, feature, bin, missing_left, left, right = np.array(rows, np.int64).reshape(-1, 6).T.copy()
        return cls(node, feature, bin, missing_left.astype(bool), left, right)


NO_SPLITS = Splits.of([])


@dataclass(frozen=True)
class Subsample:
    """The rows whose random number under `key` is below `fraction`; or as many, drawn by the weight of their statistic."""

    key: np.uint64
    fraction: float
    by_weight: bool = False


@dataclass(frozen=True)
class Draw:
    """The rows whose random number under `key`, times `threshold`, is below the magnitude of their statistic.

    Their statistic is divided by the probability of this, min(1, magnitude / threshold), and multiplied by `unit`.
    """

    key: np.uint64
    threshold: int
    unit: float


@dataclass(frozen=True)
class RootQuestion:
    """Begin a new tree: all rows are in node 0. Compute the statistic that its histograms sum, if there is one."""

    statistic: Statistic | None
    scale: Scale
    subsample: Subsample | Draw | None
    weight_factor: float  # of the rows' own weights, if they are summed too: else 0


class SplitRules(NamedTuple):
    """The splits that a tree may have, and the gain that compares them."""

    gain: Gain
    min_rows: int  # on either side
    min_weight_fraction: float  # of the weight of all rows in the tree, on either side
    constants: tuple[float, ...] = ()  # of the gain, if it has any: see `kernels.gains.context_of`


class Root(NamedTuple):
    """The root of a new tree: its features and rows, the statistic that its histograms sum, and the search for its splits."""

    features: np.ndarray  # (m,) int64, ascending
    statistic: Statistic | None
    subsample: Subsample | None
    weight_factor: float  # of the rows' own weights, if they are summed too: else 0
    most_histograms: int = 1  # nodes whose histograms are needed at the same time
    rules: SplitRules | None = None  # None for a tree without histograms
    search: bool = True  # whether the best split of the root is wanted
    # Whether the tree has other features too, which are summed and searched in other questions: memory is for these alone.
    is_window: bool = False

    def same(self, other: Root | None) -> bool:
        """Whether both begin the same tree."""
        if other is None or other is self:
            return other is self
        return all(_same(a, b) for a, b in zip(self, other, strict=True))


def _same(a: Any, b: Any) -> bool:
    """Compare small values that may contain arrays."""
    if a is b:
        return True
    if is_dataclass(a) and type(a) is type(b):
        return all(_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else a == b


class Siblings(NamedTuple):
    """A node and its two children. The smaller child is summed; the larger one is the parent minus the smaller."""

    parent: int
    smaller: int
    larger: int


class BestSplits(NamedTuple):
    """The best split of each of m nodes; its gain is 0 if no split gains anything."""

    gain: np.ndarray  # (m,) float64
    value: np.ndarray  # (m,) float64: the value of both children together
    feature: np.ndarray  # (m,) int64
    bin: np.ndarray  # (m,) int64: this bin and those below go left; -1: those of a set do
    missing_left: np.ndarray  # (m,) bool
    n_left: np.ndarray  # (m,) int64 rows
    n_right: np.ndarray  # (m,) int64 rows
    # (m, n) int64: sums over the rows on the left, as those of `Rows.init_root`; zero where there is no split
    left: np.ndarray
    # (m, SET_WORDS or 0) uint64: the bins that go left, one bit each. Those of bins that are unknown in the node, and of missing
    # values, are equal to `missing_left`. No words: no feature has categories.
    sets: np.ndarray

    @classmethod
    def none(cls, m: int, n_channels: int, n_words: int = 0) -> BestSplits:
        """Return the splits of m nodes that have none yet."""
        gain, value = np.zeros((2, m))
        feature, bin, n_left, n_right = np.zeros((4, m), np.int64)
        left, sets = np.zeros((m, n_channels), np.int64), np.zeros((m, n_words), np.uint64)
        return cls(gain, value, feature, bin, np.zeros(m, bool), n_left, n_right, left, sets)

    def combined(self, other: BestSplits) -> BestSplits:
        """Return the better split of each node, over other features. Ties go to the lower feature."""
        better = (other.value > self.value) | ((other.value == self.value) & (other.feature < self.feature))
        found, there = self.gain > 0, other.gain > 0
        better = (there & ~found) | ((there == found) & better)
        return BestSplits._make(
            np.where(better if mine.ndim == 1 else better[:, None], theirs, mine)
            for mine, theirs in zip(self, other, strict=True)
        )

    def followed_by(self, other: BestSplits) -> BestSplits:
        """Return the splits of these nodes, then those of others."""
        return BestSplits._make([np.concatenate(pair) for pair in zip(self, other, strict=True)])


@dataclass(frozen=True)
class Expansion:
    """A change of the nodes that have histograms.

    The histograms of the nodes `forgotten` are dropped. Then a new tree begins (`root`), or nodes that were split pass their
    histograms on to their children (`siblings`): the smaller children are summed.

    Instead of a new tree, some `nodes` of a tree may begin: they are summed over `features`, and all others are dropped. If it
    `restores`, this is for features whose histograms were lost, and those of other features are kept. The nodes may have
    children already.
    """

    features: np.ndarray  # (m,) int64, ascending: those of the tree that are summed and searched
    root: Root | None = None
    forgotten: tuple[int, ...] = ()
    siblings: tuple[Siblings, ...] = ()
    search: bool = True  # whether the best splits of the root or of the children are wanted
    nodes: tuple[int, ...] = ()
    weight: int = 0  # of all rows of the tree, if it is not new
    restores: bool = False

    @property
    def build(self) -> np.ndarray:
        """The nodes that are summed over the rows, (m,) int64."""
        if self.root is None:
            return np.array([pair.smaller for pair in self.siblings], np.int64)
        return np.array(self.nodes or (0,), np.int64)


class Expanded(NamedTuple):
    """The answer to an `Expansion`."""

    sums: np.ndarray | None  # (n,) int64: over the histogram of a new tree's root
    best: BestSplits | None  # of the root, or of the smaller children and then of the larger ones

    def of_features(self, features: np.ndarray) -> Expanded:
        """Return the answer with the features of the data, (m,) int64, instead of their positions in `features`."""
        if self.best is None:
            return self
        return self._replace(best=self.best._replace(feature=features[self.best.feature]))

    def combined(self, other: Expanded) -> Expanded:
        """Return the answer over the features of both."""
        if self.best is None or other.best is None:
            return self
        return self._replace(best=self.best.combined(other.best))


class GrownNodes(NamedTuple):
    """The nodes of a tree that was grown as a whole, by number. The root is node 0."""

    inner: np.ndarray  # (m,) int64: the nodes that were split, in this order
    child: np.ndarray  # (n,) int64: the left child, if it was split; the right one has the next number
    sign: np.ndarray  # (n,) int64: see `kernels.signed_leaves`; 0 if leaves have none
    sums: np.ndarray  # (n, n_channels) int64, as those of `Rows.init_root`
    best: BestSplits  # of each node


@dataclass(frozen=True)
class HistogramQuestion:
    """Apply the splits, then sum the histograms that the expansion names. None: begin the tree, without a histogram."""

    root: RootQuestion | None
    splits: Splits
    expansion: Expansion | None = None


@dataclass(frozen=True)
class SumsQuestion:
    """Apply the splits, then sum over the rows of each leaf."""

    root: RootQuestion | None
    splits: Splits
    leaves: np.ndarray
    reduction: Reduction
    scale: Scale
    number: int = 0  # of the set of rows


class Step(Protocol):
    """A step: a weak learner with the values that it adds to the scores."""

    @property
    def values(self) -> np.ndarray:
        """The values that the step adds to the scores, (n_leaves, n_scores) float64."""

    def add(self, block: BlockRows, missing_bin: np.ndarray, partitioned: bool) -> None:
        """Add the step to the block's scores; `partitioned`: whether the block's rows are still partitioned by the last tree."""


@dataclass(frozen=True)
class UpdateQuestion:
    """Apply the splits, add the steps to the scores, and report the losses. A shard applies it only once per round."""

    round: int
    splits: Splits
    steps: tuple[Step, ...]
    from_zero: bool  # the steps are the whole ensemble: the scores start from 0
    weighting: Weighting
    shifts: tuple[np.ndarray, ...]  # of the training rows, then of the evaluation rows
    factors: tuple[float, ...]
    root: RootQuestion | None = None  # of the next round's tree, if that is known
    expansion: Expansion | None = None  # by the root of this tree, if its histogram is wanted too
    metrics: tuple[RowMetric, ...] = ()  # of the evaluation rows, besides their losses


class GivenScores(NamedTuple):
    """Scores of every training row that were computed elsewhere."""

    values: np.ndarray  # (n_rows, n_scores) float64

    def add(self, block: BlockRows, missing_bin: np.ndarray, partitioned: bool) -> None:
        """Add the block's part of the scores."""
        block.scores[block.present] += self.values[block.first + block.present]


class Losses(NamedTuple):
    """The losses of one set of rows after a round."""

    # (m,) float64: logarithms of the rows' total weights under the algorithm's weighting, or of their losses
    log_weights: np.ndarray
    error: float  # fraction of misclassified rows
    n: float  # the rows' own total weight: their number, unless they are weighted
    metrics: tuple[float, ...] = ()  # further metrics of evaluation rows

    @property
    def mean(self) -> float:
        """The rows' mean weight, all columns together; infinite if it overflows a float."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_weights - math.log(self.n)).sum())


class RowCounts(NamedTuple):
    """The size of a set of rows, without rows of weight 0."""

    n_rows: int
    weight_units: int  # the total weight, in units of 1/ERROR_FACTOR
    weighted: bool  # some row weighs other than 1
    digest: tuple[int, int] = (0, 0)  # by content, and by number and content: see kernels/digest.py

    @property
    def weight(self) -> float:
        """The total weight of the rows."""
        return self.weight_units / ERROR_FACTOR


@dataclass(frozen=True)
class ReplayLog:
    """The steps and questions that bring rows which are read again to the same state as the others.

    Attributes
    ----------
    round : int
        The last round whose steps were added to the scores.
    steps : tuple of Steps
        The steps of all rounds.
    questions : tuple of HistogramQuestion or SumsQuestion
        The questions since that round.
    """

    round: int = 0
    steps: tuple[Step, ...] = ()
    questions: tuple[HistogramQuestion | SumsQuestion, ...] = ()

    def with_question(self, question: HistogramQuestion | SumsQuestion | UpdateQuestion) -> ReplayLog:
        """Return a log with one more question."""
        if isinstance(question, HistogramQuestion):
            question = replace(question, expansion=None)  # a replay sums nothing
        if not isinstance(question, UpdateQuestion):
            return replace(self, questions=(*self.questions, question))
        begun = () if question.root is None else (HistogramQuestion(question.root, NO_SPLITS),)
        return ReplayLog(
            question.round, question.steps if question.from_zero else (*self.steps, *question.steps), begun
        )


EMPTY_LOG = ReplayLog()


class Rows(ABC):
    """The training rows (and evaluation rows) of one run, wherever they are.

    Attributes
    ----------
    n_bins : ndarray of shape (n_features,), int64
        Bins per feature, without the bin for missing values.
    categorical : ndarray of shape (n_features,), bool
        Whether a feature's bins are categories.
    n_features, n_classes : int
    counts : tuple of RowCounts
        The size of the training rows and of each set of evaluation rows.
    weight_scale : float
        The power of two by which the rows' weights were multiplied.
    whole_weights : bool
        Whether the weights are whole numbers, so that a row of weight 2 counts as two rows.
    calls : Counter
        Questions asked so far, by kind: each is one round trip on a cluster.
    roots_asked : int
        Questions for the histogram of a root alone; other roots came with an update.
    round : int
        The current round, from 1.
    histogram_scale : Scale
        The scale of the current tree's sums.
    totals : ndarray of shape (n_totals,), int64
        The statistic's totals over all rows of the tree, in units of `histogram_scale`.
    shifts : ndarray of shape (n_shifts,), float64
        The weighting's shifts on the training rows.
    """

    n_bins: np.ndarray
    categorical: np.ndarray
    n_features: int
    n_classes: int
    counts: tuple[RowCounts, ...]
    weight_scale: float
    whole_weights: bool
    calls: Counter[str]
    roots_asked: int
    round: int
    histogram_scale: Scale
    totals: np.ndarray

    # A training run.

    @abstractmethod
    def begin(self, weighting: Weighting, metrics: Sequence[RowMetric] = ()) -> None:
        """Set all scores to 0. Updates report the losses of evaluation rows, and these metrics."""

    @abstractmethod
    def passes(self) -> dict[str, int]:
        """Return the rows visited so far, by kind of loop."""

    @property
    def workers_lost(self) -> int:
        """The number of workers lost so far."""
        return 0

    @abstractmethod
    def close(self) -> None:
        """Release blocks, threads and workers."""

    # Trees.

    @abstractmethod
    def start_tree(self, root: Root) -> None:
        """Begin a new tree with the next question."""

    def grow(self, root: Root, max_depth: int | None, max_leaf_nodes: int | None) -> GrownNodes | None:
        """Grow a whole tree where the rows are, if one process has them all, and if that takes less time than questions.

        With `max_leaf_nodes`, it grows best first. None: nothing was done. Questions about nodes have the same splits.
        """
        return None

    @abstractmethod
    def init_root(self, root: Root) -> Expanded:
        """Begin a new tree with the histogram of its root, node 0, which may have come with the last update.

        Returns
        -------
        sums : ndarray of shape (n,), int64
            The statistic's sums over all rows of the tree, the number of rows and, with a weight factor, their weight.
        best : BestSplits or None
            The best split of the root; None without a search.
        """

    @abstractmethod
    def split(self, splits: Splits) -> None:
        """Split nodes. The splits travel with the next question and cost no round trip."""

    @abstractmethod
    def best_splits(self, siblings: Sequence[Siblings], search: bool = True) -> BestSplits | None:
        """Sum the children of nodes that were split, and find the best split of each.

        Returns
        -------
        best : BestSplits or None
            The best splits of the smaller child of each pair, then of the larger ones; None without a search. The histograms of
            nodes without a split are dropped.
        """

    @abstractmethod
    def best_split(self, node: int, context: np.ndarray) -> BestSplits:
        """Find the best split of a node that was summed, with a gain that depends on the rest of the tree."""

    @abstractmethod
    def forget(self, nodes: Sequence[int]) -> None:
        """Drop the histograms of nodes that will not be split further."""

    # Sums and updates.

    @abstractmethod
    def sums(self, reduction: Reduction, leaves: np.ndarray) -> np.ndarray:
        """Return the sums of a reduction over the rows of each leaf, (n_leaves, ..) float64, in units of e^shift."""

    @abstractmethod
    def leaf_sums(self, root: Root, leaves: np.ndarray) -> np.ndarray:
        """Return the sums of the root's statistic over all rows of each leaf, and set `totals` to its totals over all rows.

        Returns
        -------
        sums : ndarray of shape (n_leaves, n), int64
            In units of `histogram_scale`, followed by the number of rows and, with a weight factor, their weight.
        """

    @abstractmethod
    def reduce(self, reduction: Reduction, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray, Best | None]:
        """Return the reduction's sums, maxima and best row."""

    @abstractmethod
    def evaluated(self, reduction: Reduction, number: int = -1) -> Reduced:
        """Return a reduction over a set of rows: 0 are the training rows, -1 the last evaluation rows. It has no leaves."""

    @property
    @abstractmethod
    def shifts(self) -> np.ndarray:
        """The weighting's shifts on the training rows."""

    @abstractmethod
    def shift_of(self, reduction: Reduction) -> float:
        """Return the logarithm of the unit of the reduction's sums."""

    @abstractmethod
    def update(
        self,
        steps: Sequence[Step],
        from_zero: bool = False,
        growth: np.ndarray | None = None,
        next_root: Root | None = None,
    ) -> list[Losses]:
        """Add the steps to the scores.

        Parameters
        ----------
        steps : sequence of Step
        from_zero : bool
            Whether the steps are the whole ensemble, so that the scores start from 0.
        growth : ndarray of shape (n_shifts,), float64, or None
            A bound on the rise of the weighting's shifts. None: the bound follows from the steps.
        next_root : Root or None
            The root of the next tree, if it is known: the same pass begins this tree and sums the histogram of its root.

        Returns
        -------
        losses : list of Losses
            The losses of the training rows and of each set of evaluation rows.
        """

    @abstractmethod
    def replay(self, steps: Sequence[Step], corrected: bool = False) -> list[Losses]:
        """Add the steps of an earlier round again, which later rounds may have `corrected`."""

    @abstractmethod
    def continue_from(self, scores: np.ndarray, n_rounds: int) -> None:
        """Set the scores of the training rows, (n_rows, n_scores) float64, to those after `n_rounds` rounds.

        There must be no evaluation rows.
        """
