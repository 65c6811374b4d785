"""The algorithm's interface to the training data: sums over rows and best splits, but no rows and no histograms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence

import numpy as np

from distboost.rows.messages import (
    BestSplits,
    Expanded,
    GrownNodes,
    Losses,
    Root,
    RowCounts,
    Siblings,
    Splits,
    Step,
)
from distboost.rows.row_metrics import RowMetric
from distboost.rows.sums import Best, Reduced, Reduction, Scale, Weighting


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
