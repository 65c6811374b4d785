"""What an algorithm sees of the training data: sums over rows and best splits, never the rows and never a histogram."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence

import numpy as np

from distboost.rows.messages import BestSplits, Losses, Root, RowCounts, Siblings, SplitRules, Splits, Step
from distboost.rows.protocols import Reduction, Statistic, Weighting
from distboost.rows.reduced import Best
from distboost.rows.scales import Scale


class Rows(ABC):
    """The training rows (and evaluation rows) of one training, wherever they are.

    Attributes
    ----------
    n_bins : ndarray of shape (n_features,)
        Bins per feature, the one for missing values not counted.
    n_features, n_classes : int
    counts : tuple of RowCounts
        Of the training rows and, if there are any, of the evaluation rows.
    calls : Counter
        Questions asked so far, by kind: each is one round trip on a cluster.
    roots_asked : int
        Questions for the histogram of a root alone; other roots came with an update.
    round : int
        The round under way, from 1.
    histogram_scale : Scale
        Of the sums of the tree under way.
    totals : ndarray of shape (n_totals,), int64
        The statistic's totals over all rows of the tree, in units of `histogram_scale`.
    shifts : ndarray
        The weighting's shifts on the training rows.
    """

    n_bins: np.ndarray
    n_features: int
    n_classes: int
    counts: tuple[RowCounts, ...]
    calls: Counter[str]
    roots_asked: int
    round: int
    histogram_scale: Scale
    totals: np.ndarray

    # A training.

    @abstractmethod
    def begin(self, weighting: Weighting) -> None:
        """Set all scores to 0."""

    @abstractmethod
    def passes(self) -> dict[str, int]:
        """Return the rows visited so far, by kind of loop."""

    @abstractmethod
    def close(self) -> None:
        """Free what the rows hold: blocks, threads, workers."""

    # Trees.

    @abstractmethod
    def start_tree(self, root: Root) -> None:
        """Begin a new tree with the next question."""

    @abstractmethod
    def init_root(
        self, root: Root, rules: SplitRules, search: bool = True
    ) -> tuple[np.ndarray, BestSplits | None]:
        """Begin a new tree with the histogram of its root, node 0, which may have come with the last update.

        Returns
        -------
        sums : ndarray of shape (n,), int64
            Over all rows of the tree: the statistic's sums, the number of rows and, with a weight factor, their weight.
        best : BestSplits or None
            Of the root; None without a search.
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
            Of the smaller child of each pair, then of the larger ones; None without a search. Nodes without a split
            are forgotten.
        """

    @abstractmethod
    def best_split(self, node: int, context: np.ndarray) -> BestSplits:
        """Find the best split of a node that was summed, with a gain that depends on the rest of the tree."""

    @abstractmethod
    def forget(self, nodes: Sequence[int]) -> None:
        """Drop what is known of nodes that will not be split further."""

    @abstractmethod
    def keeps_precision(self, statistic: Statistic | None) -> bool:
        """Return whether the statistic keeps its digits when it is computed in the pass of the update."""

    # Sums and updates.

    @abstractmethod
    def sums(self, reduction: Reduction, leaves: np.ndarray) -> np.ndarray:
        """Return the reduction over the rows of each leaf: real numbers, in units of e^shift."""

    @abstractmethod
    def reduce(self, reduction: Reduction, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray, Best | None]:
        """Return the reduction's sums, maxima and best row."""

    @property
    @abstractmethod
    def shifts(self) -> np.ndarray:
        """The weighting's shifts on the training rows."""

    @abstractmethod
    def shift_of(self, reduction: Reduction) -> float:
        """Return the logarithm of the unit that the reduction's sums come in."""

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
            The steps are the whole ensemble: the scores start from 0.
        growth : ndarray or None
            Bound of the rise of the weighting's shifts, where the steps' own bound would be too wide.
        next_root : Root or None
            The tree that comes next, if it is known: it is begun, and the histogram of its root summed, in the same pass.

        Returns
        -------
        losses : list of Losses
            Of the training rows and, if there are any, of the evaluation rows.
        """

    @abstractmethod
    def replay(self, steps: Sequence[Step], corrected: bool = False) -> list[Losses]:
        """Add the steps of an earlier round again, perhaps as later rounds have corrected them."""

    @abstractmethod
    def continue_from(self, scores: np.ndarray, n_rounds: int) -> None:
        """Set the scores (n_rows, n_scores) that so many rounds gave to the training rows; there are no evaluation rows."""
