"""The histograms of a growing tree's nodes, and the search for their best splits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from distboost.kernels.categories import MIN_ROWS, set_words
from distboost.kernels.gains import NO_CONTEXT, Gain, context_of
from distboost.kernels.split_search import subtract_features
from distboost.rows.messages import BestSplits, Expanded, Expansion, Root
from distboost.splits.best_splits import SearchRules, search
from distboost.splits.histograms import Histograms
from distboost.threads import Threads


def load_search(gain: Gain) -> None:
    """Load the kernels of the search with a gain, or compile them, by a search of histograms without rows."""
    features, histograms = np.zeros(1, np.int64), Histograms(np.ones(1, np.int64), 1)
    histograms.pool[:] = 0
    with Threads(1) as threads:
        search(histograms, [0], [], features=features, rules=SearchRules(gain, 0), threads=threads)


class TreeHistograms:
    """Keeps the histograms of nodes that may still be split, and reuses their memory from tree to tree.

    Parameters
    ----------
    n_bins : ndarray of shape (n_features,), int64
        Bins per feature, without the bin for missing values.
    categorical : ndarray of shape (n_features,), bool
        Whether a feature's bins are categories.
    n_classes : int
    threads : Threads
        The threads of the search.
    own : ndarray of shape (m,), int64, or None
        The features that have histograms here. None: all.
    n_words : int or None
        Words of the sets of best splits. None: none, unless these features have categories.

    Attributes
    ----------
    slots : dict of int to int
        The slot of each node that has a histogram.
    """

    def __init__(
        self,
        n_bins: np.ndarray,
        categorical: np.ndarray,
        n_classes: int,
        *,
        threads: Threads,
        own: np.ndarray | None = None,
        n_words: int | None = None,
    ):
        self._n_bins, self._categorical = n_bins, categorical
        self._n_words = set_words(categorical) if n_words is None else n_words
        self._n_classes, self._threads, self._own = n_classes, threads, own
        self._histograms: Histograms | None = None
        self.slots: dict[int, int] = {}

    @property
    def histograms(self) -> Histograms:
        """The histograms of the growing tree."""
        assert self._histograms is not None, "a tree was begun"
        return self._histograms

    # A change of the nodes: `prepare`, then the caller fills the slots, then `answer`.

    def prepare(self, expansion: Expansion) -> list[int]:
        """Return the slots of the nodes that are to be summed. Their content is arbitrary.

        The larger children take over the slots of their parents.
        """
        if expansion.root is not None:
            nodes = expansion.build.tolist()
            self._begin(expansion.root, expansion.features, max(expansion.root.most_histograms, len(nodes)))
            slots = self.histograms.take(len(nodes))
            self.slots = dict(zip(nodes, slots, strict=True))
            return slots
        self._forget(expansion.forgotten)
        slots = self.histograms.take(len(expansion.siblings))
        for pair, slot in zip(expansion.siblings, slots, strict=True):
            self.slots[pair.larger] = self.slots.pop(pair.parent)
            self.slots[pair.smaller] = slot
        return slots

    def answer(self, expansion: Expansion) -> Expanded:
        """Compute the histograms of the larger children and find the best splits, if they are wanted."""
        if expansion.nodes:
            self._set_weight(expansion.weight)
            slots = [self.slots[node] for node in expansion.nodes]
            best = self._search(slots, [], self._context) if expansion.search else None
            return Expanded(None, best)
        if expansion.root is not None:
            return Expanded(self._root_sums(), self.search([0]) if expansion.search else None)
        smaller = [self.slots[pair.smaller] for pair in expansion.siblings]
        larger = [self.slots[pair.larger] for pair in expansion.siblings]
        if expansion.search:
            return Expanded(None, self._search(smaller, larger, self._context))
        pool, offsets = self.histograms.pool, self.histograms.offsets
        for _, one, other in expansion.siblings:
            subtract_features(pool[self.slots[other]], pool[self.slots[one]], self._features, offsets)
        return Expanded(None, None)

    def _begin(self, root: Root, features: np.ndarray, n_nodes: int) -> None:
        """Drop the histograms of the previous tree."""
        assert root.statistic is not None, "trees without a statistic have no histograms"
        assert root.rules is not None
        self._features, self._min_weight_fraction = features, root.rules.min_weight_fraction
        self._rules = rules = SearchRules(
            root.rules.gain,
            root.statistic.n_sums(self._n_classes),
            root.rules.min_rows,
            weighted=root.weight_factor > 0,
            categorical=self._categorical,
            least_category=MIN_ROWS * int(root.weight_factor or 1),
            n_words=self._n_words,
        )
        constants, unit = root.rules.constants, 1 / root.weight_factor if rules.weighted else 1.0
        self._context = context_of(constants, rules.mass_channel, unit) if constants else NO_CONTEXT
        n_channels = rules.mass_channel + 1
        self._forget(list(self.slots))
        if root.is_window:
            self._histograms = None  # frees the memory of other features
        if self._histograms is None or self._histograms.n_used != n_channels:
            own = features if root.is_window else self._own
            self._histograms = Histograms(self._n_bins, n_channels, n_nodes, own)

    def _root_sums(self) -> np.ndarray:
        """Return the sums over the root's histogram, (n_channels,) int64."""
        histograms, d = self.histograms, self._features[0]
        first, stop = histograms.offsets[d], histograms.offsets[d + 1]
        sums: np.ndarray = histograms.pool[self.slots[0], first:stop, : histograms.n_used].sum(axis=0)
        self._set_weight(int(sums[self._rules.mass_channel]))
        return sums

    def _set_weight(self, weight: int) -> None:
        """Accept the weight of all rows of the tree."""
        self._rules = replace(self._rules, min_weight=math.ceil(self._min_weight_fraction * weight))

    def search(self, nodes: list[int], context: np.ndarray | None = None) -> BestSplits:
        """Find the best splits of nodes that have histograms. `context`: of the gain; None: that of the tree's rules."""
        context = self._context if context is None else context
        return self._search([self.slots[node] for node in nodes], [], context)

    def _search(self, summed: list[int], subtracted: list[int], context: np.ndarray) -> BestSplits:
        """Search the nodes in the slots `summed`, and their siblings, in the slots `subtracted` of their parents."""
        return search(
            self.histograms,
            summed,
            subtracted,
            features=self._features,
            rules=self._rules,
            threads=self._threads,
            context=context,
        )

    def _forget(self, nodes: Sequence[int]) -> None:
        """Free the slots of nodes that will not be split. After a loss, not all of them were restored."""
        slots = [self.slots.pop(node) for node in nodes if node in self.slots]
        if slots:
            self.histograms.give_back(slots)
