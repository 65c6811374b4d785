"""The best split of each node, from the node's histogram."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from distboost.kernels.categories import MIN_ROWS, ordering_of
from distboost.kernels.gains import NO_CONTEXT, Gain
from distboost.kernels.split_search import best_splits_by
from distboost.rows.messages import BestSplits
from distboost.splits.histograms import Histograms
from distboost.threads import Threads

SUMS_PER_THREAD = 2**17  # with fewer, a thread costs more time than it saves


@dataclass(frozen=True)
class SearchRules:
    """What splits of a tree's nodes are searched for: the tree's `SplitRules`, in the units of its histograms.

    Attributes
    ----------
    gain : Gain
    n_sums : int
        Channels of a histogram that hold sums of the statistic.
    min_rows : int
        Rows that each side of a split must have.
    min_weight : int
        Weight that each side of a split must have, in the units of the histograms.
    weighted : bool
        Whether the histograms sum row weights; otherwise each row has weight 1.
    categorical : ndarray of shape (n_features,), bool, or None
        Whether a feature's bins are categories. None: no feature's.
    least_category : int
        A category that has this weight, in the units of the histograms, is known in a node, even if it has few rows.
    n_words : int
        Words of the sets in the answer. They have some if other features have categories, too, which are searched elsewhere.
    """

    gain: Gain
    n_sums: int
    min_rows: int = 1
    min_weight: int = 0
    weighted: bool = False
    categorical: np.ndarray | None = None
    least_category: int = MIN_ROWS
    n_words: int = 0

    @property
    def mass_channel(self) -> int:
        """The last channel of a histogram, which has the mass of its rows: their weight, or their number."""
        return self.n_sums + self.weighted


def search(
    histograms: Histograms,
    built: list[int],
    parents: list[int],
    *,
    features: np.ndarray,
    rules: SearchRules,
    threads: Threads,
    context: np.ndarray = NO_CONTEXT,
) -> BestSplits:
    """Return the best splits of the nodes in the slots `built`, then those of their siblings.

    Parameters
    ----------
    histograms : Histograms
    built : list of int
        The slots of nodes that have their own histograms.
    parents : list of int
        The slots of the parents of these nodes, or none. The sibling's histogram replaces the parent's there.
    features : ndarray of shape (f,), int64
        The features to search, ascending.
    rules : SearchRules
    threads : Threads
    context : ndarray of shape (2, k), float64
        What a gain must know beside the sums of a split.
    """
    own, siblings = np.array(built, np.int64), np.array(parents, np.int64)
    pool = histograms.pool
    best_splits = best_splits_by(rules.gain)
    categorical = rules.categorical
    if categorical is None:
        categorical = np.zeros(len(histograms.offsets) - 1, bool)
    ordering = ordering_of(categorical)

    def search_features(group: np.ndarray) -> BestSplits:
        found = BestSplits.none(len(own) + len(siblings), histograms.n_used, rules.n_words)
        best_splits(
            pool,
            own,
            siblings,
            group,
            histograms.offsets,
            categorical,
            rules.n_sums,
            rules.weighted,
            context,
            rules.min_rows,
            rules.min_weight,
            rules.least_category,
            ordering,
            found,
        )
        return found

    n_bins = int((histograms.offsets[features + 1] - histograms.offsets[features]).sum())
    n_sums = n_bins * (len(own) + len(siblings)) * histograms.n_used
    n_groups = max(min(threads.n, len(features), n_sums // SUMS_PER_THREAD), 1)
    if n_groups == 1:
        return search_features(features)
    return reduce(BestSplits.combined, threads.map(search_features, np.array_split(features, n_groups)))
